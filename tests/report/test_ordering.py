"""The order of the paper's rows in our run: rank correlations, their intervals, pairs."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr, ttest_ind

from t5repro.config.schema import Experiment as ExperimentSettings
from t5repro.report.experiments import Experiment
from t5repro.report.order_statistics import (
    AGREES,
    CONTRADICTS,
    WITHIN,
    WelchDifference,
    rank_correlation,
    ranks,
    verdict,
    welch,
)
from t5repro.report.ordering import (
    ColumnOrdering,
    RankedExperiment,
    TableOrdering,
    orderings,
    resampled_means,
)
from t5repro.report.rows import BEST, ScoreRow
from t5repro.report.titles import UNDEFINED

EM = "squad.em"  # table 6: 80.38, 80.88, 80.96 and 79.80, of standard deviation 0.343
BLEU = "wmt_en_de.bleu"  # 26.87, 26.98, 27.04 and 27.01
RATES = ("10%", "15%", "25%", "50%")
Scores = Mapping[str, Mapping[str, Sequence[float | None]]]  # row -> column -> by training
SCORES = st.lists(st.integers(0, 1000), min_size=3, max_size=3)


def run_of(scores: Scores, suffix: str = "") -> tuple[list[ScoreRow], list[Experiment]]:
    """Return the rows and experiments of a run with one experiment per row of the paper."""
    rows, experiments = [], []
    for name, columns in scores.items():
        seeds = tuple(range(max(map(len, columns.values()))))
        arms = tuple(f"{name}_{seed}" for seed in seeds)
        experiments.append(Experiment(name=name, arms=arms, seeds=seeds, row=name))
        rows += [
            score_row(f"{name}{suffix}", f"{arms[seed]}{suffix}", key, value)
            for key, values in columns.items()
            for seed, value in enumerate(values)
        ]
    return rows, experiments


def score_row(experiment: str, arm: str, key: str, value: float | None) -> ScoreRow:
    task, metric = key.split(".")
    return ScoreRow(
        experiment=experiment,
        arm=arm,
        seed=0,
        runs=1,
        task=task,
        metric=metric,
        value=value,
        sd=None,
        baseline_kind="",
        baseline=None,
        examples=None,
        invalid=None,
        paper_baseline=None,
    )


def table_of(scores: Scores) -> TableOrdering:
    """Return the order in table 6, the only one of these scores."""
    rows, experiments = run_of(scores)
    (table,) = orderings(rows, experiments, split="validation", seed=0)
    assert table.number == 6
    return table


def column(table: TableOrdering, title: str) -> ColumnOrdering:
    return next(entry for entry in table.columns if entry.title == title)


def exact_match(*scores: Sequence[float | None]) -> ColumnOrdering:
    """Return the order of exact match on SQuAD, from the trainings of each rate."""
    by_row = {row: {EM: values} for row, values in zip(RATES, scores, strict=False)}
    return column(table_of(by_row), "SQuAD")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12))
def test_a_rank_correlation_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = np.asarray(pairs, np.float64).T
    assert ranks(first) == pytest.approx(rankdata(first))
    ours = float(rank_correlation(first, second))
    if min(len(set(first)), len(set(second))) < 2:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)


def test_each_of_several_correlations_is_computed_apart() -> None:
    paper = np.asarray([1.0, 2.0, 3.0])
    ours = np.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 1.0, 3.0]])
    assert rank_correlation(paper, ours).tolist() == [1.0, -1.0, 0.5]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [((2, 3, 4, 1), "1.00"), ((3, 2, 1, 4), "−1.00"), ((1, 2, 3, 4), "−0.20"), ((1, 1, 1, 1), "–")],
)
def test_the_correlation_of_a_column_is_of_the_means_with_the_printed_scores(
    scores: tuple[int, ...], expected: str
) -> None:
    entry = exact_match(*([score - 1.0, score + 1.0] for score in scores))
    assert (entry.correlation, entry.experiments) == (expected, 4)


def test_seeds_that_agree_have_an_interval_without_width() -> None:
    entry = exact_match([2.1, 2.1, 2.1], [3.1, 3.1, 3.1], [4.1, 4.1, 4.1])
    assert (entry.correlation, entry.interval, entry.reason) == ("1.00", "1.00 to 1.00", "")


def test_an_interval_spans_the_orders_that_drawn_seeds_have() -> None:
    # The third mean is 0, 2.5 or 5 in a quarter, a half and a quarter of the draws.
    entry = exact_match([2.0, 2.0], [3.0, 3.0], [0.0, 5.0])
    assert (entry.correlation, entry.interval) == ("0.50", "−0.50 to 1.00")


def test_without_a_second_training_of_each_there_is_no_interval() -> None:
    entry = exact_match([2.0], [3.0, 3.5], [4.0])
    assert (entry.correlation, entry.interval) == ("1.00", UNDEFINED)
    assert entry.reason == "one training of 2 experiments"
    assert {pair.verdict for pair in entry.pairs} == {UNDEFINED}
    assert entry.summary == (
        "3 pairs: 0 agree, 0 contradict, 0 within the spread, 3 without a spread"
    )


def test_an_interval_needs_an_order_in_every_resample() -> None:
    entry = exact_match([1.0, 2.0], [1.0, 2.0], [1.0, 3.0])
    assert (entry.interval, entry.reason) == (UNDEFINED, "in some resamples all scores are equal")


TRAININGS = st.lists(st.integers(0, 100), min_size=2, max_size=6)


@pytest.mark.filterwarnings("ignore:Precision loss")  # of one side without a spread
@given(TRAININGS, TRAININGS)
def test_the_interval_of_a_difference_is_that_of_scipy(first: list[int], second: list[int]) -> None:
    ours = welch(first, second)
    assert ours.value == pytest.approx(np.mean(first) - np.mean(second), abs=1e-8)
    assert ours.error is not None
    assert ours.margin is not None
    if ours.error == 0:  # undefined there
        return
    expected = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert ours.value - ours.margin == pytest.approx(expected.low, abs=1e-6)
    assert ours.value + ours.margin == pytest.approx(expected.high, abs=1e-6)


def test_a_difference_exceeds_the_spread_where_its_test_rejects_equality() -> None:
    base, near, far = [80.0, 80.4, 80.8], [80.5, 80.9, 81.3], [81.5, 81.9, 82.6]
    assert ttest_ind(near, base, equal_var=False).pvalue > 0.05
    assert ttest_ind(far, base, equal_var=False).pvalue < 0.05
    assert verdict(welch(near, base), 1.0) == WITHIN
    assert verdict(welch(far, base), 1.0) == AGREES
    assert verdict(welch(far, base), -1.0) == CONTRADICTS
    assert verdict(welch(base, far), -1.0) == AGREES


def test_differences_without_any_spread_count_unless_they_are_zero() -> None:
    assert welch([0.3, 0.3], [0.1, 0.1]) == WelchDifference(0.2, 0.0, 0.0)
    assert verdict(welch([0.3, 0.3], [0.1, 0.1]), -1.0) == CONTRADICTS
    assert verdict(welch([0.3, 0.3], [0.3, 0.3]), -1.0) == WITHIN


def test_one_training_has_a_difference_and_no_spread() -> None:
    assert welch([3.0], [1.0, 2.0]) == WelchDifference(1.5)
    assert verdict(WelchDifference(1.5), 1.0) == UNDEFINED


def test_a_pair_has_both_differences_and_the_mark_of_the_papers() -> None:
    entry = exact_match([70.0, 70.2], [72.0, 72.2], [72.0, 72.3], [71.0, 71.2])
    pairs = {(pair.first, pair.second): pair for pair in entry.pairs}
    assert len(pairs) == 6
    pair = pairs["10%", "15%"]
    assert (pair.ours, pair.error, pair.verdict) == ("−2.00", "0.14", AGREES)
    assert (pair.paper, pair.counts) == ("−0.50", False)  # two deviations are 0.686
    assert (pairs["15%", "25%"].verdict, pairs["15%", "50%"].counts) == (WITHIN, True)
    assert pairs["10%", "50%"].verdict == CONTRADICTS
    assert entry.summary == "6 pairs: 4 agree, 1 contradict, 1 within the spread"


def test_experiments_of_one_row_have_no_order_among_each_other() -> None:
    rows, experiments = run_of({"10%": {EM: [1.0]}, "15%": {EM: [2.0]}})
    wide = Experiment("wide", ("wide",), (0,), row="15%", changes={"model.d_model": "8"})
    rows.append(score_row("wide", "wide", EM, 3.0))
    (table,) = orderings(rows, [*experiments, wide], split="validation", seed=0)
    entry = column(table, "SQuAD")
    assert entry.experiments == 3
    assert [(pair.first, pair.second) for pair in entry.pairs] == [("10%", "15%"), ("10%", "wide")]


def test_a_column_of_fewer_than_three_experiments_has_no_correlation() -> None:
    table = table_of(
        {
            "10%": {EM: [1.0, 1.0], BLEU: [1.0, 1.0]},
            "15%": {EM: [2.0, 2.0], BLEU: [2.0, 2.0]},
            "25%": {EM: [3.0, 3.0], BLEU: [3.0, None]},
        }
    )
    assert column(table, "SQuAD").correlation == "1.00"
    entry = column(table, "English → German")
    assert (entry.experiments, entry.correlation, entry.interval) == (2, "–", "–")
    assert entry.reason == "fewer than 3 experiments have this score"
    assert entry.summary == "1 pair: 1 agree, 0 contradict, 0 within the spread"
    assert (column(table, "GLUE").experiments, column(table, "GLUE").pairs) == (0, ())
    assert table.summary == "4 pairs: 4 agree, 0 contradict, 0 within the spread"
    assert "mean of the complete columns" not in [entry.title for entry in table.columns]


def test_the_mean_is_over_the_columns_that_all_experiments_have() -> None:
    table = table_of(
        {
            "10%": {EM: [10.0, 20.0], BLEU: [1.0, 1.0], "glue.average": [80.0, 80.0]},
            "15%": {EM: [20.0, 20.0], BLEU: [2.0, 2.0]},
            "50%": {EM: [1.0, 1.0], BLEU: [3.0, 3.0]},
        }
    )
    mean = table.columns[-1]
    assert mean.title == "mean of the complete columns"
    # The paper's means are 53.625, 53.93 and 53.405, ours 8, 11 and 2.
    assert (mean.correlation, mean.interval) == ("1.00", "1.00 to 1.00")
    assert [(pair.ours, pair.paper, pair.counts) for pair in mean.pairs] == [
        ("−3.00", "−0.30", None),
        ("+6.00", "+0.22", None),
        ("+9.00", "+0.52", None),
    ]
    assert table.chart_title == mean.title
    assert table.chart.count("<circle") == 3


def test_repetitions_are_trainings_of_one_experiment() -> None:
    rows, experiments = run_of({"10%": {EM: [1.0, 2.0]}, "50%": {EM: [0.5, 0.5]}})
    for number, value in enumerate((5.0, 7.0)):
        name = f"again_{number}"
        changes = {"pretrain.repeat": str(number)} if number else {}
        experiments.append(Experiment(name, (name,), (0,), row="Baseline average", changes=changes))
        rows.append(score_row(name, name, EM, value))
    of_finetuning = {"finetune.repeat": "1"}
    experiments.append(Experiment("tuned", ("tuned",), (0,), row="15%", changes=of_finetuning))
    rows.append(score_row("tuned", "tuned", EM, 50.0))
    (table,) = orderings(rows, experiments, split="validation", seed=0)
    entry = column(table, "SQuAD")
    assert (table.number, table.experiments) == (6, 3)
    assert [pair.ours for pair in entry.pairs] == ["+1.00", "−4.50", "−5.50"]


def test_two_experiments_have_no_order_however_many_their_seeds() -> None:
    rows, experiments = run_of({"10%": {EM: [1.0, 2.0, 3.0]}, "50%": {EM: [0.5, 0.5]}})
    assert orderings(rows, experiments, split="validation", seed=0) == []


def test_tables_of_another_split_are_left_out() -> None:
    rows, experiments = run_of({row: {EM: [1.0]} for row in RATES})
    assert orderings(rows, experiments, split="test", seed=0) == []


def test_best_checkpoints_count_if_every_experiment_has_them() -> None:
    last, experiments = run_of({row: {EM: [1.0]} for row in RATES[:3]})
    best, _ = run_of({row: {EM: [float(n)]} for n, row in enumerate(RATES[:3])}, BEST)
    (table,) = orderings([*last, *best], experiments, split="validation", seed=0)
    assert column(table, "SQuAD").correlation == "1.00"
    (table,) = orderings([*last, *best[:2]], experiments, split="validation", seed=0)
    assert column(table, "SQuAD").reason == "all scores of one side are equal"


@given(st.lists(SCORES, min_size=4, max_size=4), st.permutations(RATES))
def test_the_order_of_experiments_changes_no_correlation_and_no_interval(
    scores: list[list[int]], order: list[str]
) -> None:
    by_row = {row: {EM: values} for row, values in zip(RATES, scores, strict=True)}
    table, other = table_of(by_row), table_of({row: by_row[row] for row in order})
    ours, theirs = column(table, "SQuAD"), column(other, "SQuAD")
    assert (ours.correlation, ours.interval, ours.reason, ours.summary) == (
        theirs.correlation,
        theirs.interval,
        theirs.reason,
        theirs.summary,
    )
    assert table.summary == other.summary


@given(st.lists(SCORES, min_size=4, max_size=4), st.sampled_from([0.25, 2.0, 8.0]))
def test_a_positive_factor_changes_no_correlation_and_no_verdict(
    scores: list[list[int]], factor: float
) -> None:
    ours = exact_match(*scores)
    scaled = exact_match(*([factor * score for score in values] for values in scores))
    assert (ours.correlation, ours.interval, ours.summary) == (
        scaled.correlation,
        scaled.interval,
        scaled.summary,
    )


def test_the_draws_depend_on_the_seed_of_the_run_and_on_the_name_of_the_experiment() -> None:
    entries = [RankedExperiment(name, 0, {}, {EM: [0.0, 1.0, 2.0]}) for name in "ab"]
    first, second = (resampled_means(entry, EM, 0) for entry in entries)
    assert first.tolist() == resampled_means(entries[0], EM, 0).tolist()
    assert first.tolist() != second.tolist()
    assert first.tolist() != resampled_means(entries[0], EM, 1).tolist()
    assert first.mean() == pytest.approx(1.0, abs=0.05)


def with_rows(run: Any, *rows: str) -> None:
    """Give a run one experiment per row of the paper, each worse than the one before."""
    run.settings = run.settings.model_copy(
        update={
            "experiments": [
                ExperimentSettings(name=f"rate_{number}", row=row, change={"seed": number})
                for number, row in enumerate(rows)
            ]
        }
    )
    content, history = run.scores["baseline"], run.histories["baseline"]
    run.scores, run.histories = {}, {}
    for number in range(len(rows)):
        run.scores[f"rate_{number}"] = json.loads(json.dumps(content))
        run.scores[f"rate_{number}"]["tasks"]["squad"]["metrics"]["em"] = 50.0 - number
        run.histories[f"rate_{number}"] = history


def test_the_page_shows_the_order_of_a_table_with_three_experiments(run: Any) -> None:
    with_rows(run, "25%", "15%", "10%")
    page = run.write().page
    section = page.partition('<section id="ordering"')[2].partition("</section>")[0]
    squad = re.search(r'<tr><th scope="row">SQuAD.*?</tr>', section)
    assert squad
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?</td>", squad[0])]
    assert cells[:2] == ["3", "1.00"]
    assert cells[2] == "– one training of 3 experiments"
    assert cells[3].startswith("3 pairs: 0 agree")
    assert '<a href="#ordering">' in page
    assert section.count('<svg class="chart"') == 1


def test_a_page_of_two_experiments_has_no_such_section(report: Any) -> None:
    assert "ordering" not in report.page


def test_some_tasks_of_glue_stand_in_for_its_average() -> None:
    scores = {
        row: {
            "glue_cola.matthews_corrcoef": [first, first + 2],
            "glue_mrpc.f1": [60.0, 60.0],
            "glue_mrpc.accuracy": [40.0, 42.0],
            "glue_qqp.f1": [50.0, 50.0],  # without accuracy the task does not enter
        }
        for row, first in zip(RATES, (10.0, 30.0, 20.0, 0.0), strict=True)
    }
    entry = column(table_of(scores), "GLUE")  # the paper: 82.82, 83.28, 83.00 and 81.27
    assert (entry.metric, entry.correlation) == ("average of the tasks here", "1.00")
    difference = next(
        pair.ours for pair in entry.pairs if {pair.first, pair.second} == {"10%", "15%"}
    )
    assert difference == "−10.00"


def test_one_task_of_glue_does_not_stand_in_for_its_average() -> None:
    scores = {row: {"glue_cola.matthews_corrcoef": [1.0, 2.0]} for row in RATES}
    assert column(table_of(scores), "GLUE").correlation == UNDEFINED
