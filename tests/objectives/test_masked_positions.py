"""The positions to predict: budgets, units and replacements, against loops over single rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.config.sections.pretrain import MaskedLM, PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.masked_pieces import replace_masked, run_numbers
from t5repro.objectives.masked_positions import (
    UNITS,
    RowTokens,
    budgets,
    ngram_lengths,
    span_lengths,
)
from t5repro.objectives.row_draws import Draw, RowDraws

MANY = 200_000
NGRAMS = (0.5455, 0.2727, 0.1818)  # ALBERT, section 4.1
SPANS = (0.2241, 0.1792, 0.1434, 0.1147, 0.0918, 0.0734, 0.0587, 0.0470, 0.0376, 0.0301)
VOCAB = VocabSettings(vocab_size=900, extra_ids=100)


def settings_of(width: int = 64, most: int = 20, density: float = 0.15, **masked_lm: Any):
    return PretrainSettings(
        objective="masked_lm",
        inputs_length=width,
        targets_length=most,
        noise_density=density,
        masked_lm={"rows": "full_sentences", "pair_task": "none", **masked_lm},
    )


def rows_of(
    count: int, width: int = 64, *, specials: bool = False, seed: int = 0, full: bool = False
) -> RowTokens:
    """Return rows ``[CLS] A [SEP] B [SEP]`` of random lengths and words."""
    random = np.random.default_rng(seed)
    lengths = np.full(count, width) if full else random.integers(8, width + 1, count)
    middle = random.integers(2, lengths - 3)
    position = np.arange(width)[np.newaxis]
    valid = position < lengths[:, np.newaxis]
    special = (position == 0) | (position == middle[:, np.newaxis])
    special |= position == lengths[:, np.newaxis] - 1
    starts = random.random((count, width)) < 0.6
    starts |= special | np.roll(special, 1, axis=1)
    return RowTokens(
        lengths=lengths.astype(np.int32),
        maskable=valid & (specials | ~special),
        word_starts=starts,
        segments=np.cumsum(special, axis=1, dtype=np.int32),
        draws=RowDraws(seed, np.arange(count), np.zeros(count, np.int64)),
    )


def mask_of(unit: str, tokens: RowTokens, budget: np.ndarray) -> np.ndarray:
    return UNITS[unit].mask(tokens, budget)


def words_of(tokens: RowTokens, row: int) -> list[list[int]]:
    """Return the positions of each word of a row, special pieces included."""
    words: list[list[int]] = []
    for position in range(int(tokens.lengths[row])):
        if tokens.word_starts[row, position]:
            words.append([])
        words[-1].append(position)
    return words


def ngrams_by_loop(tokens: RowTokens, row: int, budget: int, longest: int) -> set[int]:
    """Mask n-grams of a row word by word."""
    words, width = words_of(tokens, row), tokens.maskable.shape[1]
    maskable = tokens.maskable[row]
    segments = tokens.segments[row]
    keys = tokens.draws.uniform(Draw.POSITIONS, width)[row]
    shares = tokens.draws.uniform(Draw.UNIT_LENGTHS, width)[row]
    usable = [number for number, word in enumerate(words) if maskable[word[0]]]
    masked: set[int] = set()
    for rank, number in enumerate(sorted(usable, key=lambda one: keys[one])):
        following = [
            word
            for word in words[number : number + longest]
            if segments[word[0]] == segments[words[number][0]] and maskable[word[0]]
        ]
        weights = 1 / np.arange(1, len(following) + 1)
        size = 1 + int(np.sum(shares[rank] >= np.cumsum(weights / weights.sum())[:-1]))
        while size and sum(map(len, following[:size])) > budget - len(masked):
            size -= 1
        ngram = {position for word in following[:size] for position in word}
        if not ngram & masked:
            masked |= ngram
    return masked


def spans_by_loop(tokens: RowTokens, row: int, budget: int) -> set[int]:
    """Mask spans of a row: an anchor that is masked is drawn again."""
    words, width = words_of(tokens, row), tokens.maskable.shape[1]
    maskable, segments = tokens.maskable[row], tokens.segments[row]
    keys = tokens.draws.uniform(Draw.POSITIONS, width)[row]
    sizes = span_lengths(tokens.draws.uniform(Draw.UNIT_LENGTHS, width))[row]
    masked: set[int] = set()
    anchors = sorted(np.flatnonzero(maskable), key=lambda position: keys[position])
    for rank, anchor in enumerate(anchors):
        if anchor in masked:
            continue
        number = next(n for n, word in enumerate(words) if anchor in word)
        for word in words[number : number + sizes[rank]]:
            for position in word:
                same_segment = segments[position] == segments[anchor] and maskable[position]
                if same_segment and len(masked) < budget:
                    masked.add(position)
    return masked


@pytest.mark.parametrize("specials", [False, True])
@pytest.mark.parametrize("unit", ["word", "ngram", "span"])
def test_a_unit_masks_as_a_loop_over_each_row_does(unit: str, specials: bool) -> None:
    tokens = rows_of(60, specials=specials)
    budget = np.random.default_rng(1).integers(0, 20, 60)
    mask = mask_of(unit, tokens, budget)
    for row, limit in enumerate(budget):
        if unit == "span":
            expected = spans_by_loop(tokens, row, limit)
        else:
            expected = ngrams_by_loop(tokens, row, limit, 3 if unit == "ngram" else 1)
        assert set(np.flatnonzero(mask[row])) == expected


@pytest.mark.parametrize("unit", UNITS)
def test_special_pieces_and_padding_are_never_masked(unit: str) -> None:
    tokens = rows_of(3000)
    budget = np.full(3000, 15)
    mask = mask_of(unit, tokens, np.minimum(budget, tokens.lengths - 3))
    assert not (mask & ~tokens.maskable).any()


@pytest.mark.parametrize("unit", ["piece", "span"])
def test_the_budget_is_masked_exactly(unit: str) -> None:
    tokens = rows_of(3000)
    budget = budgets(settings_of(unit=unit), tokens)
    assert (mask_of(unit, tokens, budget).sum(axis=1) == budget).all()


@pytest.mark.parametrize("unit", ["word", "ngram"])
def test_whole_words_fill_the_budget_unless_all_other_words_exceed_it(unit: str) -> None:
    tokens = rows_of(1000)
    budget = budgets(settings_of(unit=unit), tokens)
    mask = mask_of(unit, tokens, budget)
    counts = mask.sum(axis=1)
    assert (counts <= budget).all()
    assert (counts == budget).mean() > 0.99
    for row in range(1000):
        words = [word for word in words_of(tokens, row) if tokens.maskable[row, word[0]]]
        assert all(len(set(mask[row, word])) == 1 for word in words)
        rest = [len(word) for word in words if not mask[row, word[0]]]
        assert counts[row] == budget[row] or min(rest) > budget[row] - counts[row]


def test_every_piece_is_masked_equally_often() -> None:
    tokens = rows_of(20_000, 20, full=True, specials=True)
    mask = mask_of("piece", tokens, np.full(20_000, 3))
    shares = mask.mean(axis=0)
    assert np.abs(shares - 3 / 20).max() < 4 * np.sqrt(0.15 * 0.85 / 20_000)


def test_lengths_of_ngrams_have_the_probabilities_of_albert() -> None:
    draws = RowDraws(0, np.arange(MANY), np.zeros(MANY, np.int64))
    shares = draws.uniform(Draw.UNIT_LENGTHS, 1)[:, 0]
    for available, expected in ((3, NGRAMS), (9, NGRAMS), (2, (2 / 3, 1 / 3)), (1, (1.0,))):
        sizes = ngram_lengths(shares, np.full(MANY, available))
        found = np.bincount(sizes, minlength=len(expected) + 1)[1:] / MANY
        assert len(found) == len(expected)
        for share, probability in zip(found, expected, strict=True):
            deviation = np.sqrt(probability * (1 - probability) / MANY)
            assert abs(share - probability) <= 4 * deviation + 5e-5


def test_lengths_of_spans_have_the_probabilities_of_spanbert() -> None:
    draws = RowDraws(0, np.arange(MANY), np.zeros(MANY, np.int64))
    sizes = span_lengths(draws.uniform(Draw.UNIT_LENGTHS, 1))[:, 0]
    found = np.bincount(sizes)[1:] / MANY
    assert len(found) == len(SPANS)
    for share, probability in zip(found, SPANS, strict=True):
        assert abs(share - probability) < 4 * np.sqrt(probability / MANY) + 5e-5
    assert abs(sizes.mean() - 3.797) < 4 * sizes.std() / np.sqrt(MANY) + 5e-4


def test_bert_rounds_the_budget_and_masks_one_piece_at_least() -> None:
    tokens = rows_of(64, 64)._replace(lengths=np.arange(1, 65))
    tokens = tokens._replace(maskable=np.ones_like(tokens.maskable))
    expected = [min(9, max(1, round(n * 0.15))) for n in range(1, 65)]
    assert budgets(settings_of(most=9), tokens).tolist() == expected


def test_roberta_masks_the_share_exactly_in_expectation() -> None:
    draws = RowDraws(0, np.arange(MANY), np.zeros(MANY, np.int64))
    tokens = RowTokens(
        lengths=np.full(MANY, 51),
        maskable=np.ones((MANY, 51), bool),
        word_starts=np.ones((MANY, 51), bool),
        segments=np.ones((MANY, 51), np.int32),
        draws=draws,
    )
    budget = budgets(settings_of(51, mask_special_pieces=True), tokens)
    assert set(budget) == {7, 8}
    assert abs(budget.mean() - 0.15 * 51) < 4 * budget.std() / np.sqrt(MANY)


def test_spanbert_rounds_up_the_share_of_the_tokens_without_special_pieces() -> None:
    tokens = rows_of(500)
    maskable = tokens.maskable.sum(axis=1)
    budget = budgets(settings_of(unit="span"), tokens)
    assert budget.tolist() == [int(np.ceil(0.15 * n)) for n in maskable]


def test_no_budget_exceeds_the_tokens_or_the_targets() -> None:
    tokens = rows_of(200)
    for masked_lm in ({}, {"mask_special_pieces": True}, {"unit": "span"}):
        budget = budgets(settings_of(most=6, density=0.9, **masked_lm), tokens)
        assert budget.max() == 6
        few = tokens._replace(maskable=tokens.maskable & (np.arange(64) < 3))
        assert budgets(settings_of(density=0.9, **masked_lm), few).max() <= 3


def replaced(mask: np.ndarray, most: int, **masked_lm: Any):
    count, width = mask.shape
    ids = 3 + np.random.default_rng(2).integers(0, 897, (count, width)).astype(np.int32)
    draws = RowDraws(0, np.arange(count), np.zeros(count, np.int64))
    rows = replace_masked(MaskedLM(**masked_lm), ids, mask, draws, vocab=VOCAB, max_masked=most)
    return ids, *rows


def test_of_the_masked_pieces_eight_in_ten_are_masks_and_one_is_random() -> None:
    mask = np.random.default_rng(3).random((10_000, 64)) < 0.3
    ids, masked, _, _ = replaced(mask, 64)
    assert (masked[~mask] == ids[~mask]).all()
    is_mask = masked[mask] == 1002
    changed = ~is_mask & (masked[mask] != ids[mask])
    count = mask.sum()
    assert count > 100_000
    assert abs(is_mask.mean() - 0.8) < 4 * np.sqrt(0.16 / count)
    # One random piece in 897 is the original one.
    assert abs(changed.mean() - 0.1 * 896 / 897) < 4 * np.sqrt(0.09 / count)
    random_ids = masked[mask][changed]
    assert (random_ids.min(), random_ids.max()) == (3, 899)
    halves = (random_ids < 3 + 897 / 2).mean()
    assert abs(halves - 0.5) < 4 * np.sqrt(0.25 / len(random_ids))


@pytest.mark.parametrize(
    ("mask_share", "random_share", "expected"), [(1.0, 0.0, 1002), (0.0, 0.0, None)]
)
def test_the_shares_are_settings(mask_share: float, random_share: float, expected) -> None:
    mask = np.ones((50, 20), bool)
    ids, masked, _, targets = replaced(mask, 20, mask_share=mask_share, random_share=random_share)
    assert (masked == (ids if expected is None else expected)).all()
    assert (targets == ids).all()


def test_a_whole_span_is_replaced_in_the_same_way() -> None:
    mask = np.repeat(np.random.default_rng(4).random((20_000, 32)) < 0.3, 3, axis=1)
    ids, masked, _, _ = replaced(mask, 96, unit="span", rows="doc_sentences", pair_task="none")
    runs = run_numbers(mask)
    kinds = np.where(masked == 1002, 0, np.where(masked == ids, 2, 1))[mask]
    run_of = (np.arange(20_000)[:, np.newaxis] * 100 + runs)[mask]
    first = np.unique(run_of, return_index=True)[1]
    count = len(first)
    assert count > 100_000
    of_run = kinds[first][np.searchsorted(run_of[first], run_of)]
    # A random piece of a span can be the original one.
    assert ((kinds == of_run) | (np.abs(kinds - of_run) == 1)).all()
    assert ((kinds == 0) == (of_run == 0)).all()
    assert ((kinds != of_run).mean()) < 0.1 / 897 * 3
    shares = np.bincount(kinds[first], minlength=3) / count
    for share, probability in zip(shares, (0.8, 0.1, 0.1), strict=True):
        assert abs(share - probability) < 4 * np.sqrt(probability / count) + 0.1 / 897


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=4),
    st.integers(9, 14),
)
def test_positions_ascend_and_have_the_original_ids(rows: list[list[bool]], most: int) -> None:
    mask = np.array(rows)
    ids, _, positions, targets = replaced(mask, most)
    assert positions.shape == targets.shape == (len(rows), most)
    for row, places in enumerate(map(np.flatnonzero, mask)):
        filler = [0] * (most - len(places))
        assert positions[row].tolist() == [*places, *filler]
        assert targets[row].tolist() == [*ids[row, places], *filler]
