"""The page of the corpus: rows before and after corruption, pages kept and dropped, vocabulary.

Only the first pages of the first file of each language are read and shown: the pages are ordered by
a hash of their URL, so these are practically random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from t5repro.config.corpus_files import corpus_file
from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.files import read_json
from t5repro.report.corpus import Place, corpora, place_of, safe_text
from t5repro.report.links import link
from t5repro.report.render_lineage import FILE_PREFIX, anchor
from t5repro.report.templates import render
from t5repro.report.training_rows import Row, corrupted_rows, objective_settings
from t5repro.report.vocabulary import language_use, read_pieces, vocabulary_view
from t5repro.vocab.corpus import read_pages
from t5repro.vocab.vocabulary import Vocabulary

PAGES_READ = 50  # of each language, for the counts of pieces
PAGES_SHOWN = 2  # of each language
PAGE_CHARS, URL_CHARS = 700, 300

Pages = dict[str, str]  # URL -> text


@dataclass(frozen=True)
class ObjectiveRows:
    """The rows of the arms that share an objective: its settings, and rows of the corpus."""

    arms: str
    settings: Mapping[str, str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class KeptPage:
    """The start of a page of the corpus, its length in characters, and its record of the crawl."""

    url: str
    text: str
    characters: str
    place: Place


@dataclass(frozen=True)
class KeptLanguage:
    """The first pages of a language, and the link to their file on the lineage page."""

    name: str
    file: str
    lineage: str
    pages: tuple[KeptPage, ...]


@dataclass(frozen=True)
class CorpusFiles:
    """The files that the page is made from.

    Attributes:
        manifests: arm -> manifest of its corpus.
        pages: arm -> first training file of each language of its corpus.
        vocabularies: arm -> its SentencePiece model; ``sentencepiece.vocab`` is in its folder.
    """

    manifests: Mapping[str, Path]
    pages: Mapping[str, Sequence[Path]]
    vocabularies: Mapping[str, Path]

    def read(self) -> list[Path]:
        """Return the files except the manifests, each once."""
        pages = [path for paths in self.pages.values() for path in paths]
        models = self.vocabularies.values()
        return list(dict.fromkeys([*pages, *models, *map(piece_list, models)]))


def piece_list(model: Path) -> Path:
    """Return the list of the pieces of a SentencePiece model."""
    return model.with_suffix(".vocab")


def corpus_page_text(
    settings: Settings, files: CorpusFiles, *, page: Path, report: Path, trace: Path | None
) -> str:
    """Return the page.

    Args:
        settings: of the run.
        files: the files that it is made from.
        page: the page; links are relative to its folder.
        report: the report.
        trace: the lineage page; None for no links to it.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    shards = [path for path in files.read() if corpus_file(path)]
    pages = {path: _first_pages(path) for path in shards}
    arms_of: dict[Path, list[str]] = {}
    for arm, model in files.vocabularies.items():
        arms_of.setdefault(model, []).append(arm)
    lineage = link(trace, page.parent) if trace else ""
    links = _links_of_raw_files(settings, lineage)
    places = _places(files, links)
    objectives: list[ObjectiveRows] = []
    views = []
    for model, arms in arms_of.items():
        vocabulary, listed = Vocabulary.load(model), read_pieces(piece_list(model))
        used = dict.fromkeys(path for arm in arms for path in files.pages.get(arm, ()))
        ids = {path: vocabulary.encode_batch(list(pages[path].values())) for path in used}
        uses = [
            language_use(_language(path), list(pages[path].values()), ids[path]) for path in used
        ]
        views.append(vocabulary_view(", ".join(arms), listed, uses))
        documents = {path: dict(zip(pages[path], ids[path], strict=True)) for path in used}
        names = [piece for piece, _ in listed]
        objectives += _objectives(settings, arms, files.pages, documents, names)
    counted = corpora(files.manifests, links)
    return render(
        "corpus.html.j2",
        run=settings.run.name,
        report=link(report, page.parent),
        lineage=lineage,
        objectives=objectives,
        kept=[_kept_language(path, pages[path], places[path], lineage=lineage) for path in pages],
        corpora=counted,
        with_signals=[corpus for corpus in counted if corpus.signals],
        vocabularies=views,
    )


