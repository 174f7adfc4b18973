"""ROUGE against its definition, and its bootstrap against that of rouge_score."""

import random
import re

import pytest
from random_texts import RANDOM_CASES, ngrams, random_text, similar_text
from rouge_score import scoring
from rouge_score.rouge_scorer import RougeScorer

from t5repro.metrics.rouge import (
    BOOTSTRAP_KEYS,
    ROUGE_KEYS,
    rouge,
    rouge_bootstrap,
    rouge_mean,
    rouge_rows,
    rouge_signature,
)
from t5repro.randomness import stream


def rouge_words(text):
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).split()


def overlap_f(target, prediction, order):
    expected, actual = (ngrams(rouge_words(text), order) for text in (target, prediction))
    common = sum((expected & actual).values())
    total = sum(expected.values()) + sum(actual.values())
    return 200 * common / total if common else 0.0


def test_rouge_n_equals_its_definition():
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        target = random_text(generator)
        prediction = similar_text(generator, target)
        rows = rouge_rows([target], [prediction])
        assert rows["rouge1"][0] == pytest.approx(overlap_f(target, prediction, 1))
        assert rows["rouge2"][0] == pytest.approx(overlap_f(target, prediction, 2))


def test_rouge_lsum_takes_a_spaced_full_stop_as_the_end_of_a_line():
    scorer = RougeScorer(["rougeLsum"])
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        target, prediction = random_text(generator), random_text(generator)
        lines = [text.replace(" . ", " .\n") for text in (target, prediction)]
        expected = 100 * scorer.score(*lines)["rougeLsum"].fmeasure
        assert rouge_rows([target], [prediction])["rougeLsum"][0] == pytest.approx(expected)
    swapped = rouge_rows(["a b . c d ."], ["c d . a b ."])
    assert swapped["rougeLsum"][0] == pytest.approx(100.0)


def test_rouge_of_the_released_tests():
    """Source: metrics_test.test_same_rouge and test_different_rouge."""
    ref = "this is a string"
    equal = rouge_mean(rouge_rows([ref, ref], [ref, ref]))
    assert equal == {"rouge1": 100.0, "rouge2": 100.0, "rougeLsum": 100.0}
    different = rouge_mean(rouge_rows([ref, ref], ["", ""]))
    assert different == {"rouge1": 0.0, "rouge2": 0.0, "rougeLsum": 0.0}


def scored_rows(seed, count):
    generator = random.Random(seed)
    targets = [random_text(generator) for _ in range(count)]
    return rouge_rows(targets, [similar_text(generator, target) for target in targets])


def test_the_bootstrap_is_a_function_of_its_seed():
    rows = scored_rows(0, 40)
    assert rouge_bootstrap(rows) == rouge_bootstrap(rows)
    assert rouge_bootstrap(rows, seed=1) != rouge_bootstrap(rows, seed=2)


def test_the_bootstrap_equals_rouge_scores_own_given_the_same_draws(monkeypatch):
    rows = scored_rows(1, 30)
    for key, values in rows.items():
        draws = stream(3, "rouge", key)
        monkeypatch.setattr(
            scoring.np.random,
            "choice",
            lambda items, size, draws=draws: items[draws.integers(0, len(items), size)],
        )
        aggregator = scoring.BootstrapAggregator()
        for value in values:
            aggregator.add_scores({key: scoring.Score(value, value, value)})
        expected = aggregator.aggregate()[key].mid.fmeasure
        assert rouge_bootstrap(rows, seed=3)[key] == pytest.approx(expected)


def test_the_bootstrap_is_near_the_mean():
    rows = scored_rows(2, 200)
    mean, median = rouge_mean(rows), rouge_bootstrap(rows)
    for key in ROUGE_KEYS:
        assert median[key] == pytest.approx(mean[key], abs=1.0)
        assert median[key] != mean[key]


def test_no_summaries_give_zero():
    rows = rouge_rows([], [])
    zero = dict.fromkeys(ROUGE_KEYS, 0.0)
    assert rouge_mean(rows) == zero
    assert rouge_bootstrap(rows) == zero


def test_rouge_is_the_mean_and_the_bootstrap_median():
    answers, predictions = ["a b c .", "d e"], ["a b x .", ""]
    scores = rouge(answers, predictions)
    rows = rouge_rows(answers, predictions)
    assert list(scores) == [*ROUGE_KEYS, *BOOTSTRAP_KEYS]
    assert {key: scores[key] for key in ROUGE_KEYS} == rouge_mean(rows)
    assert {key: scores[f"{key}_bootstrap"] for key in ROUGE_KEYS} == rouge_bootstrap(rows)


def test_the_rouge_signature_says_library_and_bootstrap():
    assert rouge_signature() == (
        "rouge_score:0.1.2|stemmer:no|keys:rouge1+rouge2+rougeLsum"
        "|value:mean|bootstrap:1000 samples, seed 0, median"
    )


def test_the_signature_counts_references_in_scripts_that_rouge_drops():
    from t5repro.metrics.registry import signature_of

    seen = signature_of(("rouge",), ["The cat.", "Straße über Äcker", "2020"])
    assert seen == signature_of(("rouge",))
    answers = ["The cat.", "слова и слова", "λόγος", "言葉の文章 2020", "!?"]
    assert rouge(answers[1:3], answers[1:3])["rouge1"] == 0.0
    unseen = signature_of(("rouge",), answers)
    assert unseen == f"{seen}|references with letters other than a-z:4 of 5"
