"""The corpus as flat files of ids: the format between `tokens` and pre-training.

``<split>.ids`` contains the documents one after another, without EOS and without padding;
``<split>.offsets`` contains the start of each document and the end of the last. Both are arrays of
little-endian integers without a header, so that they can be mapped into memory.
"""

from pathlib import Path
from typing import Any

import numpy as np

from t5repro.array_types import Array, Int64
from t5repro.errors import ArtifactError

OFFSET_DTYPE = np.dtype("<i8")
MOST_SHORT_IDS = 1 << 16  # ids that two bytes can number


def split_files(folder: Path, split: str) -> tuple[Path, Path]:
    """Return the paths of the ids and of the offsets of a split."""
    return folder / f"{split}.ids", folder / f"{split}.offsets"


def id_dtype(total_ids: int) -> np.dtype[Any]:
    """Return the type of a stored id: two bytes if they suffice for `total_ids`, else four."""
    return np.dtype("<u2") if total_ids <= MOST_SHORT_IDS else np.dtype("<u4")


def read_ids(path: Path, total_ids: int) -> Array:
    """Map a file of ids into memory.

    Args:
        path: an ``.ids`` file.
        total_ids: ids of the vocabulary that it was written with.

    Raises:
        ArtifactError: it is missing, or its size is not a whole number of ids.
    """
    return _map(path, id_dtype(total_ids))


def read_offsets(path: Path) -> Int64:
    """Map the offsets of the documents into memory.

    Raises:
        ArtifactError: it is missing, damaged, or does not ascend from 0.
    """
    offsets = _map(path, OFFSET_DTYPE)
    if not len(offsets) or offsets[0] != 0 or np.any(offsets[1:] <= offsets[:-1]):
        raise ArtifactError(
            f"{path} does not ascend from 0: it is damaged; delete it and rerun the rule tokens"
        )
    return offsets


def _map(path: Path, dtype: np.dtype[Any]) -> Array:
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the rule tokens")
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise ArtifactError(
            f"{path} has {size} bytes, not a whole number of {dtype.itemsize}-byte values: it is "
            f"damaged or of another vocabulary; delete it and rerun the rule tokens"
        )
    if not size:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype, mode="r")
