"""Counts over the replicas of a model, which share a batch.

Under JAX a compiled step sees the whole batch, on however many devices its rows are: one replica.
"""

import keras
from keras import ops

from t5repro.model.layers import Tensor


def replicas() -> int:
    """Return the number of replicas that share a batch."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def over_replicas(count: Tensor) -> Tensor:
    """Return the sum of a count over all replicas, float32."""
    count = ops.cast(count, "float32")
    if keras.backend.backend() != "tensorflow":
        return count
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, count)
