"""The few numbers by which DVC compares runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from t5repro.errors import ArtifactError
from t5repro.report.metrics import metrics_text


def test_the_metrics_of_an_experiment_are_its_scores_and_last_losses_alone(run: Any) -> None:
    run.scores["no_pretraining"]["tasks"]["squad"]["metrics"]["f1"] = None
    run.write()
    baseline, other = (
        json.loads(Path(f"report/{name}.metrics.json").read_text()) for name in run.scores
    )
    assert baseline["squad"] == run.scores["baseline"]["tasks"]["squad"]["metrics"]
    assert baseline["loss"].keys() == {"pretrain", "finetune"}
    last_line = run.histories["baseline"]["finetune"].splitlines()[-1]
    assert baseline["loss"]["finetune"] == float(last_line.split(",")[1])
    assert other["loss"].keys() == {"finetune"}  # it took no step of pre-training
    assert other["squad"].keys() == {"em"}
    assert set(baseline) == {*run.scores["baseline"]["tasks"], "loss"}
    outputs = json.loads(run.manifest.read_text())["outputs"]
    assert "report/baseline.metrics.json" in [entry["path"] for entry in outputs]


def test_a_history_whose_last_line_has_no_loss_is_named(tmp_path: Path) -> None:
    scores, history = tmp_path / "scores.json", tmp_path / "history.csv"
    scores.write_text('{"tasks": {}}')
    history.write_text("step,loss\n10,\n")
    with pytest.raises(ArtifactError, match=r"history\.csv has no loss in its last line; rerun"):
        metrics_text(scores, {"finetune": history})


def test_the_last_loss_on_held_out_text_is_among_the_losses(tmp_path: Path) -> None:
    scores, history = tmp_path / "scores.json", tmp_path / "history.csv"
    scores.write_text('{"tasks": {}}')
    history.write_text("step,loss,validation_loss\n10,2.5,\n20,2.0,2.25\n")
    answer = json.loads(metrics_text(scores, {"pretrain": history}))
    assert answer == {"loss": {"pretrain": 2.0, "pretrain_validation": 2.25}}
