"""Intervals of scores: resampled rows are scored as the metrics score them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_texts import WORDS
from sacrebleu import BLEU
from scipy.stats import rankdata

from t5repro.config.sections.tasks import OwnTask
from t5repro.metrics.registry import compute_scores
from t5repro.randomness import stream
from t5repro.report.bootstrap import (
    RESAMPLES,
    Resamples,
    _correlations,
    _ranks,
    _resampled,
    resample,
    score_interval_text,
)
from t5repro.report.rows import BOOTSTRAP
from t5repro.tasks.own import own_task
from t5repro.tasks.registry import task_named

ROWS = 40
PREDICTIONS = {
    "glue_cola": ["acceptable", "unacceptable", "acceptable", "nonsense"],
    "glue_mrpc": ["equivalent", "not_equivalent", "equivalent", "nonsense"],
    "glue_mnli_matched": ["entailment", "neutral", "contradiction", "nonsense"],
    "glue_stsb": ["1.0", "2.6", "4.0", "nonsense"],
    "super_glue_cb": ["entailment", "contradiction", "neutral", "nonsense"],
    "squad": ["the red house", "house", "a blue car", ""],
    "wmt_en_de": ["the cat sat on a mat .", "the dog sat", "«x» , don't !", ""],
    "cnn_dailymail": ["the cat sat . the dog ran .", "a dog", "the house . a cat", ""],
}
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


def rows_of(name: str, seed: int = 0) -> list[dict]:
    generator = stream(seed, "test", name)
    words = PREDICTIONS[name]
    texts = ["the cat sat on the mat .", "the dog ran . a cat sat ."]
    answers = {
        "glue_stsb": [1.0, 2.6, 4.0],
        "squad": [["red house"], ["house", "car"]],
        "wmt_en_de": texts,
        "cnn_dailymail": texts,
    }
    choices = answers.get(name) or list(range(len(task_named(name).labels)))
    return [
        {
            "answer": choices[generator.integers(len(choices))],
            "prediction": words[generator.integers(len(words))],
        }
        for _ in range(ROWS)
    ]


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_resample_has_the_scores_of_the_metrics(name: str) -> None:
    task, rows = task_named(name), rows_of(name)
    resamples = resample({name: task}, {name: {"a": rows}}, seed=3)
    draws = stream(3, "report", "bootstrap", name).integers(
        ROWS, size=(RESAMPLES, ROWS), dtype=np.int32
    )
    for number in (0, 1, 500, RESAMPLES - 1):
        drawn = [rows[row] for row in draws[number]]
        expected = compute_scores(
            task.metrics,
            [row["answer"] for row in drawn],
            [task.read_prediction(row["prediction"], row) for row in drawn],
            classes=len(task.labels),
        )
        scores = {metric: values[number] for (_, metric, _), values in resamples.scores.items()}
        resampled = {key: value for key, value in expected.items() if not key.endswith(BOOTSTRAP)}
        assert scores == pytest.approx(resampled)


@pytest.mark.parametrize("extra", [(), ("nonsense",)])
def test_a_resample_without_a_label_has_the_macro_f1_of_the_labels_that_occur(
    extra: tuple[str, ...],
) -> None:
    definition = {
        "files": {"train": ["a.tsv"], "validation": ["b.tsv"]},
        "fields": ["text"],
        "target": "label",
        "labels": ["a", "b", "c", "never"],
        "metrics": ["macro_f1"],
    }
    task = own_task("mine", OwnTask.model_validate(definition))
    words = ("a", "b", "a", *extra)
    rows = [{"answer": n % 3 % 2, "prediction": words[n % len(words)]} for n in range(7)]
    rows.append({"answer": 2, "prediction": "b"})  # absent from a third of the resamples
    resamples = resample({"mine": task}, {"mine": {"a": rows}}, seed=3)
    draws = stream(3, "report", "bootstrap", "mine").integers(
        8, size=(RESAMPLES, 8), dtype=np.int32
    )
    (values,) = resamples.scores.values()
    for number, draw in enumerate(draws[:100]):
        drawn = [rows[row] for row in draw]
        answers = [row["answer"] for row in drawn]
        predictions = [task.read_prediction(row["prediction"], row) for row in drawn]
        expected = compute_scores(("macro_f1",), answers, predictions, classes=4)["macro_f1"]
        assert values[number] == pytest.approx(expected)
    assert {len({rows[row]["answer"] for row in draw}) for draw in draws[:100]} > {3}


@pytest.mark.parametrize("name", ["wmt_en_de", "cnn_dailymail"])
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_every_row_once_has_exactly_the_bleu_or_rouge_of_the_scores(
    name: str, pairs: list[tuple[str, str]]
) -> None:
    task = task_named(name)
    rows = [{"answer": answer, "prediction": prediction} for answer, prediction in pairs]
    once = np.arange(len(rows), dtype=np.int32)[np.newaxis]
    expected = compute_scores(task.metrics, *map(list, zip(*pairs, strict=True)), classes=0)
    scores = {metric: values.item() for metric, values in _resampled(task, rows, once).items()}
    assert scores == {key: expected[key] for key in scores}
    assert set(scores) in ({"bleu"}, {"rouge1", "rouge2", "rougeLsum"})


def test_an_interval_of_bleu_is_that_of_sacrebleus_own_resamples() -> None:
    name = "wmt_en_de"
    rows = rows_of(name)
    resamples = resample({name: task_named(name)}, {name: {"a": rows}}, seed=0)
    low, high = resamples.interval(name, "bleu", ["a"])
    scorer = BLEU(tokenize="intl", smooth_method="exp", force=True)
    score = scorer.corpus_score(
        [row["prediction"] for row in rows], [[row["answer"] for row in rows]], n_bootstrap=1000
    )
    # Other draws of the same distribution; `ci` is half of sacrebleu's 95 % interval.
    assert (low + high) / 2 == pytest.approx(score._mean, abs=2)
    assert (high - low) / 2 == pytest.approx(score._ci, rel=0.15)


def test_an_interval_contains_the_score_and_narrows_with_more_rows() -> None:
    name = "glue_cola"
    task, rows = task_named(name), rows_of(name)
    few = resample({name: task}, {name: {"a": rows}}, seed=0)
    many = resample({name: task}, {name: {"a": rows * 25}}, seed=0)
    (metric,) = task.metrics
    low, high = few.interval(name, metric, ["a"])
    narrow_low, narrow_high = many.interval(name, metric, ["a"])
    assert low < narrow_low < narrow_high < high
    assert 3 < (high - low) / (narrow_high - narrow_low) < 8  # 25 times the rows: about a fifth


def test_arms_share_their_draws_so_that_equal_arms_do_not_differ() -> None:
    name = "glue_mrpc"
    rows = rows_of(name)
    resamples = resample({name: task_named(name)}, {name: {"a": rows, "b": rows}}, seed=0)
    assert resamples.difference(name, "accuracy", ["a"], ["b"]) == (0.0, 0.0)
    assert resamples.interval(name, "accuracy", ["a", "b"]) == resamples.interval(
        name, "accuracy", ["a"]
    )


def test_another_seed_has_other_draws_and_the_same_seed_the_same() -> None:
    name = "glue_mrpc"
    tasks, rows = {name: task_named(name)}, {name: {"a": rows_of(name)}}
    key = name, "accuracy", "a"
    first, again, other = (resample(tasks, rows, seed=seed).scores[key] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_metric_without_resamples_and_rows_without_answers_have_no_interval() -> None:
    unlabelled = {"answer": None, "prediction": "acceptable"}
    resamples = resample(
        {"glue_cola": task_named("glue_cola")}, {"glue_cola": {"a": [unlabelled]}}, seed=0
    )
    assert resamples.interval("glue_cola", "matthews_corrcoef", ["a"]) is None
    assert Resamples().difference("wmt_en_de", "bleu", ["a"], ["b"]) is None


@pytest.mark.parametrize("chunk_rows", [1, ROWS * 7, ROWS * RESAMPLES])
@pytest.mark.parametrize("metric", ["pearson_corrcoef", "spearman_corrcoef"])
def test_the_number_of_draws_at_a_time_does_not_change_an_interval(
    monkeypatch: pytest.MonkeyPatch, chunk_rows: int, metric: str
) -> None:
    name = "glue_stsb"
    tasks, rows = {name: task_named(name)}, {name: {"a": rows_of(name)}}
    expected = resample(tasks, rows, seed=0).scores[name, metric, "a"]
    monkeypatch.setattr("t5repro.report.bootstrap.CHUNK_ROWS", chunk_rows)
    assert np.array_equal(resample(tasks, rows, seed=0).scores[name, metric, "a"], expected)


@pytest.mark.parametrize("prediction", ["1e300", "-1e300"])
def test_a_correlation_with_numbers_beyond_a_variance_has_no_interval(prediction: str) -> None:
    definition = OwnTask(
        files={"test": ["a.csv"]}, fields=["q"], target="a", metrics=["pearson_corrcoef"]
    )
    rows = [{"answer": float(i), "prediction": str(i) if i % 3 else prediction} for i in range(20)]
    resamples = resample({"x": own_task("x", definition)}, {"x": {"a": rows}}, seed=0)
    assert resamples.interval("x", "pearson_corrcoef", ["a"]) is None
    assert resamples.difference("x", "pearson_corrcoef", ["a"], ["a"]) is None


def test_the_correlation_of_a_large_task_takes_little_memory() -> None:
    rows = 20_000
    numbers = np.arange(rows) % 97
    draws = stream(0, "test").integers(rows, size=(RESAMPLES, rows), dtype=np.int32)
    tracemalloc.start()
    _correlations(numbers, numbers[::-1], draws)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@given(
    st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0]), min_size=1),
    st.integers(0, 2**32),
)
def test_ranks_of_resamples_are_those_of_scipy(values: list[float], seed: int) -> None:
    draws = np.random.default_rng(seed).integers(len(values), size=(3, len(values)), dtype=np.int32)
    numbers = np.asarray(values)
    assert np.array_equal(_ranks(numbers, draws), rankdata(numbers[draws], axis=1))


def test_an_interval_is_written_with_one_decimal() -> None:
    assert score_interval_text((-3.04, 79.35)) == "−3.0 to 79.3"
    assert score_interval_text((-0.04, 0.04)) == "0.0 to 0.0"
    assert score_interval_text(None) == ""
    assert score_interval_text((None, None)) == ""
