"""Weights as int8: each row or column of a matrix has a scale of its own.

Activations stay float32 or bfloat16, so a layer's output is that of float32 weights rounded to 127
steps on each side of 0.
"""

from typing import Any

import keras
import numpy as np

from t5repro.errors import SettingsError

MODE = "int8"
LARGEST = 127  # -128 is unused: the range is symmetric


def check_mode(mode: Any, config: Any = None, filters: Any = None) -> None:
    """Check how Keras's `quantize` is called.

    Args:
        mode: ``int8``.
        config: Keras's own for the mode, which it always gives; no other.
        filters: none.

    Raises:
        SettingsError: the weights cannot be like that.
    """
    if mode != MODE or filters is not None or _has_other_steps(config):
        raise SettingsError(
            f"quantize(mode={mode!r}): the networks of t5repro have {MODE!r} weights only, "
            'without a config or filters; call quantize("int8"), or export the network and '
            "quantize the result there (t5repro weights export --form keras_hub)"
        )


def _has_other_steps(config: Any) -> bool:
    """Return whether a configuration is not the one that Keras makes from the mode."""
    if config is None:
        return False
    own, default = (
        [each and each.get_config() for each in (one.weight_quantizer, one.activation_quantizer)]
        for one in (config, type(config)())
    )
    return bool(own != default)


def quantized(values: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 values and their float32 scales: their product is near `values`.

    Args:
        values: a matrix.
        axis: along which values share a scale: 0 for a scale of each column, 1 of each row.

    Returns:
        The values, with an error of at most half a scale, and the scales, without the axis.
    """
    largest = np.abs(values).max(axis=axis, keepdims=True)
    scales = np.where(largest > 0, largest / np.float32(LARGEST), np.float32(1)).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales.squeeze(axis)


def scale_name(name: str) -> str:
    """Return the name of the scales of a matrix."""
    return f"{name}_scale"


def replace_by_int8(layer: keras.layers.Layer, name: str, *, axis: int) -> None:
    """Replace a matrix of a layer by its int8 values and scales, which do not train.

    Args:
        layer: a built layer or network.
        name: attribute and name of the weight.
        axis: see `quantized`.
    """
    matrix = getattr(layer, name)
    values, scales = quantized(np.asarray(matrix.numpy()), axis=axis)
    # Keras has no public way to drop a weight; its own layers quantize like this.
    layer._untrack_variable(matrix)
    layer._tracker.unlock()
    for new_name, array in ((name, values), (scale_name(name), scales)):
        new = layer.add_weight(
            name=new_name,
            shape=array.shape,
            dtype=str(array.dtype),
            initializer="zeros",
            trainable=False,
            autocast=False,
        )
        new.assign(array)
        setattr(layer, new_name, new)
    layer._tracker.lock()
