"""TensorFlow as the engine: its devices, compiled functions, batches and replicas."""

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import tensorflow as tf
from keras.config import floatx

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import Devices
from t5repro.engines.engine import filled_up
from t5repro.errors import DeviceError

INTER_OP_THREADS = 2  # concurrent operations; does not change results
PREFETCHED_BATCHES = 2


class ThreadsError(DeviceError):
    """TensorFlow already runs with another number of threads."""


def devices(settings: DevicesSettings, *, any_threads: bool = False) -> Devices:
    """Set TensorFlow up and return the devices; see `prepare`."""
    tf.get_logger().setLevel("ERROR")
    try:
        _set_threads(settings.intra_op_threads)
    except ThreadsError as error:
        if not any_threads:
            raise
        warnings.warn(f"{error}; the last bits may differ", stacklevel=3)
    return _BY_KIND[settings.kind](settings)


def libraries() -> dict[str, str]:
    """Return name -> version of what computes."""
    return {"tensorflow": tf.__version__}


def feed(batches: Any) -> tf.data.Dataset:
    """Return batches of NumPy as a dataset, made while the device computes."""
    first = batches.make(batches.first_step)  # its shapes are those of all
    others = dataclasses.replace(
        batches, first_step=batches.first_step + 1, steps=batches.steps - 1
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: chain([first], others),  # a strategy reads it more than once
        output_signature=tf.nest.map_structure(tf.TensorSpec.from_tensor, tensors(first)),
    )
    return _untuned(dataset.prefetch(PREFETCHED_BATCHES))


def _untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset without the thread that tunes it, which has nothing to tune here.

    This thread sleeps for up to a minute and often misses that it is told to end, since TensorFlow
    wakes it before it marks the work as cancelled (`CancellationManager::StartCancel`); whoever
    drops the iterator then waits for it.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def tensors(batch: Any) -> Any:
    """Return the arrays of a batch as tensors."""
    return tf.nest.map_structure(tf.convert_to_tensor, batch)


def single_step(model: Any) -> Callable[[Any], float]:
    """Return a function that trains a model on a batch and waits for its loss."""
    step = tf.function(model.train_step, autograph=False)

    def train(batch: Any) -> float:
        model.reset_metrics()  # Keras returns the mean since then
        return float(step(tensors(batch))["loss"])

    return train


def compiled_sums(model: Any, function: Callable[..., Any]) -> Callable[..., Sequence[tf.Tensor]]:
    """Return `function` compiled for all replicas of a model; see `Engine`."""
    strategy = model.distribute_strategy

    @tf.function(autograph=False)
    def over_all_replicas(batch: Any) -> list[tf.Tensor]:
        sums = strategy.run(functools.partial(function, model), args=batch)
        return [strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None) for value in sums]

    def sums_of(batch: Any) -> Sequence[tf.Tensor]:
        dataset = _untuned(tf.data.Dataset.from_tensors(batch))
        shards = strategy.experimental_distribute_dataset(dataset)
        return [value for batch in shards for value in over_all_replicas(batch)]

    return sums_of


def compiled_rows(
    networks: Sequence[Any], function: Callable[..., tf.Tensor]
) -> Callable[..., tf.Tensor]:
    """Return `function` compiled for the replicas of the current strategy.

    Replicas exchange nothing, so each may stop when its own rows are done.

    Args:
        networks: the graph reads their variables itself.
        function: see `Engine`.
    """
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return tf.function(function, autograph=False)

    @tf.function(autograph=False)
    def run_on_replicas(*shards: Any) -> Any:
        return strategy.run(function, args=shards)

    def run_on_all_rows(*arrays: tf.Tensor) -> tf.Tensor:
        shards = [
            _per_replica(strategy, tf.split(array, replicas))
            for array in filled_up(arrays, replicas)
        ]
        parts = strategy.experimental_local_results(run_on_replicas(*shards))
        return tf.concat(parts, axis=0)[: arrays[0].shape[0]]

    return run_on_all_rows


