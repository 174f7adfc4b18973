"""Random numbers of a row, whatever batch it is in.

`tf.random.stateless_uniform` has one seed for a whole tensor; a row that must be drawn alike in
another epoch (`masked_lm.copies`) needs a stream of its own. This is the same generator, Philox
4x32-10, with the number of the row and its epoch in the counter. Only integer operations, so
every machine draws the same bits.

Source: Salmon et al., 2011, section 4.3, and the constants of Random123.
"""

from dataclasses import dataclass
from enum import IntEnum

import tensorflow as tf

from t5repro.randomness import seed_pair

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
WORD_BITS = 32
WORDS = 1 << WORD_BITS
LOW_WORD = WORDS - 1
USES = 1 << 8  # of the second word of the counter; the rest counts 2^32 rows


class Draw(IntEnum):
    """Uses of random numbers in a row; a number names its stream."""

    SPLIT = 0
    PAIR = 1
    OTHER_DOCUMENT = 2
    OTHER_SENTENCE = 3
    FRONT_OF_FIRST = 4
    FRONT_OF_SECOND = 5
    BUDGET = 6
    POSITIONS = 7
    UNIT_LENGTHS = 8
    REPLACEMENT = 9
    RANDOM_PIECES = 10


# Traced once: a batch encrypts a dozen times, and each graph would repeat the ten rounds.
@tf.function(
    autograph=False,
    input_signature=[tf.TensorSpec([4, None, None], tf.uint64), tf.TensorSpec([2], tf.uint64)],
)
def philox(counter: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Encrypt counters of four words.

    Args:
        counter: the words, below 2^32, uint64 ``(4, rows, blocks)``.
        key: two words, uint64.

    Returns:
        Four words for each counter, below 2^32, uint64 ``(4, rows, blocks)``.
    """
    xor, low_word = tf.bitwise.bitwise_xor, tf.constant(LOW_WORD, tf.uint64)
    bits = tf.constant(WORD_BITS, tf.uint64)
    # Word by word with scalars: TensorFlow multiplies broadcast tensors at half the speed.
    multipliers = [tf.constant(value, tf.uint64) for value in MULTIPLIERS]
    # Philox 4x32: each round multiplies two words, crosses the halves of the products and adds the
    # key of the round with XOR.
    first, second, third, fourth = tf.unstack(counter)
    for number in range(ROUNDS):
        steps = tf.constant([number * step & LOW_WORD for step in KEY_STEPS], tf.uint64)
        keys = tf.unstack(tf.bitwise.bitwise_and(key + steps, low_word))
        first_product, third_product = first * multipliers[0], third * multipliers[1]
        first = xor(xor(tf.bitwise.right_shift(third_product, bits), second), keys[0])
        third = xor(xor(tf.bitwise.right_shift(first_product, bits), fourth), keys[1])
        second = tf.bitwise.bitwise_and(third_product, low_word)
        fourth = tf.bitwise.bitwise_and(first_product, low_word)
    return tf.stack([first, second, third, fourth])


@dataclass(frozen=True)
class RowDraws:
    """Random numbers of the rows of a batch.

    Attributes:
        seed: the run's seed.
        row: row of the layout, int64 ``(rows,)``.
        epoch: epoch, or number of the copy, int64 ``(rows,)``.
    """

    seed: int
    row: tf.Tensor
    epoch: tf.Tensor

    def words(self, use: Draw, count: int | tf.Tensor) -> tf.Tensor:
        """Return words of 32 random bits as uint64 ``(rows, count)``."""
        blocks = (count + 3) // 4
        number = tf.cast(tf.range(blocks), tf.int64)[tf.newaxis]
        row, epoch = self.row[:, tf.newaxis], self.epoch[:, tf.newaxis]
        # Number of the block, use with the high bits of the row, low word of the row, epoch.
        counter = [
            tf.cast(counter_word + tf.zeros_like(row + number), tf.uint64)
            for counter_word in (number, int(use) + (row // WORDS) * USES, row % WORDS, epoch)
        ]
        key = tf.constant(seed_pair(self.seed, "pretrain", "masked_rows"), tf.uint64)
        words = tf.transpose(philox(tf.stack(counter), key), [1, 2, 0])
        return tf.reshape(words, [tf.shape(row)[0], 4 * blocks])[:, :count]

    def uniform(self, use: Draw, count: int | tf.Tensor) -> tf.Tensor:
        """Return numbers in [0, 1) with 32 bits, float64 ``(rows, count)``."""
        return tf.cast(self.words(use, count), tf.float64) * 2.0**-WORD_BITS

    def below(self, use: Draw, bounds: tf.Tensor) -> tf.Tensor:
        """Return an integer from 0 to ``bound - 1`` for each row, int64 ``(rows,)``.

        Args:
            use: of the random numbers.
            bounds: int64 ``(rows,)``; a bound of 0 gives 0.
        """
        # Two words: 32 bits would favour some of a billion documents by a quarter.
        words = tf.cast(self.words(use, 2), tf.float64)
        share = (words[:, 0] + words[:, 1] * 2.0**-WORD_BITS) * 2.0**-WORD_BITS
        index = tf.cast(share * tf.cast(bounds, tf.float64), tf.int64)
        return tf.maximum(tf.minimum(index, bounds - 1), 0)  # rounding can reach the bound

    def heads(self, use: Draw, tosses: tf.Tensor) -> tf.Tensor:
        """Return how many of `tosses` fair coins show heads, int64 ``(rows,)``.

        Args:
            use: of the random numbers.
            tosses: int64 ``(rows,)``.
        """
        word_count = tf.cast((tf.reduce_max(tosses) + WORD_BITS - 1) // WORD_BITS, tf.int32)
        bits = tf.cast(self.words(use, word_count), tf.int64)
        # A word has 32 coins; of the last one of a row only some are tossed.
        tossed = tosses[:, tf.newaxis] - tf.cast(tf.range(word_count) * WORD_BITS, tf.int64)
        tossed = tf.clip_by_value(tossed, 0, WORD_BITS)
        tossed_bits = tf.bitwise.bitwise_and(
            bits, tf.bitwise.left_shift(tf.ones_like(tossed), tossed) - 1
        )
        counts = tf.raw_ops.PopulationCount(x=tossed_bits)
        return tf.reduce_sum(tf.cast(counts, tf.int64), axis=1)
