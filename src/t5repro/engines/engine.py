"""What an engine does for a model: compile functions, feed batches, count over replicas.

`tensorflow_engine` and `jax_engine` are modules with these functions; `engine` returns the one that
Keras runs on. A compiled program must not contain the values of weights, since samples are decoded
while a model trains: TensorFlow reads its variables, under JAX the weights are arguments.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import keras


class Engine(Protocol):
    """The functions of an engine."""

    def libraries(self) -> dict[str, str]:
        """Return name -> version of what computes."""
        ...

    def feed(self, batches: Any) -> Any:
        """Return batches of NumPy for `fit`, the next ones made while the device computes."""
        ...

    def single_step(self, model: Any) -> Callable[[Any], float]:
        """Return a function that trains a model on a batch and waits for its loss."""
        ...

    def compiled_rows(
        self, networks: Sequence[Any], function: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return a function of rows, compiled once per shape of its arguments.

        Devices share the rows; where they cannot evenly, the first row fills up and is dropped.

        Args:
            networks: all networks that the function reads.
            function: takes and returns arrays of the same number of rows; a row of the result
                depends only on the same row of the arguments.
        """
        ...

    def compiled_sums(self, model: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function from a batch to sums over all its rows, compiled once per shape.

        Args:
            model: the trained model, first argument of the function.
            function: takes the model, features and targets, returns sums over the rows.
        """
        ...

    def replicas(self) -> int:
        """Return the number of replicas that share a batch in the current scope."""
        ...

    def over_replicas(self, count: Any) -> Any:
        """Return the sum of a count over all replicas, float32."""
        ...

    def replica_values(self, variable: Any) -> Sequence[Any]:
        """Return the parts of a variable with other values on each replica, one a replica.

        Each has `numpy` and `assign`.
        """
        ...

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """Return zeros with memory of their own, for `with_rows`."""
        ...

    def with_rows(self, array: Any, rows: Any, values: Any) -> Any:
        """Return an array with other values in some rows, in its memory if the device allows it.

        Args:
            array: result of `zeros` or of this function; not to be read afterwards.
            rows: numbers of the rows, int32.
            values: of these rows, in the same order.
        """
        ...

    def scope_of(self, model: Any) -> AbstractContextManager[Any]:
        """Return the context that a model was created in."""
        ...


def engine() -> Engine:
    """Return the engine that Keras runs on."""
    if keras.backend.backend() == "jax":
        from t5repro.engines import jax_engine

        return jax_engine
    from t5repro.engines import tensorflow_engine

    return tensorflow_engine


def filled_up(arrays: Sequence[Any], devices: int) -> list[Any]:
    """Return arrays of rows with the first row repeated at the end until devices share evenly."""
    missing = -arrays[0].shape[0] % devices
    if not missing:
        return list(arrays)
    return [
        keras.ops.concatenate([array, keras.ops.repeat(array[:1], missing, axis=0)])
        for array in arrays
    ]
