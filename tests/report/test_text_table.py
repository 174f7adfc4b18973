"""The scores of a run as plain text."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t5repro.errors import ArtifactError
from t5repro.report.experiments import Experiment
from t5repro.report.rows import ScoreRow, score_rows
from t5repro.report.scores_csv import csv_text
from t5repro.report.text_table import choice_lines, difference_lines, plain_table, scores_text

Make = Callable[[float], dict[str, Any]]
MakeSeeds = Callable[..., tuple[list[Experiment], dict[str, Any]]]
MakeRows = Callable[[dict[str, Any]], list[ScoreRow]]


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
        "difference",
        "examples",
    ]
    sst2 = next(line for line in lines if line.startswith("glue_sst2"))
    scores = ["91.67", "87.54", "+4.12"]
    assert sst2.split() == ["glue_sst2", "accuracy", "50.83", "majority", *scores, "120"]
    assert lines[-1].split() == ["super_glue", "average", "–", "–"]
    ends = {line.rstrip().rfind("majority") for line in lines if "majority" in line}
    assert len(ends) == 1


def test_a_task_of_only_one_experiment_is_shown(make_scores: Make, make_rows: MakeRows) -> None:
    fewer = make_scores(0.0)
    del fewer["tasks"]["squad"]
    lines = plain_table(make_rows({"a": fewer, "b": make_scores(0.0)})).splitlines()
    squad = next(line for line in lines if line.startswith("squad") and " em " in line)
    assert squad.split()[4:6] == ["–", "23.33"]


def test_seeds_are_one_column_of_the_terminal(make_seeds: MakeSeeds) -> None:
    rows = score_rows(*make_seeds(0.0, 1.0, 5.0))
    lines = plain_table(rows).splitlines()
    assert lines[0].split() == ["task", "metric", "trivial", "arm_0", "examples"]
    assert next(line for line in lines if line.startswith("wmt_en_de")).split()[-3:] == [
        "12.12",
        "±2.65",
        "80",
    ]


def test_the_mean_difference_has_its_spread_over_seeds(make_scores: Make, tmp_path: Path) -> None:
    experiments = [
        Experiment(name, (name, f"{name}_seed_1"), (0, 1)) for name in ("baseline", "other")
    ]
    shifts = {"baseline": 0.0, "baseline_seed_1": 0.0, "other": 11.0, "other_seed_1": 22.0}
    rows = score_rows(experiments, {arm: make_scores(shift) for arm, shift in shifts.items()})
    (tmp_path / "report").mkdir()
    (tmp_path / "report/scores.csv").write_text(csv_text(rows), encoding="utf-8")
    assert (
        "\nbaseline − other: +12.00 ±5.66 on average over the first metric of 11 tasks, "
        "± standard deviation over 2 seeds\n" in scores_text(tmp_path)
    )


def test_a_benchmark_without_an_average_is_named_instead_of_shown_as_a_row(
    make_scores: Make, make_rows: MakeRows, tmp_path: Path
) -> None:
    (tmp_path / "report").mkdir()
    text = csv_text(make_rows({"baseline": make_scores(0.0)}))
    (tmp_path / "report/scores.csv").write_text(text, encoding="utf-8")
    shown = scores_text(tmp_path)
    assert "\nsuper_glue  " not in shown
    assert "\nno average of glue, super_glue: it needs all of its tasks\n" in shown


def test_choices_are_wrapped_and_stay_whole(make_scores: Make, make_rows: MakeRows) -> None:
    row = make_rows({"baseline": make_scores(0.0)})[0]
    choices = [f"pretrain.setting_{number}=value" for number in range(12)]
    lines = choice_lines([dataclasses.replace(row, switches="; ".join(choices))])
    assert len(lines) > 1
    assert max(map(len, lines)) <= 100
    assert [line.strip() for line in " ".join(lines).split(": ", 1)[1].split(";")] == choices


def test_one_experiment_has_no_difference(make_scores: Make, make_rows: MakeRows) -> None:
    rows = make_rows({"baseline": make_scores(0.0)})
    assert "difference" not in plain_table(rows)
    assert difference_lines(rows) == []


def test_the_text_has_the_table_and_the_path_of_the_report(report: Any) -> None:
    printed = scores_text(Path())
    assert "glue_sst2" in printed
    assert printed.endswith("report: report/report.html\n")


def test_a_folder_that_does_not_exist_is_named_with_the_runs_that_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="there is no folder results/demo; this folder has no"):
        scores_text(Path("results/demo"))
    for name in ("demo", "mine"):
        (tmp_path / "results" / name).mkdir(parents=True)
    with pytest.raises(ArtifactError, match="results/ has demo, mine; nearest: 'demo'"):
        scores_text(Path("results/dmo"))


def test_a_missing_report_is_an_error_with_its_cure(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"contains no scores\.csv: a run without tasks ends"):
        scores_text(tmp_path)
