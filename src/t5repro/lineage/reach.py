"""The code of a module: the modules that Python imports for it, and the definitions it reaches.

Counted are all definitions of the entry module, every definition that a counted one names, and, of
every module that Python runs, the statements with effects. Annotations count: their types are those
of the arguments whose methods are called. A name counts wherever it occurs, as a local variable
too, so a definition may be counted that is never used, but none is left out. What names cannot
show is counted whole (a module that is used as a value) or refused by a test (names that are
computed, `tests/architecture/test_closures.py`).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from t5repro.lineage.syntax import PREFIX, Import, SourceFacts, Statement

Node = tuple[str, int]  # dotted name of a module, and the position of a statement in it


class Module(NamedTuple):
    """A module of the package.

    Attributes:
        path: its source file.
        statements: its top-level statements.
        bindings: name -> the positions of the statements that bind it.
    """

    path: Path
    statements: tuple[Statement, ...]
    bindings: dict[str, list[int]]


class Reach(NamedTuple):
    """The code of an entry module.

    Attributes:
        files: source files that Python runs, in the order in which they are first imported.
        definitions: file -> the hashes of its counted statements, in their order.
    """

    files: tuple[Path, ...]
    definitions: dict[Path, tuple[str, ...]]


class Modules:
    """The modules of a package, each read once.

    Args:
        package: folder of the package.
        facts_of: returns the facts about a file.
    """

    def __init__(self, package: Path, facts_of: Callable[[Path], SourceFacts]) -> None:
        self._package = package
        self._facts_of = facts_of
        self._modules: dict[str, Module | None] = {}

    def get(self, name: str) -> Module | None:
        """Return a module by its dotted name; None if it is none of the package."""
        if name not in self._modules:
            path = self._path(name)
            self._modules[name] = _module(path, self._facts_of(path)) if path else None
        return self._modules[name]

    def _path(self, name: str) -> Path | None:
        first, *words = name.split(".")
        if first != PREFIX:
            return None
        path = self._package.joinpath(*words)
        # A module before a package of its name, though no folder has both.
        candidates = [path / "__init__.py"]
        if words:
            candidates.insert(0, path.with_name(f"{path.name}.py"))
        return next(filter(Path.is_file, candidates), None)


def _module(path: Path, facts: SourceFacts) -> Module:
    bindings: dict[str, list[int]] = {}
    for position, statement in enumerate(facts.statements):
        for name in statement.binds:
            bindings.setdefault(name, []).append(position)
    return Module(path, facts.statements, bindings)


def reach_of(modules: Modules, entry: str) -> Reach:
    """Return the code of an entry module, given its dotted name."""
    walk = _Walk(modules)
    walk.run(entry)
    walk.add_definitions(entry)
    walk.finish()
    definitions: dict[Path, tuple[str, ...]] = {}
    for name, position in sorted(walk.counted):
        if module := modules.get(name):
            digest = module.statements[position].digest
            definitions[module.path] = (*definitions.get(module.path, ()), digest)
    return Reach(tuple(walk.files), definitions)


class _Walk:
    """The state of a walk: what is counted, and the statements that are still to be followed."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._executed: set[str] = set()
        self._queue: list[Node] = []
        self.counted: set[Node] = set()
        self.files: dict[Path, None] = {}

    def run(self, name: str) -> None:
        """Count what Python does when it imports a module, its packages included."""
        for package in _with_packages(name):
            module = self._modules.get(package)
            if package in self._executed or module is None:
                continue
            # Marked before its imports are followed: a circle of imports ends here.
            self._executed.add(package)
            self.files[module.path] = None
            for position, statement in enumerate(module.statements):
                if statement.has_effect:
                    self._count(package, position)
                if statement.is_import:
                    self._run_imported(statement.imports[0])

    def add_definitions(self, name: str) -> None:
        """Count all definitions of a module; its imports count if one of these uses them."""
        module = self._modules.get(name)
        for position, statement in enumerate(module.statements if module else ()):
            # An unused import changes nothing but what Python runs, which `run` has counted.
            if not statement.is_import:
                self._count(name, position)

    def finish(self) -> None:
        """Follow every counted statement."""
        while self._queue:
            name, position = self._queue.pop()
            module = self._modules.get(name)
            if module is not None:
                self._follow(name, module.statements[position])

    def _count(self, name: str, position: int) -> None:
        if (name, position) not in self.counted:
            self.counted.add((name, position))
            self._queue.append((name, position))

    def _run_imported(self, imported: Import) -> None:
        if imported.is_own:
            self.run(imported.module)
            if imported.name:  # a module of a package, or a name in a module
                self.run(f"{imported.module}.{imported.name}")

    def _follow(self, name: str, statement: Statement) -> None:
        if statement.is_import:
            return  # followed with the attribute that its user needs
        # Imports inside a function bind names for this statement only.
        local: dict[str, list[Import]] = {}
        for imported in statement.imports:
            self._run_imported(imported)
            local.setdefault(imported.alias, []).append(imported)
        for read, attribute in _uses(statement):
            for imported in local.get(read, ()):
                self._add_imported(imported, attribute)
            # Counted even if a local variable hides the name: a rerun too many is safe.
            self._add_name(name, read, attribute)

    def _add_name(self, name: str, read: str, attribute: str) -> bool:
        """Count the statements of a module that bind a name; return whether there are any."""
        module = self._modules.get(name)
        positions = module.bindings.get(read, ()) if module else ()
        for position in positions:
            self._count(name, position)
            statement = module.statements[position] if module else None
            if statement and statement.is_import:
                self._add_imported(statement.imports[0], attribute)
        return bool(positions)

    def _add_imported(self, imported: Import, attribute: str) -> None:
        """Count what an import binds, of which `attribute` is used; all of it if that is empty."""
        if not imported.is_own:
            return
        if not imported.name:
            # ``import t5repro.model`` binds the package, whose attributes may be any module.
            dotted = imported.module != PREFIX and imported.alias == PREFIX
            self._add_attribute(imported.module, "" if dotted else attribute)
        elif self._modules.get(member := f"{imported.module}.{imported.name}"):
            self._add_attribute(member, attribute)
        elif not self._add_name(imported.module, imported.name, attribute):
            # A name that no statement binds comes from the module's own `__getattr__`.
            self._add_name(imported.module, "__getattr__", "")

    def _add_attribute(self, name: str, attribute: str) -> None:
        """Count an attribute of a module; the whole module if the attribute is not known."""
        self.run(name)
        if not attribute:
            self.add_definitions(name)
        elif not self._add_name(name, attribute, ""):
            if self._modules.get(f"{name}.{attribute}"):
                self._add_attribute(f"{name}.{attribute}", "")
            else:
                self._add_name(name, "__getattr__", "")


def _with_packages(name: str) -> Iterator[str]:
    words = name.split(".")
    yield from (".".join(words[: end + 1]) for end in range(len(words)))


def _uses(statement: Statement) -> Iterator[tuple[str, str]]:
    """Yield each name that a statement reads, with its attribute; empty for the name itself."""
    yield from statement.attributes
    yield from ((name, "") for name in statement.reads)
