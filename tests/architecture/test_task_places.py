"""A task is in two places: its row in the table of tasks, and its functions in `tasks/`."""

import ast
import filecmp
from pathlib import Path
from typing import Any

import pytest
from added_task import NAME, PLACES, copy_with_task, facts_of_run
from checkout import ROOT

from t5repro.task_table import BY_NAME

PACKAGE = ROOT / "src" / "t5repro"
# Modules with the metric `squad`, which has the name of the task that it was made for.
WITH_METRIC = {
    "config/sections/tasks.py": ["squad", "squad"],
    "metrics/registry.py": ["squad"],
    "new_task/proposal.py": ["squad"],
    "report/answers.py": ["squad"],
    "report/bootstrap.py": ["squad"],
}


def task_names_in(path: Path) -> list[str]:
    """Return the literals of a module that are names of tasks, docstrings apart."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    texts = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in texts]
    return [node.value for node in constants if node.value in BY_NAME]


def test_no_module_but_the_table_and_the_functions_of_a_task_names_it() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in sorted(PACKAGE.rglob("*.py"))
        if (names := task_names_in(path))
    }
    outside = {
        name: names
        for name, names in found.items()
        if name not in ("task_table.py", "task_groups.py") and not name.startswith("tasks/")
    }
    assert outside == WITH_METRIC


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("added")
    copy_with_task(folder)
    return folder


@pytest.fixture(scope="module")
def facts(folder: Path) -> dict[str, Any]:
    return facts_of_run(folder)


def test_two_files_of_the_package_have_the_task(folder: Path) -> None:
    copy = folder / "src" / "t5repro"
    names = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    _, changed, errors = filecmp.cmpfiles(PACKAGE, copy, names, shallow=False)
    assert (sorted(changed), errors) == (sorted(name for name, *_ in PLACES), [])


@pytest.mark.keras
def test_settings_with_the_task_are_valid_and_its_files_are_found(facts: dict[str, Any]) -> None:
    assert facts["validate"] == 0
    assert facts["files"] == {
        "train": ["tasks/toy/train.tsv"],
        "validation": ["tasks/toy/dev.tsv"],
        "test": ["tasks/toy/test.tsv"],
    }


@pytest.mark.keras
def test_its_examples_are_text_and_segments(facts: dict[str, Any]) -> None:
    assert facts["example"] == {
        "inputs": "toy sentence1: the river turns sentence2: the mill turns",
        "targets": "different",
        "segments": ["the river turns", "the mill turns"],
        "answer": 0,
        "idx": 1,
    }


@pytest.mark.keras
def test_it_is_trained_and_scored_as_text_and_as_labels(facts: dict[str, Any]) -> None:
    entries = {name: scores["tasks"][NAME] for name, scores in facts["scores"].items()}
    assert {name: entry["examples"] for name, entry in entries.items()} == {"text": 8, "labels": 8}
    # After two steps T5 writes no label yet; a network of labels can answer nothing else.
    assert entries["labels"]["invalid"] == 0
    for entry in entries.values():
        assert entry["metrics"].keys() == {"accuracy"}
        assert entry["baseline"]["metrics"] == {"accuracy": 75.0}
    missing = facts["scores"]["text"]["averages"]["glue"]["missing"]
    assert "glue_cola" in missing
    assert NAME not in missing


@pytest.mark.keras
def test_its_work_is_estimated_from_the_rows_of_its_validation_split(facts: dict[str, Any]) -> None:
    assert facts["rows"] == {NAME: 8}
    flops = {name: flops for name, flops in facts["flops"].items() if "finetune" in name}
    assert flops.keys() == {"finetune/text", "finetune/labels"}
    assert all(value > 0 for value in flops.values())


@pytest.mark.keras
def test_the_report_has_its_title_and_heading(facts: dict[str, Any]) -> None:
    assert facts["page"] == {"Toy tasks": True, "Toy pairs": True, NAME: True}


@pytest.mark.keras
def test_its_leaderboard_has_its_file(facts: dict[str, Any]) -> None:
    assert facts["leaderboard"][-2:] == ["glue_ax", NAME]
    (lines,) = facts["submission"].values()
    assert list(facts["submission"]) == ["Toy.tsv"]
    assert lines[0] == "index\tprediction"
    assert [line.split("\t")[0] for line in lines[1:]] == ["0", "1", "2", "3"]
    assert {line.split("\t")[1] for line in lines[1:]} <= {"0", "1"}
