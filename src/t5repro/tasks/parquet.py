"""Parquet files of rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.tasks.lines import invalid_data, open_task_file

CURE = "write the file again, or correct the description of the task under tasks.own"


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns of a file.

    Raises:
        TaskDataError: it is missing or not Parquet.
    """
    with open_task_file(path) as handle:
        return list(_opened(handle, path).schema_arrow.names)


def parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and values of each row of a file; a missing value is None or NaN.

    Args:
        path: the file.
        columns: columns to read.

    Raises:
        TaskDataError: the file is missing, not Parquet, or lacks a column.
    """
    with open_task_file(path) as handle:
        file = _opened(handle, path)
        names = list(file.schema_arrow.names)
        if missing := [name for name in columns if name not in names]:
            allowed = f"a file with the columns {list(columns)} (missing: {missing})"
            raise invalid_data(str(path), "found the columns", names, allowed, CURE)
        for number, row in _numbered(file, columns, path):
            yield f"{path} row {number}", row


def _numbered(
    file: pq.ParquetFile, columns: Sequence[str], path: Path
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and values of each row; a fault is located by the rows read before it."""
    number = 0
    try:
        for batch in file.iter_batches(columns=list(columns)):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _damaged(error, f"{path} after row {number}") from error


def _opened(handle: Any, path: Path) -> Any:
    try:
        return pq.ParquetFile(handle, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(error, str(path)) from error


def _damaged(error: Exception, location: str) -> Exception:
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    return invalid_data(location, "cannot be read:", first_line, "Parquet", CURE)
