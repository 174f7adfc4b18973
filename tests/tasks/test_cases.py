"""Every task's text equals a hand-written expectation."""

import json
from collections import Counter
from dataclasses import asdict

import pytest
from checkout import CASES

from t5repro.evaluate.score import score_rows
from t5repro.metrics.registry import score_names
from t5repro.tasks.registry import TASKS, task_named

CASES = json.loads((CASES / "tasks.json").read_text("utf-8"))
SUFFIXES = {"squad": ".json"}


def write_case(case, folder):
    paths = []
    for number, content in enumerate(case["files"]):
        path = folder / f"file{number}{SUFFIXES.get(case['task'], '.txt')}"
        lines = content.get("lines") or [
            json.dumps(record, ensure_ascii=False) for record in content["records"]
        ]
        path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))
        paths.append(path)
    return paths


def examples_of(task, split, paths):
    rows = task.read(paths, split, Counter())
    examples = [asdict(example) for row in rows for example in task.to_examples(row)]
    return [
        {key: example[key] for key in ("inputs", "targets", "idx", "answer")}
        for example in examples
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_rows_become_the_hand_written_text(case, tmp_path):
    paths = write_case(case, tmp_path)
    assert examples_of(task_named(case["task"]), case["split"], paths) == case["expected"]


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_task_has_at_least_three_written_rows(task):
    rows = [row for case in CASES if case["task"] == task.name for row in case["expected"]]
    assert len(rows) >= 3


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_a_labelled_target_is_read_back_as_its_own_answer(task):
    """A perfect model scores 100."""
    rows = [
        row | {"prediction": row["targets"]}
        for case in CASES
        if case["task"] == task.name and case["split"] != "test"
        for row in case["expected"]
        if row["targets"]
    ]
    if task.name in ("glue_wnli", "super_glue_wsc"):
        rows = [row for row in rows if row["answer"] == 1]
    scores = score_rows(task, rows)
    # The best scores of SQuAD 2.0 need odds, which texts do not have.
    names = {name for name in score_names(task.metrics) if not name.startswith("best_")}
    assert set(scores) == (names if rows else set())
    assert task.invalid_count(rows) == 0
    for name, value in scores.items():
        # Texts of two or three words have no 4-grams: BLEU is 0 by definition there.
        if name != "bleu" and not name.startswith("rouge2"):
            assert value == pytest.approx(100.0), name
