"""One list of rows behind the page, the CSV and the terminal."""

from collections.abc import Callable
from typing import Any

import pytest

from t5repro.report.experiments import Experiment
from t5repro.report.rows import ScoreRow, experiment_rows, score_rows, table_rows
from t5repro.report.scores_csv import csv_text

Make = Callable[[float], dict[str, Any]]
MakeSeeds = Callable[..., tuple[list[Experiment], dict[str, Any]]]
MakeRows = Callable[[dict[str, Any]], list[ScoreRow]]


def test_rows_carry_score_baseline_and_the_papers_figure(
    make_scores: Make, make_rows: MakeRows
) -> None:
    rows = make_rows({"baseline": make_scores(0.0)})
    row = next(row for row in rows if (row.task, row.metric) == ("glue_mrpc", "f1"))
    assert (row.value, row.baseline_kind, row.baseline) == (81.125, "majority", 79.5)
    assert (row.examples, row.invalid, row.paper_baseline) == (80, 0, 92.07)


def test_the_primary_metric_comes_first(make_scores: Make, make_rows: MakeRows) -> None:
    rows = make_rows({"baseline": make_scores(0.0)})
    assert [row.metric for row in rows if row.task == "glue_mrpc"] == ["f1", "accuracy"]
    assert [row.metric for row in rows if row.task == "squad"] == ["em", "f1"]


def test_bootstrap_medians_are_in_the_csv_only(make_scores: Make, make_rows: MakeRows) -> None:
    scores = make_scores(0.0)
    scores["tasks"]["cnn_dailymail"]["metrics"]["rouge1_bootstrap"] = 30.0
    rows = make_rows({"baseline": scores})
    assert "rouge1_bootstrap" in csv_text(rows)
    assert "rouge1_bootstrap" not in {row.metric for row in table_rows(rows)}


def test_an_unlabelled_task_keeps_its_line_without_a_value(
    make_scores: Make, make_rows: MakeRows
) -> None:
    scores = make_scores(0.0)
    scores["tasks"]["glue_rte"]["metrics"] = {}
    scores["tasks"]["glue_rte"]["baseline"]["metrics"] = {}
    row = next(row for row in make_rows({"baseline": scores}) if row.task == "glue_rte")
    assert (row.metric, row.value, row.baseline) == ("accuracy", None, None)


def test_a_task_without_metrics_has_no_line(make_scores: Make, make_rows: MakeRows) -> None:
    scores = make_scores(0.0)
    scores["tasks"]["glue_ax"] = {
        **scores["tasks"]["glue_rte"],
        "metrics": {},
        "primary_metric": "",
    }
    assert "glue_ax" not in {row.task for row in make_rows({"baseline": scores})}


def test_several_seeds_have_their_mean_and_standard_deviation(make_seeds: MakeSeeds) -> None:
    rows = score_rows(*make_seeds(0.0, 1.0, 5.0))
    rows_of_metric = [row for row in rows if (row.task, row.metric) == ("wmt_en_de", "bleu")]
    assert [(row.arm, row.seed, row.runs, row.value, row.sd) for row in rows_of_metric[:3]] == [
        ("arm_0", 0, 1, 14.125, None),
        ("arm_1", 1, 1, 13.125, None),
        ("arm_2", 2, 1, 9.125, None),
    ]
    mean = rows_of_metric[3]
    assert (mean.arm, mean.seed, mean.runs, mean.value) == ("", None, 3, 12.125)
    assert mean.sd == pytest.approx(7**0.5)  # ((2² + 1² + 3²) / (3 - 1)) ** 0.5
    assert experiment_rows(rows) == [row for row in rows if row.runs == 3]
    rte = next(row for row in rows if row.task == "glue_rte" and row.runs == 3)
    assert (rte.sd, rte.invalid) == (0.0, 6)


def test_a_mean_is_undefined_where_one_seed_has_no_number(make_seeds: MakeSeeds) -> None:
    experiments, scores = make_seeds(0.0, 1.0)
    scores["arm_1"]["tasks"]["squad"]["metrics"]["em"] = None
    mean = next(
        row for row in score_rows(experiments, scores) if row.runs == 2 and row.metric == "em"
    )
    assert (mean.value, mean.sd) == (None, None)


def test_a_row_has_the_result_of_the_papers_rule(make_seeds: MakeSeeds) -> None:
    experiments, scores = make_seeds(0.0)
    sst2 = scores["arm_0"]["tasks"]["glue_sst2"]["metrics"]
    rows_of_metric = []
    for value in (92.68 - 2 * 0.569, 92.68 - 2 * 0.569 - 0.01, None):
        sst2["accuracy"] = value
        row = next(row for row in score_rows(experiments, scores) if row.task == "glue_sst2")
        rows_of_metric.append((row.paper_row, row.paper, row.paper_sd, row.differs))
    assert [row[3] for row in rows_of_metric] == [False, True, None]
    assert rows_of_metric[0][:3] == ("Baseline average", 92.68, 0.569)


def test_a_test_split_is_not_compared_with_validation_scores(make_seeds: MakeSeeds) -> None:
    experiments, scores = make_seeds(0.0)
    rows = score_rows(experiments, scores, split="test")
    assert {(row.paper, row.paper_sd, row.differs) for row in rows} == {(None, None, None)}
