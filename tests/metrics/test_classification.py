"""Classification metrics against their definitions, on random and on adversarial input."""

import math
import random
from functools import partial

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.metrics import classification as metrics

CASES = 200
LABELLED = [
    metrics.accuracy,
    metrics.matthews_correlation,
    metrics.f1_with_invalid,
    metrics.pearson_correlation,
    metrics.spearman_correlation,
]


def random_labels(seed, classes, *, invalid):
    draw = random.Random(seed)
    rows = draw.randint(1, 30)
    choices = [*range(classes), *([-1] if invalid else [])]
    answers = [draw.randrange(classes) for _ in range(rows)]
    return answers, [draw.choice(choices) for _ in range(rows)]


def counts(answers, predictions, label):
    pairs = list(zip(answers, predictions, strict=True))
    hit = sum(a == label and p == label for a, p in pairs)
    extra = sum(a != label and p == label for a, p in pairs)
    missed = sum(a == label and p != label for a, p in pairs)
    return hit, extra, missed


def f1_by_definition(answers, predictions, label):
    hit, extra, missed = counts(answers, predictions, label)
    return 2 * hit / (2 * hit + extra + missed) if hit + extra + missed else 0.0


def matthews_by_definition(answers, predictions):
    """Gorodkin's multi-class coefficient: covariance of the indicator matrices."""
    classes = sorted({*answers, *predictions})
    x = np.array([[a == k for k in classes] for a in answers], float)
    y = np.array([[p == k for k in classes] for p in predictions], float)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    below = math.sqrt((x * x).sum() * (y * y).sum())
    return (x * y).sum() / below if below > 1e-12 else 0.0


@pytest.mark.parametrize("invalid", [False, True])
def test_accuracy_equals_scikit_learn(invalid):
    for seed in range(CASES):
        answers, predictions = random_labels(seed, 3, invalid=invalid)
        expected = 100 * sklearn.metrics.accuracy_score(answers, predictions)
        assert metrics.accuracy(answers, predictions) == pytest.approx(expected)


def test_accuracy_compares_texts_exactly():
    assert metrics.accuracy(["Tom", "the dog"], ["Tom", "the dog "]) == 50.0


@st.composite
def labelled_rows(draw):
    """A number of classes, and answers and predictions, some invalid, of up to 3,000 rows."""
    classes, seed = draw(st.integers(2, 40)), draw(st.integers(0, 2**32))
    pairs = draw(
        st.lists(st.tuples(st.integers(0, classes - 1), st.integers(-1, classes - 1)), min_size=1)
    )
    if draw(st.booleans()):  # many rows, of which half are right
        source = random.Random(seed)
        answers = source.choices(range(classes), k=source.randint(1, 3000))
        pairs += [(a, source.choice([a, a, -1, source.randrange(classes)])) for a in answers]
    return classes, [a for a, _ in pairs], [p for _, p in pairs]


@settings(max_examples=500, deadline=None)
@given(labelled_rows())
def test_f1_and_matthews_have_the_bits_of_scikit_learn(rows):
    classes, answers, predictions = rows
    if len({*answers, *predictions}) > 1:  # else scikit-learn warns
        expected = 100 * sklearn.metrics.matthews_corrcoef(answers, predictions)
        assert metrics.matthews_correlation(answers, predictions) == expected
    f1 = partial(sklearn.metrics.f1_score, zero_division=0)
    every = f1(answers, predictions, average="macro", labels=list(range(classes)))
    assert metrics.macro_f1(answers, predictions, classes=classes) == 100 * every
    labels = sorted({*answers, *predictions} - {-1})
    present = f1(answers, predictions, average="macro", labels=labels)
    assert metrics.macro_f1_of_present(answers, predictions, classes=classes) == 100 * present
    answers, predictions = [a % 2 for a in answers], [min(p, 2) for p in predictions]
    flipped = [p if p in (0, 1) else 1 - a for a, p in zip(answers, predictions, strict=True)]
    assert metrics.f1_with_invalid(answers, predictions) == 100 * f1(answers, flipped)


@pytest.mark.parametrize("invalid", [False, True])
def test_matthews_equals_its_definition_and_treats_invalid_as_a_class(invalid):
    for seed in range(CASES):
        answers, predictions = random_labels(seed, 2, invalid=invalid)
        expected = 100 * matthews_by_definition(answers, predictions)
        score = metrics.matthews_correlation(answers, predictions)
        assert score == pytest.approx(expected, abs=1e-9)


def test_matthews_of_the_released_test():
    """Source: metrics_test.test_matthews_corrcoef."""
    assert metrics.matthews_correlation([0, 0, 2, 1], [0, 1, 2, 1]) == pytest.approx(70.0)


def test_f1_counts_invalid_as_the_other_class():
    for seed in range(CASES):
        answers, predictions = random_labels(seed, 2, invalid=True)
        flipped = [p if p in (0, 1) else 1 - a for a, p in zip(answers, predictions, strict=True)]
        expected = 100 * f1_by_definition(answers, flipped, 1)
        assert metrics.f1_with_invalid(answers, predictions) == pytest.approx(expected)


def test_f1_of_the_released_test():
    """Source: metrics_test.test_f1_score_with_invalid."""
    assert metrics.f1_with_invalid([0, 1, 1, 0], [0, 1, 2, 2]) == pytest.approx(50.0)


