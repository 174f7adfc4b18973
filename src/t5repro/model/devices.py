"""Sets up the device of a run file, so that results on a CPU are reproducible to the byte.

`prepare` must run before the first TensorFlow operation of the process; it imports Keras.

On a CPU three things decide the bytes of a result: the instruction set of oneDNN (a setting: AVX2,
which every x86-64 server has, or the processor's widest), the number of threads inside one
operation (a setting), and operations without a fixed order of addition (replaced by their ordered
forms).
"""

import contextlib
import dataclasses
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.errors import DeviceError

QUIET = "TF_CPP_MIN_LOG_LEVEL"
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
ENVIRONMENT = {QUIET: "2", ONEDNN: "1", "KERAS_BACKEND": "tensorflow", "ONEDNN_MAX_CPU_ISA": "AVX2"}
INSTRUCTION_SETS = {"avx2": "AVX2", "native": "DEFAULT"}  # values of oneDNN's variable
INTER_OP_THREADS = 2  # concurrent operations; does not change results


@dataclasses.dataclass(frozen=True)
class Devices:
    """The devices that a model runs on.

    Attributes:
        kind: value of the setting.
        names: TensorFlow's names of the devices.
        strategy: `tf.distribute` strategy; absent on a single device.
    """

    kind: str
    names: tuple[str, ...]
    strategy: Any = None

    @property
    def replicas(self) -> int:
        """Number of devices that share a batch."""
        return 1 if self.strategy is None else int(self.strategy.num_replicas_in_sync)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context to create model and optimizer in."""
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()


class ThreadsError(DeviceError):
    """TensorFlow already runs with another number of threads."""


def prepare(settings: DevicesSettings, *, any_threads: bool = False) -> Devices:
    """Set TensorFlow up and return the devices.

    Args:
        settings: the devices.
        any_threads: warn instead if TensorFlow already runs with other threads, as in a notebook.

    Raises:
        DeviceError: the device is missing, TensorFlow already runs with other threads, or Keras
            does not start with its configuration file.
    """
    set_environment(settings)
    with _readable_keras_json():
        _import_keras()
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    try:
        _set_threads(tf, settings.intra_op_threads)
    except ThreadsError as error:
        if not any_threads:
            raise
        warnings.warn(f"{error}; the last bits may differ", stacklevel=2)
    devices = _BY_KIND[settings.kind](tf, settings)
    _set_keras()
    return devices


@contextlib.contextmanager
def _readable_keras_json() -> Iterator[None]:
    """Name the file that TensorFlow and Keras read when they are imported, if they refuse it."""
    try:
        yield
    except (ValueError, AssertionError) as error:  # TensorFlow's own copy of Keras asserts
        raise DeviceError(
            "Keras cannot read its configuration file: correct or delete keras.json in ~/.keras, "
            f"or in the folder that KERAS_HOME names ({error or 'an unknown value'})"
        ) from error


def _set_keras() -> None:
    """Set what ``keras.json``, variables or a notebook may have set and would decide numbers."""
    import keras

    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    keras.config.set_epsilon(1e-7)
    keras.config.set_image_data_format("channels_last")
    keras.config.set_max_epochs(None)
    keras.config.set_max_steps_per_epoch(None)


def set_environment(settings: DevicesSettings) -> None:
    """Set the environment variables that TensorFlow, oneDNN and Keras read when they start.

    Raises:
        DeviceError: TensorFlow is imported already, with oneDNN kernels that would crash.
    """
    environment = {**ENVIRONMENT, "ONEDNN_MAX_CPU_ISA": INSTRUCTION_SETS[settings.instruction_set]}
    if settings.kind == "cpu":
        # Without a GPU driver TensorFlow reports an error, which does not matter on a CPU.
        environment[QUIET] = "3"
    if settings.precision == "bfloat16":
        # oneDNN's bfloat16 kernels end in a segmentation fault below AVX-512.
        environment[ONEDNN] = "0"
        if "tensorflow" in sys.modules and os.environ.get(ONEDNN) != "0":
            raise DeviceError(
                "devices.precision is 'bfloat16' and TensorFlow already runs with oneDNN, which "
                f"can crash; set {ONEDNN}=0 before TensorFlow is imported"
            )
    # The level of the log changes no result, so a level set by the user takes precedence.
    os.environ.setdefault(QUIET, environment.pop(QUIET))
    os.environ.update(environment)


def _import_keras() -> None:
    """Import Keras without the packages that it has wrappers for, a third of the time it takes."""
    modules: dict[str, Any] = sys.modules
    absent = [name for name in ("pandas", "sklearn") if name not in modules]
    modules.update(dict.fromkeys(absent))  # None: an import of it fails
    try:
        import keras  # noqa: F401
    finally:
        for name in absent:
            del modules[name]


def _set_threads(tf: Any, intra_op_threads: int) -> None:
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


def _cpu(tf: Any, settings: DevicesSettings) -> Devices:
    # An available GPU stays unused: results would depend on it.
    with contextlib.suppress(RuntimeError):  # they are fixed after TensorFlow's first operation
        tf.config.set_visible_devices([], "GPU")
    tf.config.experimental.enable_op_determinism()
    return Devices("cpu", ("CPU:0",))


def _gpu(tf: Any, settings: DevicesSettings) -> Devices:
    names = _logical(tf, "GPU")
    if not names:
        raise DeviceError(
            f"devices.kind is 'gpu' but TensorFlow sees no GPU; it sees {_logical(tf, 'CPU')}; "
            "install the gpu extra (make cuda) and the driver, or set devices.kind to 'cpu'"
        )
    return Devices("gpu", names[:1])


def _mirrored(tf: Any, settings: DevicesSettings) -> Devices:
    names = _logical(tf, "GPU") or _logical(tf, "CPU")
    if len(names) < 2:
        raise DeviceError(
            f"devices.kind is 'mirrored', which needs 2 or more GPUs; TensorFlow sees {names}; "
            "set devices.kind to 'gpu' or 'cpu'"
        )
    if names[0].startswith("CPU"):
        tf.config.experimental.enable_op_determinism()
    return Devices("mirrored", names, tf.distribute.MirroredStrategy(list(names)))


def _tpu(tf: Any, settings: DevicesSettings) -> Devices:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=settings.tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        raise DeviceError(
            f"devices.kind is 'tpu' but no TPU answers at devices.tpu {settings.tpu!r}; "
            f"TensorFlow sees {_logical(tf, 'CPU') + _logical(tf, 'GPU')}; run on a TPU VM with "
            "the tpu extra, or set devices.kind to 'cpu' or 'gpu'"
        ) from error
    return Devices("tpu", _logical(tf, "TPU"), tf.distribute.TPUStrategy(resolver))


def _logical(tf: Any, kind: str) -> tuple[str, ...]:
    names = (device.name for device in tf.config.list_logical_devices(kind))
    return tuple(name.removeprefix("/device:") for name in names)


_BY_KIND: dict[str, Callable[[Any, DevicesSettings], Devices]] = {
    "cpu": _cpu,
    "gpu": _gpu,
    "mirrored": _mirrored,
    "tpu": _tpu,
}
