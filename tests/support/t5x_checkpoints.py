"""Checkpoints in the layout of T5X, with arrays that tensorstore wrote."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import tensorstore

from t5repro.model.weight_names import weight_names


def write_t5x(
    folder: Path, model: Any, weights: Mapping[str, np.ndarray], *, form: str = "zarr", **spec: Any
) -> None:
    """Write weights as a checkpoint.

    Args:
        folder: `checkpoint_N`.
        model: settings of the network.
        weights: arrays by our paths.
        form: `zarr` (T5X), `orbax` (the index has names of folders) or `index` (all in the index).
        spec: `dtype` or `chunks` of the arrays in zarr.
    """
    folder.mkdir(parents=True)
    target: dict[str, Any] = {}
    for name in weight_names(model):
        *parents, last = name.t5x.split(".")
        inner = target
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = _leaf(folder, f"target.{name.t5x}", weights[name.path], form, spec)
    step = msgpack.ExtType(3, msgpack.packb([[], "int32", np.int32(7).tobytes()]))
    tree = {"target": target, "state": {"step": step, "param_states": {}}}
    content = tree if form == "orbax" else {"version": 3, "optimizer": tree}
    (folder / "checkpoint").write_bytes(msgpack.packb(content))


def _leaf(folder: Path, name: str, array: np.ndarray, form: str, spec: Mapping[str, Any]) -> object:
    """Write an array, if the index does not have it; return its leaf in the index."""
    if form == "index":
        packed = msgpack.packb([list(array.shape), array.dtype.name, array.tobytes()])
        return msgpack.ExtType(1, packed)
    dtype = spec.get("dtype", "float32")
    chunks = [min(size, spec.get("chunks", 24)) for size in array.shape]
    metadata = {"shape": list(array.shape), "chunks": chunks, "compressor": {"id": "gzip"}}
    store = {"driver": "zarr", "dtype": dtype, "metadata": metadata}
    file = {"driver": "file", "path": f"{folder / name}/"}
    opened = tensorstore.open({**store, "kvstore": file}, create=True).result()
    opened.write(array.astype(opened.dtype.numpy_dtype)).result()
    relative = {"driver": "gfile", "path": f"{name}/"}
    return f"PLACEHOLDER://{name}" if form == "orbax" else {**store, "kvstore": relative}
