"""Own text: the same corpus as through C4, and a message for everything that is wrong."""

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from c4_rules import build_corpus, corpus_job, dedup_job, stage
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4 import tables
from t5repro.c4.deduplicate import deduplicate
from t5repro.c4.own_text.read import read_own_text
from t5repro.c4.own_text.redact import redact_rows
from t5repro.c4.own_text.rows import documents, read_rows
from t5repro.c4.write import write_corpus
from t5repro.config.load import load_settings
from t5repro.config.sections.corpus import TextRows
from t5repro.errors import CorpusError, RawDataError
from t5repro.jobs.corpus import OwnTextJob

CRAWL = sorted((ROOT / "examples/mini/raw/crawl").iterdir())[:3]
SENTENCE = "The old mill by the river turns slowly while the farmer carries his grain uphill."


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def settings_of(**corpus):
    return load_settings(
        {
            "corpus": {"files": ["own.txt"], **corpus},
            "c4": {"validation_modulus": 40, "require_pages": False},
        }
    )


def own_corpus(folder, settings, files, validation_files=(), root=None, withdrawn=None):
    """Run `corpus`, `c4_dedup` and `c4`; return the folder of the corpus."""
    rows = folder / "corpus"
    read_own_text(
        OwnTextJob(
            stage("corpus", settings),
            files=files,
            validation_files=validation_files,
            root=root or folder,
            folder=rows,
            manifest=rows / "manifest.json",
            punkt={},
            bad_words={},
            withdrawn=withdrawn,
        )
    )
    cleaned = sorted(rows.glob("*.parquet"))
    deduplicate(dedup_job(folder, settings, cleaned))
    job = corpus_job(folder, settings, cleaned)
    write_corpus(job)
    return job.folder


def corpus_bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def texts(folder, name="en-train"):
    (path,) = folder.glob(f"{name}-*.parquet")
    return pq.read_table(path).column("text").to_pylist()


def write_rows(path, rows):
    """Write rows in the format that the name of the file states."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zst":
        path.write_bytes(pa.compress(data, "zstd", asbytes=True))
    else:
        path.write_bytes(data)
    return path


def rows_of(path, **settings):
    return list(read_rows(path, path.name, TextRows(files=[path.name], **settings)))


@pytest.fixture(scope="module")
def of_c4(tmp_path_factory):
    """The corpus that C4's rules make of a part of the bundled crawl, and its rows."""
    folder = tmp_path_factory.mktemp("of_c4")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        settings = load_settings({"c4": {"validation_modulus": 40}})
        corpus = build_corpus(folder, settings, CRAWL)
    rows = [
        row for path in sorted(corpus.glob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]
    return corpus_bytes(corpus), rows


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".json.gz", ".json.zst"])
def test_own_text_gives_the_corpus_that_the_same_text_gives_through_c4(tmp_path, of_c4, ending):
    expected, rows = of_c4
    assert len(rows) > 400
    half = len(rows) // 2
    # In another order, and in another division into files.
    files = [
        write_rows(tmp_path / f"b{ending}", rows[half:][::-1]),
        write_rows(tmp_path / f"a/c4-train.00000{ending}", rows[:half]),
    ]
    settings = settings_of(language_column="language")
    assert corpus_bytes(own_corpus(tmp_path / "x", settings, files, root=tmp_path)) == expected
    other = own_corpus(tmp_path / "y", settings, files[::-1], root=tmp_path)
    assert corpus_bytes(other) == expected
    one, two = (tmp_path / name / "corpus/pages.parquet" for name in "xy")
    assert one.read_bytes() == two.read_bytes()


def test_a_detected_language_is_that_of_c4(tmp_path, of_c4):
    expected, rows = of_c4
    path = write_rows(
        tmp_path / "own.json.gz",
        [{k: row[k] for k in ("url", "text", "timestamp")} for row in rows],
    )
    folder = own_corpus(tmp_path, settings_of(), [path])
    assert corpus_bytes(folder) == expected


