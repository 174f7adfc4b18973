"""The decisions of deduplication: removed pages and text, in the order of the pages."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import dropwhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.reasons import DUPLICATE_URL
from t5repro.errors import ArtifactError


def decisions_of(shard: int, older_pages: NDArray[Any], units: NDArray[Any]) -> pa.RecordBatch:
    """Return the rows of `tables.DECISIONS` of one shard.

    Args:
        shard: number of the cleaned file.
        older_pages: pages that are not the newest of their URL, dtype `duplicates.REMOVAL_ROW`.
        units: removed units of text, same dtype.
    """
    ordered = units[np.lexsort((units["start"], units["line"], units["row"]))]
    numbers, starts = np.unique(ordered["row"], return_index=True)
    parts = np.split(_positions(ordered), starts[1:]) if len(starts) else ()
    positions = {
        number: part.tobytes() for number, part in zip(numbers.tolist(), parts, strict=True)
    }
    duplicates = set(older_pages["row"].tolist())
    rows = sorted(duplicates | positions.keys())
    return pa.record_batch(
        [
            pa.array([shard] * len(rows), pa.uint32()),
            pa.array(rows, pa.uint32()),
            pa.array([row in duplicates for row in rows], pa.bool_()),
            pa.array([positions.get(row, b"") for row in rows], pa.binary()),
        ],
        schema=tables.DECISIONS,
    )


def _positions(rows: NDArray[Any]) -> NDArray[Any]:
    positions = np.empty(len(rows), dtype=tables.POSITION)
    for name in tables.POSITION.names or ():
        positions[name] = rows[name]
    return positions


def zero_counts() -> Counter[str]:
    """Return the counters of deduplication at zero."""
    counts = Counter(units=0, removed_units=0, pages_with_removed_units=0)
    counts[DUPLICATE_URL] = 0
    return counts


def counts_of(decisions: pa.RecordBatch) -> dict[str, int]:
    """Return the numbers of pages and units of text that decisions remove."""
    removed = pc.binary_length(decisions.column("places")).to_numpy() // tables.POSITION.itemsize
    return {
        DUPLICATE_URL: pc.sum(decisions.column("duplicate_url")).as_py() or 0,
        "removed_units": int(removed.sum()),
        "pages_with_removed_units": int((removed > 0).sum()),
    }


def decisions_writer(
    output: Path, counts: Mapping[str, int], shards: Sequence[Sequence[Any]]
) -> AbstractContextManager[Any]:
    """Return a writer of rows of `tables.DECISIONS`, one row group per shard.

    Args:
        output: file to write.
        counts: counters for the file's metadata, read when the writer closes.
        shards: name and number of pages of each cleaned file, ordered.
    """
    return tables.atomic_writer(
        output, tables.DECISIONS, lambda: {tables.COUNTS_KEY: counts, tables.SHARDS_KEY: shards}
    )


class Removals:
    """Reads the decisions in the order of the pages.

    Args:
        path: the decisions.
        begin: shard and row of the first page to be queried.

    Raises:
        ArtifactError: the decisions are missing or damaged.
    """

    def __init__(self, path: Path, begin: tuple[int, int] = (0, 0)) -> None:
        parquet = tables.open_parquet(path, tables.DECISIONS)
        self.counts: dict[str, int] = tables.metadata_of(parquet, tables.COUNTS_KEY, path)
        groups = tables.groups_from(parquet, "shard", begin[0])
        rows = self._read(tables.read_batches(parquet, path, groups=groups))
        self._rows = dropwhile(lambda row: row[0] < begin, rows)
        self._next = next(self._rows, None)

    def of(self, shard: int, row: int) -> tuple[bool, NDArray[Any]] | None:
        """Return whether a page is an older copy and the positions of its duplicate text.

        Pages must be queried in order. A page without removals gives None.
        """
        if self._next is None or self._next[0] != (shard, row):
            return None
        _, duplicate, positions = self._next
        self._next = next(self._rows, None)
        return duplicate, np.frombuffer(positions, dtype=tables.POSITION)

    @staticmethod
    def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[int, int], bool, bytes]]:
        for batch in batches:
            for shard, row, duplicate, positions in zip(*batch.to_pydict().values(), strict=True):
                yield (shard, row), duplicate, positions


def check_shards(path: Path, shards: Sequence[Path]) -> None:
    """Check that decisions were made for the cleaned files `shards`, which are ordered.

    Raises:
        ArtifactError: they were made for other files, or are missing or damaged.
    """
    decisions = tables.open_parquet(path, tables.DECISIONS)
    expected = tables.metadata_of(decisions, tables.SHARDS_KEY, path)
    actual = tables.shard_list(shards)
    if expected != actual:
        raise ArtifactError(
            f"{path} was made for the cleaned files and pages {expected}, not {actual}; "
            "rerun c4_dedup"
        )
