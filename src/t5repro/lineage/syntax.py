"""The top-level statements of a source file: their hashes, and the names that they read.

`lineage/reach.py` follows the names from a rule's entry module. Results are cached by the text of a
file, so a process parses each version of a file once, however often it asks, and an edited file
anew.
"""

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

MAX_TEXTS = 4096
PREFIX = "t5repro"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Their import changes nothing that another module could notice.
SILENT_IMPORTS = sys.stdlib_module_names | {PREFIX}
# Callables that only make a value, by their last name. An assignment that calls another one, and
# none of this package, counts as a statement with an effect. A test checks those of this package.
MAKES_VALUE = frozenset().union(
    ("dataclass", "field", "fields", "replace", "property", "classmethod", "staticmethod"),
    ("cache", "cached_property", "lru_cache", "partial", "contextmanager"),
    ("frozenset", "list", "tuple", "len", "range", "MappingProxyType", "WeakKeyDictionary"),
    ("items", "values", "union", "Path", "PurePosixPath", "as_posix", "log", "sqrt"),
    ("compile", "escape", "encode", "decode", "join", "maketrans", "rpartition"),
    ("JSONDecoder", "JSONEncoder", "get_args", "TypeVar", "TypeAdapter", "ConfigDict", "Field"),
    ("StringConstraints", "field_serializer", "field_validator", "model_serializer"),
    ("model_validator", "BytesAhoCorasick", "wait_random_exponential", "TensorSpec"),
    ("schema", "string", "binary", "bool_", "int64", "uint32", "uint64", "float64"),
    ("dtype", "float32"),
)


class Import(NamedTuple):
    """One name of an import statement.

    Attributes:
        alias: the name that it binds.
        module: the module that it names; empty if it is relative, which the house rules forbid.
        name: the name that it imports from the module; empty for ``import module``.
    """

    alias: str
    module: str
    name: str

    @property
    def is_own(self) -> bool:
        """Whether it imports from this package."""
        return self.module.partition(".")[0] == PREFIX


class Statement(NamedTuple):
    """A top-level statement, or one name of a top-level import.

    Attributes:
        digest: hash of its syntax tree without docstrings.
        binds: the names that it defines.
        has_effect: whether its execution may do more than define these names, so that it counts
            for whatever runs its module.
        reads: names in it, except `attributes`; local names too.
        attributes: name and attribute of expressions like ``name.attribute``.
        imports: the import that it is, or the imports inside it, in functions too.
        is_import: whether it is an import at top level.
    """

    digest: str
    binds: tuple[str, ...]
    has_effect: bool
    reads: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    imports: tuple[Import, ...] = ()
    is_import: bool = False


class SourceFacts(NamedTuple):
    """The facts about a source text.

    Attributes:
        statements: its top-level statements in order, without docstrings.
    """

    statements: tuple[Statement, ...]

    @property
    def imports(self) -> tuple[str, ...]:
        """Every dotted name that the file imports, inside functions too."""
        return tuple(
            name
            for statement in self.statements
            for imported in statement.imports
            for name in (imported.module, f"{imported.module}.{imported.name}")
            if imported.module and not name.endswith(".")
        )


@lru_cache(maxsize=MAX_TEXTS)
def facts_of(text: str, name: str) -> SourceFacts:
    """Return the facts about a source text; `name` is for the errors.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it contains a null byte.
    """
    body = ast.parse(text, filename=name).body
    return SourceFacts(tuple(_statements(body, frozenset(_own_names(body)))))