def test_a_text_is_kept_as_it_is_unless_the_filters_of_c4_are_asked_for(tmp_path, capsys):
    others = ("Two children watch the wheel.", "They count every drop that falls.")
    kept = "\n".join([SENTENCE, *others])
    menu = f" Shop \n\n{kept}\nbadword {{\n"
    path = write_rows(tmp_path / "own.jsonl", [{"text": menu}, {"text": "short"}])
    as_it_is = own_corpus(tmp_path / "a", settings_of(language="en"), [path], root=tmp_path)
    assert sorted(texts(as_it_is)) == sorted([menu, "short"])
    settings = settings_of(language="en", filters="c4")
    filtered = own_corpus(tmp_path / "b", settings, [path], root=tmp_path)
    assert texts(filtered) == [kept]
    counters = json.loads((tmp_path / "b/corpus/manifest.json").read_text())["counters"]
    assert counters["cleaned"]["few_sentences"] == 1
    assert counters["read"]["read"] == 2
    ends = re.findall(r"c4_dedup: (\S+) shards.* \(done\)", capsys.readouterr().err)
    assert ends == ["2/2", "2/2"]  # a shard twice, though without the filters nothing has units


def test_files_of_both_splits_decide_the_split(tmp_path):
    train = write_rows(tmp_path / "train.jsonl", [{"text": f"train {n}"} for n in range(90)])
    held_out = write_rows(tmp_path / "dev.jsonl", [{"text": f"dev {n}"} for n in range(30)])
    settings = settings_of(language="en", validation_files=["dev.jsonl"])
    folder = own_corpus(tmp_path, settings, [train], [held_out])
    assert sorted(texts(folder)) == sorted(f"train {n}" for n in range(90))
    assert sorted(texts(folder, "en-validation")) == sorted(f"dev {n}" for n in range(30))


def test_without_files_for_validation_the_id_of_a_row_decides_its_split(tmp_path):
    rows = [{"text": f"row {number}"} for number in range(1000)]
    path = write_rows(tmp_path / "own.jsonl", rows)
    folder = own_corpus(tmp_path, settings_of(language="en"), [path])
    assert 10 < len(texts(folder, "en-validation")) < 45  # one in 40
    assert len(texts(folder)) + len(texts(folder, "en-validation")) == 1000


def test_a_row_keeps_its_file_its_number_and_its_id(tmp_path):
    one = write_rows(tmp_path / "a/0.parquet", [{"text": "x", "key": 7}, {"text": "y", "key": 8}])
    two = write_rows(tmp_path / "b/0.parquet", [{"text": "z", "key": 9}])
    own_corpus(tmp_path, settings_of(language="en", id="key"), [two, one])
    rows = pq.read_table(tmp_path / "corpus/pages.parquet").to_pylist()
    assert [(row["file"], row["record"], row["url"]) for row in rows] == [
        ("a/0.parquet", 0, "row://7"),
        ("a/0.parquet", 1, "row://8"),
        ("b/0.parquet", 0, "row://9"),
    ]
    own_corpus(tmp_path / "x", settings_of(language="en"), [two], root=tmp_path)
    row = pq.read_table(tmp_path / "x/corpus/pages.parquet").to_pylist()[0]
    assert row["url"] == "row://b/0.parquet#0"


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("file", [(0, "a\nb\r\n\n \nc")]),
        ("paragraph", [(0, "a\nb"), (4, "c")]),
        ("line", [(0, "a"), (1, "b"), (4, "c")]),
    ],
)
def test_a_plain_text_is_one_document_or_paragraphs_or_lines(tmp_path, unit, expected):
    path = tmp_path / "own.txt"
    path.write_bytes(b"a\nb\r\n\n \nc\n")
    assert [(row.number, row.text) for row in rows_of(path, documents=unit)] == expected


