"""The public summary of training content: every value is a count of the run, the rest is open."""

import csv
import json
from pathlib import Path
from typing import Any

import mlcroissant
import pytest
from made_exports import CORPUS, RUN, exported_run
from made_graphs import manifest

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.export import commands
from t5repro.export.ai_act import size_class
from t5repro.files import read_json, write_json

OUT = Path("exports/summary.json")
CRAWL = "https://data.commoncrawl.org/crawl-data/CC-MAIN-2019-18"
OPEN = {
    "1.1.provider",
    "1.2.market",
    "1.3.types",
    "1.3.other",
    "2.4.users",
    "2.5.synthetic",
    "2.6.other",
    "3.1.signatory",
    "3.1.signals",
}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run on a crawl with counts of rules and ids; the current folder."""
    root = exported_run(tmp_path / "checkout")
    monkeypatch.chdir(root)
    raw = "data/crawl/0.warc.wet"
    sources = [{"origin": CRAWL, "licence": "terms", "files": {"crawl/0.warc.wet": ""}}]
    data = {"data": {"folder": "data", "source": "", "sources": sources}}
    outputs = [raw, "data/tasks/one.tsv"]
    manifest(root, f"{RUN}/data/manifest.json", rule="data", outputs=outputs, settings=data)
    cleaned = f"{RUN}/c4_clean/a/0.manifest.json"
    manifest(root, cleaned, rule="c4_clean", inputs=[raw], outputs=[])
    path = root / CORPUS / "manifest.json"
    values = read_json(path)
    values["counters"]["rules"] = [
        {"rule": "withdrawn", "unit": "pages", "in": 12, "dropped": {"withdrawn": 2}, "kept": 10},
        {"rule": "bad_words", "unit": "pages", "in": 10, "dropped": {"bad_word": 3}, "kept": 7},
    ]
    write_json(path, values)
    shards = [file["path"] for file in values["outputs"]]
    tokens = {"train": {"tokens": 4321}}
    manifest(
        root,
        f"{RUN}/tokens/a/manifest.json",
        rule="tokens",
        inputs=shards,
        outputs=[],
        counters=tokens,
    )
    return root


def fields(**options: Any) -> dict[str, dict[str, Any]]:
    assert commands.export("ai-act", output=OUT, **options) == 0
    return {field["key"]: field for field in json.loads(OUT.read_text())["fields"]}


def test_every_value_is_a_count_of_the_run_and_the_rest_is_open_by_name(made: Path) -> None:
    summary = fields()
    values = {key: field["value"] for key, field in summary.items()}
    assert values["1.3.size"] == "less than 1 billion tokens (4,321 tokens)"
    assert values["1.3.languages"] == "en: 5 pages; ro: 2 pages"
    assert values["1.3.acquired"] == "2019-04-25T12:57:54Z"
    assert values["2.1.crawl"] == f"{CRAWL} (1 files; terms)"
    assert values["2.3.crawlers"] == "no: the crawl is Common Crawl's"
    assert values["3.1.opt_outs"] == "2 pages withdrawn on request were dropped"
    assert values["3.2.illegal"] == "lists of words dropped 3 pages"
    assert "bad_words: 7 of 10 pages kept" in values["3.3.other"]
    assert {key for key, field in summary.items() if field["open"]} >= OPEN
    assert all(field["value"] is None for field in summary.values() if field["open"])
    assert all(field["source"] for field in summary.values())


def test_signals_of_pages_stand_with_what_was_done_about_them(made: Path) -> None:
    path = made / CORPUS / "manifest.json"
    values = read_json(path)
    values["counters"]["signals"] = {"noai": 1200, "unknown": 3, "mentions_licence_link": 4}
    values["counters"]["rules"].insert(
        1, {"rule": "signals", "unit": "pages", "in": 10, "dropped": {"signal_noai": 2}, "kept": 8}
    )
    write_json(path, values)
    summary = fields()
    assert summary["3.1.signals"]["value"] == (
        "pages that were read, kept or not: mentions_licence_link 4, noai 1,200, unknown 3"
    )
    assert summary["3.1.opt_outs"]["value"] == (
        "2 pages withdrawn on request were dropped; 2 by a signal of the page"
    )
    assert commands.export("croissant", output=Path("croissant.json")) == 0
    document = read_json(Path("croissant.json"))
    assert "'noai': 1200" in str(document["rai:dataLimitations"]).replace('"', "'")
    assert "mentions and no licences" in str(document["rai:dataLimitations"])
    assert "signals: 8 of 10 pages kept" in str(document["rai:dataPreprocessingProtocol"])


def test_the_largest_domains_stand_beside_the_document(made: Path) -> None:
    top = fields()["2.1.domains"]["value"]
    assert top.startswith("the largest 1 of 3 hosts: en-train-00000-of-00002.example (")
    with Path("exports/summary.domains.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    texts = [f"page {number} of en-train-00000-of-00002" for number in range(3)]
    assert row == {
        "domain": "en-train-00000-of-00002.example",
        "pages": "3",
        "bytes": str(sum(map(len, texts))),
    }


def test_answers_fill_open_fields_and_never_contradict_a_count(made: Path) -> None:
    answers = made / "answers.yaml"
    answers.write_text("1.1.provider: Example Ltd\n3.2.illegal: lists of words dropped 3 pages\n")
    summary = fields(answers=answers)
    assert summary["1.1.provider"]["value"] == "Example Ltd"
    assert summary["1.1.provider"]["stated"]
    assert not summary["3.2.illegal"]["stated"]
    for text, message in {
        "1.3.size: much\n": r"1.3.size is 'much', and counter .* \(4,321 tokens\)",
        "9.9: x\n": "9.9 is no field; they are 1.1.provider",
        "1.1.provider: 3\n": "1.1.provider is 3; expected a text",
        "- x\n": "no table",
        "1.1.provider: [\n": "cannot be read",
    }.items():
        answers.write_text(text)
        with pytest.raises(LineageError, match=message):
            fields(answers=answers)
    with pytest.raises(LineageError, match="--answers belongs to --format ai-act"):
        commands.export("prov", answers=answers)


def test_a_summary_is_markdown_html_or_json(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "ai-act"]) == 0
    printed = capsys.readouterr().out
    assert (
        "| 1.1.provider | provider, and authorised representative | **open**: not known" in printed
    )
    assert main(["export", "--format", "ai-act", "--output", "s.html"]) == 0
    page = Path("s.html").read_text()
    assert "<td>less than 1 billion tokens (4,321 tokens)</td>" in page
    assert page.count("<tr>") == printed.count("\n| ") - 1


def test_an_altered_corpus_has_no_summary(made: Path) -> None:
    (made / CORPUS / "ro-train-00000-of-00001.parquet").write_bytes(b"PAR1")
    with pytest.raises(LineageError, match="ro-train-00000-of-00001.parquet was altered"):
        commands.export("ai-act")


@pytest.mark.parametrize(
    ("tokens", "name"),
    [
        (10**9 - 1, "less than 1 billion tokens"),
        (10**9, "1 billion to 10 trillion tokens"),
        (10**13, "more than 10 trillion tokens"),
    ],
)
def test_sizes_have_the_classes_of_the_template(tokens: int, name: str) -> None:
    assert size_class(tokens) == name


def test_croissants_library_reads_the_properties_of_responsible_use(made: Path) -> None:
    assert main(["export", "--format", "croissant", "--output", "croissant.json"]) == 0
    document = json.loads(Path("croissant.json").read_text())
    assert document["conformsTo"][1] == "http://mlcommons.org/croissant/RAI/1.0"
    metadata = mlcroissant.Dataset("croissant.json").metadata
    assert not metadata.ctx.issues.errors
    assert metadata.data_collection_type == ["Web Scraping"]
    assert CRAWL in metadata.data_collection_raw_data
    assert {str(time) for time in metadata.data_collection_timeframe} == {
        "2019-04-25 12:57:54+00:00"  # first and last time are equal here
    }
    assert metadata.data_manipulation_protocol.startswith("withdrawn: 10 of 12 pages kept")
    assert len(metadata.data_preprocessing_protocol) == 2
    assert metadata.personal_sensitive_information == ["not examined"]
    assert metadata.data_annotation_protocol is None
