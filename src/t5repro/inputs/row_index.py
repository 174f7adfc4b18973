"""From a step's number to the tokens of its batch, in TensorFlow operations.

Every epoch of a layout takes the rows in another order. The order is a permutation that is computed
for the rows asked for alone, so starting at step n costs what starting at 0 costs, on every host.
"""

from typing import Any

import tensorflow as tf

from t5repro.inputs.packing import PackedRows, Stream
from t5repro.randomness import seed_pair

SHUFFLE_ROUNDS = 8  # of the cipher behind `shuffle`; TensorFlow's own wrapper takes 4


def shuffle(index: tf.Tensor, seed: tuple[int, int], epoch: tf.Tensor, count: int) -> tf.Tensor:
    """Return where each index goes in its epoch's permutation of ``0 .. count - 1``.

    Computed for the indices asked for alone, so that no permutation is ever held.

    Args:
        index: int64 ``(indices,)``.
        seed: two int32.
        epoch: int64 ``(indices,)``.
        count: length of the permutation.
    """
    seeds = tf.stack([tf.fill(tf.shape(epoch), tf.cast(part, tf.int64)) for part in seed], 1)
    return tf.raw_ops.RandomIndexShuffle(
        index=index,
        seed=tf.concat([seeds, epoch[:, tf.newaxis]], axis=1),
        max_index=tf.constant(count - 1, tf.int64),
        rounds=SHUFFLE_ROUNDS,
    )


def shuffled_rows(number: tf.Tensor, rows: int, seed: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return which row of the layout each row of the run is, and in which epoch.

    Args:
        number: rows counted from the start of the run, int64.
        rows: rows of an epoch.
        seed: the run's seed.
    """
    epoch = number // rows
    return shuffle(number % rows, seed_pair(seed, "pretrain", "rows"), epoch, rows), epoch


def phases(epoch: tf.Tensor, slack: int, seed: int) -> tf.Tensor:
    """Return at which token of the stream each epoch begins, from 0 to `slack`, int64."""
    turn = slack + 1
    return shuffle(epoch % turn, seed_pair(seed, "pretrain", "phase"), epoch // turn, turn)


def _numbers(step: tf.Tensor, batch_rows: int) -> tf.Tensor:
    return step * batch_rows + tf.range(batch_rows, dtype=tf.int64)


def stream_reader(layout: Stream, batch_rows: int, room: tuple[int, int], seed: int) -> Any:
    """Return the function from a step to the pieces of documents that its segments consist of."""
    starts, ends = tf.constant(layout.starts), tf.constant(layout.ends)
    tokens = layout.segment_tokens
    limits = tf.constant([room] * batch_rows, tf.int32)

    def read(step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        row, epoch = shuffled_rows(_numbers(step, batch_rows), layout.segments, seed)
        first = row * tokens + phases(epoch, layout.slack, seed)
        document = tf.searchsorted(ends, first, side="right", out_type=tf.int64)
        last = tf.searchsorted(ends, first + tokens - 1, side="right", out_type=tf.int64)
        pieces = tf.ragged.range(document, last + 1)
        owner = pieces.value_rowids()
        documents = pieces.flat_values
        begins = tf.where(documents > 0, tf.gather(ends, tf.maximum(documents - 1, 0)), 0)
        low = tf.maximum(begins, tf.gather(first, owner))
        high = tf.minimum(tf.gather(ends, documents), tf.gather(first, owner) + tokens)
        place = tf.gather(starts, documents) + low - begins
        lengths = tf.fill([batch_rows], tokens)
        return place, high - low, lengths, limits, tf.ones([batch_rows], tf.int32)

    return read


def packed_reader(layout: PackedRows, batch_rows: int, seed: int) -> Any:
    """Return the function from a step to the segments of its rows."""
    starts, lengths = tf.constant(layout.starts), tf.constant(layout.lengths)
    limits, splits = tf.constant(layout.limits), tf.constant(layout.splits)

    def read(step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        row, _ = shuffled_rows(_numbers(step, batch_rows), layout.rows, seed)
        chosen = tf.ragged.range(tf.gather(splits, row), tf.gather(splits, row + 1))
        segment = chosen.flat_values
        tokens = tf.gather(lengths, segment)
        counts = tf.ensure_shape(tf.cast(chosen.row_lengths(), tf.int32), [batch_rows])
        return tf.gather(starts, segment), tokens, tokens, tf.gather(limits, segment), counts

    return read