@given(st.lists(st.text(st.sampled_from("ab \r"), max_size=4), max_size=12))
def test_no_line_with_text_is_lost_or_moved(lines):
    ended = [line + "\n" for line in lines]
    for unit in ("file", "paragraph", "line"):
        found = {}
        for number, text in documents(iter(enumerate(ended)), unit):
            found.update(enumerate(text.split("\n"), start=number))
        for number, line in enumerate(lines):
            if line.strip():
                assert found[number].strip() == line.strip()


LONG = {"url": "http://a.example/1", "text": "x"}
WRONG = [
    (b'{"body": "x"}\n', {}, r"line 1: its fields are \['body'\], and corpus.text is 'text'"),
    (b'{"text": "x"}\n', {"id": "key"}, r"its fields are \['text'\], and corpus.id is 'key'"),
    (b'{"text": 3}\n', {}, r"line 1: 'text' is 3; it must be text"),
    (b'{"text": "x"}\n{"text": null}\n', {}, r"line 2: 'text' is missing or null; it must be"),
    (b'{"text": "x", "url": "u"}\n{"text": "y"}\n', {}, r"line 2: 'url' is missing or null"),
    (b'{"text": "x", "url": " "}\n', {}, r"line 1: 'url' is ' '; it must be text or a whole"),
    (b'{"text": "a\\u0000b"}\n', {}, r"line 1: 'text' has a NUL character at 1"),
    (b'{"text": "a\\ud800"}\n', {}, r"line 1: 'text' is not Unicode"),
    (b'{"text": "x", "timestamp": "\\ud800"}\n', {}, r"line 1: 'timestamp' is not Unicode"),
    (b'{"text": "x", "timestamp": ["t"]}\n', {}, r"'timestamp' is \['t'\]; it must be text, a num"),
    (b'{"text": "\xff"}\n', {}, r"line 1 is not UTF-8 .*; convert the file to UTF-8"),
    (b"\n[1]\n", {}, r"line 2 is a JSON list: \[1\]; write one object a line"),
    (b'{"text"\n', {}, r"line 1 is not JSON .*; write one object a line"),
    (b"\n\n", {}, r"own.jsonl has no row; get the file again"),
    (b"", {}, r"own.jsonl is empty \(0 bytes\)"),
    (b'{"text": "x", "l": "English"}', {"language_column": "l"}, r"'l' is 'English'; a language"),
]


@pytest.mark.parametrize(("data", "settings", "message"), WRONG)
def test_a_wrong_row_is_named_with_its_file_line_and_value(tmp_path, data, settings, message):
    path = tmp_path / "own.jsonl"
    path.write_bytes(data)
    with pytest.raises(RawDataError, match=message) as error:
        rows_of(path, **settings)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("end", [b"", b'{"text"\n'])
def test_rows_without_a_value_are_counted_up_to_other_damage(tmp_path, end):
    path = tmp_path / "own.jsonl"
    lines = [b'{"text": "x"}', b'{"text": null}', b"", b'{"text": "y"}', b"{}", b'{"text": null}']
    path.write_bytes(b"\n".join(lines) + b"\n" + end + b"{}\n" * bool(end))
    with pytest.raises(RawDataError) as error:
        rows_of(path)
    assert str(error.value) == (
        f"{path} line 2: 'text' is missing or null; it must be text: correct or remove the row "
        "(3 rows of the file lack a value)"
    )
    write_rows(path := path.with_suffix(".parquet"), [{"text": None}, {"text": "x"}] * 300)
    with pytest.raises(RawDataError, match=r"row 0: .* \(300 rows of the file lack a value\)$"):
        rows_of(path)


