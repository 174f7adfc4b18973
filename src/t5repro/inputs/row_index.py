"""From the number of a step to the tokens of its batch, in TensorFlow operations.

Every epoch takes the rows of a layout in another order. The order is a permutation that is
computed only for the rows of the step, so resuming at step n costs no more than starting at step
0, on every host.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from t5repro.inputs.packing import PackedRows, Stream
from t5repro.randomness import seed_pair

SHUFFLE_ROUNDS = 8  # of the cipher behind `shuffle`; TensorFlow's own wrapper takes 4


class StepPieces(NamedTuple):
    """The tokens of a step: pieces of the file of ids, which make segments, which make rows.

    Attributes:
        starts: start of each piece in the file of ids, int64 ``(pieces,)``.
        lengths: tokens of each piece, 0 allowed, ``(pieces,)``.
        segment_lengths: tokens of each segment, ``(segments,)``.
        limits: most tokens of inputs and targets of each segment, int32 ``(segments, 2)``.
        segments_per_row: int32 ``(rows,)``.
    """

    starts: tf.Tensor
    lengths: tf.Tensor
    segment_lengths: tf.Tensor
    limits: tf.Tensor
    segments_per_row: tf.Tensor


Reader = Callable[[tf.Tensor], StepPieces]


def shuffle(index: tf.Tensor, seed: tuple[int, int], epoch: tf.Tensor, count: int) -> tf.Tensor:
    """Return the position of each index in its epoch's permutation of ``0 .. count - 1``.

    Args:
        index: int64 ``(indices,)``.
        seed: two int32.
        epoch: int64 ``(indices,)``.
        count: length of the permutation.
    """
    # A cipher on the numbers below `count` is a permutation that never has to be in memory.
    seeds = tf.stack([tf.fill(tf.shape(epoch), tf.cast(word, tf.int64)) for word in seed], 1)
    return tf.raw_ops.RandomIndexShuffle(
        index=index,
        seed=tf.concat([seeds, epoch[:, tf.newaxis]], axis=1),
        max_index=tf.constant(count - 1, tf.int64),
        rounds=SHUFFLE_ROUNDS,
    )


def shuffled_rows(number: tf.Tensor, rows: int, seed: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the row of the layout for each row of the run, and its epoch.

    Args:
        number: rows counted from the start of the run, int64.
        rows: rows of an epoch.
        seed: the run's seed.
    """
    epoch = number // rows
    return shuffle(number % rows, seed_pair(seed, "pretrain", "rows"), epoch, rows), epoch


def phases(epoch: tf.Tensor, phase_range: int, seed: int) -> tf.Tensor:
    """Return the token of the stream at which each epoch begins, 0 to `phase_range`, int64."""
    # Also a permutation: no phase repeats before every other was taken.
    count = phase_range + 1
    return shuffle(epoch % count, seed_pair(seed, "pretrain", "phase"), epoch // count, count)


def _row_numbers(step: tf.Tensor, batch_size: int) -> tf.Tensor:
    return step * batch_size + tf.range(batch_size, dtype=tf.int64)


def stream_reader(
    layout: Stream, batch_size: int, max_lengths: tuple[int, int], seed: int
) -> Reader:
    """Return the function from a step to the pieces of documents in its segments.

    Args:
        layout: the stream.
        batch_size: rows of a batch; each is one segment.
        max_lengths: tokens of a row of inputs and of targets.
        seed: the run's seed.
    """
    starts, end_offsets = tf.constant(layout.starts), tf.constant(layout.end_offsets)
    tokens = layout.segment_tokens
    limits = tf.constant([max_lengths] * batch_size, tf.int32)

    def read(step: tf.Tensor) -> StepPieces:
        row, epoch = shuffled_rows(_row_numbers(step, batch_size), layout.segments, seed)
        first = row * tokens + phases(epoch, layout.phase_range, seed)
        # A segment runs over all documents between the one with its first token and the one with
        # its last. End offsets are exclusive, hence side="right".
        first_document = tf.searchsorted(end_offsets, first, side="right", out_type=tf.int64)
        last_document = tf.searchsorted(
            end_offsets, first + tokens - 1, side="right", out_type=tf.int64
        )
        documents_by_row = tf.ragged.range(first_document, last_document + 1)
        document, piece_row = documents_by_row.flat_values, documents_by_row.value_rowids()
        begin = tf.where(document > 0, tf.gather(end_offsets, tf.maximum(document - 1, 0)), 0)
        # The intersection of document and segment, in the stream, then in the file of ids.
        low = tf.maximum(begin, tf.gather(first, piece_row))
        high = tf.minimum(tf.gather(end_offsets, document), tf.gather(first, piece_row) + tokens)
        return StepPieces(
            starts=tf.gather(starts, document) + low - begin,
            lengths=high - low,
            segment_lengths=tf.fill([batch_size], tokens),
            limits=limits,
            segments_per_row=tf.ones([batch_size], tf.int32),
        )

    return read


def packed_reader(layout: PackedRows, batch_size: int, seed: int) -> Reader:
    """Return the function from a step to the segments of its rows; a segment is one piece."""
    starts, lengths = tf.constant(layout.starts), tf.constant(layout.lengths)
    limits, splits = tf.constant(layout.limits), tf.constant(layout.splits)

    def read(step: tf.Tensor) -> StepPieces:
        row, _ = shuffled_rows(_row_numbers(step, batch_size), layout.rows, seed)
        segments_by_row = tf.ragged.range(tf.gather(splits, row), tf.gather(splits, row + 1))
        segment = segments_by_row.flat_values  # in the order of the rows
        tokens = tf.gather(lengths, segment)
        counts = tf.cast(segments_by_row.row_lengths(), tf.int32)
        return StepPieces(
            starts=tf.gather(starts, segment),
            lengths=tokens,
            segment_lengths=tokens,
            limits=tf.gather(limits, segment),
            segments_per_row=tf.ensure_shape(counts, [batch_size]),
        )

    return read
