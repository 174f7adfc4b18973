"""The corpus page: rows before and after corruption, kept and dropped text, vocabulary."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from t5repro.config.schema import Experiment, ReportStage, Settings
from t5repro.config.sections.data import RawFiles
from t5repro.config.sections.pretrain import Denoiser, PretrainSettings
from t5repro.config.sections.tokens import TokensStage
from t5repro.config.sections.vocab import VocabStage
from t5repro.files import sha256_of, write_manifest
from t5repro.jobs.corpus import TokensJob, VocabJob
from t5repro.jobs.report import ReportJob
from t5repro.report.corpus_page import CorpusFiles, corpus_page_text
from t5repro.report.page import write_report
from t5repro.report.training_rows import corrupted_rows, objective_settings, parts
from t5repro.report.vocabulary import read_pieces
from t5repro.vocab.encode import encode_corpus
from t5repro.vocab.special_ids import sentinel_piece
from t5repro.vocab.token_files import read_ids, read_offsets
from t5repro.vocab.train import make_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

from .conftest import CORPUS, HOSTILE, Run, run_settings

pytestmark = pytest.mark.keras

LINES = (
    "The old mill by the river turns slowly while the farmer carries his grain uphill.",
    "Two children watch the wheel and count every drop that falls from its blades.",
    "Die alte Mühle am Fluss dreht sich langsam, während der Bauer sein Korn hinaufträgt.",
)
PIECES, SENTINELS = 85, 20
LANGUAGE_MODEL = {"model.architecture": "language_model", "pretrain.objective": "lm"}
LENGTHS = {"inputs_length": 32, "targets_length": 32, "noise_mask": "random_spans"}


class Words(HTMLParser):
    """Collects tags, links and visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text.partition("<body>")[2])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.links += [values["href"] or ""] if "href" in values else []
        self.ids += [values["id"] or ""] if "id" in values else []

    def handle_data(self, data: str) -> None:
        self.text += data


def write_pages(language: str, texts: list[str]) -> Path:
    path = Path(f"c4/{language}-train-00000-of-00001.parquet")
    path.parent.mkdir(exist_ok=True)
    pages = {
        "url": [f"http://{language}.example/{number}" for number in range(len(texts))],
        "text": texts,
        "timestamp": ["2019-04-18T00:00:00Z"] * len(texts),
        "language": [language] * len(texts),
    }
    pq.write_table(pa.table(pages), path)
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusFiles:
    """Return the files of a corpus in two languages, and of its vocabulary."""
    monkeypatch.chdir(tmp_path)
    english = [f"{LINES[n % 2]} {n} {LINES[(n + 1) % 2]} {HOSTILE}" for n in range(60)]
    shards = [write_pages("en", english), write_pages("de", [LINES[2]] * 3)]
    Path("c4/manifest.json").write_text(json.dumps(CORPUS), encoding="utf-8")
    Path("sample.txt").write_text(
        "\n".join([*LINES, HOSTILE, "0 1 2 3 4 5 6 7 8 9"] * 20), encoding="utf-8"
    )
    model = Path("vocab/sentencepiece.model")
    model.parent.mkdir()
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {"vocab_size": PIECES, "extra_ids": SENTINELS}}),
            sample=Path("sample.txt"),
            model=model,
            pieces=model.with_suffix(".vocab"),
            manifest=Path("vocab/manifest.json"),
        )
    )
    arms = ("baseline", "no_pretraining", "lm")
    return CorpusFiles(
        manifests=dict.fromkeys(arms, Path("c4/manifest.json")),
        pages=dict.fromkeys(arms, shards),
        vocabularies=dict.fromkeys(arms, model),
    )


@pytest.fixture
def settings() -> Settings:
    """Return a run whose third arm is a language model."""
    run = run_settings()
    pretrain = run.pretrain.model_copy(update=LENGTHS)
    arms = [*run.experiments, Experiment(name="lm", change=LANGUAGE_MODEL)]
    return run.model_copy(update={"pretrain": pretrain, "experiments": arms})