def test_a_wrong_parquet_file_is_named_with_its_row_and_column(tmp_path):
    path = tmp_path / "own.parquet"
    write_rows(path, [{"body": "x"}])
    with pytest.raises(RawDataError, match=r"its columns are \['body'\], and corpus.text"):
        rows_of(path)
    write_rows(path, [{"text": 3}])
    with pytest.raises(RawDataError, match=r"'text' has the type int64; it must be string"):
        rows_of(path)
    write_rows(path, [{"text": "x"}] * 700 + [{"text": None}])
    with pytest.raises(RawDataError, match=r"row 700: 'text' is missing or null"):
        rows_of(path)
    bad = pa.array([b"x", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": bad}), path)
    with pytest.raises(RawDataError, match=r"row 1: 'text' is not UTF-8"):
        rows_of(path)
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    with pytest.raises(RawDataError, match=r"own.parquet has no row"):
        rows_of(path)


def test_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table([["a"], ["b"]], names=["text", "text"]), path)
    with pytest.raises(RawDataError, match=r"own.parquet has several columns \['text'\]; give"):
        rows_of(path)


@pytest.mark.parametrize(("unit", "late"), [("s", 2**53), ("ms", 2**60), ("us", 2**60)])
def test_a_time_that_no_date_has_is_named_with_its_row(tmp_path, unit, late):
    path, times = tmp_path / "own.parquet", pa.array([0, late], pa.timestamp(unit))
    pq.write_table(pa.table({"text": ["a", "b"], "timestamp": times}), path)
    with pytest.raises(RawDataError, match=r"row 1: 'timestamp' is no date of the years 1 to 9999"):
        rows_of(path)


@pytest.mark.parametrize(
    ("unit", "zone", "expected"),
    [
        ("s", None, "2020-01-01 00:00:00"),
        ("s", "UTC", "2020-01-01 00:00:00+00:00"),
        ("ms", "Europe/Paris", "2020-01-01 00:00:00+00:00"),
        ("us", "No/Where", "2020-01-01 00:00:00+00:00"),  # the instant needs no list of zones
        ("ns", "+02:00", "2020-01-01 00:00:00.000001+00:00"),
    ],
)
def test_times_with_a_zone_are_in_utc(tmp_path, unit, zone, expected):
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    moment = 1_577_836_800 * scale + (1_500 if unit == "ns" else 0)
    path, times = tmp_path / "own.parquet", pa.array([moment, None], pa.timestamp(unit, zone))
    pq.write_table(pa.table({"text": ["a", "b"], "timestamp": times}), path)
    assert [row.timestamp for row in rows_of(path)] == [expected, ""]


@pytest.mark.parametrize("ending", [".txt", ".jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path, ending):
    path = tmp_path / f"own{ending}"
    line = b'{"text": "a"}\n' if ending == ".jsonl" else b"a"
    path.write_bytes(b"\xef\xbb\xbf" + line)
    assert [row.text for row in rows_of(path)] == ["a"]


@pytest.mark.parametrize("ending", [".parquet", ".jsonl.gz", ".jsonl.zst"])
def test_a_file_that_was_cut_off_is_named(tmp_path, ending):
    path = write_rows(tmp_path / f"own{ending}", [{"text": str(n) * 9} for n in range(3000)])
    path.write_bytes(path.read_bytes()[: -path.stat().st_size // 2])
    with pytest.raises(RawDataError, match=rf"own{ending} (is cut off|cannot be read)"):
        rows_of(path)


def test_an_id_that_occurs_twice_is_refused_with_both_places(tmp_path):
    one = write_rows(tmp_path / "a.jsonl", [LONG, {"url": "http://a.example/2", "text": "y"}])
    two = write_rows(tmp_path / "b.jsonl", [{"url": "https://www.a.example/2/", "text": "z"}])
    with pytest.raises(
        RawDataError, match=r"b.jsonl row 0 has the id of .*a.jsonl row 1; ids must"
    ):
        own_corpus(tmp_path, settings_of(language="en"), [one, two])


def test_a_language_without_rows_and_rows_without_text_stop_the_run(tmp_path):
    path = write_rows(tmp_path / "own.jsonl", [{"text": "", "l": "en"}])
    with pytest.raises(CorpusError, match=r"none of 1 rows has a text: .*'no_content': 1"):
        own_corpus(tmp_path, settings_of(language="en"), [path])
    write_rows(path, [{"text": SENTENCE, "l": "de"}])
    settings = load_settings(
        {
            "corpus": {"files": ["own.jsonl"], "language_column": "l"},
            "c4.languages": ["en", "de"],
            "vocab.language_parts": {"en": 1},
        }
    )
    with pytest.raises(CorpusError, match=r"contains 'en', but no page in it is left.*: de 1; add"):
        own_corpus(tmp_path, settings, [path])


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".json.gz", ".json.zst"])
def test_a_withdrawn_row_loses_its_text_and_no_other_row_changes(tmp_path, ending):
    rows = [
        {"url": f"http://a.example/{n}", "text": f"text {n}", "title": f"t{n}"} for n in range(9)
    ]
    path = write_rows(tmp_path / f"own{ending}", rows)
    before = rows_of(path)
    settings, withdrawn = TextRows(files=["own"]), "http://a.example/4"
    assert redact_rows(path, path.name, [settings], lambda url: url == "http://b.example/") == 0
    assert redact_rows(path, path.name, [settings], lambda url: url == withdrawn) == 1
    assert redact_rows(path, path.name, [settings], lambda url: url == withdrawn) == 1
    after = list(read_rows(path, path.name, settings, lambda url: url == withdrawn))
    assert [row for row in after if row.id != withdrawn] == [r for r in before if r.id != withdrawn]
    assert after[4] == before[4]._replace(text="")
    whole = read_rows(
        path, path.name, TextRows(files=["own"], text="title"), lambda u: u == withdrawn
    )
    assert [row.text for row in whole][4] == ""
    listed = tmp_path / "pages.yaml"
    listed.write_text(f"urls: {{'{withdrawn}': asked}}\n")
    folder = own_corpus(tmp_path, settings_of(language="en"), [path], withdrawn=listed)
    assert len(texts(folder)) + len(texts(folder, "en-validation")) == 8
    counters = json.loads((folder / "manifest.json").read_text())["counters"]
    assert counters["rules"][0]["dropped"] == {"withdrawn": 1}


@pytest.mark.parametrize(
    ("data", "number", "unit"),
    [
        (b"secret", 0, "file"),
        (b"\nsecret", 1, "line"),
        (b"\xef\xbb\xbf\nsecret\nsecret\n", 1, "paragraph"),
    ],
)
def test_a_plain_text_of_withdrawn_rows_alone_is_read_as_no_row(tmp_path, data, number, unit):
    path, settings = tmp_path / "own.txt", TextRows(files=["own"], documents=unit)
    path.write_bytes(data)
    withdrawn = f"row://own.txt#{number}".__eq__
    assert redact_rows(path, path.name, [settings], withdrawn) == 1
    assert b"secret" not in path.read_bytes()
    assert list(read_rows(path, path.name, settings, withdrawn)) == []
    assert redact_rows(path, path.name, [settings], withdrawn) == 0
    with pytest.raises(RawDataError, match=r"is empty|has no row"):
        rows_of(path, documents=unit)


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_a_row_is_withdrawn_however_the_file_is_read(tmp_path, ending):
    rows = [{"url": f"u{n}", "key": f"k{n}", "text": f"x{n}", "title": f"y{n}"} for n in range(3)]
    path = write_rows(tmp_path / f"own{ending}", rows)
    readings = [TextRows(files=["own"]), TextRows(files=["own"], id="key", text="title")]
    assert redact_rows(path, path.name, readings, "row://k0".__eq__) == 1
    assert redact_rows(path, path.name, readings, "row://u2".__eq__) == 1  # after another
    for settings, prefix in zip(readings, "xy", strict=True):
        read = list(read_rows(path, path.name, settings))
        assert [row.text for row in read] == ["", f"{prefix}1", ""]
        assert len({row.id for row in read}) == 3


def test_a_paragraph_is_withdrawn_from_a_text_that_another_job_reads_by_line(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("a\nb\n\nc\nd\n")
    readings = [TextRows(files=["own"], documents=unit) for unit in ("paragraph", "line")]
    assert redact_rows(path, path.name, readings, "row://own.txt#3".__eq__) == 1
    assert path.read_text() == "a\nb\n\n\n\n"
    assert redact_rows(path, path.name, readings, "row://own.txt#1".__eq__) == 1
    assert path.read_text() == "a\n\n\n\n\n"


def test_no_byte_of_a_withdrawn_row_remains_in_columns_with_dictionaries(tmp_path):
    # A column of categories of pandas; the nested ones hold quotations.
    path, categories = tmp_path / "own.parquet", pa.array(["secret", "b"]).dictionary_encode()
    columns = {
        "text": categories,
        "url": pa.array(["http://a.example/1", "http://a.example/2"]).dictionary_encode(),
        "words": pa.ListArray.from_arrays(pa.array([0, 1, 2]), categories),
        "long": pa.LargeListArray.from_arrays(pa.array([0, 1, 2], pa.int64()), categories),
        "parts": pa.StructArray.from_arrays([categories], ["first"]),
    }
    pq.write_table(pa.table(columns), path)
    withdrawn = "http://a.example/1".__eq__
    assert b"secret" in path.read_bytes()
    assert redact_rows(path, path.name, [TextRows(files=["own"])], withdrawn) == 1
    assert b"secret" not in path.read_bytes()
    first, second = pq.read_table(path).to_pylist()
    assert first == dict.fromkeys(columns) | {"text": "", "url": "http://a.example/1"}
    assert (second["text"], second["words"], second["parts"]) == ("b", ["b"], {"first": "b"})
    rows = list(read_rows(path, path.name, TextRows(files=["own"]), withdrawn))
    assert [row.text for row in rows] == ["", "b"]


@pytest.mark.parametrize(
    ("unit", "number", "expected"),
    [("line", 1, b"a\n\n\nc\nd\n"), ("paragraph", 0, b"\n\n\nc\nd\n"), ("file", 0, b"\n\n\n\n\n")],
)
def test_a_withdrawn_document_of_a_plain_text_leaves_its_line_ends(
    tmp_path, unit, number, expected
):
    path = tmp_path / "own.txt"
    path.write_bytes(b"a\nb\n\nc\nd\n")
    settings = TextRows(files=["own.txt"], documents=unit)
    withdrawn = f"row://own.txt#{number}"
    assert redact_rows(path, path.name, [settings], lambda url: url == withdrawn) == 1
    assert path.read_bytes() == expected


def test_the_rows_have_the_columns_of_cleaned_pages(tmp_path):
    path = write_rows(tmp_path / "own.jsonl", [{"text": SENTENCE}])
    own_corpus(tmp_path, settings_of(language="en"), [path])
    found = pq.read_schema(tmp_path / "corpus/pages.parquet")
    assert found.equals(tables.CLEANED)
    manifest = json.loads((tmp_path / "corpus/manifest.json").read_text())
    assert [Path(entry["path"]).name for entry in manifest["inputs"]] == ["own.jsonl"]


def test_a_pointer_of_git_lfs_is_no_document(tmp_path):
    for ending in (".txt", ".jsonl", ".parquet", ".jsonl.gz"):
        path = tmp_path / f"a{ending}"
        path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
        with pytest.raises(RawDataError, match=r"is a pointer of git LFS in place of"):
            rows_of(path)


def test_a_window_of_zstd_that_is_too_long_is_no_damage(tmp_path):
    # A frame of one raw block with a window of 2 GiB, as zstd --long=31 writes it.
    path = tmp_path / "a.jsonl.zst"
    text = b'{"text": "a"}\n'
    header = bytes([0x28, 0xB5, 0x2F, 0xFD, 0x00, 21 << 3])
    path.write_bytes(header + (1 | len(text) << 3).to_bytes(3, "little") + text)
    with pytest.raises(RawDataError, match="too much memory.*is intact: unpack"):
        rows_of(path)


def test_a_time_that_is_nan_is_missing(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "timestamp": NaN}\n')
    assert [row.timestamp for row in rows_of(path)] == [""]
