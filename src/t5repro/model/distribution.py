"""A function of rows on all replicas of a strategy; each replica computes its share of the rows.

Replicas exchange nothing, so each may stop when its own rows are done.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from t5repro.errors import SettingsError


def replicated(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Return `function` compiled for the replicas of the current strategy.

    Args:
        function: takes and returns tensors of the same number of rows; a row of the result depends
            only on the same row of the arguments.

    Raises:
        SettingsError: (on a call) the replicas cannot share the rows evenly.
    """
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return tf.function(function, autograph=False)

    @tf.function(autograph=False)
    def run_on_replicas(*shards: Any) -> Any:
        return strategy.run(function, args=shards)

    def run_on_all_rows(*arrays: tf.Tensor) -> tf.Tensor:
        rows = arrays[0].shape[0]
        if rows % replicas:
            raise SettingsError(
                f"{rows} rows cannot be shared evenly by {replicas} devices; make it a multiple"
            )
        shards = [_per_replica(strategy, tf.split(array, replicas)) for array in arrays]
        return tf.concat(strategy.experimental_local_results(run_on_replicas(*shards)), axis=0)

    return run_on_all_rows


def _per_replica(strategy: tf.distribute.Strategy, shards: list[tf.Tensor]) -> Any:
    """Return a value that is `parts[n]` on replica n."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: shards[context.replica_id_in_sync_group]
    )


def shared_rows(rows: int, replicas: int) -> int:
    """Return the smallest number of rows, at least `rows`, that replicas can share evenly."""
    return -(-rows // replicas) * replicas
