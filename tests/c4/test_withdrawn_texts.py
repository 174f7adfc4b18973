"""The text of a withdrawn page is dropped under any URL, in a crawl and in own text."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from c4_rules import clean_job, stage
from hypothesis import given
from hypothesis import strategies as st
from made_crawl import EARLY, wet_record

from t5repro.c4.clean import clean_shard
from t5repro.c4.own_text.read import read_own_text
from t5repro.config.load import load_settings
from t5repro.config.withdrawn import MIN_TEXT_CHARS, WithdrawnPages, text_hash
from t5repro.jobs.corpus import OwnTextJob

LINES = [
    "The old mill by the river turns slowly while the farmer carries grain.",
    "He has done so since the spring, and nobody asked him why he goes there.",
    "In winter the café by the bridge gives him a cup of tea and an old chair.",
]
TEXT = "\n".join(LINES)
NEAR = TEXT.replace("slowly", "quickly")
OTHER = "http://other.example/copy"


def listed(folder: Path, **lists: dict[str, str]) -> Path:
    path = folder / "pages.yaml"
    path.write_text(json.dumps({"texts": {text_hash(TEXT): "asked"}, **lists}))
    return path


def cleaned(
    folder: Path, name: str, pages: dict[str, str], withdrawn: Path | None
) -> tuple[list[str], dict]:
    """Clean a WET file; return the URLs of the rows, and the counts of reading."""
    data = "".join(wet_record(url, EARLY, text) for url, text in pages.items()).encode()
    wet = folder / name
    wet.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    settings = load_settings({"c4": {"require_pages": False}})
    job = clean_job(folder, settings, wet=[wet], withdrawn=withdrawn)
    clean_shard(job)
    rows = [url for path in job.pages for url in pq.read_table(path).column("url").to_pylist()]
    return rows, json.loads(job.manifest.read_text())["counters"]["read"]


@pytest.mark.parametrize("name", ["0.warc.wet", "0.warc.wet.gz"])
def test_the_text_of_a_withdrawn_page_is_dropped_under_another_url_and_a_near_one_stays(
    tmp_path: Path, name: str
) -> None:
    reflowed = "\r\n\r\n".join(f"  {line.replace(' ', '   ')}" for line in LINES)
    pages = {
        "http://a.example/same": TEXT,
        OTHER: reflowed,
        "http://a.example/decomposed": TEXT.replace("é", "e\u0301"),
        "http://a.example/near": NEAR,
        "http://a.example/more": f"{TEXT}\nMore.",
        "http://a.example/capitals": TEXT.upper(),
    }
    rows, read = cleaned(tmp_path, name, pages, listed(tmp_path))
    assert rows == list(pages)[3:]
    assert (read["read"], read["withdrawn"]) == (6, 3)


def test_the_page_of_a_lifted_entry_has_its_text_again(tmp_path: Path) -> None:
    pages = {"http://www.a.example/1": TEXT, OTHER: TEXT}
    withdrawn = listed(tmp_path, lifted={"a.example": "the owner agrees"})
    rows, _ = cleaned(tmp_path, "0.warc.wet", pages, withdrawn)
    assert rows == ["http://www.a.example/1"]


def test_lists_without_texts_change_no_byte(tmp_path: Path) -> None:
    pages = {OTHER: TEXT, "http://a.example/near": NEAR}
    shards = []
    for number, content in enumerate([None, "urls: {}\n", "urls: {'http://b.example/': x}\n"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        withdrawn = None if content is None else folder / "pages.yaml"
        if withdrawn:
            withdrawn.write_text(content)
        cleaned(folder, "0.warc.wet", pages, withdrawn)
        shards.append([path.read_bytes() for path in sorted(folder.rglob("*.parquet"))])
    assert shards[0] == shards[1] == shards[2] != []


@pytest.mark.parametrize("filters", ["off", "c4"])
def test_a_row_of_own_text_with_a_withdrawn_text_is_dropped(tmp_path: Path, filters: str) -> None:
    path = tmp_path / "own.jsonl"
    texts = [NEAR, f"\n{TEXT}\n", TEXT.replace("\n", " ")]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    settings = load_settings(
        {
            "corpus": {"files": ["own.jsonl"], "filters": filters, "language": "en"},
            "c4": {"require_pages": False},
        }
    )
    job = OwnTextJob(
        stage("corpus", settings),
        files=[path],
        root=tmp_path,
        folder=tmp_path / "out",
        manifest=tmp_path / "out/manifest.json",
        withdrawn=listed(tmp_path),
    )
    read_own_text(job)
    (rows,) = (tmp_path / "out").glob("*.parquet")
    assert pq.read_table(rows).column("record").to_pylist() == [0]
    assert json.loads(job.manifest.read_text())["counters"]["read"]["withdrawn"] == 2


def test_a_short_text_is_not_known_again() -> None:
    assert text_hash("404 Not Found") == ""
    assert text_hash("x" * (MIN_TEXT_CHARS - 1)) == ""
    assert len(text_hash("x" * MIN_TEXT_CHARS)) == 64
    assert not WithdrawnPages(texts={"": "x"}).has_text(OTHER, "404 Not Found")


@given(
    words=st.lists(st.text("abé.,中", min_size=5), min_size=12, max_size=30),
    spaces=st.lists(st.sampled_from([" ", "\n", "\r\n", "\t ", "\u00a0", "\u2003"]), min_size=31),
)
def test_only_white_space_and_composition_do_not_count(words: list[str], spaces: list[str]) -> None:
    text = "".join(word + space for word, space in zip(words, spaces, strict=False))
    assert text_hash(text) == text_hash(" ".join(words)) != ""
    assert text_hash(text) != text_hash(" ".join([*words, "a"]))
