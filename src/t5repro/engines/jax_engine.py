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
import jaxlib
import keras
from keras.config import floatx

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import Devices
from t5repro.errors import DeviceError

PREFETCHED_BATCHES = 2


def devices(settings: DevicesSettings) -> Devices:
    """Return the devices of the settings; see `prepare`."""
    try:
        found = jax.devices()
    except RuntimeError as error:
        raise DeviceError(
            f"devices.kind is {settings.kind!r}, but JAX finds no such device "
            f"({str(error).splitlines()[0]}); install JAX for it, or set devices.kind to 'cpu'"
        ) from error
    if settings.kind == "mirrored":
        if len(found) < 2:
            raise DeviceError(
                "devices.kind is 'mirrored', which needs 2 or more devices; JAX sees "
                f"{len(found)}; set devices.kind to 'gpu' or 'cpu'"
            )
        distribution = keras.distribution.DataParallel(
            devices=keras.distribution.list_devices(), auto_shard_dataset=False
        )
    else:
        distribution = None
        found = found[:1]
    keras.distribution.set_distribution(distribution)
    if floatx() == "float64":
        _allow_float64()
    names = (f"{device.platform.upper()}:{device.id}" for device in found)
    return Devices(settings.kind, tuple(names))


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
    made: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(max_workers=1) as pool:
        for step in range(batches.first_step, batches.first_step + batches.steps):
            made.append(pool.submit(batches.make, step))
            if len(made) > PREFETCHED_BATCHES:
                yield made.popleft().result()
        for batch in made:
            yield batch.result()


def single_step(model: Any) -> Callable[[Any], float]:
    """Return a function that trains a model on a batch and waits for its loss."""

    def train(batch: Any) -> float:
        state, loss = model.step(model.step.state(), *batch)
        model.step.write(state)
        return float(loss)

    return train


def compiled_rows(networks: Sequence[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled with the weights of networks as arguments."""
    variables = [variable for network in networks for variable in network.variables]

    @jax.jit
    def with_values(values: Sequence[jax.Array], *arrays: Any) -> Any:
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*arrays)

    def call(*arrays: Any) -> Any:
        return with_values([variable.value for variable in variables], *map(_placed, arrays))

    return call


def compiled_sums(model: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled with the weights of a model as arguments."""
    compiled = compiled_rows([model.network], partial(function, model))
    return lambda batch: compiled(*batch)


def replicas() -> int:
    """Return 1: a compiled step sees the whole batch, on however many devices its rows are."""
    return 1


def over_replicas(count: Any) -> Any:
    """Return a count, float32."""
    return keras.ops.cast(count, floatx())


def replicas_of(model: Any) -> int:
    """Return 1; see `replicas`."""
    return replicas()


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
