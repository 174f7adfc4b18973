"""The decisions of deduplication: removed pages and text, in the order of the pages.

The decisions about a cleaned file are a file of the same name, so tasks write and read them
independently of each other, and a task that filters some pages reads the row groups of these only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def decisions_of(older_pages: NDArray[Any], units: NDArray[Any]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `tables.DECISIONS` about one cleaned file, or a part of it.

    Args:
        older_pages: pages that are not the newest of their URL, dtype `duplicates.REMOVAL_ROW`.
        units: removed units of text, same dtype.
    """
    ordered = units[np.lexsort((units["start"], units["line"], units["row"]))]
    rows = np.union1d(older_pages["row"], ordered["row"])
    # The positions of row i are those from bounds[i] to bounds[i + 1].
    bounds = np.append(np.searchsorted(ordered["row"], rows), len(ordered))
    positions = _positions(ordered)
    is_older = np.isin(rows, older_pages["row"])
    # A column of all positions could exceed the 2 GB that Arrow can address in one array.
    for begin in range(0, len(rows), tables.BATCH_PAGES):
        end = min(begin + tables.BATCH_PAGES, len(rows))
        removed_text = [positions[bounds[i] : bounds[i + 1]].tobytes() for i in range(begin, end)]
        yield pa.record_batch(
            [
                pa.array(rows[begin:end], pa.uint32()),
                pa.array(is_older[begin:end], pa.bool_()),
                pa.array(removed_text, pa.binary()),
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


def write_decisions(
    output: Path, shard: Sequence[Any], counts: Mapping[str, int], batches: Iterable[pa.RecordBatch]
) -> Counter[str]:
    """Write the decisions about one cleaned file; return all counters of it.

    Args:
        output: file to write.
        shard: name and number of pages of the cleaned file.
        counts: compared units of the file.
        batches: rows of `tables.DECISIONS`, ordered, in batches of any size.
    """
    total = zero_counts()
    total.update(counts)

    def counted() -> Iterator[tuple[pa.RecordBatch, list[int]]]:
        for batch in batches:
            total.update(counts_of(batch))
            yield batch, pc.binary_length(batch.column("places")).to_pylist()

    with tables.atomic_writer(
        output, tables.DECISIONS, lambda: {tables.COUNTS_KEY: total, tables.SHARD_KEY: shard}
    ) as writer:
        # Row groups of the size of the cleaned file's let a reader of some pages skip the others.
        for group in tables.row_groups(counted()):
            writer.write_table(group)
    return total


class Removals:
    """Reads the decisions about a cleaned file in the order of its pages.

    Args:
        path: the decisions.
        first_row: row of the first page to be queried.

    Raises:
        ArtifactError: the decisions are missing or damaged.
    """

    def __init__(self, path: Path, first_row: int = 0) -> None:
        parquet = tables.open_parquet(path, tables.DECISIONS)
        groups = tables.groups_from(parquet, "row", first_row)
        rows = self._read(tables.read_batches(parquet, path, groups=groups))
        self._rows = dropwhile(lambda row: row[0] < first_row, rows)
        self._next = next(self._rows, None)

    def of(self, row: int) -> tuple[bool, NDArray[Any]] | None:
        """Return whether a page is an older copy and the positions of its duplicate text.

        Pages must be queried in order. A page without removals gives None.
        """
        # The decisions are sorted, so one row of look-ahead replaces an index in memory.
        if self._next is None or self._next[0] != row:
            return None
        _, duplicate, positions = self._next
        self._next = next(self._rows, None)
        return duplicate, np.frombuffer(positions, dtype=tables.POSITION)

    @staticmethod
    def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bool, bytes]]:
        for batch in batches:
            yield from zip(*batch.to_pydict().values(), strict=True)


def read_counts(folder: Path, shards: Sequence[Path]) -> Counter[str]:
    """Return the counters of deduplication, if it compared the cleaned files `shards`.

    Raises:
        ArtifactError: it compared other files, or its decisions are missing or damaged.
    """
    counts = zero_counts()
    compared = {}
    for path in sorted(folder.glob("*.parquet")):
        decisions = tables.open_parquet(path, tables.DECISIONS)
        counts.update(tables.metadata_of(decisions, tables.COUNTS_KEY, path))
        name, pages = tables.metadata_of(decisions, tables.SHARD_KEY, path)
        compared[name] = pages
    # Decisions address pages by row number: applied to another file they would remove other text.
    actual = dict(map(tables.name_and_pages, shards))
    if compared != actual:
        names = sorted(compared.keys() | actual.keys())
        name = next(name for name in names if compared.get(name) != actual.get(name))
        raise ArtifactError(
            f"{folder} was made for the cleaned file {name} with {compared.get(name, 'no')} pages, "
            f"but it has {actual.get(name, 'none')} here; rerun c4_dedup"
        )
    return counts
