"""Spark frames computed by kernels: from task numbers, from other frames, and file hashes."""

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
    task_numbers,
)
from t5repro.c4.spark.session import collect_notes
from t5repro.files import describe_file

ROWS_PER_PARTITION = 2_000_000
TASKS_PER_CORE = 2
MAX_TASKS = 8192  # of one step: a shuffle has the square of this number of parts


def from_numbers(
    spark: Any, count: int, kernel: Kernel, schema: pa.Schema, context: Context
) -> Any:
    """Return the frame that a kernel computes from the numbers below `count`.

    Each number is one task, or a few numbers are if there are more than `MAX_TASKS`.
    """
    tasks = min(max(count, 1), MAX_TASKS)
    return map_frame(spark.range(0, count, 1, tasks), kernel, schema, context)


def map_frame(frame: Any, kernel: Kernel, schema: pa.Schema, context: Context) -> Any:
    """Return the frame that a kernel computes from another, columns `schema`."""
    return frame.mapInArrow(guarded(kernel, schema, context), ddl(schema))


def partitions_for(spark: Any, partitions: int, rows: int) -> int:
    """Return the number of tasks that sort `rows` rows: `partitions`, or automatic if it is 0."""
    minimum = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return partitions or min(max(minimum, -(-rows // ROWS_PER_PARTITION)), MAX_TASKS)


@contextlib.contextmanager
def large_batches(spark: Any) -> Iterator[None]:
    """Use larger batches inside the block, for rows of integers instead of pages."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    previous = spark.conf.get(name)
    spark.conf.set(name, "65536")
    try:
        yield
    finally:
        spark.conf.set(name, previous)


def hash_files(spark: Any, paths: Sequence[Path], context: Context) -> list[Mapping[str, Any]]:
    """Return the descriptions of files for a manifest, computed by the workers."""
    kernel = partial(_describe, paths=paths)
    notes = collect_notes(from_numbers(spark, len(paths), kernel, NOTES, context), "hashes")
    descriptions = {note["number"]: note["description"] for note in notes}
    return [descriptions[number] for number in range(len(paths))]


def _describe(batches: Batches, paths: Sequence[Path]) -> Batches:
    for number in task_numbers(batches):
        description = describe_file(paths[number])
        yield note_batch(NOTES, {"number": number, "description": description})