def page_of(settings: Settings, files: CorpusFiles, trace: str = "report/trace.html") -> str:
    return corpus_page_text(
        settings,
        files,
        page=Path("report/corpus.html"),
        report=Path("report/report.html"),
        trace=Path(trace) if trace else None,
    )


def test_kept_and_dropped_pages_name_their_record_and_link_to_its_file(
    settings: Settings, files: CorpusFiles
) -> None:
    corpus = json.loads(json.dumps(CORPUS))
    corpus["counters"]["kept"] = {
        "en": [{"file": "0.wet", "record": 7, "url": "http://en.example/0"}],
        "de": [{"file": "other.wet", "record": 9, "url": "http://de.example/0"}],
    }
    dropped = corpus["counters"]["samples"]["curly_bracket"][0]
    corpus["counters"]["samples"]["curly_bracket"] = [dropped | {"file": "0.wet", "record": 3}]
    Path("c4/manifest.json").write_text(json.dumps(corpus), encoding="utf-8")
    source = RawFiles(origin="o", licence="l", files={"crawl/0.wet": "", "a/x": "", "b/x": ""})
    data = settings.data.model_copy(update={"folder": "raw", "sources": [source]})
    page = page_of(settings.model_copy(update={"data": data}), files)
    words = Words(page)
    assert words.text.count("record 7 of 0.wet") == words.text.count("record 3 of 0.wet") == 1
    assert words.text.count("record 9 of other.wet") == 1  # is no raw file of the run
    assert words.links.count("trace.html#file:raw.crawl.0.wet") == 2
    assert not any("other.wet" in link for link in words.links)
    assert "trace.html" not in page_of(settings, files, trace="")


def test_signals_of_pages_have_a_table_if_they_were_read(
    settings: Settings, files: CorpusFiles
) -> None:
    assert "signals" not in page_of(settings, files)
    corpus = json.loads(json.dumps(CORPUS))
    corpus["counters"]["signals"] = {"noai": 1, "unknown": 2, "mentions_licence_link": 3}
    Path("c4/manifest.json").write_text(json.dumps(corpus), encoding="utf-8")
    words = Words(page_of(settings, files))
    assert "#signals" in words.links
    assert words.text.count("mentions licence link") == words.text.count("Signals of pages") == 1
    assert "no licences" in words.text


def test_each_objective_of_the_run_has_its_rows_once(
    settings: Settings, files: CorpusFiles
) -> None:
    page = Words(page_of(settings, files))
    assert page.tags.count("ol") == 2  # the arm without pre-training has no rows
    assert "pretrain.objective: replace_spans" in page.text
    assert "pretrain.objective: lm" in page.text
    assert page.text.count("none: a language model has targets only") == 3
    assert page.text.count("http://en.example/0") == 3  # as a row of both, and as a kept page
    assert "mark" in page.tags


def test_the_rows_are_the_first_ids_of_the_corpus_and_the_spans_complete_them(
    settings: Settings, files: CorpusFiles
) -> None:
    shards, model = files.pages["baseline"], files.vocabularies["baseline"]
    write_manifest(
        Path("c4/real.json"), rule="c4", settings={}, inputs=[], outputs=shards, counters={}
    )
    encode_corpus(
        TokensJob(
            TokensStage.model_validate({"tokens": {"languages": ["en"]}}),
            corpus=Path("c4/real.json"),
            vocabulary=model,
            folder=Path("tokens"),
            manifest=Path("tokens/manifest.json"),
        )
    )
    ids = read_ids(Path("tokens/train.ids"), PIECES + SENTINELS)
    starts = read_offsets(Path("tokens/train.offsets"))
    pieces = [piece for piece, _ in read_pieces(model.with_suffix(".vocab"))]
    documents = {
        f"http://en.example/{number}": ids[starts[number] : starts[number + 1]].tolist()
        for number in range(5)
    }
    page = page_of(settings, files)
    for row in corrupted_rows(settings.pretrain, documents, pieces, seed=settings.seed):
        number = int(row.url.rpartition("/")[2])
        assert row.text == parts(documents[row.url][: row.tokens[0]], pieces)
        assert Vocabulary.load(model).decode(documents[row.url][: row.tokens[0]]) == (
            "".join(part.text for part in row.text).strip()
        )
        assert number < 3
        spans = dict(zip(*[iter(part.text for part in row.targets[:-1])] * 2, strict=True))
        whole = "".join(spans.get(part.text, part.text) for part in row.inputs[:-1])
        assert whole == "".join(part.text for part in row.text)
        assert row.tokens[1] <= settings.pretrain.inputs_length
        assert row.url in page


