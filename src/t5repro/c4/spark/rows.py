"""Rows between Spark and the kernels: types that both have, notes to the driver, errors.

A kernel is a function from Arrow batches to Arrow batches that runs in `mapInArrow`. Next to its
data every frame has a column ``note``: a row with a note is JSON for the driver or the next step
(counts, samples, an error), and all its other columns are null. Notes come through the same
shuffles as the data, so each arrives once, whatever was lost and done again; accumulators would
count twice. Null is ordered first, so a step that sorts its input gets the notes before the data.
"""

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from t5repro.errors import ClusterError, T5ReproError

NOTE = "note"
NOTES = pa.schema([(NOTE, pa.string())])
# Their versions decide bytes.
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
_SIGN = np.uint64(1 << 63)


class Context(NamedTuple):
    """What tasks need to work as the driver does.

    Attributes:
        folder: where the run's relative paths begin.
        versions: of Python and the packages that decide bytes.
    """

    folder: str
    versions: dict[str, str]


def context_here() -> Context:
    """Return the driver's folder and versions."""
    return Context(os.getcwd(), versions_here())


def versions_here() -> dict[str, str]:
    """Return the versions that must be the same everywhere."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def ddl(schema: pa.Schema) -> str:
    """Return the schema as Spark writes it."""
    return ", ".join(f"`{field.name}` {_SPARK_TYPES[str(field.type)]}" for field in schema)


def plain_schema(schema: pa.Schema, *more: tuple[str, pa.DataType]) -> pa.Schema:
    """Return the schema with `more` columns before and a note behind, in types that Spark has."""
    fields = [*more, *((field.name, _plain(field.type)) for field in schema), (NOTE, pa.string())]
    return pa.schema(fields)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def with_columns(schema: pa.Schema, columns: dict[str, Any]) -> pa.RecordBatch:
    """Return a batch of `schema` from arrays; the note is null."""
    rows = len(next(iter(columns.values())))
    arrays = [
        pa.nulls(rows, field.type) if field.name == NOTE else _cast(columns[field.name], field.type)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def _cast(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array.cast(kind)


def note_batch(schema: pa.Schema, note: Any) -> pa.RecordBatch:
    """Return one row with a note."""
    text = pa.array([json.dumps(note)], pa.string())
    arrays = [text if field.name == NOTE else pa.nulls(1, field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def notes_first(batches: Batches) -> tuple[list[Any], Batches]:
    """Return the notes that a sorted input begins with, and the rows after them."""
    notes: list[Any] = []
    for batch in batches:
        texts = batch.column(NOTE).drop_null().to_pylist()
        notes.extend(json.loads(text) for text in texts)
        if len(texts) < len(batch):
            return notes, _chain(batch.slice(len(texts)), batches)
    return notes, iter(())


def _chain(first: pa.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest


def error_of(notes: Iterable[Any]) -> Any:
    """Return the first note that tells an error; None if none does."""
    return next((note for note in notes if "error" in note), None)


def guarded(kernel: Kernel, schema: pa.Schema, context: Context) -> Kernel:
    """Return a kernel that works in the run's folder and hands errors on as notes.

    An error that a person must cure would be met by every attempt alike: as a note it reaches the
    driver at once and in full, where Spark would try four times and bury it in a trace.
    """

    def run(batches: Batches) -> Batches:
        try:
            _check_worker(context)
            yield from kernel(batches)
        except T5ReproError as error:
            yield note_batch(schema, {"error": [type(error).__name__, str(error)]})
            for _ in batches:
                pass  # Spark wants its rows read

    return run


def _check_worker(context: Context) -> None:
    """Refuse to work with other packages or in another folder than the driver's."""
    host = platform.node()
    mine = versions_here()
    for name, wanted in context.versions.items():
        if mine[name] != wanted:
            raise ClusterError(
                f"worker {host} has {name} {mine[name]}, the driver {wanted}; install the same "
                "locked requirements on both, and name the interpreter in c4.spark.python"
            )
    try:
        os.chdir(context.folder)
    except OSError as error:
        raise ClusterError(
            f"worker {host} does not see the run's folder {context.folder} ({error.strerror}); "
            "put the checkout on storage that driver and workers share under one path"
        ) from error


def numbers_in(batches: Batches) -> Iterator[int]:
    """Yield the numbers of the tasks that `spark.range` made."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def signed(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return unsigned numbers as signed ones in the same order, for Spark has no others."""
    return (values ^ _SIGN).view(np.int64)


def unsigned(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return what `signed` was made of."""
    return values.view(np.uint64) ^ _SIGN


def column(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """Return a column of numbers."""
    found: NDArray[np.int64] = batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def rows_of(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` in its types."""
    return pa.record_batch(
        [batch.column(field.name).cast(field.type) for field in schema], schema=schema
    )


def joined(pieces: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of one schema as one."""
    (batch,) = pa.Table.from_batches(pieces).combine_chunks().to_batches()
    return batch


def runs_of(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each value of a sorted column with its rows."""
    values = column(batch, name)
    inner = np.flatnonzero(values[1:] != values[:-1]) + 1
    ends = [*inner.tolist(), len(values)] if len(values) else []
    begin = 0
    for end in ends:
        yield int(values[begin]), batch.slice(begin, end - begin)
        begin = end
