"""Parquet files of rows."""

import math
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
    """Yield location and values of each row of a file; a missing value is None.

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
        number = 0
        for batch in file.iter_batches(columns=list(columns)):
            for row in batch.to_pylist():
                number += 1
                yield f"{path} row {number}", {name: _value(value) for name, value in row.items()}


def _opened(handle: Any, path: Path) -> Any:
    try:
        return pq.ParquetFile(handle)
    except pa.ArrowInvalid as error:
        first_line = str(error).splitlines()[0]
        raise invalid_data(str(path), "cannot be read:", first_line, "Parquet", CURE) from error


def _value(value: Any) -> Any:
    """Return a value; None for a number that is none, as pandas writes a missing one."""
    return None if isinstance(value, float) and math.isnan(value) else value
