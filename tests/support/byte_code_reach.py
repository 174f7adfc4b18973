"""Which definitions a module reaches, by Python's byte code: a check of `lineage/reach.py`.

Nothing is shared with it: the compiler decides which names are local, and the instructions say
which names are loaded.
"""

import ast
import bisect
import dis
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

PACKAGE = "t5repro"
Definition = tuple[str, int]  # dotted name of a module, and the first line of a statement


class Uses(NamedTuple):
    """The names that the instructions of a statement load and import."""

    names: set[str]
    attributes: set[tuple[str, str]]
    imports: list[tuple[str, str, str]]  # alias, module, name


class Source(NamedTuple):
    """A module by its byte code: line of a statement -> its uses, name -> lines that bind it."""

    uses: dict[int, Uses]
    binds: dict[str, list[int]]
    imports: dict[str, tuple[str, str]]
    effects: list[int]


class ByteCode:
    """The byte code of a package."""

    def __init__(self, package: Path) -> None:
        self._package = package
        self.source = cache(self._source)

    def path(self, module: str) -> Path | None:
        path = self._package.joinpath(*module.split(".")[1:])
        paths = (path.with_suffix(".py"), path / "__init__.py")
        if module == PACKAGE:
            paths = (path / "__init__.py",)
        return next((p for p in paths if module.split(".")[0] == PACKAGE and p.is_file()), None)

    def _source(self, module: str) -> Source | None:
        path = self.path(module)
        if path is None:
            return None
        text = path.read_text(encoding="utf-8")
        code = compile(text, str(path), "exec", dont_inherit=True)
        uses: dict[int, Uses] = {}
        binds: dict[str, list[int]] = {}
        imports: dict[str, tuple[str, str]] = {}
        effects = []
        starts = _starts(ast.parse(text))
        for line, instructions in _instructions_of_statements(code, starts):
            statement_uses = Uses(set(), set(), [])
            _add(instructions, statement_uses)
            stored = {i.argval for i in instructions if i.opname in ("STORE_NAME", "STORE_GLOBAL")}
            if isinstance(starts[line], ast.Import | ast.ImportFrom):
                imports |= {alias: (origin, name) for alias, origin, name in statement_uses.imports}
                continue
            uses[line] = statement_uses
            for name in stored:
                binds.setdefault(name, []).append(line)
            if not stored and isinstance(starts[line], ast.Expr | ast.For | ast.Assign):
                effects.append(line)
        return Source(uses, binds, imports, effects)

    def reach(self, entry: str) -> set[Definition]:
        """Return the definitions that an entry module loads, directly or not."""
        reached: set[Definition] = set()
        source, package = self.source(entry), self.source(PACKAGE)
        queue = [(entry, line) for line in source.uses] if source else []
        queue += [(PACKAGE, line) for line in package.effects] if package else []  # imported first
        while queue:
            module, line = queue.pop()
            if (module, line) in reached:
                continue
            reached.add((module, line))
            source = self.source(module)
            assert source is not None
            uses = source.uses[line]
            local = {alias: (origin, name) for alias, origin, name in uses.imports}
            pairs = {*uses.attributes, *((name, "") for name in uses.names)}
            for name, attribute in pairs:
                queue += self._definitions_of(module, name, attribute)
                if name in local:
                    queue += self._imported(*local[name], attribute)
        return reached

    def _definitions_of(
        self, module: str, name: str, attribute: str, depth: int = 0
    ) -> Iterator[Definition]:
        source = self.source(module)
        if source is None or depth > 20:
            return
        yield from ((module, line) for line in source.binds.get(name, ()))
        if name in source.imports:
            yield from self._imported(*source.imports[name], attribute, depth + 1)

    def _imported(
        self, module: str, name: str, attribute: str, depth: int = 0
    ) -> Iterator[Definition]:
        target = f"{module}.{name}" if name else module
        if self.path(target) is not None:
            if attribute:
                yield from self._definitions_of(target, attribute, "", depth + 1)
        elif name:
            yield from self._definitions_of(module, name, attribute, depth + 1)


def _starts(tree: ast.Module) -> dict[int, ast.stmt]:
    """Return first line -> top-level statement; those below TYPE_CHECKING count as top level."""
    starts = {}
    for node in tree.body:
        decorators = [d.lineno for d in getattr(node, "decorator_list", [])]
        starts[min([node.lineno, *decorators])] = node
    return starts


def _instructions_of_statements(
    code: CodeType, starts: dict[int, ast.stmt]
) -> Iterator[tuple[int, list[dis.Instruction]]]:
    lines = sorted(starts)
    groups: dict[int, list[dis.Instruction]] = {line: [] for line in lines}
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else None
        position = bisect.bisect_right(lines, line or 0)
        if position:
            groups[lines[position - 1]].append(instruction)
    yield from groups.items()


LOADS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"}
MEMBERS = {"LOAD_ATTR", "LOAD_METHOD"}


def _add(instructions: list[dis.Instruction], uses: Uses) -> None:
    module = ""
    for index, instruction in enumerate(instructions):
        following = instructions[index + 1] if index + 1 < len(instructions) else None
        if instruction.opname in LOADS:
            if following is not None and following.opname in MEMBERS:
                uses.attributes.add((instruction.argval, following.argval))
            else:
                uses.names.add(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            module = instruction.argval
            if following is not None and following.opname.startswith("STORE"):
                uses.imports.append((following.argval, module, ""))
        elif instruction.opname == "IMPORT_FROM" and following is not None:
            uses.imports.append((following.argval, module, instruction.argval))
        elif instruction.opname.startswith(("LOAD_FAST", "LOAD_CLOSURE")):
            if following is not None and following.opname in MEMBERS:  # an import of a function
                uses.attributes.add((str(instruction.argval), following.argval))
            else:
                uses.names.update({str(instruction.argval)} & {a for a, _, _ in uses.imports})
        if isinstance(instruction.argval, CodeType):
            inner = list(dis.get_instructions(instruction.argval))
            _add(inner, uses)
