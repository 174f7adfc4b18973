"""Hostile forms of files: what bad merges, full disks and attackers make of JSON and YAML."""

import contextlib
import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

# Whatever the file was.
CONTENTS = {
    "empty": b"",
    "zeros": bytes(64),
    "spaces": b" \n\n",
    "deep": b"[" * 200_000 + b"]" * 200_000,
    "deep keys": b'{"start":' * 900 + b"1" + b"}" * 900,
    "list": b"[]",
    "mapping": b"{}",
    "null": b"null",
    "text": b'"text"',
    "true": b"true",
    "number": b"3",
    "too large": b"1e999",
    "digits": b"9" * 10_000,
    "NaN": b'{"format": NaN, "schema": .nan}',
    "minus infinity": b'{"format": -Infinity, "schema": -.inf}',
    "twice": b'{"outputs": [], "outputs": [], "stages": {}, "stages": {}, "urls": {}, "urls": {}}',
    "text as start": b'{"start": "x", "end": 3, "stages": "x", "outs": "x", "urls": "x"}',
    "lists": b'{"start": [[]], "end": [1], "stages": [[]], "outs": [[1]], "urls": [[]]}',
    "UTF-16": '{"format": 3}'.encode("utf-16"),
    "Latin-1": b'{"format": "\xe9"}',
    "surrogate": b'{"format": "\\ud800", "rule": "\\udfff"}',
    "NUL": b'{"format": "a\\u0000b"}',
    "NUL byte": b'{"format": "a\x00b"}',
    "control": b'{"rule": "\\u001b]0;pwned\\u0007", "inputs": 3, "stages": {"\\u001b": 1}}',
    "controls": b"\x1b]0;pwned\x07\x1b[2J",
    "10 MB": b'{"format": "' + b"x" * 10_000_000 + b'"}',
    "python": b"!!python/object/apply:os.system ['touch pwned']",
    "aliases": b"a: &a [x, x]\nb: &b [*a, *a]\n" + b"c: *b\n",
    "itself": b"&a [*a]",
    "git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "gzip": gzip.compress(b"{}", mtime=0),
    "page": b"<!DOCTYPE html>\n<title>Sign in</title>\n",
    "mark": b'\xef\xbb\xbf{"format": 3, "start": null}',
    "twice by escape": b'{"outputs": [], "\\u006futputs": [], "stages": {}, "\\u0073tages": {}}',
    "paths": (
        b'{"rule": "a", "inputs": [{"path": "a\\u0000b", "sha256": "0", "bytes": -1}], '
        b'"outputs": [{"path": "/etc/passwd", "sha256": true, "bytes": 1e300}], "stages": '
        b'{"../a": {"outs": [{"path": "a\\u0000b", "md5": "../0", "size": -1}]}}}'
    ),
    "merge": b"a: &a {b: 1}\nc: {<<: [*a, *a]}\nd: 010\ne: 2026-13-45\nf: 0x\n",
    "tags": b"a: !!binary ---\nb: !!timestamp x\nc: !!set {d}\n? [1, 2]\n: 3\n",
    "conflict": b"<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n",
}
# Of what the file was.
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda honest: honest[: len(honest) // 2],
    "UTF-16 of itself": lambda honest: honest.decode().encode("utf-16"),
    "itself twice": lambda honest: honest + honest,
}
# In place of the file.
PLACES: dict[str, Callable[[Path], None]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "300 MB": lambda path: _sparse(path, 300_000_000),
}
FORMS = (*CONTENTS, *CHANGES, *PLACES)


def _sparse(path: Path, size: int) -> None:
    path.touch()
    os.truncate(path, size)


@contextlib.contextmanager
def replaced(path: Path, form: str) -> Iterator[None]:
    """Put a hostile form in place of a file, which may be absent, during the block."""
    honest = path.read_bytes() if path.is_file() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if form in PLACES:
        PLACES[form](path)
    else:
        path.write_bytes(CONTENTS[form] if form in CONTENTS else CHANGES[form](honest or b"{}"))
    try:
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if honest is not None:
            path.write_bytes(honest)
