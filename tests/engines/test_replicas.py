"""How rows are shared among devices; that answers do not depend on it is tested with prediction."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tensorflow")
from t5repro.engines.engine import shared_rows
from t5repro.engines.tensorflow_environment import ENVIRONMENT

pytestmark = pytest.mark.keras

PROGRAM = """
import tensorflow as tf
from t5repro.config.sections.devices import DevicesSettings
from t5repro.errors import SettingsError
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
    try:
        call(tf.range(7)[:, None], tf.range(7)[:, None])
    except SettingsError as error:
        print(error)
"""


def test_each_device_computes_its_part_and_the_rows_come_back_in_order():
    kept = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7 rows cannot be shared evenly by 3 devices; make it a multiple\n"


@given(rows=st.integers(1, 500), replicas=st.integers(1, 64))
def test_shared_rows_are_the_next_multiple(rows, replicas):
    found = shared_rows(rows, replicas)
    assert found % replicas == 0
    assert rows <= found < rows + replicas
