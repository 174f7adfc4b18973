"""Positions that XLNet predicts, and the order in which it predicts them.

Each half of a row is drawn on its own: spans of pieces are selected, and the positions of the half
get a random order. A selected position sees the positions of its half that are not selected, the
selected ones that are earlier in the order, and all of the half before. Selected separators are not
predicted.

Source: Yang et al., 2019, section 2.3; XLNet ``_sample_mask``, ``_local_perm`` and ``create_data``
of ``data_utils``.
"""

from typing import NamedTuple

import numpy as np

from t5repro.array_types import Float64, Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.vocab.special_ids import PAD_ID


class Prediction(NamedTuple):
    """The predicted positions of rows and their order.

    Attributes:
        order: of each position, see `model.two_stream_stack`; int32 ``(rows, length)``.
        positions: those to predict, ascending, then 0, int32 ``(rows, targets_length)``.
        targets: ids at these positions, then 0, int32 ``(rows, targets_length)``.
        selected: positions of the spans, separators included, bool ``(rows, length)``.
    """

    order: Int32
    positions: Int32
    targets: Int32
    selected: Mask


def predictions(
    settings: PretrainSettings,
    ids: Int32,
    separators: Mask,
    backwards: Mask,
    draws: RowDraws,
    *,
    word_starts: Mask,
) -> Prediction:
    """Return what is predicted of rows, and in which order.

    Args:
        settings: of pre-training.
        ids: of the rows, without padding, int32 ``(rows, length)``.
        separators: positions of `[SEP]` and `[CLS]`, bool ``(rows, length)``.
        backwards: rows of reversed text, bool ``(rows,)``.
        draws: random numbers of the rows.
        word_starts: whether the piece of each id of the vocabulary begins a word; ids from its
            length on are special pieces, which do.
    """
    rows, length = ids.shape
    starts = word_starts[np.minimum(ids, len(word_starts) - 1)] | (ids >= len(word_starts))
    options = settings.permutation_lm
    first = options.reuse_length(settings.inputs_length)
    # The larger half of an odd number of targets is in the first part.
    later_goal = settings.targets_length // 2
    goals = (settings.targets_length - later_goal, later_goal)
    spans = [draws.uniform(use, sum(goals)) for use in (Draw.UNIT_LENGTHS, Draw.POSITIONS)]
    filling, ordering = (draws.words(use, length) for use in (Draw.FILLING, Draw.ORDER))
    selected = np.zeros((rows, length), bool)
    order = np.zeros((rows, length), np.int32)
    parts = (slice(0, first), slice(first, length))
    for part, goal, of_goals in zip(
        parts, goals, (slice(0, goals[0]), slice(goals[0], None)), strict=True
    ):
        selected[:, part] = selected_spans(
            _turned(starts[:, part], backwards),
            goal,
            lengths=spans[0][:, of_goals],
            places=spans[1][:, of_goals],
            filling=filling[:, part],
            longest=options.longest_span,
            context=options.span_context,
        )
        selected[:, part] = _turned(selected[:, part], backwards)
        order[:, part] = block_order(
            selected[:, part] | separators[:, part], ordering[:, part], blocks=options.order_blocks
        )
    # All numbers of the second part are greater: it sees the first, and the first never sees it.
    order[:, parts[1]] += first + 1
    is_target = selected & ~separators
    is_filled = np.arange(settings.targets_length) < is_target.sum(axis=1)[:, np.newaxis]
    positions = np.zeros((rows, settings.targets_length), np.int32)
    targets = np.full_like(positions, PAD_ID)
    positions[is_filled] = np.nonzero(is_target)[1]
    targets[is_filled] = ids[is_target]
    return Prediction(order, positions, targets, selected)


def _turned(values: Mask, backwards: Mask) -> Mask:
    """Return rows, with reversed text in the order of the text."""
    return np.where(backwards[:, np.newaxis], values[:, ::-1], values)


def selected_spans(
    starts: Mask,
    goal: int,
    *,
    lengths: Float64,
    places: Float64,
    filling: np.ndarray,
    longest: int,
    context: int,
) -> Mask:
    """Select exactly `goal` positions of each row, most of them in spans that begin words.

    A span of n pieces has a context of ``n * context`` pieces, in which its place is uniform; its
    start moves on to the next word. The next span follows the context. What is missing at the end
    of a row are single positions. The released code counts the words of a span at its first piece,
    so that n counts pieces.

    Args:
        starts: whether a position begins a word, bool ``(rows, length)``.
        goal: positions to select, at most as many as there are.
        lengths: uniform numbers for the lengths of spans, ``(rows, goal)``; a length of n has a
            probability in proportion to 1 / n.
        places: uniform numbers for their places, ``(rows, goal)``.
        filling: random words that order the single positions, ``(rows, length)``.
        longest: pieces of the longest span.
        context: pieces of context of each piece of a span.

    Source: XLNet ``_sample_mask``.
    """
    rows, length = starts.shape
    every = np.arange(rows)
    shares = np.cumsum(1 / np.arange(1, longest + 1))
    sizes = 1 + np.searchsorted(shares[:-1] / shares[-1], lengths, side="right")
    # The first word at or after each position; the length of the row if there is none.
    following = np.where(starts, np.arange(length), length)
    following = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]
    following = np.pad(following, ((0, 0), (0, 1)), constant_values=length)
    edges = np.zeros((rows, length + 1), np.int64)
    done = np.zeros(rows, np.int64)
    cursor = np.zeros(rows, np.int64)
    for turn in range(goal):
        size = np.minimum(sizes[:, turn], goal - done)
        room = size * context
        left = (places[:, turn] * room).astype(np.int64)
        begin = following[every, np.minimum(cursor + left, length)]
        # A span that reaches the end of the row ends the search, also for later turns.
        fits = (size > 0) & (begin + size < length)
        cursor = np.where(fits, begin + size + room - left, length)
        taken, firsts = every[fits], begin[fits]
        edges[taken, firsts] += 1
        edges[taken, firsts + size[fits]] -= 1
        done += np.where(fits, size, 0)
        if not fits.any():
            break
    selected = np.cumsum(edges[:, :length], axis=1) > 0
    return selected | _first_of_rest(selected, filling, goal - done)


def _first_of_rest(selected: Mask, filling: np.ndarray, missing: Int64) -> Mask:
    """Return as many positions that are not selected as are missing, in random order."""
    keys = np.where(selected, np.iinfo(np.int64).max, filling.astype(np.int64))
    order = np.argsort(keys, axis=1, kind="stable")
    rest = np.zeros_like(selected)
    is_first = np.arange(selected.shape[1]) < missing[:, np.newaxis]
    np.put_along_axis(rest, order, is_first, axis=1)
    return rest


def block_order(ordered: Mask, ordering: np.ndarray, *, blocks: int) -> Int32:
    """Return 0 at positions without an order, at others their place in it, from 1.

    All blocks have the same order of their positions, and follow each other.

    Args:
        ordered: positions with an order: selected ones and separators, bool ``(rows, length)``.
        ordering: random words, ``(rows, length)``; those of the first block decide.
        blocks: of equal size.

    Source: XLNet ``_local_perm`` with a ``perm_size`` of the size of a block.
    """
    size = ordered.shape[1] // blocks
    order = np.argsort(ordering[:, :size], axis=1, kind="stable")
    places = (np.arange(blocks)[:, np.newaxis] * size + order[:, np.newaxis]).reshape(ordered.shape)
    return np.where(ordered, places + 1, 0).astype(np.int32)
