"""Spark frames made by kernels: over numbers of tasks, over rows, over files to hash."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from t5repro.c4.spark.rows import (
    NOTES,
    Batches,
    Context,
    Kernel,
    ddl,
    guarded,
    note_batch,
    numbers_in,
)
from t5repro.c4.spark.session import notes_of
from t5repro.files import describe_file

ROWS_IN_PARTITION = 2_000_000
TASKS_PER_CORE = 2
MOST_TASKS = 8192  # of one step: shuffles have this many squared parts


def over(spark: Any, count: int, kernel: Kernel, schema: pa.Schema, context: Context) -> Any:
    """Return the frame that a kernel makes of the numbers up to `count`, a task for each or few."""
    tasks = min(max(count, 1), MOST_TASKS)
    return mapped(spark.range(0, count, 1, tasks), kernel, schema, context)


def mapped(frame: Any, kernel: Kernel, schema: pa.Schema, context: Context) -> Any:
    """Return the frame that a kernel makes of another, with columns `schema`."""
    return frame.mapInArrow(guarded(kernel, schema, context), ddl(schema))


def partitions_for(spark: Any, asked: int, rows: int) -> int:
    """Return how many tasks sort so many rows."""
    least = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return asked or min(max(least, -(-rows // ROWS_IN_PARTITION)), MOST_TASKS)


@contextlib.contextmanager
def big_batches(spark: Any) -> Iterator[None]:
    """Move rows of numbers in larger batches than pages."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "65536")
    try:
        yield
    finally:
        spark.conf.set(name, before)


def hashed(spark: Any, paths: Sequence[Path], context: Context) -> list[Mapping[str, Any]]:
    """Return what a manifest says of files, which the workers read for it."""
    kernel = partial(_describe, paths=paths)
    notes = notes_of(over(spark, len(paths), kernel, NOTES, context), "hashes")
    found = {note["number"]: note["described"] for note in notes}
    return [found[number] for number in range(len(paths))]


def _describe(batches: Batches, paths: Sequence[Path]) -> Batches:
    for number in numbers_in(batches):
        described = describe_file(paths[number])
        yield note_batch(NOTES, {"number": number, "described": described})
