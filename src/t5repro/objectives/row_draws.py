"""Random numbers of a row of a masked language model, whatever batch it is in.

A row that must be drawn alike in another epoch (`masked_lm.copies`) needs a stream of its own, not
a part of the stream of a batch. The generator is Philox 4x32-10, with the number of the row and its
epoch in the counter.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Float64, Int32, Int64
from t5repro.objectives.philox import philox
from t5repro.randomness import DRAW_BITS, seed_pair

Words = npt.NDArray[np.uint64]

WORD_BITS = 32
WORDS = 1 << WORD_BITS
BLOCK_WORDS = 4
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
    SHUFFLE_STARTS = 11
    SHUFFLE_ORDERS = 12
    SAMPLES = 13
    FILLING = 14
    ORDER = 15


@dataclass(frozen=True)
class RowDraws:
    """Random numbers of the rows of a batch.

    Attributes:
        seed: the run's seed.
        row: row of the layout, int64 ``(rows,)``.
        epoch: epoch, or number of the copy, int64 ``(rows,)``.
    """

    seed: int
    row: Int64
    epoch: Int64

    def words(self, use: Draw, count: int) -> Words:
        """Return words of 32 random bits as uint64 ``(rows, count)``."""
        if count <= BLOCK_WORDS:
            return self._first_blocks[use, :, :count]
        return self._blocks([use], -(-count // BLOCK_WORDS))[0, :, :count]

    @cached_property
    def _first_blocks(self) -> Words:
        """The first block of every use: one call draws most single numbers of a row."""
        return self._blocks(list(Draw), 1)

    def _blocks(self, uses: list[Draw], count: int) -> Words:
        """Return the words of the first `count` blocks, ``(uses, rows, words)``."""
        # Number of the block, use with the high bits of the row, low word of the row, epoch.
        counter = np.empty((4, len(uses), len(self.row), count), np.uint64)
        counter[0] = np.arange(count)
        counter[1] = np.add.outer(uses, self.row // WORDS * USES)[..., np.newaxis]
        counter[2] = (self.row % WORDS)[:, np.newaxis]
        counter[3] = self.epoch[:, np.newaxis]
        words = philox(counter, seed_pair(self.seed, "pretrain", "masked_rows"))
        return np.moveaxis(words, 0, -1).reshape(len(uses), len(self.row), -1)

    def features(self, use: Draw, count: int) -> Int32:
        """Return integers of `DRAW_BITS` bits that a step reads, int32 ``(rows, count)``."""
        return (self.words(use, count) >> (WORD_BITS - DRAW_BITS)).astype(np.int32)

    def uniform(self, use: Draw, count: int) -> Float64:
        """Return numbers in [0, 1) with 32 bits, float64 ``(rows, count)``."""
        return self.words(use, count).astype(np.float64) * 2.0**-WORD_BITS

    def below(self, use: Draw, bounds: Int64) -> Int64:
        """Return an integer from 0 to ``bound - 1`` for each row, int64 ``(rows,)``.

        Args:
            use: of the random numbers.
            bounds: int64 ``(rows,)``; a bound of 0 gives 0.
        """
        # Two words: 32 bits would favour some of a billion documents by a quarter.
        high, low = self.words(use, 2).T * 2.0**-WORD_BITS
        index = ((high + low * 2.0**-WORD_BITS) * bounds).astype(np.int64)
        return np.maximum(np.minimum(index, bounds - 1), 0)  # rounding can reach the bound

    def heads(self, use: Draw, tosses: Int64) -> Int64:
        """Return how many of `tosses` fair coins show heads, int64 ``(rows,)``.

        Args:
            use: of the random numbers.
            tosses: int64 ``(rows,)``.
        """
        word_count = -(-int(tosses.max()) // WORD_BITS)
        # A word has 32 coins; of the last one of a row only some are tossed.
        tossed = tosses[:, np.newaxis] - np.arange(word_count) * WORD_BITS
        tossed = np.clip(tossed, 0, WORD_BITS).astype(np.uint64)
        tossed_bits = self.words(use, word_count) & ((np.uint64(1) << tossed) - np.uint64(1))
        return np.bitwise_count(tossed_bits).sum(axis=1, dtype=np.int64)
