"""The order in which the gradients of an array with several readers are added."""

from keras import ops

from t5repro.model.layers import Tensor


def for_each_reader(x: Tensor, readers: int) -> list[Tensor]:
    """Return an array once for each of three or more readers; their gradients add up one by one.

    TensorFlow adds three and more gradients of one array by `AddN`, which begins with the first
    that nothing else needs any more: the order, and so the last bits, depend on which operation
    ended first (D-043). Here each array has two gradients: its reader's and the next array's.
    """
    arrays = [x]
    for number in range(1, readers):
        # Every second one has another shape: Grappler would join sums that follow each other.
        x = ops.expand_dims(x, 0) if number % 2 else ops.squeeze(x, 0)
        arrays.append(ops.squeeze(x, 0) if number % 2 else x)
    return arrays
