"""The syntax tree of a source file: a hash of it without docstrings, and the imported names.

Results are cached by the text of a file, so a process parses each version of a file once, however
often it asks, and an edited file anew.
"""

import ast
import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

MAX_TEXTS = 4096


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
    joined = "".join(f"{word}\0" for word in words)
    digest = hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
    return SourceFacts(digest, tuple(imports))


def _collect(value: Any, words: list[str], imports: list[str]) -> None:
    """Append a syntax tree as words, and the names that it imports.

    `ast.dump` would differ between Python 3.11 and 3.12, whose trees have other empty fields.
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
