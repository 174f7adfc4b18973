"""Find the n-grams of evaluated fields in documents: exact, in memory that the fields decide.

The n-grams of the fields are an index, and the documents go through it. A 64-bit hash finds
candidates, a table of bits passes most windows over before the look-up, and the units themselves
decide: a hash is never a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Array, Int64
from t5repro.contamination.texts import Documents

BASE = 0x9E3779B97F4A7C15  # odd, so that powers never vanish
MIX = 0xD6E8FEB86659FD93
HASH_BITS = 64
TABLE_BITS_PER_NGRAM = 5  # the table has 2^5 to 2^6 places for each n-gram
MOST_TABLE_BITS = 26


class Hits(NamedTuple):
    """Places that fields and documents have in common, one entry for each pair of places.

    Attributes:
        document: index of the document in its batch.
        position: first unit in the batch.
        field: number of the field.
        start: first unit in the field.
        length: number of units.
    """

    document: Int64
    position: Int64
    field: Int64
    start: Int64
    length: Int64


@dataclass(frozen=True)
class _Table:
    """The n-grams of one length: sorted hashes, and the places of each in the fields."""

    length: int
    hashes: Array
    firsts: Int64  # of each hash in `positions`, and the end
    positions: Int64
    shift: np.uint64
    is_possible: Array

    @classmethod
    def of(cls, units: Array, positions: Int64, length: int, hash_bits: int) -> "_Table":
        all_hashes = _hashes(units, length, hash_bits)[positions]
        order = np.argsort(all_hashes, kind="stable")
        hashes, firsts = np.unique(all_hashes[order], return_index=True)
        bits = min(len(hashes).bit_length() + TABLE_BITS_PER_NGRAM, MOST_TABLE_BITS, hash_bits)
        shift = np.uint64(hash_bits - bits)
        is_possible = np.zeros(1 << bits, np.bool_)
        is_possible[hashes >> shift] = True
        ends = np.append(firsts, len(positions))
        return cls(length, hashes, ends, positions[order], shift, is_possible)

    def candidates(self, hashes: Array) -> tuple[Int64, Int64]:
        """Return windows and places in the fields with equal hashes."""
        windows = np.flatnonzero(self.is_possible[hashes >> self.shift])
        indices = np.searchsorted(self.hashes, hashes[windows])
        indices[indices == len(self.hashes)] = 0
        is_equal = self.hashes[indices] == hashes[windows]
        windows, indices = windows[is_equal], indices[is_equal]
        counts = self.firsts[indices + 1] - self.firsts[indices]
        # A window has as many entries as the fields have places with its hash.
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = self.positions[np.repeat(self.firsts[indices], counts) + within]
        return np.repeat(windows, counts), positions


class NgramIndex:
    """The n-grams of fields.

    Args:
        fields: units of each field.
        seed: units of an n-gram.
        shortest: a field of fewer units than `seed`, and of as many as this, is one n-gram.
        hash_bits: bits of a hash; fewer give more candidates and the same hits.
    """

    def __init__(
        self, fields: Sequence[Array], seed: int, shortest: int, hash_bits: int = HASH_BITS
    ) -> None:
        self.seed = seed
        self.units = np.concatenate([*fields, np.zeros(0, np.uint32)]).astype(np.uint32)
        self.starts = np.cumsum([0, *map(len, fields)])
        self._hash_bits = hash_bits
        self._tables = [
            _Table.of(self.units, positions, length, hash_bits)
            for length in range(min(shortest, seed), seed + 1)
            if len(positions := self._ngram_positions(length))
        ]

    def _ngram_positions(self, length: int) -> Int64:
        """Return the first units of the n-grams of a length: of whole fields, if it is short."""
        sizes = np.diff(self.starts)
        if length < self.seed:
            counts = (sizes == length).astype(np.int64)
        else:
            counts = np.maximum(sizes - length + 1, 0)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        positions: Int64 = np.repeat(self.starts[:-1], counts) + within
        return positions

    def hits(self, documents: Documents) -> list[Hits]:
        """Return the n-grams that documents have, by length."""
        hits = []
        for table in self._tables:
            hashes = _hashes(documents.units, table.length, self._hash_bits)
            windows, positions = table.candidates(hashes)
            # Documents stand one after another: a window must not cross a border.
            inside = np.searchsorted(documents.starts, windows, side="right") - 1
            keep = windows + table.length <= documents.starts[inside + 1]
            for offset in range(table.length):
                keep[keep] = (
                    documents.units[windows[keep] + offset] == self.units[positions[keep] + offset]
                )
            windows, positions, inside = windows[keep], positions[keep], inside[keep]
            field = np.searchsorted(self.starts, positions, side="right") - 1
            # An empty field starts where the next one does; the last of them has the units.
            lengths = np.full(len(windows), table.length)
            hits.append(Hits(inside, windows, field, positions - self.starts[field], lengths))
        return hits


def _hashes(units: Array, length: int, bits: int) -> Array:
    """Return the hash of each window of a length, by doubling: 13 windows from 8, 4 and 1."""
    if len(units) < length:
        return np.zeros(0, np.uint64)
    power, part = 1, (units.astype(np.uint64) + np.uint64(1)) * np.uint64(MIX)
    part ^= part >> np.uint64(32)
    total, covered = np.zeros(len(units) - length + 1, np.uint64), 0
    while True:
        if length & power:
            ahead = part[covered : covered + len(total)]
            total = total * np.uint64(pow(BASE, power, 1 << 64)) + ahead
            covered += power
        if covered == length:
            break
        part = part[:-power] * np.uint64(pow(BASE, power, 1 << 64)) + part[power:]
        power *= 2
    total ^= total >> np.uint64(32)
    total *= np.uint64(MIX)
    return total >> np.uint64(HASH_BITS - bits)
