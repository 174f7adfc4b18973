"""Counts of a training since the last reset: targets, and positions without padding.

Shape suffixes: B rows of the batch, L positions.
"""

from collections.abc import Mapping

import keras
from keras import ops

from t5repro.model.layers import Tensor


class Count(keras.metrics.Metric):
    """A number of ids, counted since the last reset."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, dtype="int32")
        self.total = self.add_weight(name="total", shape=(), initializer="zeros", dtype="int32")

    def result(self) -> Tensor:
        """Return the count."""
        return ops.convert_to_tensor(self.total)


class TargetCount(Count):
    """Targets without padding."""

    def __init__(self) -> None:
        super().__init__("tokens")

    def update_state(self, count: Tensor) -> None:
        """Add the number of targets of one batch."""
        self.total.assign_add(count)


class FilledPositions(Count):
    """Positions of inputs and targets without padding."""

    def __init__(self) -> None:
        super().__init__("filled")

    def update_state(self, features: Mapping[str, Tensor]) -> None:
        """Count the positions of one batch; segments number them from 1."""
        for name, segments_BL in features.items():
            if name.endswith("_segments"):
                self.total.assign_add(ops.sum(ops.cast(segments_BL > 0, "int32")))
