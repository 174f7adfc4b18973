"""The cache of keys or values in decoding: one entry for each step.

Shape suffixes: B rows of the batch, H heads, T steps, F features of a step.
"""

from typing import Any

from keras import ops

from t5repro.engines.engine import engine
from t5repro.engines.mesh import weight_shares
from t5repro.model.layers import Tensor


def empty_caches(
    count: int, batch: Tensor, heads: int, *, steps: int, features: int, dtype: Any
) -> list[Tensor]:
    """Return caches before the first step, zeros.

    The shape of one is (batch * heads * steps, features): a step writes whole rows. On a mesh of
    devices it is (batch, heads, steps, features): devices share rows of the batch and heads, which
    one axis of both could not express.
    """
    if weight_shares() > 1:
        return [ops.zeros((batch, heads, steps, features), dtype=dtype)] * count
    shape = (batch * heads * steps, features)
    return [engine().zeros(shape, dtype) for _ in range(count)]


def write_step(cache: Tensor, values_BHF: Tensor, step: Tensor) -> Tensor:
    """Write one step's keys or values into a cache, in place if the engine can; return it.

    Nothing may read the cache of the step before afterwards.

    Args:
        cache: one of `empty_caches`, or what this function returned.
        values_BHF: of the step; it may have more than one axis of features.
        step: number of the step.
    """
    batch, heads = ops.shape(values_BHF)[:2]
    features = cache.shape[-1]
    if len(cache.shape) == 4:
        values_BH1F = ops.reshape(values_BHF, (batch, heads, 1, features))
        return ops.slice_update(cache, (0, 0, step, 0), values_BH1F)
    rows = batch * heads
    values = ops.reshape(values_BHF, (rows, features))
    steps = ops.shape(cache)[0] // rows
    # Row r has the rows r * steps to (r + 1) * steps - 1 of the cache, one per step.
    indices = ops.arange(rows, dtype="int32") * steps + step
    return engine().with_rows(cache, indices, values)