def test_macro_f1_is_the_mean_over_all_labels_present_or_not():
    for seed in range(CASES):
        answers, predictions = random_labels(seed, 3, invalid=True)
        expected = 100 * sum(f1_by_definition(answers, predictions, k) for k in range(3)) / 3
        assert metrics.macro_f1(answers, predictions, classes=3) == pytest.approx(expected)


def test_macro_f1_of_the_released_test():
    """Source: metrics_test.test_multiclass_f1."""
    score = metrics.macro_f1([0, 1, 1, 2], [0, 0, 2, 2], classes=3)
    assert score == pytest.approx(44.44444444444444)


def pearson_by_definition(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    top = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    below = math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))
    return top / below


def ranks(values):
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def test_pearson_and_spearman_equal_their_definitions():
    for seed in range(CASES):
        draw = random.Random(seed)
        rows = draw.randint(3, 30)
        answers = [draw.randint(0, 25) / 5 for _ in range(rows)]
        predictions = [draw.choice([-1.0, draw.randint(0, 25) / 5]) for _ in range(rows)]
        if len(set(answers)) == 1 or len(set(predictions)) == 1:
            continue
        pearson = metrics.pearson_correlation(answers, predictions)
        spearman = metrics.spearman_correlation(answers, predictions)
        assert pearson == pytest.approx(100 * pearson_by_definition(answers, predictions))
        expected = 100 * pearson_by_definition(ranks(answers), ranks(predictions))
        assert spearman == pytest.approx(expected, abs=1e-9)
        assert pearson == pytest.approx(100 * scipy.stats.pearsonr(answers, predictions)[0])


def test_correlations_of_the_released_tests():
    """Source: metrics_test.test_pearson_corrcoef and test_spearman_corrcoef."""
    assert metrics.pearson_correlation([0, 2], [0, 1]) == pytest.approx(100.0)
    assert metrics.spearman_correlation([0, 2, 1], [0, 1, 2]) == pytest.approx(50.0)


@pytest.mark.parametrize(
    "predictions",
    [[2.0, 2.0, 2.0], [math.nan, 1.0, 2.0], [math.inf, 1.0, 2.0], [-math.inf, math.inf, 0.0]],
)
@pytest.mark.parametrize("metric", [metrics.pearson_correlation, metrics.spearman_correlation])
def test_a_correlation_that_is_not_defined_is_zero_without_a_warning(metric, predictions):
    assert metric([1.0, 2.0, 3.0], predictions) == 0.0
    assert metric(predictions, [1.0, 2.0, 3.0]) == 0.0


def test_huge_and_nearly_constant_numbers_give_a_number():
    for predictions in ([1e308, -1e308, 1e308], [1.0, 1.0 + 1e-15, 1.0], [5e-324, 0.0, 0.0]):
        for metric in (metrics.pearson_correlation, metrics.spearman_correlation):
            assert -100.001 <= metric([1.0, 2.0, 4.0], predictions) <= 100.001


@pytest.mark.parametrize("metric", LABELLED)
def test_no_rows_give_zero(metric):
    assert metric([], []) == 0.0
    assert metrics.macro_f1([], [], classes=3) == 0.0
    assert metrics.grouped_exact_match([], [], []) == 0.0


@pytest.mark.parametrize("metric", LABELLED)
def test_one_row_gives_a_number(metric):
    assert metric([1], [1]) in (0.0, 100.0)
    assert metric([1], [-1]) == 0.0


@pytest.mark.parametrize(
    "metric",
    [metrics.accuracy, metrics.f1_with_invalid, lambda a, p: metrics.macro_f1(a, p, classes=2)],
)
def test_all_wrong_labels_give_zero(metric):
    assert metric([0, 1, 1], [1, 0, 0]) == 0.0
    assert metric([0, 1, 1], [-1, -1, -1]) == 0.0
    assert metrics.matthews_correlation([0, 1], [1, 0]) == pytest.approx(-100.0)
    assert metrics.matthews_correlation([0, 1], [-1, -1]) == 0.0


def test_a_group_is_right_when_every_row_is():
    answers = [1, 0, 1, 1, 0]
    predictions = [1, 0, 1, 0, 0]
    groups = ["a", "a", "b", "b", "c"]
    score = metrics.grouped_exact_match(answers, predictions, groups)
    assert score == pytest.approx(100 * 2 / 3)


def test_grouped_exact_match_equals_its_definition():
    for seed in range(CASES):
        draw = random.Random(seed)
        answers, predictions = random_labels(seed, 2, invalid=True)
        groups = [draw.randint(0, 6) for _ in answers]
        rows = list(zip(answers, predictions, groups, strict=True))
        right = [all(a == p for a, p, g in rows if g == group) for group in set(groups)]
        expected = 100 * sum(right) / len(right)
        score = metrics.grouped_exact_match(answers, predictions, groups)
        assert score == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1)), min_size=1), st.randoms())
def test_the_order_of_rows_does_not_matter(pairs, draw):
    shuffled = list(pairs)
    draw.shuffle(shuffled)
    for metric in (metrics.accuracy, metrics.f1_with_invalid, metrics.matthews_correlation):
        first = metric(*map(list, zip(*pairs, strict=True)))
        second = metric(*map(list, zip(*shuffled, strict=True)))
        assert first == pytest.approx(second)
        assert -100.0 <= first <= 100.0
