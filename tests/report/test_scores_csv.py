"""``scores.csv`` is read back without loss, and a damaged one is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.errors import ArtifactError
from t5repro.report.experiments import Experiment
from t5repro.report.rows import ScoreRow, score_rows
from t5repro.report.scores_csv import csv_text, read_csv
from t5repro.report.text_table import choice_lines

Make = Callable[[float], dict[str, Any]]
MakeSeeds = Callable[..., tuple[list[Experiment], dict[str, Any]]]
MakeRows = Callable[[dict[str, Any]], list[ScoreRow]]


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
        "paper_baseline,paper_row,paper,paper_sd,differs,switches,low,high"
    )


def test_the_column_arm_is_what_the_glossary_says(make_seeds: MakeSeeds) -> None:
    experiments, scores = make_seeds(0.0, 1 / 3)
    (experiment,) = experiments
    rows = score_rows(experiments, scores)
    arms = {row.seed: row.arm for row in rows}
    assert arms == {**dict(zip(experiment.seeds, experiment.arms, strict=True)), None: ""}
    assert {row.experiment for row in rows} == {experiment.name}
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    (entry,) = [line for line in page.splitlines() if line.startswith("| arm, column `arm` |")]
    assert "an experiment with one of its seeds, such as `baseline_seed_1`" in entry
    assert "empty for a mean over seeds" in entry


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


def test_means_and_switches_are_read_back_from_the_csv(
    make_seeds: MakeSeeds, tmp_path: Path
) -> None:
    rows = score_rows(*make_seeds(0.0, 1 / 3), switches={"arm_0": "a.b=code; c=[1]"})
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(rows), encoding="utf-8")
    assert read_csv(path) == rows
    assert choice_lines(rows) == ["choices of arm_0: a.b=code; c=[1]"]
