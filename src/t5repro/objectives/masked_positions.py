"""Positions of a row that a masked language model predicts: pieces, words, n-grams or spans.

A unit is a value: a function from rows to a mask ``(rows, length)`` with at most the budget of each
row, and how the budget is rounded. To add one, write such a function and an entry of `UNITS`.
Special pieces count in the budget but are not masked, unless `masked_lm.mask_special_pieces` is
set.

Rows are masked together, without a loop over rows: where the papers draw again and again until the
budget is used, a random order of all candidates is drawn once and the first that fit are taken.

Source: BERT and ALBERT, ``create_masked_lm_predictions``; fairseq, ``MaskTokensDataset``; SpanBERT,
section 3.1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Float64, Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.masks import first_positions
from t5repro.objectives.row_draws import WORDS, Draw, RowDraws

LONGEST_NGRAM = 3  # words
LONGEST_SPAN = 10  # words
SPAN_PROBABILITY = 0.2  # of the geometric distribution


class RowTokens(NamedTuple):
    """Rows before masking.

    Attributes:
        lengths: tokens of each row with special pieces, int32 ``(rows,)``.
        maskable: tokens that may be masked, bool ``(rows, length)``.
        word_starts: first token of each word; a special piece is a word, ``(rows, length)``.
        segments: number of the segment of each token, which a unit does not leave, int32
            ``(rows, length)``.
        draws: random numbers of the rows.
    """

    lengths: Int32
    maskable: Mask
    word_starts: Mask
    segments: Int32
    draws: RowDraws


def row_tokens(
    settings: PretrainSettings, ids: Int32, lengths: Int32, draws: RowDraws, *, word_starts: Mask
) -> RowTokens:
    """Return words and segments of rows, and the positions that may be masked.

    Args:
        settings: of pre-training.
        ids: with special pieces, int32 ``(rows, length)``.
        lengths: tokens of each row, int32 ``(rows,)``.
        draws: random numbers of the rows.
        word_starts: whether the piece of each id of the vocabulary begins a word; ids from its
            length on are special pieces.
    """
    # Special pieces have the ids after pieces and sentinels.
    is_special = ids >= len(word_starts)
    maskable = first_positions(lengths, ids.shape[1])
    if not settings.masked_lm.mask_special_pieces:
        maskable &= ~is_special
    # A shortened segment may begin inside a word; its first piece then counts as a word.
    starts = word_starts[np.minimum(ids, len(word_starts) - 1)] | is_special
    starts[:, 1:] |= is_special[:, :-1]
    return RowTokens(
        lengths=lengths,
        maskable=maskable,
        word_starts=starts,
        segments=np.cumsum(is_special, axis=1, dtype=np.int32),
        draws=draws,
    )


def budgets(settings: PretrainSettings, tokens: RowTokens) -> Int32:
    """Return the number of tokens to mask in each row, int32 ``(rows,)``.

    BERT rounds, RoBERTa rounds at random so that the mean is exact, and SpanBERT, which adds the
    special pieces after masking, rounds up.

    Args:
        settings: of pre-training.
        tokens: the rows.
    """
    density = settings.noise_density
    maskable = tokens.maskable.sum(axis=1)
    if UNITS[settings.masked_lm.unit].rounds_up:
        # Rounding may lift the product of a length and a density just above an integer.
        budget = np.ceil(maskable * density - 1e-9)
    elif settings.masked_lm.mask_special_pieces:
        budget = np.floor(tokens.lengths * density + tokens.draws.uniform(Draw.BUDGET, 1)[:, 0])
    else:
        # Halves go to the even number, as by Python's `round` in BERT's code.
        budget = np.maximum(1, np.round(tokens.lengths * density))
    return np.minimum(np.minimum(budget, settings.targets_length), maskable).astype(np.int32)


def piece_mask(tokens: RowTokens, budget: Int32) -> Mask:
    """Mask pieces without replacement, all sets of the size equally likely.

    Args:
        tokens: the rows.
        budget: tokens to mask in each row, int32 ``(rows,)``.

    Source: BERT, ``create_masked_lm_predictions`` without whole words.
    """
    order = random_order(tokens.draws, Draw.POSITIONS, tokens.maskable)
    mask = np.zeros_like(tokens.maskable)
    np.put_along_axis(mask, order, np.arange(mask.shape[1]) < budget[:, np.newaxis], axis=1)
    return mask


def ngram_mask(tokens: RowTokens, budget: Int32, *, longest: int) -> Mask:
    """Mask n-grams of whole words without overlap; with `longest` 1, words.

    Every word may begin an n-gram, in random order. One that would exceed the budget is shortened,
    and skipped if even its first word exceeds it.

    Args:
        tokens: the rows.
        budget: tokens to mask in each row, int32 ``(rows,)``.
        longest: words of the longest n-gram.

    Source: BERT, ``create_masked_lm_predictions`` with whole words; ALBERT, section 4.1 and
    ``create_masked_lm_predictions``.
    """
    count, width = tokens.maskable.shape
    words = words_of(tokens)
    # 1. The words that may begin an n-gram: those whose first token can be masked.
    first = np.minimum(words.begins[:, :width], width - 1)
    is_word = words.begins[:, :width] < tokens.lengths[:, np.newaxis]
    is_word &= np.take_along_axis(tokens.maskable, first, axis=1)
    order = random_order(tokens.draws, Draw.POSITIONS, is_word)
    # 2. The length that each n-gram would have if the budget were no limit.
    sizes = np.ones_like(order)
    if longest > 1:
        # Words that follow in the same segment. Entries without a maskable word get the segment
        # -1, which no word has.
        segments = np.where(is_word, np.take_along_axis(tokens.segments, first, axis=1), -1)
        later = _extended(segments, longest - 1)
        available = sum(later[:, step : step + width] == segments for step in range(longest))
        shares = tokens.draws.uniform(Draw.UNIT_LENGTHS, width)
        sizes = ngram_lengths(shares, np.take_along_axis(available, order, axis=1))
    word_counts = is_word.sum(axis=1)
    sizes = np.where(np.arange(width) < word_counts[:, np.newaxis], sizes, 0)
    # 3. One candidate of every row in each turn, until the budget of all rows is used. Words are
    #    numbered through all rows, which is the fastest index.
    columns, step = width + longest, np.arange(longest)
    begins = _extended(words.begins, longest - 1).ravel()
    covered = np.zeros(count * columns, bool)
    free = budget[:, np.newaxis].copy()
    candidates = order + np.arange(count)[:, np.newaxis] * columns
    for number in range(word_counts.max()):
        # 4. The words of the candidate, and the tokens of its first, of its first two, and so on.
        word = candidates[:, number, np.newaxis] + step
        lengths = begins[word + 1] - begins[word[:, :1]]
        # 5. The longest n-gram that fits; one that would overlap an earlier one is skipped, as in
        #    ALBERT's code.
        is_covered = covered[word]
        fits = (step < sizes[:, number, np.newaxis]) & (lengths <= free)
        fits &= ~(fits & is_covered).any(axis=1, keepdims=True)
        covered[word] = is_covered | fits
        free -= (lengths * fits).max(axis=1, keepdims=True)
        if not free.any():
            break
    # 6. Words are counted; their tokens are masked.
    is_masked = covered.reshape(count, columns)
    return np.take_along_axis(is_masked, words.numbers, axis=1) & tokens.maskable


def span_mask(tokens: RowTokens, budget: Int32) -> Mask:
    """Mask spans of whole words from anchors at random unmasked tokens until the budget is used.

    A span begins at the start of the word of its anchor. It may overlap earlier ones, and is cut at
    the budget, also inside a word.

    Args:
        tokens: the rows.
        budget: tokens to mask in each row, int32 ``(rows,)``.

    Source: SpanBERT, section 3.1.
    """
    count, width = tokens.maskable.shape
    words = words_of(tokens)
    # 1. Drawing a token again until it is unmasked is a random order without the masked ones.
    order = random_order(tokens.draws, Draw.POSITIONS, tokens.maskable)
    ranks = np.empty(order.shape, np.int32)
    np.put_along_axis(ranks, order, np.arange(width, dtype=np.int32), axis=1)
    # 2. Every anchor has a span of whole words, whether it will be used or not: the draws of a row
    #    do not depend on how many spans it needs. A draw belongs to a rank.
    sizes = span_lengths(tokens.draws.uniform(Draw.UNIT_LENGTHS, width))
    row, position = np.arange(count), np.arange(width)
    free, unmasked, last = budget.copy(), tokens.maskable.copy(), np.full(count, -1)
    # 3. In each turn every row takes its next unmasked anchor, by rank, until the budget of all
    #    rows is used.
    while (can_begin := unmasked & (ranks > last[:, np.newaxis])).any():
        open_ranks = np.where(can_begin, ranks, width)
        anchor = open_ranks.argmin(axis=1)
        last = open_ranks[row, anchor]
        free[last == width] = 0
        word = words.numbers[row, anchor]
        following = np.minimum(word + sizes[row, ranks[row, anchor]], width)
        begin, end = words.begins[row, word], words.begins[row, following]
        inside = unmasked & (position >= begin[:, np.newaxis]) & (position < end[:, np.newaxis])
        inside &= tokens.segments == tokens.segments[row, anchor][:, np.newaxis]
        # 4. The first tokens of the span that the budget still allows, maybe a part of a word.
        inside &= np.cumsum(inside, axis=1, dtype=np.int32) <= free[:, np.newaxis]
        unmasked &= ~inside
        free -= inside.sum(axis=1, dtype=np.int32)
        last[free == 0] = width
    return tokens.maskable & ~unmasked


@dataclass(frozen=True)
class Unit:
    """A part of a row that is masked at once.

    Attributes:
        mask: takes rows and the budget of each, returns the mask.
        rounds_up: whether the budget is a share of the maskable tokens that is rounded up.
    """

    mask: Callable[[RowTokens, Int32], Mask]
    rounds_up: bool = False


UNITS = {
    "piece": Unit(piece_mask),
    "word": Unit(partial(ngram_mask, longest=1)),
    "ngram": Unit(partial(ngram_mask, longest=LONGEST_NGRAM)),
    "span": Unit(span_mask, rounds_up=True),
}


def ngram_lengths(shares: Float64, available: Int64) -> Int64:
    """Return lengths of n-grams, with probabilities proportional to 1 / n, int64.

    Args:
        shares: random numbers in [0, 1).
        available: number of words up to the end of the segment, at least 1, of the same shape;
            a longer n-gram has no probability.
    """
    # Inverse of the cumulative distribution: a length is 1 plus the number of bounds that the
    # random number reaches. One row of bounds for each number of available words; near the end of
    # a segment the shorter n-grams share the probability of those that do not fit.
    weights = 1 / np.arange(1, LONGEST_NGRAM + 1)
    upper_bounds = np.array(
        [
            np.minimum(np.cumsum(weights) / weights[:max_length].sum(), 1)
            for max_length in range(1, LONGEST_NGRAM + 1)
        ]
    )
    row = np.minimum(available, LONGEST_NGRAM) - 1
    sizes = np.ones(shares.shape, np.int64)
    for bounds in upper_bounds[:, :-1].T:
        sizes += shares >= bounds[row]
    return sizes


def span_lengths(shares: Float64) -> Int64:
    """Return lengths of spans in words: geometric, without those above ten, int64.

    Args:
        shares: random numbers in [0, 1).
    """
    weights = SPAN_PROBABILITY * (1 - SPAN_PROBABILITY) ** np.arange(LONGEST_SPAN)
    upper_bounds = np.cumsum(weights) / weights.sum()  # normalised: lengths above ten are redrawn
    return 1 + np.searchsorted(upper_bounds[:-1], shares, side="right")


class Words(NamedTuple):
    """The words of rows of a length L.

    Attributes:
        numbers: number of the word of each token, int32 ``(rows, L)``.
        begins: position of the first token of each word, and the end of the row from the last word
            on, int32 ``(rows, L + 1)``.
    """

    numbers: Int32
    begins: Int32


def words_of(tokens: RowTokens) -> Words:
    """Return the words of rows."""
    width = tokens.maskable.shape[1]
    lengths = tokens.lengths[:, np.newaxis]
    starts = tokens.word_starts & (np.arange(width) < lengths)
    begins = np.repeat(lengths, width + 1, axis=1)
    begins[np.arange(width + 1) < starts.sum(axis=1)[:, np.newaxis]] = np.nonzero(starts)[1]
    numbers = np.cumsum(tokens.word_starts, axis=1, dtype=np.int32) - 1
    return Words(np.maximum(numbers, 0), begins)  # a token before the first start is in word 0


def _extended(values: Int32, columns: int) -> Int32:
    """Return rows with `columns` more columns, which repeat the last one."""
    last = values.shape[1] - 1
    return values[:, np.minimum(np.arange(last + 1 + columns), last)]


def random_order(draws: RowDraws, use: Draw, candidates: Mask) -> Int64:
    """Return positions in a random order, the candidates before all others, ``(rows, length)``."""
    width = candidates.shape[1]
    words = np.where(candidates, draws.words(use, width), WORDS)
    # With the position in its low bits no two keys are equal: of equal draws the lower position
    # is first.
    keys = words << width.bit_length() | np.arange(width, dtype=np.uint64)
    return (np.sort(keys, axis=1) & ((1 << width.bit_length()) - 1)).astype(np.int64)
