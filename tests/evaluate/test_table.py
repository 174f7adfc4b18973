"""One list of rows behind the page, the CSV and the terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t5repro.errors import ArtifactError
from t5repro.evaluate.table import (
    METRIC_TITLES,
    TASK_TITLES,
    csv_text,
    first_rows,
    plain_table,
    read_csv,
    score_rows,
    shown,
)
from t5repro.tasks.registry import TASKS

Make = Callable[[float], dict[str, Any]]


def test_every_task_and_metric_has_a_title() -> None:
    assert set(TASKS) <= set(TASK_TITLES)
    shown_metrics = {
        name
        for task in TASKS.values()
        for name in task.metric_names
        if not name.endswith("_bootstrap")
    }
    assert shown_metrics <= set(METRIC_TITLES)


def test_rows_carry_score_baseline_and_the_papers_figure(make_scores: Make) -> None:
    rows = score_rows({"baseline": make_scores(0.0)})
    row = next(row for row in rows if (row.task, row.metric) == ("glue_mrpc", "f1"))
    assert (row.value, row.baseline_kind, row.baseline) == (81.125, "majority", 79.5)
    assert (row.examples, row.invalid, row.paper_baseline) == (80, 0, 92.07)


def test_the_deciding_metric_comes_first(make_scores: Make) -> None:
    rows = score_rows({"baseline": make_scores(0.0)})
    assert [row.metric for row in rows if row.task == "glue_mrpc"] == ["f1", "accuracy"]
    assert [row.metric for row in rows if row.task == "squad"] == ["em", "f1"]


def test_bootstrap_medians_are_in_the_csv_only(make_scores: Make) -> None:
    scores = make_scores(0.0)
    scores["tasks"]["cnn_dailymail"]["metrics"]["rouge1_bootstrap"] = 30.0
    rows = score_rows({"baseline": scores})
    assert "rouge1_bootstrap" in csv_text(rows)
    assert "rouge1_bootstrap" not in {row.metric for row in first_rows(rows)}


def test_an_unlabelled_task_keeps_its_line_without_a_value(make_scores: Make) -> None:
    scores = make_scores(0.0)
    scores["tasks"]["glue_rte"]["metrics"] = {}
    scores["tasks"]["glue_rte"]["baseline"]["metrics"] = {}
    row = next(row for row in score_rows({"baseline": scores}) if row.task == "glue_rte")
    assert (row.metric, row.value, row.baseline) == ("accuracy", None, None)


def test_a_task_without_metrics_has_no_line(make_scores: Make) -> None:
    scores = make_scores(0.0)
    scores["tasks"]["glue_ax"] = {
        **scores["tasks"]["glue_rte"], "metrics": {}, "primary_metric": "",
    }  # fmt: skip
    assert "glue_ax" not in {row.task for row in score_rows({"baseline": scores})}


def test_the_csv_is_read_back_without_loss(make_scores: Make, tmp_path: Path) -> None:
    rows = score_rows({"baseline": make_scores(0.0), "other": make_scores(1 / 3)})
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(rows), encoding="utf-8")
    assert read_csv(path) == rows


def test_the_csv_has_the_promised_columns(make_scores: Make) -> None:
    head = csv_text(score_rows({"baseline": make_scores(0.0)})).splitlines()[0]
    assert head == (
        "experiment,task,metric,value,baseline_kind,baseline,examples,invalid,paper_baseline"
    )


def test_a_missing_csv_names_its_stage(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"scores\.csv is missing; run the stage report"):
        read_csv(tmp_path / "scores.csv")


def test_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"has columns \['a', 'b'\]; expected"):
        read_csv(path)


def test_a_broken_cell_is_named_by_its_line(make_scores: Make, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(
        csv_text(score_rows({"baseline": make_scores(0.0)})).replace("81.125", "eighty"),
        encoding="utf-8",
    )
    with pytest.raises(ArtifactError, match=r"scores\.csv line \d+ is no score .*eighty"):
        read_csv(path)


def test_scores_are_shown_with_two_places_and_a_real_minus() -> None:
    assert (shown(91.66666), shown(-3.5), shown(0.0), shown(None)) == (
        "91.67",
        "−3.50",
        "0.00",
        "–",
    )


def test_the_terminal_table_lines_up_and_shows_all_experiments(make_scores: Make) -> None:
    rows = score_rows({"baseline": make_scores(0.0), "no_pretraining": make_scores(4.125)})
    lines = plain_table(rows).splitlines()
    assert lines[0].split() == [
        "task", "metric", "trivial", "baseline", "no_pretraining", "examples",
    ]  # fmt: skip
    sst2 = next(line for line in lines if line.startswith("glue_sst2"))
    assert sst2.split() == ["glue_sst2", "accuracy", "50.83", "majority", "91.67", "87.54", "120"]
    assert lines[-1].split() == ["super_glue", "average", "–", "–"]
    ends = {line.rstrip().rfind("majority") for line in lines if "majority" in line}
    assert len(ends) == 1


def test_a_task_of_one_experiment_alone_is_shown(make_scores: Make) -> None:
    fewer = make_scores(0.0)
    del fewer["tasks"]["squad"]
    lines = plain_table(score_rows({"a": fewer, "b": make_scores(0.0)})).splitlines()
    squad = next(line for line in lines if line.startswith("squad") and " em " in line)
    assert squad.split()[4:6] == ["–", "23.33"]
