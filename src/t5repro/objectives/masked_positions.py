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
import tensorflow as tf

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.row_draws import Draw, RowDraws

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

    lengths: tf.Tensor
    maskable: tf.Tensor
    word_starts: tf.Tensor
    segments: tf.Tensor
    draws: RowDraws


def row_tokens(
    settings: PretrainSettings,
    ids: tf.Tensor,
    lengths: tf.Tensor,
    draws: RowDraws,
    *,
    word_starts: tf.Tensor,
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
    total_ids = word_starts.shape[0]
    is_special = ids >= total_ids
    after_special = tf.pad(is_special[:, :-1], [[0, 0], [1, 0]])
    maskable = tf.sequence_mask(lengths, ids.shape[1])
    if not settings.masked_lm.mask_special_pieces:
        maskable &= ~is_special
    starts = tf.gather(word_starts, tf.minimum(ids, total_ids - 1))
    return RowTokens(
        lengths=lengths,
        maskable=maskable,
        # A shortened segment may begin inside a word; its first piece then counts as a word.
        word_starts=starts | is_special | after_special,
        segments=tf.cumsum(tf.cast(is_special, tf.int32), axis=1),
        draws=draws,
    )


def budgets(settings: PretrainSettings, tokens: RowTokens) -> tf.Tensor:
    """Return the number of tokens to mask in each row, int32 ``(rows,)``.

    BERT rounds, RoBERTa rounds at random so that the mean is exact, and SpanBERT, which adds the
    special pieces after masking, rounds up.

    Args:
        settings: of pre-training.
        tokens: the rows.
    """
    density, max_masked = settings.noise_density, settings.targets_length
    maskable = tf.reduce_sum(tf.cast(tokens.maskable, tf.int32), axis=1)
    if UNITS[settings.masked_lm.unit].rounds_up:
        # Rounding may lift the product of a length and a density just above an integer.
        counts = np.ceil(np.arange(settings.inputs_length + 1) * density - 1e-9)
        budget = tf.gather(tf.constant(counts.astype(np.int32)), maskable)
    elif settings.masked_lm.mask_special_pieces:
        draws = tokens.draws.uniform(Draw.BUDGET, 1)[:, 0]
        budget = tf.cast(tf.cast(tokens.lengths, tf.float64) * density + draws, tf.int32)
    else:
        # Halves go to the even number, as by Python's `round` in BERT's code.
        counts = np.maximum(1, np.round(np.arange(settings.inputs_length + 1) * density))
        budget = tf.gather(tf.constant(counts.astype(np.int32)), tokens.lengths)
    return tf.minimum(tf.minimum(budget, max_masked), maskable)


def piece_mask(tokens: RowTokens, budget: tf.Tensor) -> tf.Tensor:
    """Mask pieces without replacement, all sets of the size equally likely.

    Args:
        tokens: the rows.
        budget: tokens to mask in each row, int32 ``(rows,)``.

    Source: BERT, ``create_masked_lm_predictions`` without whole words.
    """
    width = tokens.maskable.shape[1]
    order = _random_order(tokens.draws, tokens.maskable)
    return _scatter(order, tf.sequence_mask(budget, width), width)


def ngram_mask(tokens: RowTokens, budget: tf.Tensor, *, longest: int) -> tf.Tensor:
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
    width = tokens.maskable.shape[1]
    words = _words(tokens)
    # 1. The words that may begin an n-gram: those whose first token can be masked.
    first = tf.minimum(words.begins[:, :width], width - 1)
    is_word = words.begins[:, :width] < tokens.lengths[:, tf.newaxis]
    is_word &= tf.gather(tokens.maskable, first, batch_dims=1)
    # 2. How many words an n-gram can cover: words that follow in the same segment. Entries without
    #    a maskable word get the segment -1, which no word has.
    segments = tf.where(is_word, tf.gather(tokens.segments, first, batch_dims=1), -1)
    order = _random_order(tokens.draws, is_word)
    reached = [_later(segments, order, step) for step in range(longest)]
    is_same_segment = tf.stack([segment == reached[0] for segment in reached])
    available = tf.reduce_sum(tf.cast(is_same_segment, tf.int32), 0)
    # 3. The length that each would have if the budget were no limit.
    sizes = tf.ones_like(order)
    if longest > 1:
        shares = tokens.draws.uniform(Draw.UNIT_LENGTHS, width)
        sizes = ngram_lengths(shares, available)
    # 4. The tokens of the first word of each, of the first two, and so on.
    begins = tf.gather(words.begins, order, batch_dims=1)
    lengths = [_later(words.begins, order, step + 1) - begins for step in range(longest)]
    usable = tf.gather(is_word, order, batch_dims=1)
    number_of = tf.range(width)[tf.newaxis]

    # 5. One candidate of every row in each turn, until the budget of all rows is used.
    def budget_remains(number: tf.Tensor, covered: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
        return (number < width) & tf.reduce_any(counts < budget)

    def add_ngram(
        number: tf.Tensor, covered: tf.Tensor, counts: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        free, word = budget - counts, order[:, number]
        size, new_tokens = tf.zeros_like(word), tf.zeros_like(word)
        for step, length in enumerate(lengths):  # the longest n-gram that fits
            fits = (sizes[:, number] > step) & (length[:, number] <= free) & usable[:, number]
            size = tf.where(fits, step + 1, size)
            new_tokens = tf.where(fits, length[:, number], new_tokens)
        inside = (number_of >= word[:, tf.newaxis]) & (number_of < (word + size)[:, tf.newaxis])
        # 6. An n-gram that would overlap an earlier one is skipped, as in ALBERT's code.
        overlaps = tf.reduce_any(inside & covered, axis=1)
        covered |= inside & ~overlaps[:, tf.newaxis]
        return number + 1, covered, counts + tf.where(overlaps, 0, new_tokens)

    initial = (tf.constant(0), tf.zeros_like(tokens.maskable), tf.zeros_like(budget))
    # 7. Words are counted; their tokens are masked.
    covered = tf.while_loop(budget_remains, add_ngram, initial)[1]
    return tf.gather(covered, words.numbers, batch_dims=1) & tokens.maskable


def span_mask(tokens: RowTokens, budget: tf.Tensor) -> tf.Tensor:
    """Mask spans of whole words from anchors at random unmasked tokens until the budget is used.

    A span begins at the start of the word of its anchor. It may overlap earlier ones, and is cut at
    the budget, also inside a word.

    Args:
        tokens: the rows.
        budget: tokens to mask in each row, int32 ``(rows,)``.

    Source: SpanBERT, section 3.1.
    """
    width = tokens.maskable.shape[1]
    words = _words(tokens)
    # 1. Drawing a token again until it is unmasked is a random order without the masked ones.
    anchors = _random_order(tokens.draws, tokens.maskable)
    # 2. Every anchor has a span of whole words, whether it will be used or not: the draws of a row
    #    do not depend on how many spans it needs.
    word = tf.gather(words.numbers, anchors, batch_dims=1)
    sizes = span_lengths(tokens.draws.uniform(Draw.UNIT_LENGTHS, width))
    last_words = tf.minimum(word + sizes, width)
    span_begins = tf.gather(words.begins, word, batch_dims=1)
    span_ends = tf.gather(words.begins, last_words, batch_dims=1)
    segments = tf.gather(tokens.segments, anchors, batch_dims=1)
    position = tf.range(width)[tf.newaxis]

    # 3. One anchor of every row in each turn, until the budget of all rows is used.
    def budget_remains(number: tf.Tensor, mask: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
        return (number < width) & tf.reduce_any(counts < budget)

    def add_span(number: tf.Tensor, mask: tf.Tensor, counts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def column(values: tf.Tensor) -> tf.Tensor:
            return values[:, number][:, tf.newaxis]

        # 4. An anchor inside an earlier span would have been drawn again: it adds nothing.
        is_free = ~tf.gather(mask, column(anchors), batch_dims=1)
        inside = (
            (position >= column(span_begins)) & (position < column(span_ends)) & ~mask & is_free
        )
        inside &= tokens.maskable & (tokens.segments == column(segments))
        # 5. The first tokens of the span that the budget still allows, maybe a part of a word.
        order = tf.cumsum(tf.cast(inside, tf.int32), axis=1)
        inside &= order <= (budget - counts)[:, tf.newaxis]
        counts += tf.reduce_sum(tf.cast(inside, tf.int32), axis=1)
        return number + 1, mask | inside, counts

    initial = (tf.constant(0), tf.zeros_like(tokens.maskable), tf.zeros_like(budget))
    return tf.while_loop(budget_remains, add_span, initial)[1]


@dataclass(frozen=True)
class Unit:
    """A part of a row that is masked at once.

    Attributes:
        mask: takes rows and the budget of each, returns the mask.
        rounds_up: whether the budget is a share of the maskable tokens that is rounded up.
    """

    mask: Callable[[RowTokens, tf.Tensor], tf.Tensor]
    rounds_up: bool = False


UNITS = {
    "piece": Unit(piece_mask),
    "word": Unit(partial(ngram_mask, longest=1)),
    "ngram": Unit(partial(ngram_mask, longest=LONGEST_NGRAM)),
    "span": Unit(span_mask, rounds_up=True),
}


def ngram_lengths(shares: tf.Tensor, available: tf.Tensor) -> tf.Tensor:
    """Return lengths of n-grams, with probabilities proportional to 1 / n, int32.

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
    limits = tf.gather(tf.constant(upper_bounds[:, :-1]), tf.minimum(available, LONGEST_NGRAM) - 1)
    return 1 + tf.reduce_sum(tf.cast(shares[..., tf.newaxis] >= limits, tf.int32), axis=-1)


def span_lengths(shares: tf.Tensor) -> tf.Tensor:
    """Return lengths of spans in words: geometric, without those above ten, int32.

    Args:
        shares: random numbers in [0, 1).
    """
    weights = SPAN_PROBABILITY * (1 - SPAN_PROBABILITY) ** np.arange(LONGEST_SPAN)
    upper_bounds = np.cumsum(weights) / weights.sum()  # normalised: lengths above ten are redrawn
    exceeded = shares[..., tf.newaxis] >= tf.constant(upper_bounds[:-1])
    return 1 + tf.reduce_sum(tf.cast(exceeded, tf.int32), axis=-1)


class _Words(NamedTuple):
    """The words of rows of a length L.

    Attributes:
        numbers: number of the word of each token, int32 ``(rows, L)``.
        begins: position of the first token of each word, and the end of the row from the last word
            on, int32 ``(rows, L + 1)``.
    """

    numbers: tf.Tensor
    begins: tf.Tensor


def _words(tokens: RowTokens) -> _Words:
    width = tokens.maskable.shape[1]
    position = tf.range(width)[tf.newaxis]
    lengths = tokens.lengths[:, tf.newaxis]
    # Positions of starts, in order; all others become the end of the row, so they sort last.
    starts = tf.where(tokens.word_starts & (position < lengths), position, lengths)
    begins = tf.concat([tf.sort(starts, axis=1), lengths], axis=1)
    numbers = tf.cumsum(tf.cast(tokens.word_starts, tf.int32), axis=1) - 1
    return _Words(tf.maximum(numbers, 0), begins)  # a token before the first start is in word 0


def _later(values: tf.Tensor, index: tf.Tensor, step: int) -> tf.Tensor:
    """Return the value `step` positions after each index; after the end, the last one."""
    return tf.gather(values, tf.minimum(index + step, values.shape[1] - 1), batch_dims=1)


def _random_order(draws: RowDraws, candidates: tf.Tensor) -> tf.Tensor:
    """Return positions in a random order, the candidates before all others, ``(rows, length)``."""
    width = candidates.shape[1]
    keys = draws.uniform(Draw.POSITIONS, width)
    # Draws are below 1, so 2 sorts after them.
    return tf.argsort(tf.where(candidates, keys, 2.0), axis=1, stable=True)


def _scatter(positions: tf.Tensor, is_masked: tf.Tensor, width: int) -> tf.Tensor:
    """Return the mask ``(rows, width)`` that is True at the positions that are masked."""
    positions = tf.where(is_masked, positions, width)  # not masked: a column that is cut off
    rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, tf.newaxis], tf.shape(positions))
    counts = tf.scatter_nd(
        tf.stack([rows, positions], axis=-1),
        tf.ones_like(positions),
        tf.stack([tf.shape(positions)[0], width + 1]),
    )
    return counts[:, :width] > 0
