"""An edit of a definition reruns the rules that reach it, by an analysis that shares no code.

`tests/support/byte_code_reach.py` follows the instructions of the compiled modules. What it reaches
and the closure lacks would be a silent edit: there is none. What only the closure has is a rerun
too many: names of local variables, annotations and statements with effects.
"""

import ast
import random
from functools import cache
from pathlib import Path

import pytest
from byte_code_reach import ByteCode

from t5repro.lineage.reach import Modules, reach_of
from t5repro.lineage.sources import PACKAGE, SourceTree
from t5repro.lineage.syntax import SourceFacts, facts_of
from t5repro.stages import STAGES

RULES = [stage.name for stage in STAGES]
MODULES = {stage.name: f"t5repro.{stage.module}" for stage in STAGES}
MOST_FALSE_ALARMS = 0.05  # of the pairs of a rule and a definition that it counts
EDITS_TRIED = 12


def read(path: Path) -> SourceFacts:
    return facts_of(path.read_text(encoding="utf-8"), str(path))


@pytest.fixture(scope="module")
def modules() -> Modules:
    return Modules(PACKAGE, read)


@cache
def lines_of(path: Path) -> dict[str, list[int]]:
    """Return the hash of each definition -> the first lines of the statements that have it."""
    text = path.read_text(encoding="utf-8")
    lines: dict[str, list[int]] = {}
    for node in ast.parse(text).body:
        for statement in facts_of(ast.unparse(node), "").statements[-1:]:
            decorators = [d.lineno for d in getattr(node, "decorator_list", [])]
            if not statement.is_import:
                lines.setdefault(statement.digest, []).append(min([node.lineno, *decorators]))
    return lines


def counted(modules: Modules, rule: str) -> set[tuple[Path, str]]:
    reach = reach_of(modules, MODULES[rule])
    return {(path, digest) for path, digests in reach.definitions.items() for digest in digests}


@pytest.fixture(scope="module")
def by_byte_code() -> dict[str, set[tuple[Path, str]]]:
    """Return rule -> file and hash of the definitions that its byte code reaches."""
    code = ByteCode(PACKAGE)
    digests: dict[Path, dict[int, str]] = {}
    found: dict[str, set[tuple[Path, str]]] = {}
    for rule, module in MODULES.items():
        found[rule] = set()
        for name, line in code.reach(module):
            path = code.path(name)
            assert path is not None
            if path not in digests:
                digests[path] = {n: d for d, lines in lines_of(path).items() for n in lines}
            if line in digests[path]:
                found[rule].add((path, digests[path][line]))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_no_definition_that_byte_code_reaches_is_missing_in_the_closure(
    rule: str, modules: Modules, by_byte_code: dict[str, set[tuple[Path, str]]]
) -> None:
    assert len(by_byte_code[rule]) > 20
    assert by_byte_code[rule] - counted(modules, rule) == set()


def test_few_definitions_are_counted_that_byte_code_does_not_reach(
    modules: Modules, by_byte_code: dict[str, set[tuple[Path, str]]]
) -> None:
    pairs = false_alarms = 0
    for rule in RULES:
        digests = counted(modules, rule)
        definitions = {
            (path, digest)
            for path in {path for path, _ in digests}
            for digest in lines_of(path)
            if (path, digest) in digests
        }
        pairs += len(definitions)
        false_alarms += len(definitions - by_byte_code[rule])
    assert false_alarms <= MOST_FALSE_ALARMS * pairs


def edited(node: ast.stmt) -> bool:
    """Change a definition; return whether it can be changed."""
    marker = ast.Assign([ast.Name("edited", ast.Store())], ast.Constant("edited"))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        node.body.append(marker)
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        node.value = ast.IfExp(ast.Constant(1), node.value, ast.Constant(2))
    else:
        return False
    ast.fix_missing_locations(node)
    return True


def test_an_edit_of_any_definition_changes_its_hash() -> None:
    count = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        before = facts_of(ast.unparse(tree), "").statements
        names = [name for node in tree.body if edited(node) for name in _names_of(node)]
        after = facts_of(ast.unparse(tree), "").statements
        changed = {
            n for a, b in zip(before, after, strict=True) if a.digest != b.digest for n in a.binds
        }
        assert set(names) <= changed, path
        count += len(names)
    assert count > 3000


def _names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def test_an_edited_definition_changes_exactly_the_rules_that_count_it(modules: Modules) -> None:
    count_of = {rule: counted(modules, rule) for rule in RULES}
    before = {rule: SourceTree().closure(rule) for rule in RULES}
    draws = random.Random(5)
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    with_definition = [path for path, tree in trees.items() if any(map(_is_definition, tree.body))]
    for path in draws.sample(sorted(with_definition), EDITS_TRIED):
        tree = trees[path]
        node = draws.choice([n for n in tree.body if _is_definition(n)])
        statements = facts_of(ast.unparse(node), "").statements
        expected = {rule for rule in RULES if (path, statements[-1].digest) in count_of[rule]}
        edited(node)
        text = ast.unparse(tree)

        def with_edit(source: str, name: str, path: Path = path, text: str = text) -> SourceFacts:
            return facts_of(text if Path(name) == path else source, name)

        tree_now = SourceTree(with_edit)
        assert {rule for rule in RULES if tree_now.closure(rule) != before[rule]} == expected, path


def _is_definition(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)
