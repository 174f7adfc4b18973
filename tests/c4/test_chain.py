"""The rules `c4_clean`, `c4_dedup` and `c4` together, on small generated crawls."""

import dataclasses
import errno
import gzip
import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from c4_rules import build_corpus, clean_job, corpus_job, dedup_job

from t5repro.c4 import clean, tables, write
from t5repro.c4.clean import Cleaner, clean_shard
from t5repro.c4.dedup import key_rows, removals
from t5repro.c4.deduplicate import deduplicate
from t5repro.c4.keys import is_validation, md5, normalize_url
from t5repro.c4.text import language
from t5repro.c4.text.rules import CleanRules
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet import reader
from t5repro.c4.wet.pages import read_pages
from t5repro.c4.write import write_corpus
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import PUNKT_FILES
from t5repro.data import transfer
from t5repro.errors import ArtifactError, CorpusError, CrawlError, RawDataError, StorageError

ENGLISH = (
    "The old house at the end of the street was sold to a young family last week.\n"
    "They {0} painted the kitchen and opened all of the windows in the garden room.\n"
    "Nobody in the village had expected that anyone would ever want to live there again.\n"
    "{1}"
)
GERMAN = (
    "Das alte Haus am Ende der Straße wurde letzte Woche an eine junge Familie verkauft.\n"
    "Sie haben {0} die Küche gestrichen und alle Fenster im Gartenzimmer weit geöffnet.\n"
    "Niemand im Dorf hatte erwartet, dass dort jemals wieder jemand wohnen wollte.\n"
    "{1}"
)


def english(number):
    return ENGLISH.format(number, f"This is what page number {number} says about it all.")


def german(number):
    return GERMAN.format(number, f"Das ist, was die Seite {number} über alles zu sagen hat.")


def settings_of(**changes):
    c4 = {
        "languages": ["en", "de"],
        "validation_modulus": 3,
        "dedup": {"unit": "line", "min_sentences": 1},
        **changes,
    }
    return Settings(
        c4=c4, vocab={"language_parts": {"en": 1}}, tokens={"languages": [c4["languages"][0]]}
    )


def run(folder, wet, settings=None, **options):
    """Run the three rules; return the folder of the corpus."""
    return build_corpus(folder, settings or settings_of(), wet, **options)


