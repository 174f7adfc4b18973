"""JAX as the engine: its devices, compiled functions and batches.

A compiled function sees the rows of all devices, so there is one replica, on however many devices
its rows are.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import keras
from keras.config import floatx

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import Devices
from t5repro.engines.engine import filled_up
from t5repro.engines.mesh import DATA_AXIS, Mesh, current_mesh
from t5repro.errors import DeviceError, SettingsError

PREFETCHED_BATCHES = 2


def devices(settings: DevicesSettings) -> Devices:
    """Return the devices of the settings; see `prepare`."""
    try:
        jax_devices = jax.devices()
    except RuntimeError as error:
        raise DeviceError(
            f"devices.kind is {settings.kind!r}, but JAX finds no such device "
            f"({str(error).splitlines()[0]}); install JAX for it, or set devices.kind to 'cpu'"
        ) from error
    distribution = _distribution(settings, len(jax_devices))
    keras.distribution.set_distribution(distribution)
    if floatx() == "float64":
        _allow_float64()
    used = jax_devices[: distribution.device_mesh.devices.size if distribution else 1]
    names = (f"{device.platform.upper()}:{device.id}" for device in used)
    return Devices(settings.kind, tuple(names), row_shares=row_shares())


def _distribution(settings: DevicesSettings, number: int) -> Any:
    """Return how Keras uses the devices; None for one device.

    Args:
        settings: the devices.
        number: of the devices that JAX sees.

    Raises:
        DeviceError: these are too few.
    """
    needed = 2 if settings.kind == "mirrored" else settings.mesh.devices
    if number < needed:
        cause, cure = (
            ("devices.kind is 'mirrored'", "devices.kind to 'gpu' or 'cpu'")
            if settings.kind == "mirrored"
            else (
                f"devices.mesh is {settings.mesh.data} x {settings.mesh.model}",
                "devices.mesh to no more devices than there are",
            )
        )
        raise DeviceError(
            f"{cause}, which needs {needed} or more devices; JAX sees {number}; set {cure}"
        )
    names = keras.distribution.list_devices()
    if settings.kind == "mirrored":
        return keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
    return Mesh(settings.mesh, names[:needed]) if needed > 1 else None


def _allow_float64() -> None:
    """Let JAX and Keras compute in float64, for comparisons of engines."""
    jax.config.update("jax_enable_x64", True)
    # Keras would narrow the result of every operation of two types; no public setting says no.
    from keras.src.backend.common import dtypes

    dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"


def libraries() -> dict[str, str]:
    """Return name -> version of what computes."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__}


def feed(batches: Any) -> Iterator[Any]:
    """Yield batches of NumPy, the next ones made while the device computes."""
    futures: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(max_workers=1) as pool:
        for step in range(batches.first_step, batches.first_step + batches.steps):
            futures.append(pool.submit(batches.make, step))
            if len(futures) > PREFETCHED_BATCHES:
                yield futures.popleft().result()
        for batch in futures:
            yield batch.result()


def single_step(model: Any) -> Callable[[Any], float]:
    """Return a function that trains a model on a batch and waits for its loss."""

    def train(batch: Any) -> float:
        state, loss = model.step(model.step.state(), *map(_placed, batch))
        model.step.write(state)
        return float(loss)

    return train


def compiled_rows(networks: Sequence[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled with the weights of networks as arguments; see `Engine`."""
    compiled = _with_weights(networks, function)
    return lambda *arrays: compiled(*filled_up(arrays, row_shares()))[: arrays[0].shape[0]]


def compiled_sums(model: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled with the weights of a model as arguments.

    Raises:
        SettingsError: (on a call) the devices cannot share the rows evenly.
    """
    compiled = _with_weights([model.network], partial(function, model))

    def sums_of(batch: Any) -> Any:
        rows = jax.tree.leaves(batch)[0].shape[0]
        if rows % row_shares():
            raise SettingsError(
                f"{rows} rows cannot be shared evenly by {row_shares()} devices; make it a multiple"
            )
        return compiled(*batch)

    return sums_of


def _with_weights(networks: Sequence[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled with the weights of networks as arguments."""
    variables = [variable for network in networks for variable in network.variables]

    @jax.jit
    def with_values(values: Sequence[jax.Array], *arrays: Any) -> Any:
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*arrays)

    return lambda *arrays: with_values(
        [variable.value for variable in variables], *map(_placed, arrays)
    )


def replicas() -> int:
    """Return 1: a compiled step sees the whole batch, on however many devices its rows are."""
    return 1


def over_replicas(count: Any) -> Any:
    """Return a count, float32."""
    return keras.ops.cast(count, floatx())


def replica_values(variable: Any) -> Sequence[Any]:
    """Return the variable: its array has the rows of all devices."""
    return (variable,)


def row_shares() -> int:
    """Return the number of devices that share the rows of a batch."""
    distribution = keras.distribution.distribution()
    return 1 if distribution is None else int(distribution.num_model_replicas)


def parts_of(array: jax.Array, parts: int) -> jax.Array:
    """Return rows in parts, (parts, rows, ...); the rows of each part are on all devices."""
    divided = jnp.reshape(array, (parts, -1, *array.shape[1:]))
    mesh = current_mesh()
    if mesh is None:
        return divided
    axes = [None, DATA_AXIS, *[None] * (len(array.shape) - 1)]
    return jax.lax.with_sharding_constraint(divided, mesh.layout(axes).backend_layout)


def zeros(shape: Any, dtype: Any) -> jax.Array:
    """Return zeros."""
    return jnp.zeros(shape, dtype)


def with_rows(array: jax.Array, rows: jax.Array, values: jax.Array) -> jax.Array:
    """Return an array with other values in some rows; XLA writes in place where it can."""
    return array.at[rows].set(values)


def scope_of(model: Any) -> AbstractContextManager[Any]:
    """Return a context that does nothing."""
    return nullcontext()


def _placed(array: Any) -> Any:
    """Return an array with its rows on the devices that share them."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return array
    return jax.tree.map(
        lambda rows: jax.device_put(rows, distribution.get_data_layout(rows.shape).backend_layout),
        array,
    )
