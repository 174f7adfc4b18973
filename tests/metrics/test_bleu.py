"""BLEU against Papineni's definition with sacrebleu's smoothing."""

import math
import random
import re

import pytest
import regex
from random_texts import RANDOM_CASES, ngrams, random_text, similar_text

from t5repro.metrics.bleu import bleu, bleu_of_sums, bleu_rows, bleu_signature


def international_words(text):
    text = regex.sub(r"(\P{N})(\p{P})", r"\1 \2 ", text.rstrip())
    text = regex.sub(r"(\p{P})(\P{N})", r" \1 \2", text)
    return regex.sub(r"(\p{S})", r" \1 ", text).split()


def bleu_by_definition(references, predictions):
    hits, totals = [0] * 4, [0] * 4
    length = reference_length = 0
    for reference, prediction in zip(references, predictions, strict=True):
        expected_words, words = international_words(reference), international_words(prediction)
        length += len(words)
        reference_length += len(expected_words)
        for order in range(1, 5):
            counts = ngrams(words, order)
            hits[order - 1] += sum((counts & ngrams(expected_words, order)).values())
            totals[order - 1] += sum(counts.values())
    if not any(hits) or not all(totals):
        return 0.0
    logs, smooth = 0.0, 1.0
    for hit, total in zip(hits, totals, strict=True):
        if hit:
            logs += math.log(100 * hit / total)
        else:
            smooth *= 2
            logs += math.log(100 / (smooth * total))
    penalty = math.exp(min(0.0, 1 - reference_length / length))
    return penalty * math.exp(logs / 4)


def test_bleu_equals_its_definition():
    above_zero = 0
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        references = [random_text(generator) for _ in range(generator.randint(1, 6))]
        predictions = [similar_text(generator, reference) for reference in references]
        score = bleu(references, predictions)
        assert score == pytest.approx(bleu_by_definition(references, predictions), abs=1e-9)
        above_zero += score > 0
    assert above_zero > RANDOM_CASES / 2


def test_the_sums_of_the_rows_have_exactly_the_score_of_the_corpus(caplog):
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        references = [random_text(generator) for _ in range(generator.randint(1, 6))]
        predictions = [similar_text(generator, reference) for reference in references]
        rows = bleu_rows(references, predictions)
        assert rows.shape == (len(references), 10)
        assert bleu_of_sums(rows.sum(axis=0)) == bleu(references, predictions)
    assert not caplog.records


def test_the_statistics_of_a_row_are_its_counts_of_words():
    rows = bleu_rows(["the cat sat on the mat ."], ["the cat sat on a mat ."])
    assert rows.tolist() == [[7, 7, 6, 4, 2, 1, 7, 6, 5, 4]]
    assert bleu_rows([], []).shape == (0, 10)


def test_bleu_of_the_released_tests():
    """Source: metrics_test.test_same_bleu and test_different_bleu."""
    ref = "this is a string"
    assert bleu([ref, ref], [ref, ref]) == pytest.approx(100.0)
    assert bleu([ref, ref], ["", ""]) == 0.0


def test_bleu_of_known_corpora():
    """Values of sacrebleu 1.3.1 with tokenize="intl", smooth_method="exp", smooth_value=0.0."""
    same = "Straße 3.5 « x » the cat sat , don't !"
    assert bleu([same], [same]) == pytest.approx(100.0)
    one_substitution = bleu(["the cat sat on the mat ."], ["the cat sat on a mat ."])
    assert one_substitution == pytest.approx(48.892302243490086)
    short = bleu(["one two three four five six"], ["one two three five"])
    assert short == pytest.approx(38.75385825373298)


def test_a_translation_without_a_right_word_scores_zero():
    assert bleu(["a b c d e"], ["v w x y z"]) == 0.0
    assert bleu([""], ["v w x y z"]) == 0.0
    assert bleu([], []) == 0.0


def test_a_hundred_tokenized_lines_raise_no_warning(caplog):
    bleu(["a b c ."] * 200, ["a b c ."] * 200)
    assert not caplog.records


def test_the_signature_says_tokenizer_smoothing_and_version():
    assert re.fullmatch(
        r"nrefs:1\|case:mixed\|eff:no\|tok:intl\|smooth:exp\|version:2\.5\.\d+", bleu_signature()
    )
