"""Files under a name that says another form: named with the cure, before a reader takes them."""

import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.listed_lines import listed_lines
from t5repro.c4.own_text.rows import read_rows as read_own_text
from t5repro.config.sections.corpus import CorpusSettings
from t5repro.errors import ArtifactError, FormError, RawDataError
from t5repro.file_forms import other_form
from t5repro.files import read_json, refuse_other_form
from t5repro.model.checkpoints import read_arrays
from t5repro.new_task.rows import read_rows

ROWS = "text,label\n" + "".join(f"line {n},{'yes' if n % 2 else 'no'}\n" for n in range(40))
JSON = '[{"text": "a", "label": "b"}]\n'
NAMES = ("rows.csv", "rows.tsv", "rows.jsonl", "rows.parquet")


def zipped(name: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, ROWS)
    return data.getvalue()


def tar() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        member = tarfile.TarInfo("rows.csv")
        member.size = len(ROWS)
        archive.addfile(member, io.BytesIO(ROWS.encode()))
    return data.getvalue()


def written(write: Callable[[pa.Table, io.BytesIO], object]) -> bytes:
    data = io.BytesIO()
    write(pa.table({"text": ["a", "b"], "label": ["c", "d"]}), data)
    return data.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("create table rows (text, label)")
    return (folder / "rows.db").read_bytes()


def array() -> bytes:
    data = io.BytesIO()
    np.save(data, np.zeros(3))
    return data.getvalue()


FORMS = {
    "gzip": gzip.compress(ROWS.encode(), mtime=0),
    "bzip2": bz2.compress(ROWS.encode()),
    "xz": lzma.compress(ROWS.encode()),
    "Zstandard": pa.compress(ROWS.encode(), "zstd", asbytes=True),
    "a ZIP archive or a spreadsheet": zipped("xl/workbook.xml"),
    "a tar archive": tar(),
    "Arrow or Feather": written(pyarrow.feather.write_feather),
    "an array of NumPy": array(),
    "a pickle": pickle.dumps([ROWS]),
    "text in UTF-16": ROWS.encode("utf-16"),
    "text in UTF-32": ROWS.encode("utf-32"),
    "a page of HTML": b"\n<!DOCTYPE HTML>\n<title>Sign in</title>\n",
    "a document of XML": b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>',
    "a PDF": b"%PDF-1.7\n1 0 obj\n",
    "a document in RTF": rb"{\rtf1\ansi text, label}",
    "a spreadsheet of old Excel": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    "a pointer of git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    "a pointer of git-annex": b"/annex/objects/SHA256E-s9--0.csv\n",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_another_form_are_named_with_the_form(form: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FORMS[form])
    with pytest.raises(FormError, match=f"{name} is {form} in place of [A-Z]?[^;]+; [a-z].+"):
        read_rows(tmp_path / name)


def test_a_database_and_utf_16_without_its_mark_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(database(tmp_path))
    with pytest.raises(FormError, match="is a database of SQLite .* export its table"):
        read_rows(path)
    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes(ROWS.encode(encoding))
        with pytest.raises(FormError, match="is text in UTF-16 .* save it as UTF-8"):
            read_rows(path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("rows.csv", written(pq.write_table), r"is Parquet in .* the ending \.parquet"),
        ("rows.csv", JSON.encode(), r"is JSON in place of comma-.* the ending \.jsonl if"),
        ("rows.csv", b'{"text": "a", "label": "b"}\n' * 9, r"is JSON in .* the ending \.jsonl"),
        ("rows.jsonl", JSON.encode(), r"is one array of JSON .* jq -c"),
        ("rows.parquet", ROWS.encode(), r"cannot be read: .Parquet magic bytes .*allowed: Parquet"),
        ("rows.tsv", ROWS.encode(), r"separated by commas: give its name the ending \.csv"),
    ],
)
def test_rows_of_one_form_under_the_name_of_another_are_to_be_renamed(
    name: str, data: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RawDataError, match=message):
        read_rows(tmp_path / name)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.parquet", "a.jsonl.gz", "a.txt.zst"])
@pytest.mark.parametrize("form", ["xz", "a ZIP archive or a spreadsheet", "a pickle"])
def test_own_text_of_another_form_is_named(form: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FORMS[form])
    with pytest.raises(FormError, match=f"{name} is {form} in place of"):
        list(read_own_text(tmp_path / name, name, CorpusSettings(files=[name])))


def test_a_page_in_place_of_a_text_is_named_and_markup_within_a_text_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_bytes(FORMS["a page of HTML"])
    with pytest.raises(FormError, match="page.txt is a page of HTML in place of plain text; "):
        list(read_own_text(page, "page.txt", CorpusSettings(files=["page.txt"])))
    page.write_bytes(b"A page begins with <html>.\n" + FORMS["a page of HTML"])
    (row,) = read_own_text(page, "page.txt", CorpusSettings(files=["page.txt"], documents="file"))
    assert "<!DOCTYPE HTML>" in row.text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("rows.jsonl.gz", FORMS["gzip"]),
        ("rows.txt.zst", FORMS["Zstandard"]),
        ("rows.parquet", written(pq.write_table)),
        ("rows.csv", b"\xef\xbb\xbf" + ROWS.encode()),
        ("rows.tsv", b"<a>\t[b]\n1 {x}\t2\n"),
        ("rows.jsonl", b'\n{"text": "[1]"}\n'),
        ("squad.json", b'{"data": []}'),
        ("empty.csv", b""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_of_the_form_that_its_name_says_is_opened(
    name: str, data: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    refuse_other_form(tmp_path / name)


def test_lists_and_json_of_another_form_are_named(tmp_path: Path) -> None:
    words, values = tmp_path / "words.txt", tmp_path / "config.json"
    words.write_bytes(FORMS["text in UTF-16"])
    with pytest.raises(FormError, match=r"words\.txt is text in UTF-16"):
        list(listed_lines(words))
    values.write_bytes(FORMS["a page of HTML"])
    with pytest.raises(ArtifactError, match=r"config\.json is a page of HTML in place of JSON"):
        read_json(values)


@pytest.mark.parametrize(
    "form",
    ["a ZIP archive or a spreadsheet", "a pickle", "a page of HTML", "gzip", "a tar archive"],
)
def test_weights_of_another_form_are_named(form: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(FORMS[form])
    with pytest.raises(ArtifactError, match=rf"model\.safetensors is {form} in place of"):
        read_arrays(path)


@given(st.integers(min_value=2, max_value=100_000_000))
def test_no_header_of_weights_is_taken_for_another_form(length: int) -> None:
    # Of 0x1f8b08 bytes, for instance, which begins as gzip does.
    assert other_form(Path("model.safetensors"), struct.pack("<Q", length) + b'{"a": ') is None


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1))
def test_text_is_text(text: str) -> None:
    """Other than what begins as markup, JSON or a sign of a format in letters."""
    letters = (
        "<",
        "{",
        "[",
        "PK",
        "BZh",
        "Rar!",
        "Obj",
        "ARROW",
        "PAR",
        "SQLite",
        "%PDF-",
        "/annex",
    )
    if not text.lstrip("\ufeff").lstrip().startswith(letters):
        for name in ("rows.csv", "rows.jsonl", "rows.txt", "rows.de"):
            assert other_form(Path(name), text.encode()) is None