def test_equal_runs_have_equal_pages_and_another_seed_other_noise(
    settings: Settings, files: CorpusFiles
) -> None:
    first = page_of(settings, files)
    assert page_of(settings, files) == first
    assert page_of(settings.model_copy(update={"seed": 7}), files) != first


def test_text_of_the_crawl_is_only_text(settings: Settings, files: CorpusFiles) -> None:
    text = page_of(settings, files)
    page = Words(text)
    assert not {"script", "img", "iframe", "link"} & set(page.tags)
    assert HOSTILE in page.text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert '"default-src &#39;none&#39;; style-src &#39;sha256-' in text


def test_the_page_links_to_the_report_and_to_the_files_on_the_lineage_page(
    settings: Settings, files: CorpusFiles
) -> None:
    page = Words(page_of(settings, files))
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert {"report.html", "report.html#corpus", "trace.html"} <= set(page.links)
    assert "trace.html#file:c4.en-train-00000-of-00001.parquet" in page.links
    without = Words(page_of(settings, files, trace=""))
    assert not [link for link in without.links if link.startswith("trace")]


def test_dropped_text_is_shown_by_rule(settings: Settings, files: CorpusFiles) -> None:
    page = Words(page_of(settings, files))
    for rule in ("javascript", "bad word", "curly bracket"):
        assert rule in page.text
    assert "function () { return 1 }" in page.text


def test_a_run_without_a_corpus_shows_its_vocabulary_alone(
    settings: Settings, files: CorpusFiles
) -> None:
    page = Words(page_of(settings, CorpusFiles({}, {}, files.vocabularies)))
    assert {"objectives", "kept", "dropped"} & set(page.ids) == set()
    assert f"{PIECES} pieces" in page.text
    assert f"{SENTINELS} sentinels (ids {PIECES + SENTINELS - 1} down to {PIECES})" in page.text


def test_documents_too_short_for_a_segment_give_no_rows(settings: Settings) -> None:
    assert corrupted_rows(settings.pretrain, {"u": [5, 6]}, ["x"] * 9, seed=0) == []


def test_a_mixture_shows_the_first_document_under_each_denoiser(settings: Settings) -> None:
    denoisers = (
        Denoiser(mode_token="NLU"),
        Denoiser(objective="prefix_lm", noise_density=0.25, mode_token="S2S", weight=2),
    )
    change = {"objective": "mixture_of_denoisers", "denoisers": denoisers, "targets_length": 512}
    pretrain = PretrainSettings.model_validate({**settings.pretrain.model_dump(), **change})
    pieces = ["<pad>", "</s>", "<unk>", *"abcdefgh", *map(sentinel_piece, reversed(range(5)))]
    documents = {"u": [3, 4, 5, 6, 7, 8, 9, 10], "v": [3, 4, 5, 6]}
    rows = corrupted_rows(pretrain, documents, pieces, seed=0)
    assert [row.url for row in rows] == ["u", "u"]
    assert [row.inputs[0].text for row in rows] == ["<extra_id_4>", "<extra_id_3>"]
    prefix, continuation = rows[1].inputs[1].text, rows[1].targets[0].text
    assert prefix + continuation == "abcdefgh"
    run = settings.model_copy(update={"pretrain": pretrain})
    last = run.vocab.extra_ids - 1
    assert objective_settings(run)["denoiser_0"] == (
        f"[NLU] = <extra_id_{last}>, replace_spans, density 0.15, mean span 3.0, weight 1.0"
    )
    assert objective_settings(run)["denoiser_1"] == (
        f"[S2S] = <extra_id_{last - 1}>, prefix_lm, density 0.25, weight 2.0"
    )
    assert "noise_mask" not in objective_settings(run)


