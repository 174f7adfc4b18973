"""The published figures agree with each other and are found by table, row and task."""

import math

import pytest

from t5repro.errors import SettingsError
from t5repro.metrics.registry import score_names
from t5repro.report.published_scores import (
    BASELINE,
    DEVIATION,
    NO_PRETRAINING,
    paper_source,
    published_row,
    published_rows,
    published_value,
    rows_named,
)
from t5repro.tasks.averages import benchmark_averages
from t5repro.tasks.registry import TASKS

HEADLINES = (
    "glue.average",
    "cnn_dailymail.rouge2",
    "squad.em",
    "super_glue.average",
    "wmt_en_de.bleu",
    "wmt_en_fr.bleu",
    "wmt_en_ro.bleu",
)


def by_task(name: str) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for key, value in published_row(16, name).values.items():
        task, metric = key.split(".")
        scores.setdefault(task, {})[metric] = value
    return scores


def test_benchmark_averages_of_the_task_table_are_the_printed_averages() -> None:
    averages = benchmark_averages(by_task(BASELINE))
    assert averages["glue"] == pytest.approx(83.28, abs=0.005)
    assert averages["super_glue"] == pytest.approx(71.36, abs=0.005)


def test_averages_without_pre_training_are_the_printed_averages() -> None:
    averages = benchmark_averages(by_task(NO_PRETRAINING))
    assert averages["glue"] == pytest.approx(66.22, abs=0.005)
    assert averages["super_glue"] == pytest.approx(53.04, abs=0.005)


@pytest.mark.parametrize("name", [BASELINE, NO_PRETRAINING, DEVIATION])
def test_tables_1_and_16_print_the_same_headlines(name: str) -> None:
    first, last = published_row(1, name).values, published_row(16, name).values
    assert {key: last[key] for key in HEADLINES} == dict(first)


def test_the_adapter_row_is_the_one_of_table_16_with_its_note() -> None:
    row = published_row(10, "Adapter d=2048")
    assert row.values["glue.average"] == 82.62
    assert "by mistake" in row.note


def test_each_table_adds_its_configurations() -> None:
    configurations: set[tuple[float, ...]] = set()
    added: dict[int, int] = {}
    for row in published_rows():
        figures = tuple(row.values.values())
        if row.table < 14 and row.name != DEVIATION and figures not in configurations:
            added[row.table] = added.get(row.table, 0) + 1
            configurations.add(figures)
    assert added == {1: 2, 2: 9, 4: 3, 5: 2, 6: 3, 7: 4, 8: 5, 9: 4, 10: 5, 11: 10, 12: 3, 13: 6}
    assert len([row for row in published_rows() if row.table == 14]) == 6


def test_every_key_is_one_of_our_tasks_and_metrics() -> None:
    keys = {
        f"{name}.{metric}" for name, task in TASKS.items() for metric in score_names(task.metrics)
    }
    keys |= {"glue.average", "super_glue.average"}
    assert {key for row in published_rows() for key in row.values} <= keys


def test_every_figure_is_on_the_scale_of_100() -> None:
    figures = [value for row in published_rows() for value in row.values.values()]
    assert all(math.isfinite(value) and 0 <= value <= 100 for value in figures)


def test_a_score_is_found_by_task_and_metric() -> None:
    assert published_value("glue_sst2", "accuracy") == 92.68
    assert published_value("glue_sst2", "accuracy", row=NO_PRETRAINING) == 80.62
    assert published_value("wmt_en_ro", "bleu") == 27.65


def test_a_score_that_the_paper_does_not_print_is_none() -> None:
    assert published_value("glue_sst2", "f1") is None
    assert published_value("our_task", "accuracy") is None


def test_rows_are_found_by_name_over_all_tables() -> None:
    assert [row.table for row in rows_named("BERT-style")] == [4, 5]
    assert rows_named("Fairy dust") == ()


def test_only_table_14_is_of_test_sets() -> None:
    assert {row.table for row in published_rows() if row.split == "test"} == {14}


def test_an_unknown_row_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"table 4 has no row 'Deshufling'.*'Deshuffling'"):
        published_row(4, "Deshufling")


def test_an_unknown_table_names_those_that_exist() -> None:
    with pytest.raises(SettingsError, match=r"table 3 contains no scores; .*\[1, 2, 4"):
        published_row(3, "Baseline")


def test_the_source_is_the_paper() -> None:
    assert "1910.10683" in paper_source()
