"""The rule `sentences`: the sentences of the corpus as positions in its ids.

The systems before T5 make rows of whole sentences. Punkt splits each line of a page; the positions
of the pieces in one encoding of the whole page give the first id of each sentence, so that the ids
of `tokens` stay unchanged. `vocab.sentence_files` describes the files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Int64
from t5repro.c4.text.sentences import SentenceSplitter, Splitters, parameter_files
from t5repro.errors import ArtifactError
from t5repro.files import atomic_path, write_manifest
from t5repro.jobs.corpus import SentencesJob
from t5repro.progress import Progress
from t5repro.vocab.batches import in_order, pool_for
from t5repro.vocab.corpus import pages_in, read_pages, shards_of
from t5repro.vocab.piece_offsets import PieceOffsets, Pieces
from t5repro.vocab.sentence_files import sentence_file, word_starts_file
from t5repro.vocab.token_files import OFFSET_DTYPE, read_ids, read_offsets, split_files

SPLITS = ("train", "validation")
ENCODING_THREADS = 8  # the files do not depend on this number; the rule declares it


class _Document(NamedTuple):
    """A page of the corpus; both are empty if it has no text.

    Attributes:
        ids: its ids.
        starts: index of the first id of each sentence.
    """

    ids: Int64
    starts: Int64


_Work = Callable[[str, list[str]], list[_Document]]  # of texts in a language


def write_sentences(job: SentencesJob) -> None:
    """Write the first id of each sentence of both splits, and the pieces that begin a word.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another corpus.
        RawDataError: Punkt parameters cannot be read.
    """
    model = PieceOffsets.load(job.vocabulary)
    punkt, only = tuple(sorted(job.punkt.items())), job.settings.c4.punkt_language
    splitters = Splitters(job.punkt, only=only)
    counters: dict[str, Any] = {}
    inputs, outputs = [job.corpus, job.tokens, job.vocabulary], list[Path]()
    for split in SPLITS:
        shards = {
            language: shards_of(job.corpus, language, split)
            for language in job.settings.tokens.languages
        }
        ids = _Ids.open(job.tokens.parent, split, model.total_ids)
        output = sentence_file(job.folder, split)
        pages = [path for paths in shards.values() for path in paths]
        with pool_for(pages) as pool:
            work = (
                partial(_documents_in_process, job.vocabulary, punkt, only)
                if pool
                else partial(_documents, model, splitters, threads=ENCODING_THREADS)
            )
            counters[split] = _write_split(pool, work, shards, ids, output)
        inputs += split_files(job.tokens.parent, split)
        inputs += pages
        outputs.append(output)
    starts = model.word_starts()
    with atomic_path(word_starts_file(job.folder)) as path:
        starts.tofile(path)
    write_manifest(
        job.manifest,
        rule="sentences",
        settings=job.settings.model_dump(mode="json"),
        inputs=[*inputs, *parameter_files(job.punkt)],
        outputs=[*outputs, word_starts_file(job.folder)],
        counters={**counters, "word_starts": int(starts.sum())},
    )


def sentence_ends(text: str, splitter: SentenceSplitter) -> list[int]:
    """Return the position after the last character of each sentence; a line end ends one, too."""
    positions, offset = [], 0
    for line in text.split("\n"):
        positions += [offset + end for _, end in splitter.spans(line)]
        offset += len(line) + 1
    return positions


def sentence_starts(pieces: Pieces, end_positions: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the index of the first piece of each sentence of a text, ascending from 0.

    A piece that crosses the end of a sentence belongs to it. A sentence without a piece of its own
    is left out.

    Args:
        pieces: of the whole text, at least one.
        end_positions: position after each sentence.
    """
    # The white space between two sentences belongs to the first piece of the second one.
    following = np.searchsorted(pieces.begins, end_positions[:-1])
    starts = np.unique(np.append(0, following)).astype(np.int64)
    return starts[starts < len(pieces.ids)]


