"""Counts over the replicas of a model, which share a batch.

Under JAX a compiled step sees the whole batch, on however many devices its rows are: one replica.
"""

import contextlib
from typing import Any

import keras
from keras import ops


def replicas() -> int:
    """Return the number of replicas that share a batch."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def over_replicas(count: Any) -> Any:
    """Return the sum of a count over all replicas, float32."""
    count = ops.cast(count, "float32")
    if keras.backend.backend() != "tensorflow":
        return count
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, count)


def scope_of(model: Any) -> contextlib.AbstractContextManager[Any]:
    """Return the context that a model was created in."""
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    return model.distribute_strategy.scope()


def replicas_of(model: Any) -> int:
    """Return the number of replicas of a model."""
    if keras.backend.backend() != "tensorflow":
        return 1
    return int(model.distribute_strategy.num_replicas_in_sync)


def shared_rows(rows: int, replicas: int) -> int:
    """Return the smallest number of rows, at least `rows`, that replicas can share evenly."""
    return -(-rows // replicas) * replicas
