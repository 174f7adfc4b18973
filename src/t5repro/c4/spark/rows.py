"""Rows between Spark and the kernels: common types, notes to the driver, errors.

A kernel is a function from Arrow batches to Arrow batches that runs in `mapInArrow`. Every frame
has an additional column ``note``. A row with a note contains JSON for the driver or the next step
(counts, samples, an error) and null in all other columns. Notes pass through the same shuffles as
the data, so each arrives exactly once even if tasks are repeated; accumulators would count twice.
Null is sorted first, so a step with sorted input receives the notes before the data.
"""

import itertools
import json
import operator
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from t5repro.data.transfer import TransferError
from t5repro.errors import ClusterError, T5ReproError

NOTE = "note"
NOTES = pa.schema([(NOTE, pa.string())])
# Packages whose versions affect the bytes of the result.
PACKAGES = ("ahocorasick-rs", "langdetect-rs", "nltk", "numpy", "pyarrow", "pydantic")

Batches = Iterator[pa.RecordBatch]
Kernel = Callable[[Batches], Batches]

_SPARK_TYPES = {
    "int64": "bigint",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "bool": "boolean",
}
NO_VALUE = -1
_SIGN = np.uint64(1 << 63)


class Context(NamedTuple):
    """The environment of the driver, which tasks must share.

    Attributes:
        folder: working directory, to which the paths of the run are relative.
        versions: versions of Python and of `PACKAGES`.
    """

    folder: str
    versions: dict[str, str]


def driver_context() -> Context:
    """Return the working directory and the versions of this process."""
    return Context(os.getcwd(), installed_versions())


def installed_versions() -> dict[str, str]:
    """Return the versions that driver and workers must have in common."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "none"
    return versions


def ddl(schema: pa.Schema) -> str:
    """Return the schema in Spark's notation."""
    return ", ".join(f"`{field.name}` {_SPARK_TYPES[str(field.type)]}" for field in schema)


def spark_schema(schema: pa.Schema, *leading: tuple[str, pa.DataType]) -> pa.Schema:
    """Return the schema in types that Spark supports, with leading columns and a final note."""
    columns = ((field.name, _spark_type(field.type)) for field in schema)
    return pa.schema([*leading, *columns, (NOTE, pa.string())])


def _spark_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def with_columns(schema: pa.Schema, columns: dict[str, Any]) -> pa.RecordBatch:
    """Return a batch of `schema` from arrays, with null notes."""
    rows = len(next(iter(columns.values())))
    arrays = [
        pa.nulls(rows, field.type) if field.name == NOTE else _cast(columns[field.name], field.type)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def _cast(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array.cast(kind)


def note_batch(schema: pa.Schema, note: Any, **key: int) -> pa.RecordBatch:
    """Return one row with a note, and null in all other columns but `key`."""
    values = {**key, NOTE: json.dumps(note)}
    arrays = [pa.array([values.get(field.name)], field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def notes_first(batches: Batches) -> tuple[list[Any], Batches]:
    """Return the notes at the start of a sorted input, and the remaining rows."""
    notes: list[Any] = []
    for batch in batches:
        texts = batch.column(NOTE).drop_null().to_pylist()
        notes.extend(json.loads(text) for text in texts)
        if len(texts) < len(batch):
            return notes, _chain(batch.slice(len(texts)), batches)
    return notes, iter(())


def _chain(first: pa.RecordBatch, batches: Batches) -> Batches:
    yield first
    yield from batches


def guarded(kernel: Kernel, schema: pa.Schema, context: Context) -> Kernel:
    """Return a kernel that runs in the driver's environment and returns errors as notes.

    An error that the user must correct occurs in every attempt. As a note it reaches the driver
    immediately and complete, while Spark would repeat the task four times and print a stack trace.
    """

    def run(batches: Batches) -> Batches:
        try:
            _check_worker(context)
            yield from kernel(batches)
        except TransferError:
            raise  # another attempt of the task, on another worker, may succeed
        except T5ReproError as error:
            yield note_batch(schema, {"error": [type(error).__name__, str(error)]})
            for _ in batches:
                pass  # Spark requires that all rows are read

    return run


def _check_worker(context: Context) -> None:
    """Check that the worker has the packages of the driver, and enter the driver's folder."""
    host = platform.node()
    versions = installed_versions()
    for name, expected in context.versions.items():
        if versions[name] != expected:
            raise ClusterError(
                f"worker {host} has {name} {versions[name]}, the driver {expected}; install the "
                "same locked requirements on both, and name the interpreter in c4.spark.python"
            )
    _make_paths_absolute()
    try:
        os.chdir(context.folder)
    except OSError as error:
        raise ClusterError(
            f"worker {host} cannot access the run's folder {context.folder} ({error.strerror}); "
            "put the checkout on storage that driver and workers share under one path"
        ) from error


def _make_paths_absolute() -> None:
    """Let imports find the package after the worker has left its folder.

    Spark puts the archive of the package on the path as ./t5repro.zip. Packages that are imported
    keep that path, and Spark gives the worker other tasks.
    """
    packages = [module for name, module in sys.modules.items() if name.startswith("t5repro")]
    for paths in (sys.path, *(vars(package).get("__path__", []) for package in packages)):
        paths[:] = map(os.path.abspath, paths)


def task_numbers(batches: Batches) -> Iterator[int]:
    """Yield the numbers of the tasks from the rows of `spark.range`."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def signed(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return unsigned integers as signed ones in the same order; Spark has no unsigned types."""
    return (values ^ _SIGN).view(np.int64)


def unsigned(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the inverse of `signed`."""
    return values.view(np.uint64) ^ _SIGN


def column(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """Return a column of integers."""
    values: NDArray[np.int64] = batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def cast_to(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema`, in its types."""
    return pa.record_batch(
        [batch.column(field.name).cast(field.type) for field in schema], schema=schema
    )


def groups_of(batches: Batches, name: str) -> Iterator[tuple[int, list[Any], Batches]]:
    """Yield each distinct value of a column with its notes and its rows.

    Notes without a value, such as errors, are the group of `NO_VALUE`.

    Args:
        batches: rows sorted by the column, the notes of each value before its rows.
        name: the column, integers from 0.
    """
    runs = (run for batch in batches for run in runs_of(batch, name))
    # The rows of a value may arrive in several batches.
    for value, group in itertools.groupby(runs, key=operator.itemgetter(0)):
        notes, rows = notes_first(batch for _, batch in group)
        yield value, notes, rows


def runs_of(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each distinct value of a sorted column, null as `NO_VALUE`, with its rows."""
    values = batch.column(name).fill_null(NO_VALUE).to_numpy(zero_copy_only=False)
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    run_ends = [*changes.tolist(), len(values)] if len(values) else []
    begin = 0
    for end in run_ends:
        yield int(values[begin]), batch.slice(begin, end - begin)
        begin = end