def replicas() -> int:
    """Return the number of replicas of the current strategy."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def over_replicas(count: Any) -> tf.Tensor:
    """Return the sum of a count over all replicas, float32."""
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(count, floatx()))


def replica_values(variable: Any) -> Sequence[tf.Variable]:
    """Return the parts of a variable with other values on each replica."""
    value = variable.value
    parts: Sequence[tf.Variable] = getattr(value, "values", (value,))
    return parts


def zeros(shape: Any, dtype: Any) -> tf.Tensor:
    """Return zeros with memory of their own, for `with_rows`."""
    if not _writes_in_place():
        return tf.zeros(shape, dtype)
    # A stateful operation: TensorFlow gives the same constant the same memory.
    return tf.raw_ops.Empty(shape=tf.stack(shape), dtype=tf.as_dtype(dtype), init=True)


def with_rows(array: tf.Tensor, rows: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Return an array with other values in some rows, on a CPU in its memory."""
    if not _writes_in_place():
        return tf.tensor_scatter_nd_update(array, rows[:, None], values)
    return tf.raw_ops.InplaceUpdate(x=array, i=rows, v=values)


def _writes_in_place() -> bool:
    # Of accelerators not measured; XLA, which compiles for TPUs, writes in place by itself.
    return all(device.device_type == "CPU" for device in tf.config.list_logical_devices())


def scope_of(model: Any) -> contextlib.AbstractContextManager[Any]:
    """Return the scope of a model's strategy."""
    scope: contextlib.AbstractContextManager[Any] = model.distribute_strategy.scope()
    return scope


def _per_replica(strategy: tf.distribute.Strategy, shards: list[tf.Tensor]) -> Any:
    """Return a value that is `parts[n]` on replica n."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: shards[context.replica_id_in_sync_group]
    )


def _set_threads(intra_op_threads: int) -> None:
    threading = tf.config.threading
    expected = (intra_op_threads, INTER_OP_THREADS)
    actual = (
        threading.get_intra_op_parallelism_threads(),
        threading.get_inter_op_parallelism_threads(),
    )
    if actual == expected:
        return
    try:
        threading.set_intra_op_parallelism_threads(intra_op_threads)
        threading.set_inter_op_parallelism_threads(INTER_OP_THREADS)
    except RuntimeError as error:
        raise ThreadsError(
            f"TensorFlow already runs with {actual[0]} threads inside an operation (0: all cores); "
            f"devices.intra_op_threads is {intra_op_threads}; call prepare() before the "
            "first operation of the process"
        ) from error


def _cpu(settings: DevicesSettings) -> Devices:
    # An available GPU stays unused: results would depend on it.
    with contextlib.suppress(RuntimeError):  # they are fixed after TensorFlow's first operation
        tf.config.set_visible_devices([], "GPU")
    tf.config.experimental.enable_op_determinism()
    return Devices("cpu", ("CPU:0",))


def _gpu(settings: DevicesSettings) -> Devices:
    names = _logical("GPU")
    if not names:
        raise DeviceError(
            f"devices.kind is 'gpu' but TensorFlow sees no GPU; it sees {_logical('CPU')}; "
            "install the gpu extra (make cuda) and the driver, or set devices.kind to 'cpu'"
        )
    return Devices("gpu", names[:1])


def _mirrored(settings: DevicesSettings) -> Devices:
    names = _logical("GPU") or _logical("CPU")
    if len(names) < 2:
        raise DeviceError(
            f"devices.kind is 'mirrored', which needs 2 or more GPUs; TensorFlow sees {names}; "
            "set devices.kind to 'gpu' or 'cpu'"
        )
    if names[0].startswith("CPU"):
        tf.config.experimental.enable_op_determinism()
    # It would order the factors of an update by the devices that they come from: weights of
    # replicas would drift apart, and a training that resumes begins with the first replica's.
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    return Devices("mirrored", names, tf.distribute.MirroredStrategy(list(names)))


def _tpu(settings: DevicesSettings) -> Devices:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=settings.tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        raise DeviceError(
            f"devices.kind is 'tpu' but no TPU answers at devices.tpu {settings.tpu!r}; "
            f"TensorFlow sees {_logical('CPU') + _logical('GPU')}; run on a TPU VM with "
            "the tpu extra, or set devices.kind to 'cpu' or 'gpu'"
        ) from error
    return Devices("tpu", _logical("TPU"), tf.distribute.TPUStrategy(resolver))


def _logical(kind: str) -> tuple[str, ...]:
    names = (device.name for device in tf.config.list_logical_devices(kind))
    return tuple(name.removeprefix("/device:") for name in names)


_BY_KIND: dict[str, Callable[[DevicesSettings], Devices]] = {
    "cpu": _cpu,
    "gpu": _gpu,
    "mirrored": _mirrored,
    "tpu": _tpu,
}