def _own_names(body: list[ast.stmt]) -> set[str]:
    """Return the callables that a module defines or imports from this package."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(imported.alias for imported in _imports(node) if imported.is_own)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        # In the order of the file: a partial of a partial is recognised, too.
        elif isinstance(node, ast.Assign) and _is_partial(node.value, names):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def _is_partial(value: ast.expr, names: set[str]) -> bool:
    """Return whether a value is one of these callables with some of its arguments."""
    return (
        isinstance(value, ast.Call)
        and _last_name(value.func) == "partial"
        and _last_name(value.args[0]) in names
    )


def _statements(body: list[ast.stmt], own: frozenset[str]) -> Iterator[Statement]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            # One statement per name: a rule that reaches one name does not depend on the others.
            yield from map(_import_statement, _imports(node))
        elif isinstance(node, ast.If) and _is_for_annotations(node):
            # Objects of these types are passed in, and their methods are called.
            yield from _statements(node.body, own)
        elif not _is_docstring(node):
            yield _statement(node, own)


def _statement(node: ast.stmt, own: frozenset[str]) -> Statement:
    tokens: list[str] = []
    names = _Names()
    _collect(node, tokens, names)
    binds = _bound_names(node)
    return Statement(
        digest=_hash(tokens),
        binds=binds if binds is not None else _stored_names(node),
        has_effect=binds is None or not all(_makes_value(call, own) for call in _calls(node)),
        reads=tuple(sorted(names.reads)),
        attributes=tuple(sorted(names.attributes)),
        imports=tuple(names.imports),
    )


def _import_statement(imported: Import) -> Statement:
    return Statement(
        digest=_hash(["Import", *imported]),
        binds=(imported.alias,),
        # A package may register operations or set a global state when it is imported.
        has_effect=imported.module.partition(".")[0] not in SILENT_IMPORTS,
        imports=(imported,),
        is_import=True,
    )


def _imports(node: ast.Import | ast.ImportFrom) -> list[Import]:
    if isinstance(node, ast.Import):
        return [
            Import(alias.asname or alias.name.partition(".")[0], alias.name, "")
            for alias in node.names
        ]
    module = "" if node.level else node.module or ""
    return [Import(alias.asname or alias.name, module, alias.name) for alias in node.names]


def _is_for_annotations(node: ast.If) -> bool:
    is_checking = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return is_checking and not node.orelse


def _bound_names(node: ast.stmt) -> tuple[str, ...] | None:
    """Return the names that a definition binds; None for another statement."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return (node.name,)
    targets: list[ast.expr]
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Assign):
        targets = [
            name
            for target in node.targets
            for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
    else:
        return None
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    # An assignment to an attribute or an item changes an object: that is an effect.
    return tuple(names) if len(names) == len(targets) else None


def _calls(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the callables that Python calls when it executes a definition."""
    inner = ast.iter_child_nodes(node)
    if isinstance(node, (*FUNCTIONS, ast.Lambda)):
        # The body runs later; defaults are computed when the definition is executed.
        inner = iter([*node.args.defaults, *filter(None, node.args.kw_defaults)])
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield from node.decorator_list
    if isinstance(node, ast.Call):
        yield node.func
    for child in inner:
        yield from _calls(child)


def _makes_value(called: ast.expr, own: frozenset[str]) -> bool:
    """Return whether a call makes a value and changes nothing else."""
    if isinstance(called, ast.Call):  # a decorator with arguments
        called = called.func
    first = called
    # `Class.method(...)` is judged by the class, which this package defines.
    while isinstance(first, ast.Attribute):
        first = first.value
    if isinstance(first, ast.Name) and first.id in own:
        return True
    return _last_name(called) in MAKES_VALUE


def _last_name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _stored_names(node: ast.stmt) -> tuple[str, ...]:
    names = {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }
    names |= {
        imported.alias
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
        for imported in _imports(inner)
    }
    return tuple(sorted(names))


class _Names:
    """The names in a statement, and the imports in it."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.imports: list[Import] = []

    def add(self, node: ast.AST) -> None:
        """Add the names of one node of a tree, without the nodes below it."""
        if isinstance(node, ast.Name):
            self.reads.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports += _imports(node)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            self._add_quoted(node.annotation)
        elif isinstance(node, FUNCTIONS):
            self._add_quoted(node.returns)

    def _add_quoted(self, annotation: ast.AST | None) -> None:
        """Add the names in quoted parts of an annotation."""
        for node in ast.walk(annotation) if annotation else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                try:
                    expression = ast.parse(node.value, mode="eval")
                except SyntaxError:  # the text of a Literal
                    continue
                self.reads |= {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}


def _collect(value: Any, tokens: list[str], names: _Names) -> None:
    """Append a syntax tree as words, and add the names in it.

    `ast.dump` would differ between releases of Python, as their trees have other empty fields.
    """
    if isinstance(value, ast.AST):
        tokens.append(type(value).__name__)
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            # Kept as a pair: of `module.name` only this name is reached, not the whole module.
            names.attributes.add((value.value.id, value.attr))
            tokens += ["value", "Name", value.value.id, "attr", value.attr]
            tokens += [type(value.ctx).__name__, ")"]
            return
        names.add(value)
        for name in value._fields:
            field = getattr(value, name, None)
            # "kind" tells `u"…"` from `"…"`, which are one string.
            if field is not None and field != [] and name != "kind":
                tokens.append(name)
                _collect(field, tokens, names)
        tokens.append(")")
    elif isinstance(value, list):
        for element in value:
            if not _is_docstring(element):
                _collect(element, tokens, names)
        tokens.append("]")
    else:
        tokens.append(repr(value))


def _hash(tokens: list[str]) -> str:
    joined = "\0".join([*tokens, ""])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


def _is_docstring(node: Any) -> bool:
    """Return whether a statement is a string and nothing else, the docstring of what precedes."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
