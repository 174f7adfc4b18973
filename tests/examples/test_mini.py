"""The bundled inputs are what their generator makes, and hold what their README says."""

import csv
import gzip
import importlib.util
import json
import re
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from langdetect_rs import DetectorFactory, detect_langs

from t5repro.config.sections.data import RawFiles
from t5repro.files import sha256_of

MINI = ROOT / "examples" / "mini"
RAW = MINI / "raw"
TASKS = RAW / "tasks"
MARKS_OF_A_RECORD = b"WARC/1.0\r\nWARC-Type: "


def inventory() -> dict[str, str]:
    entries = yaml.safe_load((MINI / "inventory.yaml").read_text(encoding="utf-8"))
    assert len(entries) == 1
    return RawFiles.model_validate(entries[0]).files


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mini")
    subprocess.run(
        [sys.executable, str(MINI / "generate.py"), "--output", str(folder)],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def records() -> list[tuple[dict[str, str], bytes]]:
    """Every record of the crawl, as (headers, body), cut at the headers of the next."""
    found = []
    for path in sorted((RAW / "crawl").iterdir()):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        for record in data.split(MARKS_OF_A_RECORD)[1:]:
            head, _, body = record.partition(b"\r\n\r\n")
            lines = ("WARC-Type: " + head.decode()).split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            found.append((headers, body.removesuffix(b"\r\n\r\n")))
    return found


@pytest.fixture(scope="module")
def pages(records) -> list[tuple[str, str, str]]:
    """(address, date, text) of every page."""
    return [
        (headers["WARC-Target-URI"], headers["WARC-Date"], body.decode(errors="replace"))
        for headers, body in records
        if headers["WARC-Type"] == "conversion"
    ]


def numbered(records, number: int) -> tuple[dict[str, str], bytes]:
    found = [r for r in records if f"page-{number}." in r[0].get("WARC-Target-URI", "")]
    assert len(found) == 1
    return found[0]


def language_of(address: str) -> str:
    return address.split(".example/")[1][:2]


def test_the_generator_makes_the_committed_files_byte_for_byte(made):
    names = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    assert names == sorted([*(f"raw/{name}" for name in inventory()), "inventory.yaml"])
    differing = [n for n in names if (made / n).read_bytes() != (MINI / n).read_bytes()]
    assert differing == [], "run: python examples/mini/generate.py"


def test_the_inventory_holds_the_hash_of_every_raw_file():
    files = inventory()
    committed = [path for path in RAW.rglob("*") if path.is_file()]
    assert list(files) == sorted(path.relative_to(RAW).as_posix() for path in committed)
    assert {name: sha256_of(RAW / name) for name in files} == files


def test_the_folder_stays_small():
    assert sum((RAW / name).stat().st_size for name in inventory()) < 10_000_000


def deflate():
    spec = importlib.util.spec_from_file_location("mini_deflate", MINI / "deflate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DEFLATE = deflate()


@given(st.one_of(st.binary(max_size=400), st.text("ab \n", max_size=900).map(str.encode)))
def test_its_gzip_members_are_read_back_by_zlib(data):
    assert gzip.decompress(DEFLATE.gzip_member(data)) == data


def test_its_gzip_members_use_the_longest_and_farthest_copies():
    far = b"0123456789" + bytes(n % 251 for n in range(32_758)) + b"0123456789" + b"z" * 1000
    member = DEFLATE.gzip_member(far)
    assert gzip.decompress(member) == far
    assert len(DEFLATE.gzip_member(b"z" * 258_000)) < 2_500


def test_files_are_of_the_three_kinds():
    members = Counter()
    for path in sorted((RAW / "crawl").iterdir()):
        data, count = path.read_bytes(), 0
        while path.suffix == ".gz" and data:
            reader = zlib.decompressobj(wbits=31)
            reader.decompress(data)
            data, count = reader.unused_data, count + 1
        members["plain" if not count else "one member" if count == 1 else "many members"] += 1
    assert members == {"many members": 6, "one member": 1, "plain": 1}


def test_each_file_opens_with_its_warcinfo(records):
    kinds = Counter(headers["WARC-Type"] for headers, _ in records)
    assert kinds == {"warcinfo": 8, "conversion": 1951}


def test_pages_are_in_four_languages_and_a_few_others(pages):
    count = Counter(language_of(address) for address, _, _ in pages)
    assert count.keys() == {"en", "de", "fr", "ro", "es", "it", "pl"}
    assert count["en"] > 1250
    assert min(count["de"], count["fr"], count["ro"]) >= 200
    assert count["es"] == count["it"] == count["pl"] == 8
    characters = Counter()
    for address, _, text in pages:
        characters[language_of(address)] += len(text)
    assert 2_000_000 < characters["en"] < 3_000_000
    assert all(400_000 < characters[code] < 600_000 for code in ("de", "fr", "ro"))


def test_prose_is_detected_as_its_language(pages):
    DetectorFactory.seed = 0
    wrong = []
    for address, _, text in pages:
        if len(text) > 1000:
            best = detect_langs(text)[0]
            if best.lang != language_of(address) or best.prob < 0.99:
                wrong.append((address, best))
    assert wrong == []


def test_prose_does_not_repeat_itself(pages):
    lines = [line for _, _, text in pages for line in set(text.splitlines()) if len(line) > 200]
    assert len(set(lines)) / len(lines) > 0.9
    repeated = [line for line, count in Counter(lines).items() if count > 2]
    assert len(repeated) > 20  # the paragraphs that stand on many pages


@pytest.mark.parametrize(
    ("wanted", "at_least"),
    [
        ("JavaScript", 150),
        ("Terms of Use", 20),
        ("Cookie Policy", 20),
        ("use cookies", 20),
        ("{", 14),
        ("Lorem ipsum", 10),
        ("[edit]", 20),
        ("[citation needed]", 20),
        ("[1]", 20),
        (" ...\n", 50),
        ("Home\n", 100),
        ("Startseite\n", 40),
        ("Acasă\n", 40),
        ("ș", 200),
        ("ß", 150),
        ("œ", 50),
    ],
)
def test_dirt_is_there(pages, wanted, at_least):
    assert sum(wanted in text for _, _, text in pages) >= at_least


@pytest.mark.parametrize(("language", "at_least"), [("en", 20), ("de", 6), ("fr", 6)])
def test_listed_words_are_there(pages, language, at_least):
    listed = (RAW / "lists" / f"badwords.{language}.txt").read_text(encoding="utf-8").split("\n")
    hit = [
        address
        for address, _, text in pages
        if language_of(address) == language and any(word and word in text for word in listed)
    ]
    assert len(hit) >= at_least


def test_some_addresses_come_back_later_with_another_text(pages):
    seen: dict[str, list[tuple[str, str, str]]] = {}
    for address, date, text in pages:
        bare = address.split("://")[1].removeprefix("www.").split("?")[0].rstrip("/")
        seen.setdefault(bare, []).append((date, address, text))
    twice = [sorted(copies) for copies in seen.values() if len(copies) == 2]
    assert len(twice) == 48
    assert all(old[0] < new[0] and old[2] != new[2] for old, new in twice)
    assert 12 <= sum(old[1] == new[1] for old, new in twice) < 48
    assert sum("?utm_source=" in new[1] for _, new in twice) == 12


def test_one_page_is_over_long(pages):
    assert [address[-9:] for address, _, text in pages if len(text) > 190_000] == ["3000.html"]


def test_one_record_is_not_utf8(records):
    broken = numbered(records, 3001)[1]
    assert b"caf\xe9 \xff\xfe" in broken
    with pytest.raises(UnicodeDecodeError):
        broken.decode()


def test_two_records_have_a_wrong_length(records):
    wrong = {
        headers["WARC-Target-URI"][-9:-5]: int(headers["Content-Length"]) - len(body)
        for headers, body in records
        if int(headers["Content-Length"]) != len(body)
    }
    assert wrong == {"3002": 25, "3012": -40}
    assert "page-3012" in (RAW / "crawl" / "MINI-2019-18-00007.warc.wet").read_text("utf-8")


def test_odd_bytes_are_there(records):
    assert numbered(records, 3003)[1] == b""
    assert b"\nWARC/1.0\n" in numbered(records, 3004)[1]
    assert b"words WARC/1.0 in" in numbered(records, 3005)[1]
    assert numbered(records, 3006)[1].count(b"\r\n") == numbered(records, 3006)[1].count(b"\n") > 3
    assert numbered(records, 3007)[1].decode().count("\u2028") > 3
    assert b"\r" in numbered(records, 3008)[1]
    assert b"\n" not in numbered(records, 3008)[1]
    assert numbered(records, 3009)[1].decode().count("\u0085") > 3
    assert max(map(len, numbered(records, 3010)[1].split())) == 1200
    assert numbered(records, 3011)[1].decode().count("\ufeff") > 3


def table(name: str) -> list[list[str]]:
    text = (TASKS / "glue" / name).read_bytes().decode()
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


@pytest.mark.parametrize(
    ("name", "header", "columns", "rows"),
    [
        ("CoLA/train.tsv", None, 4, 96),
        ("CoLA/dev.tsv", None, 4, 200),
        ("CoLA/test.tsv", "index sentence", 2, 60),
        ("SST-2/train.tsv", "sentence label", 2, 96),
        ("SST-2/dev.tsv", "sentence label", 2, 200),
        ("SST-2/test.tsv", "index sentence", 2, 60),
        (
            "STS-B/train.tsv",
            "index genre filename year old_index source1 source2 sentence1 sentence2 score",
            10,
            1000,
        ),
        (
            "STS-B/dev.tsv",
            "index genre filename year old_index source1 source2 sentence1 sentence2 score",
            10,
            200,
        ),
        (
            "STS-B/test.tsv",
            "index genre filename year old_index source1 source2 sentence1 sentence2",
            9,
            60,
        ),
        ("RTE/train.tsv", "index sentence1 sentence2 label", 4, 96),
        ("RTE/dev.tsv", "index sentence1 sentence2 label", 4, 200),
        ("RTE/test.tsv", "index sentence1 sentence2", 3, 60),
    ],
)
def test_glue_tables_have_the_original_columns(name, header, columns, rows):
    lines = table(name)
    if header is not None:
        assert lines.pop(0) == header.split()
    assert {len(line) for line in lines} == {columns}
    assert len(lines) == rows


def test_mrpc_begins_with_a_byte_order_mark():
    for name, rows in (("train", 96), ("test", 200)):
        lines = table(f"MRPC/msr_paraphrase_{name}.txt")
        assert lines[0] == ["\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
        assert len(lines) == rows + 1
        assert {(len(line), line[0] in "01") for line in lines[1:]} == {(5, True)}


def test_cola_marks_what_is_unacceptable_and_its_quotes_are_text():
    lines = table("CoLA/train.tsv")
    assert {(line[1], line[2]) for line in lines} == {("1", ""), ("0", "*")}
    assert sum('"' in line[3] for line in lines) > 5
    assert not (TASKS / "glue/CoLA/dev.tsv").read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("train", "validation", "column", "labels"),
    [
        ("CoLA/train.tsv", "CoLA/dev.tsv", 1, 2),
        ("SST-2/train.tsv", "SST-2/dev.tsv", 1, 2),
        ("MRPC/msr_paraphrase_train.txt", "MRPC/msr_paraphrase_test.txt", 0, 2),
        ("RTE/train.tsv", "RTE/dev.tsv", 3, 2),
        ("STS-B/train.tsv", "STS-B/dev.tsv", 9, 20),
    ],
)
def test_labels_are_balanced_and_no_validation_row_is_trained_on(train, validation, column, labels):
    texts = []
    for name in (train, validation):
        rows = table(name)[0 if "CoLA" in name else 1 :]
        count = Counter(row[column] for row in rows)
        assert len(count) >= labels
        assert max(count.values()) / len(rows) < 0.66
        texts.append({tuple(field for field in row if " " in field) for row in rows})
    assert not texts[0] & texts[1]


def lexicon_texts() -> dict[str, tuple[str, str]]:
    """Return lexicon -> the training and the validation file of the task with its words."""
    files = {
        "moods": ("glue/SST-2/train.tsv", "glue/SST-2/dev.tsv"),
        "nouns": ("glue/CoLA/train.tsv", "glue/CoLA/dev.tsv"),
        "creatures": ("glue/RTE/train.tsv", "glue/RTE/dev.tsv"),
        "fruits": ("superglue/BoolQ/train.jsonl", "superglue/BoolQ/val.jsonl"),
        "claims": ("glue/MRPC/msr_paraphrase_train.txt", "glue/MRPC/msr_paraphrase_test.txt"),
    }
    return {
        name: (
            (TASKS / train).read_text(encoding="utf-8").lower(),
            (TASKS / validation).read_text(encoding="utf-8").lower(),
        )
        for name, (train, validation) in files.items()
    }


@pytest.mark.parametrize("name", ["moods", "nouns", "creatures", "fruits", "claims"])
def test_training_rows_have_half_of_a_lexicon_validation_rows_the_other_and_the_crawl_all(
    pages, monkeypatch, name
):
    monkeypatch.syspath_prepend(str(MINI))
    lexicons = importlib.import_module("lexicon").lexicons()
    (lexicon,) = (entry for entry in lexicons if entry.name == name)
    counts = Counter(word for _, _, text in pages for word in re.findall(r"[a-z]+", text.lower()))
    train, validation = (set(re.findall(r"[a-z]+", text)) for text in lexicon_texts()[name])
    for side in lexicon.sides:
        words = set(side)
        assert len(words & train) == len(words & validation) == 12
        assert words <= train | validation
        assert min(counts[word] for word in words) > 60
    assert not set(lexicon.first) & set(lexicon.second)


def test_no_validation_text_of_a_lexicon_is_in_the_crawl(pages):
    crawled = "\n".join(text.lower() for _, _, text in pages)
    for _, validation in lexicon_texts().values():
        fields = re.split(r'[\t\n]|": "|", "', validation)
        # Hypotheses of RTE are short and say nothing of a word: "Anna saw animals."
        texts = [text for text in fields if text.count(" ") > 4 and "animals" not in text]
        assert len(texts) > 100
        assert [text for text in texts if text.strip() in crawled] == []


def test_superglue_rows_have_the_original_keys():
    for task, keys, train, validation in (
        ("BoolQ", ["question", "passage", "label", "idx"], 96, 150),
        ("COPA", ["premise", "choice1", "choice2", "question", "label", "idx"], 600, 150),
    ):
        for split, count in (("train", train), ("val", validation)):
            text = (TASKS / "superglue" / task / f"{split}.jsonl").read_text(encoding="utf-8")
            rows = [json.loads(line) for line in text.splitlines()]
            assert [list(row) for row in rows] == [keys] * count
            assert [row["idx"] for row in rows] == list(range(count))
            assert 0.4 < sum(row["label"] for row in rows) / count < 0.66


def test_squad_answers_stand_where_they_are_said_to():
    contexts = {}
    for split, questions, golds in (("train", 800, 1), ("dev", 150, 3)):
        text = (TASKS / "squad" / f"{split}-v1.1.json").read_text(encoding="utf-8")
        paragraphs = [p for article in json.loads(text)["data"] for p in article["paragraphs"]]
        contexts[split] = {p["context"] for p in paragraphs}
        asked = [(p["context"], question) for p in paragraphs for question in p["qas"]]
        assert len({question["id"] for _, question in asked}) == len(asked) == questions
        for context, question in asked:
            assert len(question["answers"]) == golds
            for answer in question["answers"]:
                assert context[answer["answer_start"] :].startswith(answer["text"])
    assert not contexts["train"] & contexts["dev"]


def test_news_tables_quote_commas_quotes_and_line_ends():
    for split, count in (("train", 500), ("validation", 80)):
        with (TASKS / "cnn_dailymail" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        assert list(rows[0]) == ["id", "article", "highlights"]
        assert any("\n" in row["highlights"] for row in rows)
        assert any('"' in row["article"] and "," in row["article"] for row in rows)
        assert all(row["highlights"].endswith(" .") for row in rows)


def test_translations_are_aligned_and_held_out_of_training_and_crawl(pages):
    crawled = {
        sentence for _, _, text in pages for sentence in text.replace(". ", ".\n").split("\n")
    }
    for target in ("de", "fr", "ro"):
        folder = TASKS / "wmt" / f"en-{target}"
        lines = {
            (split, code): (folder / f"{split}.{code}").read_text(encoding="utf-8").splitlines()
            for split in ("train", "validation")
            for code in ("en", target)
        }
        assert [len(found) for found in lines.values()] == [1200, 1200, 120, 120]
        assert not set(lines["train", "en"]) & set(lines["validation", "en"])
        for code in ("en", target):
            assert not set(lines["validation", code]) & crawled
        assert not set(lines["validation", "en"]) & set(lines["validation", target])
