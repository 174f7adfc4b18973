"""The syntax tree of a source file: a hash of it without docstrings, and the imported names.

Results are cached by the text of a file, so a process parses each version of a file once, however
often it asks, and an edited file anew.
"""

import ast
import hashlib
import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.errors import StorageError
from t5repro.files import write_text

MAX_TEXTS = 4096
FACTS_FILE = Path("work/lineage/syntax.json")


class SourceFacts(NamedTuple):
    """What the closure of a rule needs to know about a source file.

    Attributes:
        syntax_hash: hash of the syntax tree without docstrings.
        imports: every dotted name that the file imports, inside functions too.
    """

    syntax_hash: str
    imports: tuple[str, ...]


@lru_cache(maxsize=MAX_TEXTS)
def facts_of(text: str, name: str) -> SourceFacts:
    """Return the facts about a source text; `name` is for the errors.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it contains a null byte.
    """
    words: list[str] = []
    imports: list[str] = []
    _collect(ast.parse(text, filename=name), words, imports)
    joined = "\0".join([*words, ""])
    digest = hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
    return SourceFacts(digest, tuple(imports))


class RememberedFacts:
    """Facts about source texts that earlier processes parsed, by the hash of the text.

    For plans, which are made often: to parse all sources takes longer than the rest of a plan. What
    proves a result calls `facts_of`. As with every file in `work/`, deleting it is safe.
    """

    def __init__(self) -> None:
        # Another version of this module or of Python may find other facts in the same text.
        self._salt = f"{sys.version}\0".encode() + Path(__file__).read_bytes()
        self._known = _read_facts()
        self._used: dict[str, SourceFacts] = {}

    def __call__(self, text: str, name: str) -> SourceFacts:
        """Return the facts about a source text; see `facts_of`."""
        key = hashlib.sha256(self._salt + text.encode()).hexdigest()
        self._used[key] = self._known.get(key) or facts_of(text, name)
        return self._used[key]

    def save(self) -> None:
        """Keep the facts about the texts of this process; does nothing in a read-only folder."""
        if self._used.keys() == self._known.keys():
            return
        try:
            write_text(FACTS_FILE, json.dumps(self._used))
        except StorageError:
            return


def _read_facts() -> dict[str, SourceFacts]:
    """Return the facts of earlier processes; none if the file is absent or damaged."""
    try:
        values = json.loads(FACTS_FILE.read_bytes())
        return {
            str(key): SourceFacts(str(digest), tuple(map(str, imports)))
            for key, (digest, imports) in values.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _collect(value: Any, words: list[str], imports: list[str]) -> None:
    """Append a syntax tree as words, and the names that it imports.

    `ast.dump` would differ between releases of Python, whose trees have other empty fields.
    """
    if isinstance(value, ast.AST):
        words.append(type(value).__name__)
        for name in value._fields:
            field = getattr(value, name, None)
            if field is not None and field != [] and name != "kind":
                words.append(name)
                _collect(field, words, imports)
        words.append(")")
        if isinstance(value, ast.Import):
            imports.extend(alias.name for alias in value.names)
        elif isinstance(value, ast.ImportFrom) and value.module and not value.level:
            imports.append(value.module)
            imports.extend(f"{value.module}.{alias.name}" for alias in value.names)
    elif isinstance(value, list):
        for item in value:
            if not _is_docstring(item):
                _collect(item, words, imports)
        words.append("]")
    else:
        words.append(repr(value))


def _is_docstring(node: Any) -> bool:
    """Return whether a statement is a string and nothing else, the docstring of what precedes."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
