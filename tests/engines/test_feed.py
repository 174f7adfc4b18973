from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("tensorflow")
from t5repro.engines import tensorflow_engine

pytestmark = pytest.mark.keras


@dataclass(frozen=True)
class Batches:
    """Batches of one row, which is the number of the step."""

    first_step: int
    steps: int

    def make(self, step):
        return {"ids": np.array([[step]], np.int32)}

    def __iter__(self):
        return map(self.make, range(self.first_step, self.first_step + self.steps))


def test_a_dataset_has_the_batches_in_order_each_time_that_it_is_read():
    dataset = tensorflow_engine.feed(Batches(first_step=3, steps=4))
    for _ in range(2):
        assert [int(batch["ids"][0, 0]) for batch in dataset] == [3, 4, 5, 6]


def test_no_thread_tunes_a_dataset_for_which_the_end_of_a_training_would_wait():
    dataset = tensorflow_engine.feed(Batches(first_step=0, steps=2))
    assert dataset.options().autotune.enabled is False
