"""Trigrams in a shuffled order: the word structure of StructBERT.

Three consecutive pieces, or whole words, of one segment are put into a random order and predicted
like masked pieces. None of them is masked, and no piece is in two trigrams.

Source: Wang et al., 2020 (StructBERT), section 2.2. Its pre-training has no released code; D-056
has what the paper leaves open.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int64, Mask
from t5repro.config.sections.pretrain import TRIGRAM, MaskedLM
from t5repro.objectives.masked_positions import RowTokens, random_order, words_of
from t5repro.objectives.masks import first_positions
from t5repro.objectives.row_draws import Draw

# Parts of a trigram in all orders; the first is the original one.
ORDERS = np.array(list(permutations(range(TRIGRAM))))


class Shuffled(NamedTuple):
    """Rows with some of their trigrams shuffled.

    Attributes:
        sources: position of the piece that stands at each position now, int64 ``(rows, length)``.
        starts: first position of each shuffled trigram, bool ``(rows, length)``.
        places: positions of the shuffled trigrams, of the same shape.
    """

    sources: Int64
    starts: Mask
    places: Mask


class _Trigrams(NamedTuple):
    """The trigrams that begin at each position.

    Attributes:
        parts: number of the part of the row, piece or word, at each position, ``(rows, length)``.
        bounds: first positions of its three parts, and its end, int64 ``(rows, length, 4)``.
        exist: whether three whole parts begin there that can be shuffled, ``(rows, length)``.
    """

    parts: Int64
    bounds: Int64
    exist: Mask


def shuffle_trigrams(settings: MaskedLM, tokens: RowTokens, mask: Mask, *, most: int) -> Shuffled:
    """Shuffle trigrams of text that is not masked.

    The trigrams are taken in a random order, without those that overlap an earlier one or exceed
    the tokens that are left.

    Args:
        settings: share, unit and orders.
        tokens: the rows.
        mask: masked positions, bool ``(rows, length)``.
        most: predicted positions of a row, masked ones included.
    """
    trigrams = _trigrams(settings, tokens, mask)
    free = most - mask.sum(axis=1)
    if settings.shuffle_of == "tokens":
        # Halves go to the even number, as for the masked pieces of BERT.
        shuffled = np.round(settings.shuffle_share * tokens.lengths / TRIGRAM).astype(np.int64)
        free = np.minimum(TRIGRAM * shuffled, free)
    else:
        trigrams = trigrams._replace(exist=_tiles(trigrams))
        share = settings.shuffle_share * trigrams.exist.sum(axis=1)
        shuffled = np.maximum(np.round(share), 1).astype(np.int64)
    starts = _chosen(tokens, trigrams, shuffled, free)
    sources = np.tile(np.arange(mask.shape[1]), (len(mask), 1))
    places = np.zeros_like(mask)
    row, start = np.nonzero(starts)
    # 1. An order for each trigram: its draw belongs to its first position.
    chance = tokens.draws.uniform(Draw.SHUFFLE_ORDERS, mask.shape[1])[starts]
    first = 0 if settings.shuffle_identity else 1
    # The product can round up to the number of orders.
    order = first + (chance * (len(ORDERS) - first)).astype(np.int64)
    order = ORDERS[np.minimum(order, len(ORDERS) - 1)]
    # 2. Parts of a trigram can have several pieces, which stay together.
    bounds = trigrams.bounds[row, start]
    begins = np.take_along_axis(bounds[:, :-1], order, axis=1).ravel()
    sizes = np.take_along_axis(np.diff(bounds, axis=1), order, axis=1).ravel()
    lengths = bounds[:, -1] - bounds[:, 0]
    rows, into = np.repeat(row, lengths), _ranges(bounds[:, 0], lengths)
    sources[rows, into] = _ranges(begins, sizes)
    places[rows, into] = True
    return Shuffled(sources, starts, places)


def _ranges(begins: Int64, lengths: Int64) -> Int64:
    """Return the numbers of consecutive ranges, one range after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + lengths, lengths)


def _trigrams(settings: MaskedLM, tokens: RowTokens, mask: Mask) -> _Trigrams:
    rows, width = mask.shape
    position = np.arange(width)
    is_special = np.diff(tokens.segments, axis=1, prepend=0) > 0
    is_text = first_positions(tokens.lengths, width) & ~is_special
    # 1. The parts of a row, and the position where each begins.
    if settings.shuffle_unit == "word":
        parts, begins = words_of(tokens)
        is_start = tokens.word_starts
    else:
        parts, begins = np.tile(position, (rows, 1)), np.tile(np.arange(width + 1), (rows, 1))
        is_start = np.ones_like(mask)
    # 2. Three parts from each position on; beyond the last part of a row they are empty.
    numbers = np.minimum(parts[:, :, np.newaxis] + np.arange(TRIGRAM + 1), width)
    flat = np.take_along_axis(begins, numbers.reshape(rows, -1), axis=1).astype(np.int64)
    bounds: Int64 = flat.reshape(rows, width, TRIGRAM + 1)
    is_whole = (np.diff(bounds, axis=2) > 0).all(axis=2)
    # 3. All of their pieces are text and not masked, so they are of one segment.
    blocked = np.cumsum(np.pad(~is_text | mask, ((0, 0), (1, 0))), axis=1)
    inside: Int64 = np.take_along_axis(blocked, bounds[:, :, -1], axis=1) - blocked[:, :-1]
    return _Trigrams(parts.astype(np.int64), bounds, is_start & is_whole & (inside == 0))


def _tiles(trigrams: _Trigrams) -> Mask:
    """Return the first positions of the trigrams that divide the text between masked pieces."""
    tiles = np.zeros_like(trigrams.exist)
    next_part = np.zeros(len(tiles), np.int64)  # the next one that may begin a trigram
    columns = zip(trigrams.exist.T, trigrams.parts.T, tiles.T, strict=True)
    for exists, part, tile in columns:
        tile[:] = exists & (part >= next_part)
        next_part = np.where(tile, part + TRIGRAM, next_part)
    return tiles


def _chosen(tokens: RowTokens, trigrams: _Trigrams, counts_left: Int64, free: Int64) -> Mask:
    """Return the first positions of the trigrams to shuffle, bool ``(rows, length)``."""
    rows, width = trigrams.exist.shape
    order = random_order(tokens.draws, Draw.SHUFFLE_STARTS, trigrams.exist)
    counts, row = trigrams.exist.sum(axis=1), np.arange(rows)
    taken = np.zeros((rows, width + TRIGRAM), bool)  # parts
    starts = np.zeros_like(trigrams.exist)
    counts_left, free = counts_left.copy(), free.copy()
    # One candidate of every row in each turn.
    for turn in range(counts.max(initial=0)):
        start = order[:, turn]
        bounds = trigrams.bounds[row, start]
        length = bounds[:, -1] - bounds[:, 0]
        parts = trigrams.parts[row, start, np.newaxis] + np.arange(TRIGRAM)
        fits = (turn < counts) & (counts_left > 0) & (length <= free)
        fits &= ~taken[row[:, np.newaxis], parts].any(axis=1)
        taken[row[:, np.newaxis], parts] |= fits[:, np.newaxis]
        starts[row, start] |= fits
        counts_left -= fits
        free -= length * fits
        if not ((counts_left > 0) & (free >= TRIGRAM)).any():
            break
    return starts