def _first_pages(shard: Path) -> Pages:
    return dict(next(read_pages(shard), [])[:PAGES_READ])


def _language(shard: Path) -> str:
    file = corpus_file(shard)
    return file.language if file else ""


def _objectives(
    settings: Settings,
    arms: Sequence[str],
    shards: Mapping[str, Sequence[Path]],
    documents: Mapping[Path, Mapping[str, Sequence[int]]],
    pieces: Sequence[str],
) -> list[ObjectiveRows]:
    """Return the rows of each distinct objective of the arms that share a vocabulary.

    Args:
        settings: of the run.
        arms: the arms.
        shards: arm -> first training file of each language.
        documents: file -> URL -> ids of its first pages.
        pieces: pieces of the vocabulary by id.
    """
    groups: dict[tuple[tuple[tuple[str, str], ...], Path], list[str]] = {}
    for arm in arms:
        resolved = settings_of_experiment(settings, arm)
        objective = objective_settings(resolved)
        # Documents are in the order of the languages of `tokens`.
        first = resolved.tokens.languages[0]
        shard = next((path for path in shards.get(arm, ()) if _language(path) == first), None)
        if objective and shard is not None:
            groups.setdefault((tuple(objective.items()), shard), []).append(arm)
    return [
        ObjectiveRows(
            arms=", ".join(sharing),
            settings=dict(objective),
            rows=corrupted_rows(
                settings_of_experiment(settings, sharing[0]).pretrain,
                documents[shard],
                pieces,
                seed=settings.seed,
            ),
        )
        for (objective, shard), sharing in groups.items()
    ]


def _links_of_raw_files(settings: Settings, lineage: str) -> dict[str, str]:
    """Return name -> link to the file on the lineage page, for names that one raw file has."""
    paths: dict[str, list[str]] = {}
    for source in settings.data.sources if lineage else ():
        for name in source.files:
            path = PurePosixPath(settings.data.folder, name)
            paths.setdefault(path.name, []).append(path.as_posix())
    # Manifests name WET files without their folder: a name of two files has no certain link.
    return {
        name: _file_link(same_named[0], lineage)
        for name, same_named in paths.items()
        if len(same_named) == 1
    }


def _places(files: CorpusFiles, links: Mapping[str, str]) -> dict[Path, dict[str, Place]]:
    """Return shard -> URL -> record of its first pages, which the manifest of the corpus names."""
    places: dict[Path, dict[str, Place]] = {}
    for arm, shards in files.pages.items():
        kept_pages: dict[str, list[Any]] = read_json(files.manifests[arm])["counters"].get(
            "kept", {}
        )
        for shard in shards:
            entries = kept_pages.get(_language(shard), [])
            places[shard] = {entry["url"]: place_of(entry, links) for entry in entries}
    return places


def _kept_language(
    shard: Path, pages: Pages, places: Mapping[str, Place], *, lineage: str
) -> KeptLanguage:
    return KeptLanguage(
        name=_language(shard),
        file=shard.as_posix(),
        lineage=_file_link(shard.as_posix(), lineage),
        pages=tuple(
            KeptPage(
                url=safe_text(url, URL_CHARS),
                text=safe_text(text, PAGE_CHARS),
                characters=f"{len(text):,}",
                place=places.get(url, Place()),
            )
            for url, text in list(pages.items())[:PAGES_SHOWN]
        ),
    )


def _file_link(path: str, lineage: str) -> str:
    return f"{lineage}#{anchor(path, FILE_PREFIX)}" if lineage else ""
