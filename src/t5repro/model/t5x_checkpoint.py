"""Reads a folder `checkpoint_N` of T5X: an index in msgpack, and an array a folder in zarr.

The index is a tree of names. A leaf is an array itself (`Array`), the form of an array in a folder
of its own (a mapping with `kvstore`), or the name of such a folder (`PLACEHOLDER`, by Orbax). Only
the weights below `target` are read, not the optimizer's state.

Source: modules ``checkpoints`` of T5X, format 3, and ``serialization`` of flax.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError, CheckpointError, packages_of
from t5repro.files import read_file
from t5repro.model import leftovers
from t5repro.model.weight_names import (
    Arrays,
    float32_array,
    names_of_any_t5,
    shape_of,
    weight_names,
)

INDEX = "checkpoint"
TARGET = "target"
BELOW = ("optimizer", "_optimizer")  # the trees that may contain `target`
PLACEHOLDER = "PLACEHOLDER://"
ARRAY_TYPE = 1  # flax's extension type of msgpack
ZARR_METADATA = ".zarray"
CURE = "copy the whole folder checkpoint_N again"


def read(folder: Path) -> tuple[ModelSettings, Arrays]:
    """Return the shape and the weights of a checkpoint.

    Raises:
        ArtifactError: a file is missing or damaged.
        CheckpointError: the weights are not of a T5 encoder-decoder.
        PackageError: a package of the extra `t5x` is not installed.
    """
    leaves = dict(_leaves(_target(folder / INDEX)))
    names = {name.path: name.t5x for name in names_of_any_t5(leaves) if name.t5x in leaves}
    weights = {
        path: float32_array(_array(folder, name, leaves[name]), transposed=False)
        for path, name in names.items()
    }
    model = shape_of(weights)  # T5X's settings are in gin files elsewhere
    leftovers.check_names(folder / INDEX, leaves, [name.t5x for name in weight_names(model)])
    return model, weights


def _target(path: Path) -> Mapping[str, Any]:
    """Return the tree of the weights in an index."""
    with packages_of("t5x", target="t5x"):
        import msgpack
    try:
        tree = msgpack.unpackb(read_file(path), ext_hook=_array_of)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ArtifactError(f"{path} is no index of T5X ({error}); {CURE}") from error
    trees = [tree.get(name, {}) for name in BELOW] + [tree] if isinstance(tree, dict) else []
    targets = (inner[TARGET] for inner in trees if isinstance(inner, dict) and TARGET in inner)
    target = next(targets, None)
    if not isinstance(target, dict) or not target:
        raise ArtifactError(
            f"{path} has no weights below {TARGET!r}; name a folder checkpoint_N of T5X"
        )
    return target


def _array_of(kind: int, data: bytes) -> object:
    """Return the array of an extension type of flax; types of numbers have no use here."""
    import msgpack

    if kind != ARRAY_TYPE:
        return None
    shape, dtype, content = msgpack.unpackb(data)
    if not isinstance(dtype, str) or dtype not in leftovers.FLOATS:
        return None
    return np.frombuffer(content, _dtype(dtype)).reshape(shape)


def _dtype(name: str) -> np.dtype[Any]:
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name, with dots, and the value of every leaf."""
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and "kvstore" not in value:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _array(folder: Path, name: str, leaf: object) -> np.ndarray:
    """Return the array of a leaf.

    Raises:
        ArtifactError: its folder is missing, incomplete or outside of the checkpoint.
        PackageError: tensorstore is not installed.
    """
    if isinstance(leaf, np.ndarray):
        return leaf
    path = folder / _folder_name(folder, name, leaf)
    _check_chunks(path)
    with packages_of("t5x", target="t5x"):
        import tensorstore
    try:
        store = tensorstore.open(
            {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{path.resolve()}/"}},
            open=True,
            read=True,
        ).result()
        if store.dtype.name not in leftovers.FLOATS:
            raise CheckpointError(
                f"{path} has numbers of the type {store.dtype.name}; only "
                f"{', '.join(leftovers.FLOATS)} can be read: save the checkpoint again with a T5X "
                "of 2021-06-10 or later"
            )
        return np.asarray(store.read().result())
    except (ValueError, OSError) as error:
        raise ArtifactError(f"{path} is no complete array in zarr ({error}); {CURE}") from error


def _folder_name(folder: Path, name: str, leaf: object) -> str:
    """Return the folder of an array, relative to the checkpoint."""
    relative: object = None
    if isinstance(leaf, str) and leaf.startswith(PLACEHOLDER):
        relative = leaf.removeprefix(PLACEHOLDER)
    elif isinstance(leaf, Mapping) and isinstance(leaf["kvstore"], Mapping):
        relative = leaf["kvstore"].get("path")
    if not isinstance(relative, str):
        raise ArtifactError(f"{folder / INDEX} has no array for {name!r}; {CURE}")
    # An index that somebody else wrote must not name files elsewhere.
    if len(PurePosixPath(relative).parts) != 1 or relative.startswith((".", "/")):
        raise CheckpointError(
            f"{folder / INDEX} names {relative!r} for {name!r}, which is outside of it; refused"
        )
    return relative


def _check_chunks(path: Path) -> None:
    """Refuse an array without one of its chunks, which tensorstore would fill with zeros.

    Raises:
        ArtifactError: its description cannot be read, or a chunk is missing.
    """
    metadata = path / ZARR_METADATA
    if not metadata.is_file():
        raise ArtifactError(f"{metadata} is missing, and the array with it; {CURE}")
    try:
        described = json.loads(read_file(metadata))
        sizes = zip(described["shape"], described["chunks"], strict=True)
        counts = tuple(-(-int(size) // int(chunk)) for size, chunk in sizes)
        separator = str(described.get("dimension_separator", "."))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ArtifactError(f"{metadata} describes no array of zarr; {CURE}") from error
    for numbers in np.ndindex(counts):
        chunk = path / (separator.join(map(str, numbers)) or "0")
        if not chunk.is_file():
            raise ArtifactError(
                f"{chunk} is missing, a part of an array of T5X; the download may be incomplete: "
                f"{CURE}"
            )
