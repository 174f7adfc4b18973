"""A function of rows on all devices that work in step: each computes its part of the rows.

Nothing passes between the parts, so each device may stop when its own rows are done.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from t5repro.errors import SettingsError


def compiled(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Return `function` compiled for the devices of the strategy that is in force.

    Args:
        function: takes tensors of as many rows, returns one of them; a row of what it returns
            depends on the same row of its arguments alone.

    Raises:
        SettingsError: (what is returned) the devices cannot share the rows evenly.
    """
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return tf.function(function, autograph=False)

    @tf.function(autograph=False)
    def on_each(*parts: Any) -> Any:
        return strategy.run(function, args=parts)

    def on_all(*arrays: tf.Tensor) -> tf.Tensor:
        rows = arrays[0].shape[0]
        if rows % replicas:
            raise SettingsError(
                f"{rows} rows cannot be shared evenly by {replicas} devices; make it a multiple"
            )
        parts = [_shared(strategy, tf.split(array, replicas)) for array in arrays]
        return tf.concat(strategy.experimental_local_results(on_each(*parts)), axis=0)

    return on_all


def _shared(strategy: tf.distribute.Strategy, parts: list[tf.Tensor]) -> Any:
    """Give each device of the strategy its part."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


def shared_rows(rows: int, replicas: int) -> int:
    """Return the least number of rows, `rows` or more, that devices can share evenly."""
    return -(-rows // replicas) * replicas
