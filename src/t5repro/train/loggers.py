"""Loggers of other projects (DVCLive, MLflow, Weights & Biases), named in `run.loggers`.

Each is a Keras callback. A row of the history becomes an epoch with the step as its number,
because these callbacks write at the end of an epoch. A fault of a logger, for example a server that
is down, does not end the training: the logger gets no further rows, and the log says why.
"""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from t5repro.errors import SettingsError


class Loggers:
    """The loggers of one training.

    Args:
        named: class and arguments of each, as in `run.loggers`.
        model: model that is trained.
        folder: folder of the training's log, which replaces `{folder}` in the arguments.
        announce: prints a line to the log.

    Raises:
        SettingsError: a class cannot be imported, is not a Keras callback, or refuses its
            arguments.
    """

    def __init__(
        self,
        entries: Sequence[Mapping[str, Any]],
        model: Any,
        *,
        folder: Path | None,
        announce: Callable[[str], None],
    ) -> None:
        self._announce = announce
        if entries and folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._callbacks = [
            (entry["callback"], _make_logger(**_fill_folder(entry, folder))) for entry in entries
        ]
        self._call("set_params", {})
        self._call("set_model", model)
        self._call("on_train_begin")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Give the loggers a row of the history, its columns named as by Keras."""
        self._call("on_epoch_begin", step)
        logs = {name.replace("validation_", "val_"): value for name, value in values.items()}
        self._call("on_epoch_end", step, logs)

    def finish(self) -> None:
        """Announce the end of the training to the loggers."""
        self._call("on_train_end")

    def _call(self, method: str, *arguments: Any) -> None:
        for name, callback in list(self._callbacks):
            # A logger gets a copy: Keras' own add to the values or remove from them.
            copies = [dict(value) if isinstance(value, Mapping) else value for value in arguments]
            try:
                getattr(callback, method)(*copies)
            except Exception as error:
                self._callbacks.remove((name, callback))
                self._announce(
                    f"run.loggers: {name}.{method} failed ({type(error).__name__}: {error}); "
                    "training goes on without this logger"
                )


def _fill_folder(entry: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Return class and arguments with the folder in place of `{folder}`, at any depth."""
    escaped = json.dumps(str(folder or "."))[1:-1]
    filled: dict[str, Any] = json.loads(json.dumps(dict(entry)).replace("{folder}", escaped))
    return filled


def _make_logger(callback: str, arguments: Mapping[str, Any]) -> keras.callbacks.Callback:
    module, _, name = callback.rpartition(".")
    try:
        logger = getattr(importlib.import_module(module), name)(**arguments)
    except ImportError as error:
        raise SettingsError(
            f"run.loggers: {callback} cannot be imported ({error}); install its package into this "
            "environment"
        ) from error
    except AttributeError as error:
        raise SettingsError(f"run.loggers: {module} has no {name}") from error
    except Exception as error:  # a wrong argument, or a server that it asks at once
        raise SettingsError(
            f"run.loggers: {callback} refuses {dict(arguments)} ({type(error).__name__}: {error})"
        ) from error
    if not isinstance(logger, keras.callbacks.Callback):
        raise SettingsError(
            f"run.loggers: {callback} is no keras.callbacks.Callback; DVCLive, MLflow and "
            "Weights & Biases have one each"
        )
    return logger
