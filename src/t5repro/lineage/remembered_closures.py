"""The files that stand for the code of rules, as an earlier plan found them in the same sources.

For plans, which are made often: to follow all definitions takes longer than the rest of a plan of
the demo. What proves a result follows them again. As with every file in `work/`, deleting the
memory is safe.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from t5repro.errors import StorageError
from t5repro.files import read_file, sha256_of, write_text
from t5repro.strict_json import parse_json

MEMORY = Path("work/lineage/closures.json")


def remembered_closures(
    package: Path, suffixes: frozenset[str], find: Callable[[], dict[str, str]]
) -> dict[str, str]:
    """Return rule -> text of the file that stands for its code.

    Args:
        package: folder of the package.
        suffixes: of the files in it that decide the texts.
        find: returns the texts of the present sources.
    """
    key = _key(package, suffixes)
    if (cached := _read(key)) is not None:
        return cached
    texts = find()
    values = {"sources": key, "texts": texts, "sha256": _hash(texts)}
    with suppress(StorageError):  # in a read-only folder the next plan finds them again
        write_text(MEMORY, json.dumps(values))
    return texts


def _key(package: Path, suffixes: frozenset[str]) -> str:
    """Return a hash of the names and bytes of all sources, this module's own, and of Python."""
    digest = hashlib.sha256(f"{sys.version}\0{package}\0".encode())
    for path in sorted(path for path in package.rglob("*") if path.suffix in suffixes):
        if path.is_file():
            digest.update(f"{path.relative_to(package)}\0{sha256_of(path)}\0".encode())
    return digest.hexdigest()


def _read(key: str) -> dict[str, str] | None:
    """Return the texts of an earlier plan; None if its sources differ or the file is damaged."""
    try:
        values = parse_json(read_file(MEMORY))
        texts = {str(rule): str(text) for rule, text in values["texts"].items()}
        return texts if (values["sources"], values["sha256"]) == (key, _hash(texts)) else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _hash(texts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
