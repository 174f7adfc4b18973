"""The best kept checkpoints in scores, table and report."""

import json

import pytest

from t5repro.config.sections.score import ScoreStage
from t5repro.evaluate.checkpoint_selection import best_metrics
from t5repro.evaluate.score import score
from t5repro.files import write_manifest
from t5repro.jobs.score import ScoreJob
from t5repro.report.best_checkpoints import checkpoint_tables
from t5repro.report.scores_csv import csv_text


@pytest.fixture
def scored(tmp_path):
    """Scores of RTE and SST-2 at steps 3, 6 and 8; SST-2 is best at 3, RTE at the last."""
    answers = {
        3: {"glue_sst2": "positive", "glue_rte": "not_entailment"},
        6: {"glue_sst2": "negative", "glue_rte": "not_entailment"},
        8: {"glue_sst2": "negative", "glue_rte": "entailment"},
    }
    right = {"glue_sst2": 1, "glue_rte": 0}
    predicted = tmp_path / "evaluate_predict"
    files = []
    for step, by_task in answers.items():
        folder = predicted if step == 8 else predicted / f"step-{step}"
        folder.mkdir(exist_ok=True, parents=True)
        for task, prediction in by_task.items():
            row = {"idx": 0, "inputs": "", "targets": "", "answer": right[task]}
            row["prediction"] = prediction
            files.append(folder / f"{task}.jsonl")
            files[-1].write_text(json.dumps(row) + "\n")
    output = tmp_path / "scores.json"

    def run(steps, without=None):
        write_manifest(
            predicted / "manifest.json",
            rule="evaluate_predict",
            settings={},
            inputs=[],
            outputs=[file for file in files if file != without],
            counters={},
        )
        score(
            ScoreJob(
                ScoreStage(),
                predictions={task: predicted / f"{task}.jsonl" for task in right},
                train={},
                scores=output,
                manifest=tmp_path / "manifest.json",
                kept_steps=steps,
            )
        )
        return json.loads(output.read_text())

    return run


def test_scores_have_every_step_the_best_step_and_its_weights(scored, tmp_path, make_rows):
    content = scored((3, 6, 8))
    assert content["tasks"]["glue_sst2"]["metrics"] == {"accuracy": 0.0}  # the last, as ever
    checkpoints = content["checkpoints"]
    assert set(checkpoints["scores"]) == {"3", "6", "8"}
    assert checkpoints["best"]["glue_sst2"]["step"] == 3
    assert checkpoints["best"]["glue_sst2"]["means"] == {"3": 100.0, "6": 0.0, "8": 0.0}
    assert checkpoints["best"]["glue_sst2"]["weights"] == "step-3/weights.safetensors"
    assert checkpoints["best"]["glue_rte"]["step"] == 8
    assert best_metrics(checkpoints["best"])["glue_rte"] == {"accuracy": 100.0}
    inputs = [
        item["path"] for item in json.loads((tmp_path / "manifest.json").read_text())["inputs"]
    ]
    assert any(path.endswith("step-3/glue_sst2.jsonl") for path in inputs)
    rows = {(row.experiment, row.task): row.value for row in make_rows({"arm": content})}
    assert rows["arm", "glue_sst2"] == 0.0
    assert rows["arm:best", "glue_sst2"] == 100.0
    text = csv_text(make_rows({"arm": content}))
    assert "arm:best,arm:best,0,1,glue_sst2,accuracy,100.0" in text
    (table,) = checkpoint_tables({"arm": content})
    lines = {line.weights: (line.step, line.best, line.last) for line in table.lines}
    assert lines["step-3/weights.safetensors"] == ("3", "100.00", "0.00")
    assert lines["step-8/weights.safetensors"] == ("8", "100.00", "100.00")


def test_a_group_of_tasks_may_keep_the_checkpoints_of_other_steps(scored, tmp_path):
    content = scored((3, 6, 8), without=tmp_path / "evaluate_predict/step-3/glue_sst2.jsonl")
    best = content["checkpoints"]["best"]
    assert best["glue_sst2"]["means"] == {"6": 0.0, "8": 0.0}
    assert set(best["glue_rte"]["means"]) == {"3", "6", "8"}
    assert set(content["checkpoints"]["scores"]["3"]) == {"glue_rte"}


def test_without_kept_checkpoints_there_is_no_table(scored):
    content = scored(())
    assert set(content) == {"tasks", "averages", "beats_baseline"}
    assert checkpoint_tables({"arm": content}) == []
