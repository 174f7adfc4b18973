"""A mesh of devices under JAX: rows of a batch along one axis, parts of weights along the other.

`weight_layouts` says how each weight is divided. Keras gives every new variable its layout and
every batch its own; the compiler of JAX adds the exchange between devices. Under TensorFlow there
is no mesh.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras.distribution import DeviceMesh, LayoutMap, TensorLayout

from t5repro.config.sections.devices import MeshSettings
from t5repro.engines.weight_layouts import MODEL_AXIS, checked_axes

DATA_AXIS = "data"


class Mesh(keras.distribution.ModelParallel):
    """Devices in a grid.

    Args:
        settings: the sizes of the grid.
        devices: Keras's names of its devices, as many as it has places.
    """

    def __init__(self, settings: MeshSettings, devices: Sequence[str]) -> None:
        shape = (settings.data, settings.model)
        mesh = DeviceMesh(shape=shape, axis_names=(DATA_AXIS, MODEL_AXIS), devices=devices)
        # Keras's own map stays empty: it replicates in silence what none of its keys matches.
        super().__init__(
            layout_map=LayoutMap(mesh), batch_dim_name=DATA_AXIS, auto_shard_dataset=False
        )
        self.settings = settings

    def get_variable_layout(self, variable: Any) -> TensorLayout:
        """Return the layout of a new variable.

        Raises:
            SettingsError: it is a weight without a layout, or cannot be divided evenly.
        """
        # Only weights train. States of noise, counts and metrics are the same on all devices; the
        # optimizer states the layouts of its slots itself (`slot_layout`).
        if not variable.trainable:
            return self.layout([None] * len(variable.shape))
        path = variable.path.partition("/")[2]
        axes = checked_axes(path, tuple(variable.shape), self.settings.model)
        return self.layout(axes or [None] * len(variable.shape))

    def slot_layout(self, weight: Any, kept_axes: Sequence[int]) -> TensorLayout:
        """Return the layout of an optimizer's slot.

        Args:
            weight: that the slot belongs to.
            kept_axes: axes of the weight that the slot has.
        """
        axes = self.get_variable_layout(weight).axes
        return self.layout([axes[axis] for axis in kept_axes])

    def layout(self, axes: Sequence[str | None]) -> TensorLayout:
        """Return the layout of an array: for each of its axes the axis of the mesh, if any."""
        return TensorLayout(list(axes), self.device_mesh)


def current_mesh() -> Mesh | None:
    """Return the mesh in use, if any."""
    distribution = keras.distribution.distribution()
    return distribution if isinstance(distribution, Mesh) else None


def is_divided() -> bool:
    """Return whether devices share the rows of a batch or the weights, under JAX."""
    return keras.distribution.distribution() is not None


def weight_shares() -> int:
    """Return the number of devices that share each weight."""
    mesh = current_mesh()
    return 1 if mesh is None else mesh.settings.model


def slot_layout(weight: Any, kept_axes: Sequence[int]) -> TensorLayout | None:
    """Return the layout of an optimizer's slot, see `Mesh.slot_layout`; None without a mesh."""
    mesh = current_mesh()
    return None if mesh is None else mesh.slot_layout(weight, kept_axes)


def shared_array(values: np.ndarray, layout: Any) -> Any:
    """Return an array of JAX of which each device has its part only.

    Args:
        values: the whole array.
        layout: its axes; Keras names no devices in it.
    """
    import jax

    devices = keras.distribution.distribution().device_mesh.backend_mesh
    sharding = jax.sharding.NamedSharding(devices, layout.spec)
    return jax.make_array_from_callback(values.shape, sharding, lambda part: values[part])