def rows_of(folder, language="en"):
    return [
        row
        for split in ("train", "validation")
        for path in sorted(folder.glob(f"{language}-{split}-*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


def texts_of(folder, language="en"):
    return {row["url"]: row["text"] for row in rows_of(folder, language)}


def rules_of(folder):
    counters = json.loads((folder / "manifest.json").read_text())["counters"]
    return {entry["rule"]: entry for entry in counters["rules"]}


def faults_of(folder):
    return json.loads((folder / "manifest.json").read_text())["counters"]["faults"]["counts"]


def samples_of(folder):
    return json.loads((folder / "manifest.json").read_text())["counters"]["samples"]


@pytest.fixture
def crawl(write_wet, wet_record):
    """Six files in both languages with repeats across and inside files."""
    files = []
    for number in range(6):
        records = [
            wet_record(f"http://en/{number}/{page}", english(10 * number + page))
            for page in range(4)
        ]
        records += [
            wet_record(f"http://de/{number}/{page}", german(10 * number + page))
            for page in range(3)
        ]
        records.append(
            wet_record(f"http://en/same/{number % 2}", english(100 + number), f"2019-0{number + 1}")
        )
        records.append(wet_record(f"http://tie/{number % 3}", english(200 + number)))
        files.append(write_wet(records, name=f"crawl/{number}.warc.wet.gz"))
    return files


@pytest.fixture
def one_page(write_wet, wet_record):
    """Write a crawl of given pages, with two pages of each language that always stay."""

    def write(*pages, **options):
        staying = [
            wet_record(f"http://stay/{name}/{number}", text(f"{name}{number}"))
            for name, text in (("en", english), ("de", german))
            for number in range(3)
        ]
        return [write_wet([*staying, *(wet_record(*page) for page in pages)], **options)]

    return write


def test_pages_come_out_by_language_with_their_fields(tmp_path, crawl):
    folder = run(tmp_path, crawl)
    rows = rows_of(folder)
    assert len(rows) == 24 + 2 + 3
    assert len(rows_of(folder, "de")) == 18
    assert {row["language"] for row in rows} == {"en"}
    assert all(row["timestamp"].startswith("2019-0") for row in rows)
    table = pq.read_table(next(iter(sorted(folder.glob("en-train-*")))))
    assert table.schema.equals(
        pa.schema([(name, pa.string()) for name in ("url", "text", "timestamp", "language")])
    )


@pytest.mark.parametrize("unit", ["line", "three_sentence_span", "off"])
def test_bytes_do_not_depend_on_jobs_or_on_the_order_of_files(tmp_path, crawl, unit):
    settings = settings_of(dedup={"unit": unit, "min_sentences": 1}, output_shards=2)
    results = []
    for shards, order, files in (
        (1, 1, crawl),
        (1, -1, crawl),
        (2, -1, crawl),
        (3, 1, crawl[::-1]),
        (6, 1, crawl[3:] + crawl[:3]),
    ):
        folder = run(tmp_path / str(len(results)), files, settings, shards=shards, order=order)
        counters = json.loads((folder / "manifest.json").read_text())["counters"]
        results.append(
            ({path.name: path.read_bytes() for path in folder.glob("*.parquet")}, counters)
        )
    assert all(entry == results[0] for entry in results[1:])
    assert len(results[0][0]) == 8


def test_bytes_do_not_depend_on_how_much_fits_in_memory(tmp_path, crawl, monkeypatch):
    expected = run(tmp_path / "large", crawl)
    for module, name, value in (
        (tables, "GROUP_PAGES", 5),
        (reader, "MAX_GROUP_PAGES", 3),
        (write, "BUCKET_TEXT_BYTES", 300),
        (write, "MAX_COLUMN_BYTES", 200),
        (key_rows, "BUCKET_PAGES", 3),
        (key_rows, "BUCKET_KEY_BYTES", 100),
        (tables, "BATCH_PAGES", 4),
    ):
        monkeypatch.setattr(module, name, value)
    folder = run(tmp_path / "small", crawl, shards=2)
    for path in expected.glob("*.parquet"):
        assert (folder / path.name).read_bytes() == path.read_bytes()
    counters = [
        json.loads((corpus / "manifest.json").read_text())["counters"]
        for corpus in (expected, folder)
    ]
    assert counters[0] == counters[1]


def test_a_bucket_is_divided_at_its_keys_until_arrow_can_address_each_column(monkeypatch):
    monkeypatch.setattr(write, "MAX_COLUMN_BYTES", 1000)
    high = [9, 3, 7, 3, 3, 1, 8, 3, 5, 3]
    texts = [str(number) * 200 for number in range(10)]
    chunks = [
        pa.table({"high": pa.array([key], pa.uint64()), "text": [text]})
        for key, text in zip(high, texts, strict=True)
    ]
    parts = list(write._addressable_parts(pa.concat_tables(chunks)))
    assert [part.column("high").to_pylist() for part in parts] == [
        [1],
        [3, 3, 3, 3, 3],
        [9, 7, 8, 5],
    ]
    assert sorted(text for part in parts for text in part.column("text").to_pylist()) == texts
    monkeypatch.setattr(write, "MAX_COLUMN_BYTES", 100)  # equal keys stay together
    parts = list(write._addressable_parts(pa.concat_tables(chunks)))
    assert [set(part.column("high").to_pylist()) for part in parts] == [
        {1},
        {3},
        {5},
        {7},
        {8},
        {9},
    ]


def test_a_second_run_writes_the_same_bytes(tmp_path, crawl):
    folder = run(tmp_path, crawl)
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    run(tmp_path, crawl)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


def test_pages_are_in_the_order_of_the_md5_of_their_url_across_files(tmp_path, crawl):
    rows = rows_of(run(tmp_path / "1", crawl, settings_of(output_shards=1)))
    split = rows_of(run(tmp_path / "4", crawl, settings_of(output_shards=4)))
    assert split == rows
    assert len(list((tmp_path / "4" / "c4").glob("en-train-*-of-00004.parquet"))) == 4


def test_the_held_out_pages_are_those_whose_md5_divides(tmp_path, crawl):
    folder = run(tmp_path, crawl)
    for split in ("train", "validation"):
        for row in pq.read_table(folder / f"en-{split}-00000-of-00001.parquet").to_pylist():
            key = md5(normalize_url(row["url"]))
            assert (int(key.hex(), 16) % 3 == 0) == (split == "validation")


def test_a_split_without_a_page_has_a_file(tmp_path, crawl):
    folder = run(tmp_path, crawl, settings_of(validation_modulus=10**9))
    assert pq.read_table(folder / "en-validation-00000-of-00001.parquet").num_rows == 0
    outputs = json.loads((folder / "manifest.json").read_text())["outputs"]
    assert [entry["path"].rpartition("/")[2] for entry in outputs] == [
        f"{language}-{split}-00000-of-00001.parquet"
        for language in ("en", "de")
        for split in ("train", "validation")
    ]


def test_files_of_an_earlier_number_of_shards_go(tmp_path, crawl):
    folder = run(tmp_path, crawl, settings_of(output_shards=3))
    (folder / "notes.parquet").touch()
    run(tmp_path, crawl, settings_of(output_shards=1))
    names = {path.name for path in folder.glob("*.parquet")}
    assert {name for name in names if "of-00003" in name} == set()
    assert len(names) == 4 + 1


def test_the_newest_page_is_chosen_before_cleaning(tmp_path, one_page):
    text = english("old")
    wet = one_page(
        ("http://a/x", text, "2019-01"),
        ("https://www.a/x/", "Too short.", "2019-02"),
        ("http://b/x", "Lorem ipsum dolor sit amet.", "2019-01"),
        ("http://b/x?utm_x=1", text, "2019-02"),
    )
    folder = run(tmp_path, wet, settings_of(dedup={"unit": "off"}))
    texts = texts_of(folder)
    assert "http://a/x" not in texts
    assert texts["http://b/x?utm_x=1"] == text
    assert rules_of(folder)["newest_of_url"]["dropped"] == {"duplicate_url": 2}
    assert rules_of(folder)["clean_pages"]["dropped"]["lorem_ipsum"] == 0


def test_pages_without_use_do_not_decide_which_copy_of_a_url_stays(tmp_path, one_page):
    text = english("old")
    wet = one_page(("http://a/x", text, "2019-01"), ("http://a/x", "word. " * 40_000, "2019-02"))
    folder = run(tmp_path, wet, settings_of(dedup={"unit": "off"}))
    assert texts_of(folder)["http://a/x"] == text
    assert rules_of(folder)["read"]["dropped"]["too_long"] == 1


@pytest.mark.parametrize(("length", "kept"), [(190_000, True), (190_001, False)])
def test_a_page_may_have_190000_characters(tmp_path, one_page, length, kept):
    begin = english("ü") + "\n"
    text = begin + "x" * (length - len(begin))
    folder = run(tmp_path, one_page(("http://a", text)), settings_of(dedup={"unit": "off"}))
    assert ("http://a" in texts_of(folder)) == kept
    assert rules_of(folder)["read"]["dropped"]["too_long"] == (not kept)


def test_of_equal_dates_the_first_record_of_the_first_file_stays(
    tmp_path, one_page, write_wet, wet_record
):
    first = wet_record("http://tie", english("first"))
    second = wet_record("http://tie", english("second"))
    wet = [
        *one_page(name="m.wet.gz"),
        write_wet([second], name="later/a.wet.gz"),
        write_wet([first, second], name="earlier/z.wet.gz"),
    ]
    for number, files in enumerate(itertools.permutations(wet)):
        folder = run(tmp_path / str(number), files, settings_of(dedup={"unit": "off"}), shards=2)
        assert texts_of(folder)["http://tie"] == english("second")


def test_the_same_line_stays_in_one_page_only(tmp_path, one_page):
    line = "This one line stands in three of the pages here."
    pages = [(f"http://{name}", english(name) + "\n" + line) for name in "abc"]
    folder = run(tmp_path, one_page(*pages))
    holders = [url for url, text in texts_of(folder).items() if line in text]
    assert holders == [min((url for url, _ in pages), key=md5)]
    rule = rules_of(folder)["dedup_text"]
    assert (rule["unit"], rule["in"] - rule["kept"]) == ("lines", rule["dropped"]["repeated_text"])
    assert line in [entry["text"] for entry in samples_of(folder)["repeated_text"]] or (
        len(samples_of(folder)["repeated_text"]) == 3
    )


@pytest.mark.parametrize("unit", ["line", "three_sentence_span"])
def test_a_page_of_repeats_alone_is_dropped_and_short_ones_too(tmp_path, one_page, unit):
    keeper, other, third = sorted((f"http://{name}" for name in "abc"), key=md5)
    text = english("same")
    wet = one_page((keeper, text), (other, text), (third, text + "\nThis line is its own one."))
    strict = settings_of(dedup={"unit": unit, "min_sentences": 2})
    folder = run(tmp_path, wet, strict)
    texts = texts_of(folder)
    assert keeper in texts
    assert other not in texts
    assert third not in texts
    dropped = rules_of(folder)["dedup_pages"]["dropped"]
    assert dropped["nothing_left"] == 1
    assert dropped["few_sentences_left"] >= 1


def test_lines_of_a_page_that_is_dropped_later_are_lost(tmp_path, one_page, wet_record):
    line = "This one line stands in both of the pages here."
    keeper, other = sorted(("http://a", "http://b"), key=md5)
    polish = (
        "Stary dom na końcu ulicy został w zeszłym tygodniu sprzedany młodej rodzinie.\n"
        "Nikt we wsi nie spodziewał się, że ktokolwiek zechce tam jeszcze zamieszkać.\n"
        "Pomalowali kuchnię i otworzyli szeroko wszystkie okna w pokoju ogrodowym.\n"
    )
    folder = run(tmp_path, one_page((keeper, polish + line), (other, english("x") + "\n" + line)))
    assert keeper not in texts_of(folder)
    assert line not in texts_of(folder)[other]


def test_pages_of_other_languages_are_counted(tmp_path, one_page):
    french = (
        "La vieille maison au bout de la rue a été vendue à une jeune famille.\n"
        "Personne dans le village ne pensait que quelqu'un voudrait y habiter.\n"
        "Ils ont repeint la cuisine et ouvert toutes les fenêtres du salon.\n"
    )
    folder = run(tmp_path, one_page(("http://fr", french)))
    counters = json.loads((folder / "manifest.json").read_text())["counters"]
    assert counters["other_languages"] == {"fr": 1}
    assert rules_of(folder)["language"]["dropped"]["language_not_wanted"] == 1
    languages = counters["languages"]["en"]
    assert languages["detected_pages"] == languages["train_pages"] + languages["validation_pages"]
    lines, doubts, bad = languages["rules"]
    assert doubts["kept"] == languages["detected_pages"] == bad["in"] == bad["kept"]
    kept = [entry["rules"][0]["kept"] for entry in counters["languages"].values()]
    assert sum(kept) + len(french.splitlines()) == rules_of(folder)["clean_lines"]["kept"]
    assert lines["kept"] == kept[0] > 0
    characters = sum(len(text) for text in texts_of(folder).values())
    assert characters == languages["train_characters"] + languages["validation_characters"]
    assert counters["detector"].startswith("langdetect-rs ")


@pytest.fixture
def lists(tmp_path):
    paths = {}
    for name, word in (("en", "grue"), ("de", "grün")):
        paths[name] = tmp_path / f"list.{name}"
        paths[name].write_text(word + "\n", encoding="utf-8")
    return paths


def with_word(text, line):
    return text + "\n" + line


@pytest.mark.parametrize(
    ("mode", "lost"),
    [
        ("page", {"http://en/begin", "http://en/middle", "http://de/middle", "http://de/begin"}),
        ("line_2019", {"http://en/middle", "http://de/middle"}),
        ("off", set()),
    ],
)
def test_listed_words_drop_pages_of_their_language(tmp_path, one_page, lists, mode, lost):
    pages = {
        "http://en/begin": with_word(english("a"), "Grue begins this line of the page."),
        "http://en/middle": with_word(english("b"), "There is a GRUE in here, they say."),
        "http://en/part": with_word(english("c"), "It was a gruesome sight for them all."),
        "http://en/de": with_word(english("d"), "The word grün is a German one, they say."),
        "http://de/middle": with_word(german("e"), "Alles war grün im Garten der Familie."),
        "http://de/begin": with_word(german("f"), "Grün war der ganze Garten der Familie."),
    }
    settings = settings_of(dedup={"unit": "off"}, clean={"bad_words": mode})
    folder = run(tmp_path, one_page(*pages.items()), settings, bad_words=lists)
    urls = {*texts_of(folder), *texts_of(folder, "de")}
    assert set(pages) - urls == lost
    rules = rules_of(folder)
    in_lines = rules["clean_pages"]["dropped"]["bad_word_in_line"]
    assert in_lines + rules["bad_words"]["dropped"]["bad_word"] == len(lost)
    assert in_lines == (mode == "line_2019")
    inputs = json.loads((folder / "manifest.json").read_text())["inputs"]
    assert (
        sum("list." in entry["path"] for entry in inputs)
        == {"page": 2, "line_2019": 1, "off": 0}[mode]
    )


def test_without_cleaning_only_length_and_language_are_left(tmp_path, one_page, lists):
    text = english("x") + "\nmenu { grue }\nLorem ipsum dolor sit amet."
    settings = settings_of(clean={"enabled": False, "bad_words": "off"}, dedup={"unit": "off"})
    folder = run(tmp_path, one_page(("http://a", text)), settings, bad_words=lists)
    assert texts_of(folder)["http://a"] == text
    assert "clean_lines" not in rules_of(folder)
    assert "dedup_text" not in rules_of(folder)


def test_the_counts_of_one_rule_are_what_the_one_before_kept(tmp_path, crawl):
    counters = json.loads((run(tmp_path, crawl) / "manifest.json").read_text())["counters"]
    pages = [entry for entry in counters["rules"] if entry["unit"] == "pages"]
    assert [entry["rule"] for entry in counters["rules"]] == [
        "read",
        "newest_of_url",
        "clean_lines",
        "clean_pages",
        "dedup_text",
        "dedup_pages",
        "language",
        "bad_words",
    ]
    for before, after in itertools.pairwise(pages):
        assert before["kept"] == after["in"] == before["in"] - sum(before["dropped"].values())
    languages = counters["languages"].values()
    assert pages[-1]["kept"] == sum(
        entry["train_pages"] + entry["validation_pages"] for entry in languages
    )


def test_every_reason_has_its_examples(tmp_path, one_page):
    bad = "WARC/1.0\nWARC-Target-URI: http://bad\nWARC-Date: 1\n\nb\udcffd\n"
    wet = one_page(
        (
            "http://short",
            "menu\nFour words are here.\nUse javascript in this one.\nOne more is it.",
        ),
        ("http://lorem", "menu\nThis is lorem ipsum for you."),
        ("http://code", "This is { some code."),
        ("http://old", english("o"), "2018"),
        ("http://old", english("p"), "2019"),
    )
    extra = tmp_path / "extra.wet"
    extra.write_bytes(bad.encode("utf-8", "surrogateescape") + b"WARC/1.0\nWARC-Date: 1\nText.\n")
    folder = run(tmp_path, [*wet, extra])
    samples = samples_of(folder)
    texts = {
        reason: [(entry["url"], entry["text"]) for entry in entries]
        for reason, entries in samples.items()
    }
    assert texts["lorem_ipsum"] == [("http://lorem", "This is lorem ipsum for you.")]
    assert texts["curly_bracket"] == [("http://code", "This is { some code.")]
    assert texts["javascript"] == [("http://short", "Use javascript in this one.")]
    assert {text for _, text in texts["no_terminal_punctuation"]} == {"menu"}
    assert texts["invalid_utf8"] == [("http://bad", "b?d")]
    assert texts["no_url"] == [("", "Text.")]
    assert samples["duplicate_url"][0]["url"] == "http://old"
    assert all(len(entry["text"]) <= 200 for kept in samples.values() for entry in kept)
    own = json.loads((tmp_path / "00000.json").read_text())["counters"]
    assert own["read"]["invalid_utf8"] == 1
    assert own["cleaned"]["lorem_ipsum"] == 1
    assert own["samples"]["lorem_ipsum"] == samples["lorem_ipsum"]


def test_the_manifest_names_the_records_of_the_first_pages_of_the_corpus(tmp_path, crawl):
    folder = run(tmp_path, crawl, shards=1)
    counters = json.loads((folder / "manifest.json").read_text())["counters"]
    records = {(path.name, page.record): page.url for path in crawl for page in read_pages(path)}
    for name, kept in counters["kept"].items():
        (shard,) = folder.glob(f"{name}-train-*.parquet")
        urls = pq.read_table(shard).column("url").to_pylist()
        assert [entry["url"] for entry in kept] == urls[:3]
        assert [records[entry["file"], entry["record"]] for entry in kept] == urls[:3]
        assert all(entry.keys() == {"file", "record", "url"} for entry in kept)
    assert set(counters["kept"]) == {
        name for name, entry in counters["languages"].items() if entry["train_pages"]
    }


def test_manifests_name_what_went_in_and_out(tmp_path, crawl):
    folder = run(tmp_path, crawl, shards=2)
    own = json.loads((tmp_path / "00001.json").read_text())
    assert own["rule"] == "c4_clean"
    assert [entry["path"] for entry in own["inputs"]] == [path.as_posix() for path in crawl[1::2]]
    assert own["settings"]["c4"]["clean"]["min_sentences"] == 3
    decided = json.loads((tmp_path / "decisions/manifest.json").read_text())
    assert decided["counters"]["duplicate_url"] == 4 + 3
    assert decided["counters"]["units"] > decided["counters"]["removed_units"] > 0
    final = json.loads((folder / "manifest.json").read_text())
    assert [entry["path"].rpartition("/")[2] for entry in final["inputs"]] == [
        "00000.parquet",
        "00001.parquet",
        "00000.parquet",
        "00001.parquet",
    ]


def test_a_language_without_a_page_stops_the_run_and_leaves_no_corpus(tmp_path, crawl):
    settings = settings_of(languages=["en", "ro", "de"])
    with pytest.raises(
        CorpusError, match=r"contains 'ro', but no page .*: de 18, en 29; add pages"
    ):
        run(tmp_path, crawl, settings)
    assert list((tmp_path / "c4").iterdir()) == []


def test_an_empty_crawl_has_no_language_at_all(tmp_path, write_wet, wet_record):
    wet = [write_wet([wet_record("http://a", "menu")])]
    with pytest.raises(CorpusError, match=r"contains 'en', .* before bad words: none; add"):
        run(tmp_path, wet)


def test_a_language_that_is_held_out_whole_stops_the_run(tmp_path, write_wet, wet_record):
    texts = [(f"http://{number}", english(number)) for number in range(40)]
    validation = [
        wet_record(url, text) for url, text in texts if is_validation(md5(normalize_url(url)), 3)
    ]
    with pytest.raises(
        CorpusError,
        match=rf"all of its {len(validation)} pages are in the validation split .* 3; raise",
    ):
        run(tmp_path, [write_wet(validation)], settings_of(languages=["en"]))


def test_a_damaged_crawl_file_leaves_nothing_behind(tmp_path, crawl):
    crawl[2].write_bytes(crawl[2].read_bytes()[:-20])
    with pytest.raises(CrawlError, match=r"2\.warc\.wet\.gz: the gzip member"):
        run(tmp_path / "run", crawl, settings_of(on_bad_record="fail"))
    assert list((tmp_path / "run").iterdir()) == []


def test_damage_is_counted_and_named_and_loses_no_other_page(tmp_path, crawl, capsys):
    expected = texts_of(run(tmp_path / "whole", crawl, settings_of(dedup={"unit": "off"})))
    crawl[2].write_bytes(crawl[2].read_bytes()[:-20])
    crawl[4].write_bytes(b"")
    folder = run(tmp_path / "run", crawl, settings_of(dedup={"unit": "off"}), shards=2)
    counters = json.loads((folder / "manifest.json").read_text())["counters"]
    assert counters["faults"]["counts"] == {"empty_file": 1, "gzip_cut": 1}
    assert [entry["file"] for entry in counters["faults"]["named"]] == [
        "2.warc.wet.gz",
        "4.warc.wet.gz",
    ]
    lost = {url for url in expected if url not in texts_of(folder)}
    # The cut record and the other English ones of the empty file have newer or equal copies.
    assert lost == {f"http://en/4/{page}" for page in range(4)}
    assert "faults of the crawl (empty_file 1, gzip_cut 1)" in capsys.readouterr().err


def test_a_file_of_warc_1_1_has_the_same_pages_and_is_refused_if_the_settings_say_so(
    tmp_path, crawl
):
    settings = settings_of(dedup={"unit": "off"})
    expected = texts_of(run(tmp_path / "older", crawl, settings))
    text = gzip.decompress(crawl[2].read_bytes()).replace(b"WARC/1.0", b"WARC/1.1")
    crawl[2].write_bytes(text)
    folder = run(tmp_path / "newer", crawl, settings)
    assert texts_of(folder) == expected
    assert faults_of(folder) == {}
    refusing = settings_of(dedup={"unit": "off"}, warc_1_1="refuse")
    folder = run(tmp_path / "refused", crawl, refusing)
    assert faults_of(folder) == {"not_wet": 1}
    assert "http://en/2/0" in expected.keys() - texts_of(folder).keys()


@pytest.mark.parametrize("name", ["a\0b.wet.gz", f"{'x' * 300}.wet.gz"])
def test_a_listed_name_that_no_file_can_have_is_a_missing_file(tmp_path, crawl, name):
    settings = settings_of(crawl_prefix=f"{tmp_path}/", languages=["en"])
    path_list = tmp_path / "wet.paths"
    names = [path.relative_to(tmp_path).as_posix() for path in crawl]
    path_list.write_text("\n".join([*names, name]))
    clean_shard(clean_job(tmp_path, settings, path_list=path_list))
    manifest = json.loads((tmp_path / "00000.json").read_text())
    assert manifest["counters"]["faults"]["counts"] == {"missing_file": 1}


def test_a_listed_path_that_leaves_the_folder_or_is_absent_is_named(tmp_path, crawl):
    options = {"crawl_prefix": f"{tmp_path}/", "languages": ["en"]}
    settings = settings_of(**options)
    path_list = tmp_path / "wet.paths"
    names = [path.relative_to(tmp_path).as_posix() for path in crawl]
    path_list.write_text("\n".join([*names, "absent.wet.gz", "../secret.wet"]))
    clean_shard(clean_job(tmp_path, settings, path_list=path_list))
    counters = json.loads((tmp_path / "00000.json").read_text())["counters"]
    assert counters["faults"]["counts"] == {"missing_file": 1, "outside_folder": 1}
    assert (
        "'../secret.wet', which leaves c4.crawl_prefix; refused"
        in (counters["faults"]["named"][1]["detail"])
    )
    strict = settings_of(**options, on_bad_record="fail")
    with pytest.raises(CrawlError, match=r"\.\./secret\.wet', which leaves c4\.crawl_prefix"):
        clean_shard(clean_job(tmp_path, strict, path_list=path_list))
    with pytest.raises(CrawlError, match=r"absent\.wet\.gz: cannot be read"):
        clean_shard(clean_job(tmp_path, strict, wet=[*crawl, tmp_path / "absent.wet.gz"]))


def test_downloaded_files_have_the_names_of_the_list(tmp_path, crawl, monkeypatch):
    files = {f"https://crawl.example/data/{path.name}": path for path in crawl}

    def copy(address, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[address].read_bytes())

    monkeypatch.setattr(transfer, "_repeat", lambda address, path, attempt: copy(address, path))
    path_list = tmp_path / "wet.paths"
    path_list.write_text("\n".join(f"data/{path.name}" for path in crawl[::-1]))
    settings = settings_of(crawl_prefix="https://crawl.example/", clean_shards=2)
    clean_shard(clean_job(tmp_path, settings, path_list=path_list, shard=1))
    inputs = json.loads((tmp_path / "00000.json").read_text())["inputs"]
    assert [entry["path"] for entry in inputs] == [f"data/{path.name}" for path in crawl[::2]]
    downloaded = (tmp_path / "00000.parquet").read_bytes()
    clean_shard(clean_job(tmp_path, settings, wet=crawl[::2]))
    assert (tmp_path / "00000.parquet").read_bytes() == downloaded


def test_missing_parameters_of_punkt_are_named(tmp_path, crawl):
    with pytest.raises(RawDataError, match="punkt_tab/english"):
        clean_shard(
            clean_job(tmp_path, settings_of(), wet=crawl, punkt={"en": tmp_path / "absent"})
        )


def test_a_full_disk_leaves_nothing_under_a_final_name(tmp_path, crawl, monkeypatch):
    write_table = pq.ParquetWriter.write_table
    expected = run(tmp_path / "good", crawl)
    for schema, complete in (
        (tables.CLEANED, []),
        (tables.DECISIONS, ["00000.json", "00000.parquet"]),
    ):

        def full(writer, table, *args, schema=schema, **options):
            if table.schema.equals(schema):
                raise OSError(errno.ENOSPC, "No space left on device")
            return write_table(writer, table, *args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(pq.ParquetWriter, "write_table", full)
            with pytest.raises(StorageError, match="the disk is full"):
                run(tmp_path / "full", crawl)
        files = [path.name for path in (tmp_path / "full").rglob("*") if path.is_file()]
        assert sorted(files) == complete  # of the steps before the one that stopped
    folder = run(tmp_path / "full", crawl)
    assert texts_of(folder) == texts_of(expected)


def test_an_interrupted_job_leaves_nothing_and_can_run_again(tmp_path, crawl, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    for module, name in (
        (clean, "clean_pages"),
        (clean, "to_batch"),
        (removals, "decisions_of"),
        (language, "detect_languages"),
        (write.SplitWriter, "append"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                run(tmp_path, crawl)
        assert not [path for path in tmp_path.rglob("*") if ".writing" in path.name]
        assert not list(tmp_path.glob("c4/*"))
    assert len(rows_of(run(tmp_path, crawl))) == 29


@pytest.fixture
def punkt(tmp_path):
    """Empty parameters for two languages: each page's language is looked for in cleaning."""
    folder = tmp_path / "punkt"
    folder.mkdir()
    for name in PUNKT_FILES:
        (folder / name).write_text("")
    return {"en": folder, "de": folder}


def cleaned_rows(folder):
    return pq.read_table(folder / "00000.parquet").to_pylist()


def test_a_language_that_splits_a_page_is_found_in_cleaning_and_not_looked_for_again(
    tmp_path, crawl, punkt, monkeypatch
):
    settings = settings_of(dedup={"unit": "off"})
    expected = run(tmp_path / "late", crawl, settings)
    assert {row["language"] for row in cleaned_rows(tmp_path / "late")} == {None}

    def none_left(texts):
        assert texts == []
        return []

    monkeypatch.setattr(language, "detect_languages", none_left)
    folder = run(tmp_path / "early", crawl, settings, punkt=punkt)
    for path in expected.glob("*.parquet"):
        assert (folder / path.name).read_bytes() == path.read_bytes()
    languages = {
        row["language"] for row in cleaned_rows(tmp_path / "early") if row["reason"] is None
    }
    assert languages == {"en", "de"}


def test_the_language_of_a_page_that_lost_text_is_looked_for_again(
    tmp_path, punkt, write_wet, wet_record
):
    first, second = sorted(("http://a", "http://b"), key=md5)  # which keeps what both have
    own = english(1).partition("\n")[0]
    pages = [(first, german(0)), (second, f"{german(0)}\n{own}")]
    crawl = [write_wet([wet_record(url, text) for url, text in pages])]
    folder = run(tmp_path / "run", crawl, settings_of(require_pages=False), punkt=punkt)
    in_cleaning = {row["url"]: row["language"] for row in cleaned_rows(tmp_path / "run")}
    assert in_cleaning == {first: "de", second: "de"}
    assert texts_of(folder, "de") == {first: german(0)}
    assert texts_of(folder, "en") == {second: own}


def test_only_the_unit_that_is_asked_for_is_hashed(tmp_path, crawl):
    run(tmp_path, crawl)
    table = pq.read_table(tmp_path / "00000.parquet")
    assert table.column("span_keys").null_count == table.num_rows
    assert table.column("line_keys").null_count == 0
    with pytest.raises(ArtifactError, match=r"no keys of c4\.dedup\.unit 'three_sentence_span'"):
        deduplicate(
            dedup_job(
                tmp_path,
                settings_of(dedup={"unit": "three_sentence_span"}),
                [tmp_path / "00000.parquet"],
            )
        )
    run(tmp_path / "off", crawl, settings_of(dedup={"unit": "off"}))
    table = pq.read_table(tmp_path / "off" / "00000.parquet")
    assert table.column("span_keys").null_count == table.num_rows
    assert table.column("line_keys").null_count == table.num_rows


def test_decisions_about_other_files_are_refused(tmp_path, crawl):
    run(tmp_path, crawl, shards=2)
    with pytest.raises(ArtifactError, match=r"00001.parquet with 27 pages, but .* rerun c4_dedup"):
        write_corpus(corpus_job(tmp_path, settings_of(), [tmp_path / "00000.parquet"]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "is missing; run the stage"),
        (lambda path: path.write_bytes(b"x" * 100), r"is not Parquet .*delete it and rerun"),
        (
            lambda path: pq.write_table(pa.table({"a": [1]}), path),
            r"has the columns \['a'\], not \['file'",
        ),
        (
            lambda path: pq.write_table(tables.CLEANED.empty_table(), path),
            "contains no counts; delete it",
        ),
    ],
)
def test_a_cleaned_file_that_cannot_be_used_is_named(tmp_path, crawl, damage, message):
    run(tmp_path, crawl)
    damage(tmp_path / "00000.parquet")
    with pytest.raises(ArtifactError, match=message):
        deduplicate(dedup_job(tmp_path, settings_of(), [tmp_path / "00000.parquet"]))
        write_corpus(corpus_job(tmp_path, settings_of(), [tmp_path / "00000.parquet"]))


def test_a_flipped_byte_in_a_cleaned_file_is_found(tmp_path, crawl):
    run(tmp_path, crawl)
    path = tmp_path / "00000.parquet"
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(bytes(data))
    with pytest.raises(ArtifactError, match="is damaged"):
        deduplicate(dedup_job(tmp_path, settings_of(), [path]))


@pytest.mark.parametrize("unit", ["three_sentence_span", "line"])
def test_the_batch_kernel_is_a_function_of_its_pages(crawl, unit):
    cleaner = Cleaner(CleanRules(settings_of().c4.clean, SentenceSplitter()), unit)
    pages = [(path.name, page) for path in crawl for page in read_pages(path)]

    def batch_of(pages):
        cleaned = clean.clean_pages(pages, cleaner.rules)
        return clean.to_batch(cleaned, clean.languages_of(cleaned, cleaner.rules), cleaner)

    batch = batch_of(pages)
    parts = [batch_of([page]) for page in pages]
    assert pa.Table.from_batches(parts).combine_chunks() == (
        pa.Table.from_batches([batch]).combine_chunks()
    )


def test_what_a_job_writes_does_not_depend_on_the_order_of_its_files(tmp_path, crawl):
    run(tmp_path / "one", crawl, shards=2)
    run(tmp_path / "two", crawl, shards=2, order=-1)
    cleaned = ("00000.parquet", "00001.parquet")
    for name in (*cleaned, *(f"decisions/{name}" for name in cleaned)):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_parts_of_a_cleaning_job_are_the_files_of_as_many_jobs(tmp_path, crawl):
    clean_shard(clean_job(tmp_path / "parts", settings_of(clean_parts=2), wet=crawl))
    for number in (0, 1):
        clean_shard(clean_job(tmp_path / "jobs", settings_of(), number, wet=crawl[number::2]))
        part = tmp_path / "parts" / f"00000-{number:03d}.parquet"
        assert part.read_bytes() == (tmp_path / "jobs" / f"{number:05d}.parquet").read_bytes()
    manifest = json.loads((tmp_path / "parts/00000.json").read_text())
    assert [entry["path"] for entry in manifest["inputs"]] == [path.as_posix() for path in crawl]
    whole = clean_job(tmp_path / "whole", settings_of(), wet=crawl)
    clean_shard(whole)
    assert manifest["counters"] == json.loads(whole.manifest.read_text())["counters"]


def test_the_division_of_a_cleaning_job_changes_no_byte_of_the_corpus(tmp_path, crawl):
    expected = run(tmp_path / "whole", crawl)
    folder = run(tmp_path / "parts", crawl, settings_of(clean_parts=7))  # one without a file
    for path in expected.glob("*.parquet"):
        assert (folder / path.name).read_bytes() == path.read_bytes()


def test_a_cleaning_job_with_another_number_of_outputs_is_refused(tmp_path, crawl):
    job = clean_job(tmp_path, settings_of(), wet=crawl)
    with pytest.raises(ArtifactError, match=r"2 files to write, but c4\.clean_parts is 1; pass"):
        clean_shard(dataclasses.replace(job, pages=job.pages * 2))


def test_downloads_of_a_killed_job_are_not_left_beside_a_job_that_reads_local_files(
    tmp_path, crawl
):
    job = clean_job(tmp_path, settings_of(), wet=crawl)
    left = tmp_path / f".fetching-{job.manifest.name}" / "00000"
    left.mkdir(parents=True)
    (left / "half.warc.wet.gz").write_bytes(b"half")
    clean_shard(job)
    assert not left.parent.exists()


def test_cleaned_files_may_come_in_another_order_than_they_were_decided_in(tmp_path, crawl):
    folder = run(tmp_path, crawl, shards=3)
    before = texts_of(folder)
    write_corpus(
        corpus_job(tmp_path, settings_of(), [tmp_path / f"0000{n}.parquet" for n in (2, 0, 1)])
    )
    assert texts_of(folder) == before


def test_an_older_copy_of_a_page_keeps_no_line_from_others(tmp_path, one_page):
    line = "This one line stands in both of the pages here."
    old, other = sorted(("http://old/", "http://other"), key=md5)
    wet = one_page(
        (old, english("o") + "\n" + line, "2018"),
        (old, english("n"), "2019"),
        (other, english("p") + "\n" + line, "2018"),
    )
    texts = texts_of(run(tmp_path, wet))
    assert line not in texts[old]
    assert line in texts[other]


@pytest.mark.parametrize(("unit", "kept"), [("line", False), ("three_sentence_span", True)])
def test_what_is_left_is_counted_as_one_text_for_lines_and_line_by_line_for_spans(
    tmp_path, one_page, unit, kept
):
    # Punkt does not end a sentence behind an initial before a lower-cased word.
    text = (
        "the family painted the kitchen of the old house with J.\n"
        "nobody had expected that anyone would live there again.\n"
        "the windows of the garden room were all open that day."
    )
    settings = settings_of(dedup={"unit": unit, "min_sentences": 3})
    folder = run(tmp_path, one_page(("http://a", text)), settings)
    assert ("http://a" in texts_of(folder)) == kept


def test_only_pages_of_listed_domains_and_addresses_are_read(tmp_path, one_page):
    lists = {"domains": tmp_path / "d.json", "urls": tmp_path / "u.txt"}
    lists["domains"].write_text('{"stay": true, "news.example": [""]}')
    staying = [f"http://stay/{name}/{number}" for name in ("en", "de") for number in range(3)]
    lists["urls"].write_text("\n".join([*staying, "https://www.news.example/a"]))
    wet = one_page(
        ("http://news.example/a", english("a")),
        ("http://news.example/b", english("b")),
        ("http://sport.news.example/a", english("c")),
        ("http://other.example/a", english("d")),
    )
    folder = run(tmp_path, wet, settings_of(dedup={"unit": "off"}), select=lists)
    urls = [url for url in texts_of(folder) if "stay" not in url]
    assert urls == ["http://news.example/a"]
    dropped = rules_of(folder)["read"]["dropped"]
    assert (dropped["domain_not_listed"], dropped["url_not_listed"]) == (2, 1)
    inputs = json.loads((tmp_path / "00000.json").read_text())["inputs"]
    assert {str(path) for path in lists.values()} <= {entry["path"] for entry in inputs}


def test_pages_of_doubtful_language_go_to_und_if_it_is_asked_for(tmp_path, one_page):
    wet = one_page(("http://a", "12345 67 ! 890."), ("http://b", "Zwei one trois due. abc 99."))
    settings = settings_of(
        languages=["en", "de", "und", "fr"],
        clean={"enabled": False, "bad_words": "off"},
        dedup={"unit": "off"},
        require_pages=False,
        min_language_probability=1.0,
    )
    folder = run(tmp_path, wet, settings)
    assert "http://a" in texts_of(folder, "und")
    assert texts_of(folder, "fr") == {}
    assert rules_of(folder)["language"]["dropped"]["language_uncertain"] == 0


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.001])
def test_a_share_of_the_pages_with_listed_words_is_dropped_by_url(
    tmp_path, one_page, lists, fraction
):
    urls = [f"http://bad/{number}" for number in range(20)]
    pages = [(url, english(url) + "\nThere is a grue in here, they say.") for url in urls]
    settings = settings_of(clean={"bad_word_fraction": fraction}, dedup={"unit": "off"})
    folder = run(tmp_path, one_page(*pages), settings, bad_words=lists)
    dropped, of = fraction.as_integer_ratio()
    kept = {url for url in urls if int(md5(normalize_url(url)).hex(), 16) % of >= dropped}
    assert {url for url in texts_of(folder) if "bad" in url} == kept
    assert len(kept) == {1.0: 0, 0.5: len(kept), 0.001: 20}[fraction]
