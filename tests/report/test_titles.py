"""Titles of tasks and metrics, and formats of numbers."""

import pytest

from t5repro.metrics.registry import score_names
from t5repro.report.titles import (
    METRIC_TITLES,
    format_difference,
    format_score,
    task_group,
    task_title,
)
from t5repro.tasks.registry import TASKS


def test_a_task_of_a_run_file_has_its_name_as_title_and_no_group_of_the_paper() -> None:
    assert (task_title("squad"), task_group("squad")) == ("SQuAD", "Question answering")
    assert (task_title("squad_of_mine"), task_group("squad_of_mine")) == (
        "squad_of_mine",
        "Other tasks",
    )


def test_every_metric_has_a_title() -> None:
    shown_metrics = {
        name
        for task in TASKS.values()
        for name in score_names(task.metrics)
        if not name.endswith("_bootstrap")
    }
    assert shown_metrics <= set(METRIC_TITLES)


def test_scores_have_two_decimals_and_a_real_minus() -> None:
    assert tuple(map(format_score, (91.66666, -3.5, 0.0, None))) == ("91.67", "−3.50", "0.00", "–")


@pytest.mark.parametrize(
    ("value", "text"), [(1.005, "+1.00"), (-2.5, "−2.50"), (0.001, "±0.00"), (-0.001, "±0.00")]
)
def test_differences_have_their_sign(value: float, text: str) -> None:
    assert format_difference(value) == text
