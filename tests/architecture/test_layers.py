"""Imports go from lower layers only; heavy libraries stay where they belong."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from check_docs.tree import Tree
from checkout import ROOT

import t5repro
from t5repro.lineage.sources import imported_names

PACKAGE = Path(t5repro.__file__).parent

ORDER = (  # from the lowest layer to the highest
    (
        "array_types",
        "artifacts",
        "cpu_dispatch",
        "errors",
        "file_forms",
        "stages",
        "strict_json",
        "task_facts",
        "task_groups",
    ),
    ("files", "published", "randomness", "progress", "task_table"),
    ("config",),
    ("jobs",),
    ("engines", "metrics", "vocab", "lineage", "data"),
    ("objectives", "model", "c4", "tasks", "export"),
    ("contamination", "inputs", "plan"),
    ("systems", "versions", "runs"),
    ("train", "evaluate"),
    ("publish", "report"),
    ("audit", "estimate", "hub", "inference", "new_task"),
    ("cli",),
    ("__main__",),
)
LAYERS = {part: number for number, parts in enumerate(ORDER) for part in parts}
WITH_TENSORFLOW = {*("engines", "model", "systems", "train", "evaluate", "publish", "inference")}
LONGEST_MODULE_LINES = 400
TREE = Tree.of(ROOT)
MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    names = [name.split(".") for name in imported_names(path)]
    return {words[1] for words in names if words[0] == "t5repro" and len(words) > 1}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_from_lower_layers_or_its_own_package_only(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    for other in imported_parts(path) & set(LAYERS):
        assert other == part or LAYERS[other] < LAYERS[part], f"{part} imports {other}"


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {part_of(path) for path in MODULES} - {"__init__"} == set(LAYERS)


def top_level_imports(path: Path) -> set[str]:
    """Return the modules that a module imports when it is imported itself."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {
        path: ".".join(["t5repro", *path.relative_to(PACKAGE).with_suffix("").parts])
        for path in MODULES
        if path.name != "__init__.py"
    }
    imports = {
        name: top_level_imports(path) & set(names.values()) - {name} for path, name in names.items()
    }
    try:
        tuple(TopologicalSorter(imports).static_order())
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(reversed(error.args[1]))}")


def test_the_table_of_layers_in_the_documents_is_this_one() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)
    table = {part: int(layer) for layer, parts in rows for part in re.findall(r"`(\w+)`", parts)}
    assert table == LAYERS


def test_only_the_parts_that_compute_import_tensorflow() -> None:
    heavy = {"tensorflow", "tensorflow_text", "keras", "keras_nlp", "keras_hub"}
    found = {
        part_of(path)
        for path in MODULES
        if heavy & {name.split(".")[0] for name in imported_names(path)}
    }
    assert found <= WITH_TENSORFLOW


def test_only_the_command_line_reads_arguments() -> None:
    readers = [
        path
        for path in MODULES
        if {"argparse", "sys.argv"} & set(imported_names(path)) and part_of(path) != "cli"
    ]
    assert readers == []


def test_nothing_is_pickled_or_evaluated() -> None:
    for path in MODULES:
        names = imported_names(path)
        assert not {"pickle", "marshal", "shelve"} & {name.split(".")[0] for name in names}, path
        calls = [
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert not {"eval", "exec"} & set(calls), path


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    long = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: lines for path, lines in long.items() if lines > LONGEST_MODULE_LINES} == {}


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.name)
def test_a_benchmark_imports_names_that_exist(path: Path) -> None:
    names = [name for name in imported_names(path) if name.startswith("t5repro")]
    assert [name for name in names if not TREE.module(name)] == []
