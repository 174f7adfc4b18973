"""One list of rows behind the page, the CSV and the terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t5repro.errors import ArtifactError
from t5repro.metrics.registry import score_names
from t5repro.report.experiments import Experiment
from t5repro.report.rows import ScoreRow, experiment_rows, score_rows, table_rows
from t5repro.report.scores_csv import csv_text, read_csv
from t5repro.report.text_table import choice_lines, plain_table
from t5repro.report.titles import METRIC_TITLES, TASK_TITLES, format_score
from t5repro.tasks.registry import TASKS

Make = Callable[[float], dict[str, Any]]
MakeRows = Callable[[dict[str, Any]], list[ScoreRow]]


def test_every_task_and_metric_has_a_title() -> None:
    assert set(TASKS) <= set(TASK_TITLES)
    shown_metrics = {
        name
        for task in TASKS.values()
        for name in score_names(task.metrics)
        if not name.endswith("_bootstrap")
    }
    assert shown_metrics <= set(METRIC_TITLES)


def test_rows_carry_score_baseline_and_the_papers_figure(
    make_scores: Make, make_rows: MakeRows
) -> None:
    rows = make_rows({"baseline": make_scores(0.0)})
    row = next(row for row in rows if (row.task, row.metric) == ("glue_mrpc", "f1"))
    assert (row.value, row.baseline_kind, row.baseline) == (81.125, "majority", 79.5)
    assert (row.examples, row.invalid, row.paper_baseline) == (80, 0, 92.07)


def test_the_deciding_metric_comes_first(make_scores: Make, make_rows: MakeRows) -> None:
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


def test_the_csv_is_read_back_without_loss(
    make_scores: Make, make_rows: MakeRows, tmp_path: Path
) -> None:
    rows = make_rows({"baseline": make_scores(0.0), "other": make_scores(1 / 3)})
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(rows), encoding="utf-8")
    assert read_csv(path) == rows


def test_the_csv_has_the_promised_columns(make_scores: Make, make_rows: MakeRows) -> None:
    head = csv_text(make_rows({"baseline": make_scores(0.0)})).splitlines()[0]
    assert head == (
        "experiment,arm,seed,runs,task,metric,value,sd,baseline_kind,baseline,examples,invalid,"
        "paper_baseline,paper_row,paper,paper_sd,differs,switches"
    )


def test_a_missing_csv_names_its_stage(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"scores\.csv is missing; run the stage report"):
        read_csv(tmp_path / "scores.csv")


def test_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"has columns \['a', 'b'\]; expected"):
        read_csv(path)


def test_a_broken_cell_is_named_by_its_line(
    make_scores: Make, make_rows: MakeRows, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(
        csv_text(make_rows({"baseline": make_scores(0.0)})).replace("81.125", "eighty"),
        encoding="utf-8",
    )
    with pytest.raises(ArtifactError, match=r"scores\.csv line \d+ is not a score .*eighty"):
        read_csv(path)


def test_scores_are_shown_with_two_places_and_a_real_minus() -> None:
    assert tuple(map(format_score, (91.66666, -3.5, 0.0, None))) == ("91.67", "−3.50", "0.00", "–")


def test_the_terminal_table_lines_up_and_shows_all_experiments(
    make_scores: Make, make_rows: MakeRows
) -> None:
    rows = make_rows({"baseline": make_scores(0.0), "no_pretraining": make_scores(4.125)})
    lines = plain_table(rows).splitlines()
    assert lines[0].split() == [
        "task",
        "metric",
        "trivial",
        "baseline",
        "no_pretraining",
        "examples",
    ]
    sst2 = next(line for line in lines if line.startswith("glue_sst2"))
    assert sst2.split() == ["glue_sst2", "accuracy", "50.83", "majority", "91.67", "87.54", "120"]
    assert lines[-1].split() == ["super_glue", "average", "–", "–"]
    ends = {line.rstrip().rfind("majority") for line in lines if "majority" in line}
    assert len(ends) == 1


def test_a_task_of_one_experiment_alone_is_shown(make_scores: Make, make_rows: MakeRows) -> None:
    fewer = make_scores(0.0)
    del fewer["tasks"]["squad"]
    lines = plain_table(make_rows({"a": fewer, "b": make_scores(0.0)})).splitlines()
    squad = next(line for line in lines if line.startswith("squad") and " em " in line)
    assert squad.split()[4:6] == ["–", "23.33"]


def seeds_of(make_scores: Make, *shifts: float) -> tuple[list[Experiment], dict[str, Any]]:
    """Return one experiment of several seeds, its scores apart by the shifts."""
    names = [f"arm_{number}" for number in range(len(shifts))]
    group = Experiment(
        name=names[0], arms=tuple(names), seeds=tuple(range(len(shifts))), row="Baseline average"
    )
    return [group], {name: make_scores(shift) for name, shift in zip(names, shifts, strict=True)}


def test_several_seeds_have_their_mean_and_standard_deviation(make_scores: Make) -> None:
    rows = score_rows(*seeds_of(make_scores, 0.0, 1.0, 5.0))
    found = [row for row in rows if (row.task, row.metric) == ("wmt_en_de", "bleu")]
    assert [(row.arm, row.seed, row.runs, row.value, row.sd) for row in found[:3]] == [
        ("arm_0", 0, 1, 14.125, None),
        ("arm_1", 1, 1, 13.125, None),
        ("arm_2", 2, 1, 9.125, None),
    ]
    mean = found[3]
    assert (mean.arm, mean.seed, mean.runs, mean.value) == ("", None, 3, 12.125)
    assert mean.sd == pytest.approx(7**0.5)  # ((2² + 1² + 3²) / (3 - 1)) ** 0.5
    assert experiment_rows(rows) == [row for row in rows if row.runs == 3]
    rte = next(row for row in rows if row.task == "glue_rte" and row.runs == 3)
    assert (rte.sd, rte.invalid) == (0.0, 6)


def test_a_mean_is_undefined_where_one_seed_has_no_number(make_scores: Make) -> None:
    listed, scores = seeds_of(make_scores, 0.0, 1.0)
    scores["arm_1"]["tasks"]["squad"]["metrics"]["em"] = None
    mean = next(row for row in score_rows(listed, scores) if row.runs == 2 and row.metric == "em")
    assert (mean.value, mean.sd) == (None, None)


def test_a_row_says_whether_it_differs_by_the_papers_rule(make_scores: Make) -> None:
    listed, scores = seeds_of(make_scores, 0.0)
    sst2 = scores["arm_0"]["tasks"]["glue_sst2"]["metrics"]
    found = []
    for value in (92.68 - 2 * 0.569, 92.68 - 2 * 0.569 - 0.01, None):
        sst2["accuracy"] = value
        row = next(row for row in score_rows(listed, scores) if row.task == "glue_sst2")
        found.append((row.paper_row, row.paper, row.paper_sd, row.differs))
    assert [row[3] for row in found] == [False, True, None]
    assert found[0][:3] == ("Baseline average", 92.68, 0.569)


def test_a_test_split_is_not_set_beside_validation_scores(make_scores: Make) -> None:
    listed, scores = seeds_of(make_scores, 0.0)
    rows = score_rows(listed, scores, split="test")
    assert {(row.paper, row.paper_sd, row.differs) for row in rows} == {(None, None, None)}


def test_seeds_are_one_column_of_the_terminal(make_scores: Make) -> None:
    rows = score_rows(*seeds_of(make_scores, 0.0, 1.0, 5.0))
    lines = plain_table(rows).splitlines()
    assert lines[0].split() == ["task", "metric", "trivial", "arm_0", "examples"]
    assert next(line for line in lines if line.startswith("wmt_en_de")).split()[-3:] == [
        "12.12",
        "±2.65",
        "80",
    ]


def test_means_and_switches_are_read_back_from_the_csv(make_scores: Make, tmp_path: Path) -> None:
    rows = score_rows(*seeds_of(make_scores, 0.0, 1 / 3), switches={"arm_0": "a.b=code; c=[1]"})
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(rows), encoding="utf-8")
    assert read_csv(path) == rows
    assert choice_lines(rows) == ["choices of arm_0: a.b=code; c=[1]"]
