"""Scores: the tasks' own metrics, what beats the trivial answer, and what is not defined."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from t5repro.config.sections.score import ScoreStage
from t5repro.errors import ArtifactError, SettingsError
from t5repro.evaluate.score import averages, beaten, beats, finite, score, score_task
from t5repro.jobs.score import ScoreJob
from t5repro.tasks.registry import task_named


def sst2(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [
        {
            "idx": number,
            "inputs": "sst2 sentence: x",
            "targets": "",
            "answer": answer,
            "prediction": prediction,
        }
        for number, (answer, prediction) in enumerate(pairs)
    ]


TRAIN = [{"inputs": "", "targets": "", "idx": number, "answer": 1} for number in range(3)]
ROWS = sst2((1, "positive"), (0, "negative"), (1, "positive"), (0, "Negative"))


def test_a_task_is_scored_with_its_metrics_and_its_trivial_answer() -> None:
    entry = score_task(task_named("glue_sst2"), ROWS, TRAIN)
    assert entry["metrics"] == {"accuracy": 75.0}
    assert entry["baseline"] == {"kind": "majority", "metrics": {"accuracy": 50.0}}
    assert entry["primary_metric"] == "accuracy"
    assert entry["beats_baseline"] is True
    assert entry["examples"] == 4
    assert entry["invalid"] == 1  # "Negative" is no label


def test_a_tie_with_the_trivial_answer_does_not_beat_it() -> None:
    entry = score_task(task_named("glue_sst2"), sst2((1, "positive"), (0, "positive")), TRAIN)
    assert entry["metrics"] == entry["baseline"]["metrics"]
    assert entry["beats_baseline"] is False


def test_generated_text_is_set_beside_a_copy_of_the_input() -> None:
    rows = [
        {
            "idx": 0,
            "inputs": "translate English to German: The house is old and it is very big .",
            "targets": "Das Haus ist alt und es ist sehr gross .",
            "answer": "Das Haus ist alt und es ist sehr gross .",
            "prediction": "Das Haus ist alt und es ist sehr gross .",
        }
    ]
    entry = score_task(task_named("wmt_en_de"), rows, rows)
    assert entry["metrics"]["bleu"] == pytest.approx(100.0)
    assert entry["baseline"]["kind"] == "copy"
    assert entry["baseline"]["metrics"]["bleu"] < 50
    assert "version" in entry["signature"] or "tok" in entry["signature"]


def test_an_unlabelled_split_has_no_score() -> None:
    rows = [{**row, "answer": None} for row in ROWS]
    entry = score_task(task_named("glue_sst2"), rows, TRAIN)
    assert entry["metrics"] == {}
    assert entry["beats_baseline"] is None


def test_what_is_not_a_number_becomes_nothing() -> None:
    assert finite({"a": math.nan, "b": math.inf, "c": 1}) == {"a": None, "b": None, "c": 1.0}


@pytest.mark.parametrize(
    ("value", "baseline", "answer"),
    [(2.0, 1.0, True), (1.0, 1.0, False), (0.5, 1.0, False), (None, 1.0, None), (1.0, None, None)],
)
def test_only_more_is_better(value: float | None, baseline: float | None, answer: Any) -> None:
    assert beats(value, baseline) is answer


def test_tasks_that_cannot_tell_are_not_counted() -> None:
    tasks = {
        name: {"beats_baseline": told}
        for name, told in zip("abc", (True, False, None), strict=True)
    }
    assert beaten(tasks) == {"beaten": 1, "of": 2}


def test_an_average_with_a_missing_task_is_null_and_names_it() -> None:
    mean = averages({"glue_sst2": {"metrics": {"accuracy": 90.0}}})
    assert set(mean) == {"glue"}
    assert mean["glue"]["value"] is None
    assert "glue_qqp" in mean["glue"]["missing"]
    assert "glue_sst2" not in mean["glue"]["missing"]


def test_an_average_with_all_tasks_is_the_mean_of_their_means() -> None:
    plain = ("sst2", "mnli_matched", "mnli_mismatched", "qnli", "rte")
    one = {f"glue_{name}": {"metrics": {"accuracy": 80.0}} for name in plain}
    one["glue_cola"] = {"metrics": {"matthews_corrcoef": 0.0}}
    one["glue_mrpc"] = one["glue_qqp"] = {"metrics": {"f1": 100.0, "accuracy": 60.0}}
    one["glue_stsb"] = {"metrics": {"pearson_corrcoef": 90.0, "spearman_corrcoef": 70.0}}
    assert averages(one)["glue"] == {"value": 70.0, "missing": []}


def test_no_average_of_a_benchmark_that_the_run_has_no_task_of() -> None:
    assert averages({"squad": {"metrics": {"em": 1.0, "f1": 2.0}}}) == {}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(folder: Path, predictions: dict[str, Path], train: dict[str, Path]) -> Any:
    score(
        ScoreJob(
            ScoreStage(),
            predictions=predictions,
            train=train,
            scores=folder / "scores.json",
            manifest=folder / "manifest.json",
        )
    )
    return json.loads((folder / "scores.json").read_text(encoding="utf-8"))


def test_the_stage_writes_scores_and_a_manifest(tmp_path: Path) -> None:
    predictions = {"glue_sst2": write(tmp_path / "p" / "glue_sst2.jsonl", ROWS)}
    train = {"glue_sst2": write(tmp_path / "glue_sst2" / "train.jsonl", TRAIN)}
    content = run(tmp_path, predictions, train)
    assert content["tasks"]["glue_sst2"]["metrics"]["accuracy"] == 75.0
    assert content["beats_baseline"] == {"beaten": 1, "of": 1}
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["inputs"]) == 2
    assert manifest["counters"] == {"examples": {"glue_sst2": 4}}


def test_a_row_without_a_prediction_is_named(tmp_path: Path) -> None:
    predictions = {"glue_sst2": write(tmp_path / "glue_sst2.jsonl", [ROWS[0], TRAIN[0]])}
    train = {"glue_sst2": write(tmp_path / "train.jsonl", TRAIN)}
    with pytest.raises(ArtifactError, match=r"glue_sst2\.jsonl line 2 lacks \['prediction'\]"):
        run(tmp_path, predictions, train)


def test_empty_predictions_are_refused(tmp_path: Path) -> None:
    train = {"glue_sst2": write(tmp_path / "train.jsonl", TRAIN)}
    with pytest.raises(ArtifactError, match="is empty; rerun its stage"):
        run(tmp_path, {"glue_sst2": write(tmp_path / "glue_sst2.jsonl", [])}, train)


def test_a_task_that_is_never_trained_on_has_the_most_frequent_scored_answer(
    tmp_path: Path,
) -> None:
    rows = sst2((1, "negative"), (0, "negative"), (0, "negative"))
    content = run(tmp_path, {"glue_sst2": write(tmp_path / "glue_sst2.jsonl", rows)}, {})
    baseline = content["tasks"]["glue_sst2"]["baseline"]
    assert baseline["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_an_unknown_task_names_the_nearest(tmp_path: Path) -> None:
    predictions = {"glue_sst": write(tmp_path / "glue_sst.jsonl", ROWS)}
    train = {"glue_sst": write(tmp_path / "train.jsonl", TRAIN)}
    with pytest.raises(SettingsError, match="nearest: 'glue_sst2'"):
        run(tmp_path, predictions, train)