def test_a_masked_language_model_shows_its_masked_pieces(settings: Settings) -> None:
    change = {"objective": "masked_lm", "inputs_length": 12, "targets_length": 4}
    masked_lm = {"mask_share": 1.0, "random_share": 0.0}
    values = {**settings.pretrain.model_dump(), **change, "masked_lm": masked_lm}
    pretrain = PretrainSettings.model_validate(values)
    pieces = [
        "<pad>",
        "</s>",
        "<unk>",
        *"abcdefghijklmnop",
        *map(sentinel_piece, reversed(range(5))),
    ]
    (row,) = corrupted_rows(pretrain, {"u": [3, 4, 5, 6, 7, 8, 9, 10]}, pieces, seed=0)
    text, inputs = ("".join(part.text for part in side) for side in (row.text, row.inputs))
    (target,) = (part.text for part in row.targets)
    assert text == "[CLS]abcdefgh[SEP]"
    assert len(target) == round(0.15 * 10)
    assert inputs.replace("[MASK]", "{}").format(*target) == text
    run = settings.model_copy(update={"pretrain": pretrain})
    assert objective_settings(run)["masked_lm.unit"] == "piece"
    assert "noise_mask" not in objective_settings(run)


def test_an_arm_has_an_objective_if_it_reads_the_corpus_in_pretraining_or_fine_tuning(
    settings: Settings,
) -> None:
    still = settings.pretrain.model_copy(update={"steps": 0})
    mixed = settings.finetune.model_copy(update={"corpus_examples": 5})
    none = settings.model_copy(update={"pretrain": still})
    assert objective_settings(none) == {}
    for run in (settings, none.model_copy(update={"finetune": mixed})):
        assert objective_settings(run)["objective"] == "replace_spans"


def test_the_report_links_to_the_page_and_its_manifest_lists_all_files(
    run: Run, files: CorpusFiles
) -> None:
    run.settings = run.settings.model_copy(
        update={"pretrain": run.settings.pretrain.model_copy(update=LENGTHS)}
    )
    run.write()
    scores = {name: Path(f"score/{name}/scores.json") for name in run.scores}
    write_report(
        ReportJob(
            ReportStage(settings=run.settings),
            scores=scores,
            pretrain_history={name: Path(f"pretrain/{name}/history.csv") for name in scores},
            finetune_history={name: Path(f"finetune/{name}/history.csv") for name in scores},
            corpus={name: Path("c4/manifest.json") for name in scores},
            html=run.html,
            csv=run.csv,
            manifest=run.manifest,
            pages={name: files.pages[name] for name in scores},
            vocabularies={name: files.vocabularies[name] for name in scores},
            corpus_page=Path("report/corpus.html"),
        )
    )
    assert Words(run.html.read_text(encoding="utf-8")).links.count("corpus.html") == 2
    manifest = json.loads(run.manifest.read_text(encoding="utf-8"))
    inputs = {entry["path"] for entry in manifest["inputs"]}
    assert {
        "c4/en-train-00000-of-00001.parquet",
        "c4/de-train-00000-of-00001.parquet",
        "vocab/sentencepiece.model",
        "vocab/sentencepiece.vocab",
    } <= inputs
    outputs = {entry["path"]: entry["sha256"] for entry in manifest["outputs"]}
    assert outputs["report/corpus.html"] == sha256_of(Path("report/corpus.html"))
