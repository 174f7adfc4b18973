"""Signals of pages through the rules of C4: counted, dropped, and without a trace if not read."""

import hashlib
import json
import shutil

import pyarrow.parquet as pq
import pytest
from c4_rules import build_corpus, clean_job, stage
from checkout import ROOT
from made_wat import response, wat_of

from t5repro.c4.clean import clean_shard
from t5repro.c4.punkt import train_punkt
from t5repro.config.load import load_settings
from t5repro.errors import CrawlError, RawDataError
from t5repro.jobs.corpus import PunktJob

CRAWL = sorted((ROOT / "examples/mini/raw/crawl").iterdir())[-3:]  # the last one is not compressed
NOAI, RESERVED = {"X-Robots-Tag": "noai"}, {"TDM-Reservation": "1"}
DROP = ["tdm_reserved", "noai", "unknown"]


def settings_of(source="none", drop=(), **c4):
    signals = {"signals": {"source": source, "drop": list(drop)}}
    return load_settings(
        {
            "use": ["cleaning/paper"],
            "c4": {"languages": ["en"], "validation_modulus": 40, **signals, **c4},
            "vocab": {"language_parts": {"en": 1}},
            "tokens": {"languages": ["en"]},
        }
    )


def said_of(url):
    """Return a response that depends on the URL: free, reserved, refused, or not in the file."""
    kind = hashlib.sha256(url.encode()).digest()[0] % 8
    licence = [{"url": "https://creativecommons.org/licenses/by/4.0/", "rel": "license"}]
    return {
        0: response(headers=NOAI),
        1: response(headers=RESERVED | NOAI),
        2: response(metas=[{"name": "robots", "content": "noindex"}]),
        3: None,
        4: response(links=licence),
    }.get(kind, response())


