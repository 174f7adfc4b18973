"""Functions compiled by the engine, and batches fed to it.

A compiled program must not contain the values of weights: samples are decoded while a model trains.
TensorFlow reads its variables; under JAX the weights are arguments.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras


def engine() -> Any:
    """Return the module of the engine that Keras runs on."""
    if keras.backend.backend() == "jax":
        from t5repro.engines import jax_engine

        return jax_engine
    from t5repro.engines import tensorflow_engine

    return tensorflow_engine


def compiled_rows(networks: Sequence[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of rows, compiled once per shape of its arguments.

    Under a strategy its replicas share the rows.

    Args:
        networks: all networks that the function reads.
        function: takes and returns arrays of the same number of rows; a row of the result depends
            only on the same row of the arguments.
    """
    compiled: Callable[..., Any] = engine().compiled_rows(networks, function)
    return compiled


def compiled_sums(model: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function from a batch to sums over all its rows, compiled once per shape.

    Args:
        model: the trained model, first argument of the function.
        function: takes the model, features and targets, returns sums over the rows.
    """
    compiled: Callable[..., Any] = engine().compiled_sums(model, function)
    return compiled
