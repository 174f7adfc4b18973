"""The best kept checkpoint of each group of tasks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.score import ScoreStage
from t5repro.evaluate.checkpoint_selection import best_checkpoints, best_metrics, groups_of
from t5repro.evaluate.score import score
from t5repro.report.best_checkpoints import checkpoint_tables
from t5repro.report.scores_csv import csv_text

MRPC = {
    2: {"glue_mrpc": {"f1": 80.0, "accuracy": 60.0}},
    4: {"glue_mrpc": {"f1": 78.0, "accuracy": 64.0}},
    6: {"glue_mrpc": {"f1": 81.0, "accuracy": 61.0}},
}


def test_all_numbers_of_a_group_are_those_of_the_step_with_its_highest_mean():
    chosen = best_checkpoints(MRPC)["glue_mrpc"]
    assert chosen["means"] == {"2": 70.0, "4": 71.0, "6": 71.0}
    assert chosen["step"] == 4  # the first of the equal ones, though 6 has the best F1
    assert chosen["metrics"] == {"glue_mrpc": {"f1": 78.0, "accuracy": 64.0}}


def test_both_parts_of_mnli_are_one_group_and_other_tasks_stand_alone():
    metrics = {
        "glue_mnli_matched": {"accuracy": 1.0},
        "glue_mnli_mismatched": {"accuracy": 2.0},
        "squad": {"em": 1.0, "f1": 2.0},
        "cnn_dailymail": {"rouge1": 1.0, "rouge2": 2.0, "rouge2_bootstrap": 9.0},
        "glue_wnli": {"accuracy": 3.0},
        "glue_ax": {},
    }
    assert {name: len(columns) for name, columns in groups_of(metrics).items()} == {
        "glue_mnli_matched+glue_mnli_mismatched": 2,
        "squad": 2,
        "cnn_dailymail": 2,
        "glue_wnli": 1,
    }


def test_an_undefined_step_is_chosen_only_if_all_are():
    steps = {1: {"a": {"x": None}}, 2: {"a": {"x": -50.0}}, 3: {"a": {"x": float("nan")}}}
    assert best_checkpoints(steps)["a"]["step"] == 2
    none = {step: {"a": {"x": None}} for step in (5, 9)}
    assert best_checkpoints(none)["a"]["step"] == 5


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_the_chosen_mean_is_the_highest_and_no_earlier_one_is_as_high(values):
    chosen = best_checkpoints({n: {"a": {"x": value}} for n, value in enumerate(values)})["a"]
    assert values[chosen["step"]] == max(values)
    assert chosen["step"] == values.index(max(values))


@pytest.fixture
def scored(tmp_path):
    """Scores of RTE and SST-2 at steps 3, 6 and 8; SST-2 is best at 3, RTE at the last."""
    answers = {
        3: {"glue_sst2": "positive", "glue_rte": "not_entailment"},
        6: {"glue_sst2": "negative", "glue_rte": "not_entailment"},
        8: {"glue_sst2": "negative", "glue_rte": "entailment"},
    }
    right = {"glue_sst2": 1, "glue_rte": 0}
    for step, by_task in answers.items():
        folder = tmp_path if step == 8 else tmp_path / f"step-{step}"
        folder.mkdir(exist_ok=True)
        for task, said in by_task.items():
            row = {"idx": 0, "inputs": "", "targets": "", "answer": right[task]}
            row["prediction"] = said
            (folder / f"{task}.jsonl").write_text(json.dumps(row) + "\n")
    output = tmp_path / "scores.json"

    def run(steps):
        score(
            ScoreStage(),
            predictions={task: tmp_path / f"{task}.jsonl" for task in right},
            train={},
            output=output,
            manifest=tmp_path / "manifest.json",
            kept_steps=steps,
        )
        return json.loads(output.read_text())

    return run


def test_scores_hold_every_step_the_choice_and_the_weights_behind_it(scored, tmp_path, make_rows):
    content = scored((3, 6, 8))
    assert content["tasks"]["glue_sst2"]["metrics"] == {"accuracy": 0.0}  # the last, as ever
    chosen = content["checkpoints"]
    assert set(chosen["scores"]) == {"3", "6", "8"}
    assert chosen["best"]["glue_sst2"]["step"] == 3
    assert chosen["best"]["glue_sst2"]["means"] == {"3": 100.0, "6": 0.0, "8": 0.0}
    assert chosen["best"]["glue_sst2"]["weights"] == "step-3/weights.safetensors"
    assert chosen["best"]["glue_rte"]["step"] == 8
    assert best_metrics(chosen["best"])["glue_rte"] == {"accuracy": 100.0}
    listed = [
        item["path"] for item in json.loads((tmp_path / "manifest.json").read_text())["inputs"]
    ]
    assert any(path.endswith("step-3/glue_sst2.jsonl") for path in listed)
    rows = {(row.experiment, row.task): row.value for row in make_rows({"arm": content})}
    assert rows["arm", "glue_sst2"] == 0.0
    assert rows["arm:best", "glue_sst2"] == 100.0
    said = csv_text(make_rows({"arm": content}))
    assert "arm:best,arm:best,0,1,glue_sst2,accuracy,100.0" in said
    (table,) = checkpoint_tables({"arm": content})
    lines = {line.weights: (line.step, line.best, line.last) for line in table.lines}
    assert lines["step-3/weights.safetensors"] == ("3", "100.00", "0.00")
    assert lines["step-8/weights.safetensors"] == ("8", "100.00", "100.00")


def test_without_kept_checkpoints_scores_are_as_they_were(scored):
    content = scored(())
    assert set(content) == {"tasks", "averages", "beats_baseline"}
    assert checkpoint_tables({"arm": content}) == []