@pytest.fixture(scope="module")
def wat(tmp_path_factory):
    return wat_of(CRAWL, tmp_path_factory.mktemp("wat"), said_of)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The corpus of the bundled crawl without signals."""
    return build_corpus(tmp_path_factory.mktemp("plain"), settings_of(), CRAWL)


def manifest_of(corpus):
    return json.loads((corpus / "manifest.json").read_text())


def counters_of(corpus):
    return manifest_of(corpus)["counters"]


def rules_of(corpus):
    return {rule["rule"]: rule for rule in counters_of(corpus)["rules"]}


def cleaned(corpus):
    paths = sorted(corpus.parent.glob("0*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def parquet(corpus):
    return {path.name: path.read_bytes() for path in sorted(corpus.glob("*.parquet"))}


def test_signals_that_are_counted_change_no_page(tmp_path, plain, wat) -> None:
    with_wat = build_corpus(tmp_path / "wat", settings_of("wat"), CRAWL, wat=wat)
    in_text = build_corpus(tmp_path / "text", settings_of("text"), CRAWL)
    for corpus in (with_wat, in_text):
        assert parquet(corpus) == parquet(plain)
        assert cleaned(corpus) == cleaned(plain)
        assert rules_of(corpus) == rules_of(plain)
    urls = [row["url"] for row in cleaned(plain)]  # every page that reading kept
    said = [said_of(url) for url in urls]
    assert counters_of(with_wat)["signals"] == {
        "tdm_reserved": sum(RESERVED.items() <= headers_of(one).items() for one in said),
        "noai": sum(NOAI.items() <= headers_of(one).items() for one in said),
        "noindex": sum(bool(one and one["HTML-Metadata"]["Head"]["Metas"]) for one in said),
        "unknown": said.count(None),
        "mentions_licence_link": (links := sum(bool(links_of(one)) for one in said)),
        "mentions_creative_commons": links,
        "usage_refused": 0,
    }
    assert min(said.count(None), links) > 40
    counts = counters_of(in_text)["signals"]
    assert set(counts) == {"mentions_creative_commons", "mentions_all_rights_reserved"}


def headers_of(said):
    return said["Headers"] if said else {}


def links_of(said):
    return said and said["HTML-Metadata"]["Links"]


def test_without_signals_nothing_is_recorded_of_them(plain) -> None:
    texts = [path.read_text() for path in sorted(plain.parent.rglob("*.json"))]
    assert len(texts) >= 3
    assert not [text for text in texts if '"signals"' in text]
    for path in plain.parent.glob("0*.parquet"):
        assert b"t5repro.signals" not in pq.read_metadata(path).metadata


def test_a_dropped_page_is_counted_by_its_first_signal_and_its_text_is_nowhere(
    tmp_path, plain, wat
) -> None:
    corpus = build_corpus(tmp_path, settings_of("wat", DROP), CRAWL, wat=wat)
    rule = rules_of(corpus)["signals"]
    assert set(rule["dropped"]) == {"signal_tdm_reserved", "signal_noai", "signal_unknown"}
    assert rule["kept"] == rules_of(corpus)["clean_pages"]["in"]
    assert rules_of(corpus)["newest_of_url"] == rules_of(plain)["newest_of_url"]
    dropped = {row["url"] for row in cleaned(corpus) if (row["reason"] or "").startswith("signal_")}
    kept_before = {row["url"] for path in plain.glob("*.parquet") for row in rows(path)}
    kept = {row["url"] for path in corpus.glob("*.parquet") for row in rows(path)}
    assert dropped & kept_before
    assert not dropped & kept
    assert all(
        (said_of(url) is None) or "X-Robots-Tag" in headers_of(said_of(url)) for url in dropped
    )
    # An example of such a page has its URL and not its text.
    samples = counters_of(corpus)["samples"]
    assert {sample["text"] for sample in samples["signal_noai"]} == {""}
    assert len(samples["signal_noai"]) == 3


def rows(path):
    return pq.read_table(path, columns=["url"]).to_pylist()


def test_an_older_copy_does_not_replace_a_page_that_reserves_its_rights(
    tmp_path, write_wet, wet_record
) -> None:
    text = "\n".join(f"This is sentence number {number} of a page." for number in range(9))
    records = [
        wet_record("http://a.example/", text, "2019-04-01T00:00:00Z"),
        wet_record("http://a.example/", text, "2019-05-01T00:00:00Z"),
        wet_record("http://b.example/", text.replace("page", "text")),
    ]
    header = "WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\nnothing\r\n\r\n"
    wet = [write_wet([header, *records])]
    said = iter([response(), response(headers=NOAI), response()])
    pair = wat_of(wet, tmp_path / "wat", lambda url: next(said))
    settings = settings_of("wat", ["noai"], validation_modulus=1000, require_pages=False)
    corpus = build_corpus(tmp_path, settings, wet, wat=pair)
    # The records of this crawl have no references: their dates tell the copies apart.
    kept = {row["url"] for path in corpus.glob("*.parquet") for row in rows(path)}
    assert kept <= {"http://b.example/"}
    assert rules_of(corpus)["newest_of_url"]["dropped"] == {"duplicate_url": 1}
    assert rules_of(corpus)["signals"]["dropped"] == {"signal_noai": 1}


def test_jobs_parts_and_orders_give_the_same_corpus(tmp_path, wat) -> None:
    one = build_corpus(tmp_path / "one", settings_of("wat", DROP), CRAWL, wat=wat)
    options = {"shards": 2, "order": -1, "wat": wat}
    settings = settings_of("wat", DROP, clean_parts=3, clean_shards=2)
    many = build_corpus(tmp_path / "many", settings, CRAWL, **options)
    assert parquet(many) == parquet(one)
    assert counters_of(many) == counters_of(one)
    inputs = [
        file["path"]
        for path in sorted((tmp_path / "many").glob("0*.json"))
        for file in json.loads(path.read_text())["inputs"]
    ]
    assert {path.as_posix() for path in (*CRAWL, *wat)} == set(inputs)


def test_a_listed_crawl_finds_its_wat_files_by_name(tmp_path, wat) -> None:
    folder = tmp_path / "crawl"
    names = [f"seg/wet/{path.name}" for path in CRAWL]
    for name, path, pair in zip(names, CRAWL, wat, strict=True):
        for target, source in ((name, path), (f"seg/wat/{pair.name}", pair)):
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / target)
    (folder / "seg/wat" / wat[0].name).unlink()
    path_list = tmp_path / "wet.paths"
    path_list.write_text("".join(f"{name}\n" for name in names))
    settings = settings_of("wat", DROP, crawl_paths="wet.paths", crawl_prefix=str(folder))
    job = clean_job(tmp_path, settings, path_list=path_list)
    clean_shard(job)
    counters = json.loads(job.manifest.read_text())["counters"]
    assert counters["faults"]["counts"]["missing_file"] == 1
    first = [row for row in pq.read_table(job.pages[0]).to_pylist() if row["file"] == CRAWL[0].name]
    assert {row["reason"] for row in first} == {"signal_unknown"}
    strict = settings_of(
        "wat", crawl_paths="wet.paths", crawl_prefix=str(folder), on_bad_record="fail"
    )
    with pytest.raises(CrawlError, match=wat[0].name):
        clean_shard(clean_job(tmp_path, strict, path_list=path_list))


def test_a_wet_file_without_its_wat_file_stops_the_job(tmp_path, wat) -> None:
    job = clean_job(tmp_path, settings_of("wat"), wet=CRAWL, wat=wat[:-1])
    with pytest.raises(RawDataError, match="each WET file needs its WAT file"):
        clean_shard(job)


def test_punkt_learns_nothing_from_dropped_pages(tmp_path, wat) -> None:
    def pages(name, settings, files):
        folder = tmp_path / name
        job = PunktJob(
            stage("c4_punkt", settings), folder, folder / "manifest.json", wet=CRAWL, wat=files
        )
        train_punkt(job)
        return json.loads(job.manifest.read_text())["counters"]["languages"]["en"]["pages"]

    whole = pages("all", settings_of(punkt_sample_chars=10**8), ())
    rest = pages("rest", settings_of("wat", DROP, punkt_sample_chars=10**8), wat)
    free = pages("counted", settings_of("wat", punkt_sample_chars=10**8), wat)
    assert rest < whole == free
