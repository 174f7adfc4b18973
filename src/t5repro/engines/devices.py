"""Sets up the engine and the device of a run file.

`prepare` must run before the first operation of the process; it imports Keras.
"""

import contextlib
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines import jax_environment, tensorflow_environment
from t5repro.errors import DeviceError


@dataclasses.dataclass(frozen=True)
class Devices:
    """The devices that a model runs on.

    Attributes:
        kind: value of the setting.
        names: the engine's names of the devices.
        strategy: `tf.distribute` strategy; absent on a single device and under JAX.
        row_shares: number of devices that share a batch under JAX.
    """

    kind: str
    names: tuple[str, ...]
    strategy: Any = None
    row_shares: int = 1

    @property
    def replicas(self) -> int:
        """Number of devices that share a batch."""
        if self.strategy is None:
            return self.row_shares
        return int(self.strategy.num_replicas_in_sync)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context to create model and optimizer in."""
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()


def prepare(
    settings: DevicesSettings, *, any_threads: bool = False, floatx: str = "float32"
) -> Devices:
    """Set the engine up and return the devices.

    Args:
        settings: the devices.
        any_threads: warn instead if the engine already runs with other threads, as in a notebook.
        floatx: precision of weights and statistics; ``float64`` to compare engines.

    Raises:
        DeviceError: the device is missing, the engine is not installed or already runs with other
            settings, or Keras does not start with its configuration file.
    """
    set_environment(settings)
    with _readable_keras_json():
        _import_keras()
    import keras

    if keras.backend.backend() != settings.engine:
        raise DeviceError(
            f"devices.engine is {settings.engine!r}, and this process already runs Keras on "
            f"{keras.backend.backend()}; start another process, or another kernel of a notebook"
        )
    _set_keras(floatx)
    if settings.engine == "jax":
        from t5repro.engines import jax_engine

        return jax_engine.devices(settings)
    from t5repro.engines import tensorflow_engine

    return tensorflow_engine.devices(settings, any_threads=any_threads)


def set_environment(settings: DevicesSettings) -> None:
    """Set the environment variables that Keras and the engine read when they start.

    Raises:
        DeviceError: the engine is not installed, or is imported already with settings that cannot
            be changed.
    """
    if not _is_installed(settings.engine):
        raise DeviceError(
            f"devices.engine is {settings.engine!r}, which is not installed here; set it to the "
            f"other engine, or run `make {'jax' if settings.engine == 'jax' else 'setup'}`"
        )
    os.environ["KERAS_BACKEND"] = settings.engine
    environment = jax_environment if settings.engine == "jax" else tensorflow_environment
    environment.set_variables(settings)


def default_devices() -> DevicesSettings:
    """Return the settings of a command without a run file: a CPU, and the engine that is there."""
    keras = sys.modules.get("keras")
    if keras is not None:
        return DevicesSettings(engine=keras.backend.backend())
    return DevicesSettings(engine="tensorflow" if _is_installed("tensorflow") else "jax")


def _is_installed(engine: str) -> bool:
    with contextlib.suppress(ImportError):
        return engine in sys.modules or importlib.util.find_spec(engine) is not None
    return False


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


def _set_keras(floatx: str) -> None:
    """Set what ``keras.json``, variables or a notebook may have set and would decide numbers."""
    import keras

    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(floatx)
    keras.config.set_epsilon(1e-7)
    keras.config.set_image_data_format("channels_last")
    keras.config.set_max_epochs(None)
    keras.config.set_max_steps_per_epoch(None)


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