def _documents(
    model: PieceOffsets, splitters: Splitters, language: str, texts: list[str], *, threads: int
) -> list[_Document]:
    splitter, batch = splitters.of(language), model.encode_batch(texts, threads=threads)
    return [
        _Document(pieces.ids, sentence_starts(pieces, sentence_ends(text, splitter)))
        for text, pieces in zip(texts, batch, strict=True)
    ]


def _documents_in_process(
    path: Path, punkt: tuple[tuple[str, Path], ...], only: str, language: str, texts: list[str]
) -> list[_Document]:
    model, splitters = _loaded(path, punkt, only)
    # One page at a time: the positions of its pieces take many times the memory of its text.
    return [_documents(model, splitters, language, [text], threads=1)[0] for text in texts]


@cache
def _loaded(
    path: Path, punkt: tuple[tuple[str, Path], ...], only: str
) -> tuple[PieceOffsets, Splitters]:
    return PieceOffsets.load(path), Splitters(dict(punkt), only=only)


@dataclass
class _Ids:
    """The ids of a split, compared with the ids of one page after another."""

    path: Path
    ids: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]
    document: int = 0

    @classmethod
    def open(cls, folder: Path, split: str, total_ids: int) -> "_Ids":
        ids, offsets = split_files(folder, split)
        return cls(ids, read_ids(ids, total_ids), read_offsets(offsets))

    def start_of_next(self, ids: npt.NDArray[np.int64]) -> int:
        """Return the start of the next document, which must have these ids."""
        bounds = self.offsets[self.document : self.document + 2]
        if len(bounds) < 2 or not np.array_equal(self.ids[slice(*bounds)], ids):
            raise ArtifactError(
                f"document {self.document} of {self.path} has other ids than the corpus; it has "
                f"{len(self.offsets) - 1} documents: it was written from another corpus or "
                f"vocabulary; rerun the rule tokens"
            )
        self.document += 1
        return int(bounds[0])

    def check_end(self) -> None:
        """Raise `ArtifactError` if there are more documents."""
        if self.document != len(self.offsets) - 1:
            raise ArtifactError(
                f"{self.path} has {len(self.offsets) - 1} documents, the corpus {self.document}: "
                f"it was written from another corpus; rerun the rule tokens"
            )


@dataclass
class _Writer:
    """Appends the sentences of documents to an open file."""

    file: BinaryIO
    ids: _Ids
    counts: dict[str, int] = field(default_factory=lambda: {"documents": 0, "sentences": 0})

    def append(self, document: _Document) -> None:
        if not len(document.ids):
            return  # `tokens` leaves it out, too
        starts = self.ids.start_of_next(document.ids) + document.starts
        self.file.write(starts.astype(OFFSET_DTYPE).tobytes())
        self.counts["documents"] += 1
        self.counts["sentences"] += len(starts)


def _write_split(
    pool: ProcessPoolExecutor | None,
    work: _Work,
    shards: Mapping[str, list[Path]],
    ids: _Ids,
    output: Path,
) -> dict[str, Any]:
    """Write the sentences of a split; return its counts."""
    languages: dict[str, dict[str, int]] = {}
    total = sum(pages_in(paths) for paths in shards.values())
    with (
        atomic_path(output) as path,
        path.open("wb") as file,
        Progress(f"sentences {output.stem}", total=total, unit="pages") as progress,
    ):
        for language, paths in shards.items():
            writer = _Writer(file, ids)
            for documents in in_order(pool, partial(work, language), _texts(paths)):
                for document in documents:
                    writer.append(document)
                progress.advance(len(documents))
            languages[language] = writer.counts
        ids.check_end()
    sums = {
        name: sum(counts[name] for counts in languages.values())
        for name in ("documents", "sentences")
    }
    return {**sums, "languages": languages}


def _texts(paths: list[Path]) -> Iterator[list[str]]:
    for path in paths:
        for pages in read_pages(path):
            yield [text for _, text in pages]
