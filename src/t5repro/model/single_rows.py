"""Arrays without products of a single row: their bytes would depend on the machine."""

from keras import ops

from t5repro.model.layers import Tensor


def two_rows_or_more(array: Tensor) -> Tensor:
    """Return an array of (rows, ...), a single row twice.

    oneDNN divides the sums of a product with one row among threads by the size of the L2 cache (its
    gemv), so the bytes would depend on the machine.
    """
    return ops.repeat(array, 2, axis=0) if array.shape[0] == 1 else array
