"""What a file is by its first bytes, whatever its name says."""

import re
from collections.abc import Collection
from pathlib import PurePath
from typing import NamedTuple

FIRST_BYTES = 512  # of a file that tell its form; a tar archive has its sign at 257
LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # how a pointer begins

TABLES = frozenset({".csv", ".tsv"})
TEXTS = TABLES | {".jsonl", ".json", ".ndjson", ".txt"}
PACKED = frozenset({".parquet", ".gz", ".zst"})
WEIGHTS = frozenset({".safetensors", ".model", ".spm", ".h5"})
NOT_MARKUP = TEXTS | PACKED | WEIGHTS | {".wet"}
MARKUP = "markup that is meant to be text can be written as JSON lines"
EXPECTED = {
    ".csv": "comma-separated text",
    ".tsv": "tab-separated text",
    ".jsonl": "JSON lines",
    ".json": "JSON",
    ".txt": "plain text",
    ".parquet": "Parquet",
}


class Form(NamedTuple):
    """A form of files.

    Attributes:
        name: of the form, with its article.
        begins: matches the first bytes of such a file.
        cure: instruction to the user who has it under another name.
        wrong_in: endings of names that say another form; None for all.
    """

    name: str
    begins: re.Pattern[bytes]
    cure: str
    wrong_in: Collection[str] | None


def _form(name: str, begins: bytes, cure: str, wrong_in: Collection[str] | None) -> Form:
    return Form(name, re.compile(begins, re.DOTALL), cure, wrong_in)


# The first that matches: UTF-32 begins as UTF-16 does.
FORMS = (
    _form(
        "a pointer of git LFS",
        re.escape(LFS_POINTER),
        "run git lfs pull in its repository, or download the file itself",
        None,
    ),
    _form(
        "a pointer of git-annex",
        rb"/annex/objects/",
        "run git annex get in its repository, or download the file itself",
        None,
    ),
    _form(
        "a page of HTML",
        rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype\s+html|html|head|body)\b",
        f"the address may need a login: download the file itself; {MARKUP}",
        NOT_MARKUP,
    ),
    _form(
        "a document of XML",
        rb"(\xef\xbb\xbf)?\s*<\?xml\b",
        f"it may be the message of a server: download the file itself; {MARKUP}",
        NOT_MARKUP,
    ),
    _form("gzip", rb"\x1f\x8b\x08", "unpack it with gzip -d", TEXTS | PACKED - {".gz"}),
    _form("bzip2", rb"BZh[1-9]1AY&SY", "unpack it with bzip2 -d", TEXTS | PACKED),
    _form("xz", rb"\xfd7zXZ\0", "unpack it with xz -d", TEXTS | PACKED),
    _form("Zstandard", rb"\x28\xb5\x2f\xfd", "unpack it with zstd -d", TEXTS | PACKED - {".zst"}),
    _form("LZ4", rb"\x04\x22\x4d\x18", "unpack it with lz4 -d", TEXTS | PACKED),
    _form(
        "a ZIP archive or a spreadsheet",
        rb"PK(\x03\x04|\x05\x06)",
        "unpack it, or save the spreadsheet as CSV in UTF-8",
        TEXTS | PACKED,
    ),
    _form(
        "a spreadsheet of old Excel",
        rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "save it as CSV in UTF-8",
        TEXTS | PACKED,
    ),
    _form("a 7z archive", rb"7z\xbc\xaf\x27\x1c", "unpack it", TEXTS | PACKED),
    _form("a RAR archive", rb"Rar!\x1a\x07", "unpack it", TEXTS | PACKED),
    _form("a tar archive", rb".{257}ustar", "unpack it with tar -xf", TEXTS | PACKED),
    _form(
        "Parquet", rb"PAR[1E]", "give its name the ending .parquet", TEXTS | PACKED - {".parquet"}
    ),
    _form("Arrow or Feather", rb"ARROW1\0|\xff{4}", "write it as Parquet", TEXTS | PACKED),
    _form("ORC", rb"ORC[\0-\x1f]", "write it as Parquet", TEXTS | PACKED),
    _form("Avro", rb"Obj\x01", "write it as Parquet", TEXTS | PACKED),
    _form("a database of SQLite", rb"SQLite format 3\0", "export its table", TEXTS | PACKED),
    _form("a PDF", rb"%PDF-", "save its text", TEXTS | PACKED),
    _form("a document in RTF", rb"\{\\rtf", "save it as plain text", TEXTS | PACKED),
    _form("HDF5", rb"\x89HDF\r\n\x1a\n", "export its rows", TEXTS | PACKED),
    _form("an array of NumPy", rb"\x93NUMPY", "export its rows", TEXTS | PACKED),
    _form("a pickle", rb"\x80[\x02-\x05]", "have its writer export the rows", TEXTS | PACKED),
    _form(
        "text in UTF-32", rb"\xff\xfe\0\0|\0\0\xfe\xff", "save it as UTF-8", TEXTS | {".parquet"}
    ),
    _form(
        "text in UTF-16",
        rb"\xff\xfe|\xfe\xff|([^\0]\0){4}|(\0[^\0]){4}",
        "save it as UTF-8",
        TEXTS | {".parquet"},
    ),
    _form(
        "JSON",
        rb'(\xef\xbb\xbf)?\s*(\{\s*"|\[\s*[\[{"])',
        "give its name the ending .jsonl if each line is an object",
        TABLES,
    ),
    _form(
        "one array of JSON",
        rb"(\xef\xbb\xbf)?\s*\[\s*\{",
        "write an object a line, as jq -c '.[]' does",
        {".jsonl", ".ndjson"},
    ),
)


def other_form(name: PurePath | None, first_bytes: bytes) -> Form | None:
    """Return the form of a file that is another than its name says; None if no form is.

    Args:
        name: its path; the ending says a form. None if it says none that the table has.
        first_bytes: at most `FIRST_BYTES` of it.
    """
    return next(
        (
            form
            for form in FORMS
            if (name is None or form.wrong_in is None or name.suffix in form.wrong_in)
            and form.begins.match(first_bytes)
        ),
        None,
    )


def in_place(name: PurePath, form: Form) -> str:
    """Return what a message says about a file of another form than its name says."""
    expected = EXPECTED.get(name.suffix, "the file")
    return f"{name} is {form.name} in place of {expected}; {form.cure}"
