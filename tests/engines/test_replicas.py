"""How rows are shared among devices; that answers do not depend on it is tested with prediction."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tensorflow")
from t5repro.engines.engine import filled_up
from t5repro.engines.tensorflow_environment import ENVIRONMENT

pytestmark = pytest.mark.keras

PROGRAM = """
import tensorflow as tf
from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import prepare
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
devices = prepare(DevicesSettings(kind="mirrored"))
from t5repro.engines.tensorflow_engine import compiled_rows
seen = []

def number_rows(first, second):
    seen.append(first.shape.as_list())
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return tf.stack([first[:, 0], second[:, 0], tf.fill([2], replica)], axis=1)

with devices.scope():
    call = compiled_rows([], number_rows)
    found = call(tf.range(6)[:, None], 10 * tf.range(6)[:, None])
    assert found.numpy().tolist() == [[row, 10 * row, row // 2] for row in range(6)], found
    assert seen == [[2, 1]] * 3, seen
    call(tf.range(6)[:, None], tf.range(6)[:, None])
    assert len(seen) == 3, "one program serves all batches of a shape"
    for rows in (4, 5):
        found = call(tf.range(rows)[:, None], 10 * tf.range(rows)[:, None])
        assert found.numpy().tolist() == [[row, 10 * row, row // 2] for row in range(rows)], found
    assert len(seen) == 3, "rows that fill up are no rows of another shape"
"""


def test_each_device_computes_its_part_and_the_rows_come_back_in_order():
    kept = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@given(rows=st.integers(1, 500), devices=st.integers(1, 64))
def test_the_first_row_fills_up_to_the_next_multiple(rows, devices):
    numbers = np.arange(rows, dtype=np.int32)
    found, doubled = map(np.asarray, filled_up([numbers, 2 * numbers], devices))
    assert len(found) % devices == 0
    assert rows <= len(found) < rows + devices
    assert found.tolist() == [*range(rows), *[0] * (len(found) - rows)]
    assert (doubled == 2 * found).all()
