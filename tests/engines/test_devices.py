import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")
from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment
from t5repro.engines.tensorflow_environment import ENVIRONMENT, ONEDNN
from t5repro.errors import DeviceError

pytestmark = [
    pytest.mark.keras,
    # As other tests of this process may have started it.
    pytest.mark.filterwarnings("ignore:TensorFlow already runs with"),
]

PREPARE = """
from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import prepare
"""


def in_a_new_process(program, **variables):
    """Run a program that starts TensorFlow afresh; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    found = subprocess.run(
        [sys.executable, "-c", PREPARE + program],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found


def test_a_cpu_is_set_up_for_the_same_bytes_every_time_and_says_nothing():
    found = in_a_new_process(
        """
found = prepare(DevicesSettings(intra_op_threads=3))
import os, sys, keras, tensorflow as tf
assert not {"pandas", "sklearn"} & set(sys.modules)  # Keras would import them, for seconds
import pandas, sklearn
assert found.kind == "cpu" and found.strategy is None
assert os.environ["ONEDNN_MAX_CPU_ISA"] == "AVX2" and os.environ["TF_ENABLE_ONEDNN_OPTS"] == "1"
assert keras.backend.backend() == "tensorflow"
assert tf.config.threading.get_intra_op_parallelism_threads() == 3
assert tf.config.threading.get_inter_op_parallelism_threads() == 2
from tensorflow.python.framework import config
assert config.is_op_determinism_enabled()
assert tf.config.get_visible_devices("GPU") == []
with found.scope():
    tf.matmul(tf.ones((2, 2)), tf.ones((2, 2)))
""",
        ONEDNN_MAX_CPU_ISA="AVX512_CORE",
    )
    assert found.stderr == ""


def test_the_configuration_file_of_keras_and_its_variables_decide_nothing(tmp_path):
    folder = tmp_path / ".keras"
    folder.mkdir()
    (folder / "keras.json").write_text(
        '{"floatx": "float64", "epsilon": 0.01, "backend": "jax", '
        '"image_data_format": "channels_first"}'
    )
    in_a_new_process(
        """
prepare(DevicesSettings())
import keras
assert keras.config.floatx() == "float32" and keras.config.dtype_policy().name == "float32"
assert keras.config.epsilon() == 1e-7 and keras.config.backend() == "tensorflow"
assert keras.config.image_data_format() == "channels_last"
assert keras.config.max_epochs() is None and keras.config.max_steps_per_epoch() is None
""",
        HOME=str(tmp_path),
        KERAS_MAX_EPOCHS="1",
        KERAS_MAX_STEPS_PER_EPOCH="1",
    )


def test_a_configuration_file_that_keras_refuses_is_named(tmp_path):
    (tmp_path / "keras.json").write_text('{"floatx": "float128"}')
    found = in_a_new_process(
        """
from t5repro.errors import DeviceError
try:
    prepare(DevicesSettings())
except DeviceError as error:
    print(error)
""",
        KERAS_HOME=str(tmp_path),
    )
    assert found.stdout.startswith("Keras cannot read its configuration file: correct or delete")


MATRIX_PRODUCT = """
import sys
prepare(DevicesSettings(instruction_set=sys.argv[1]))
import tensorflow as tf
tf.matmul(tf.ones((256, 256)), tf.ones((256, 256)))
"""


@pytest.mark.parametrize("chosen", ["avx2", "native"])
def test_matrix_products_use_the_instruction_set_that_was_asked_for(chosen):
    program = MATRIX_PRODUCT.replace("sys.argv[1]", repr(chosen))
    found = in_a_new_process(program, ONEDNN_VERBOSE="1", ONEDNN_MAX_CPU_ISA="SSE41")
    (isa,) = re.findall(r"info,cpu,isa:(.*)", found.stdout)
    flags = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    assert ("AVX-512" in isa) == (chosen == "native" and "avx512f" in flags)


def test_all_logical_devices_work_in_step_when_mirrored():
    in_a_new_process(
        """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
found = prepare(DevicesSettings(kind="mirrored"))
assert found.names == ("CPU:0", "CPU:1") and found.strategy.num_replicas_in_sync == 2
"""
    )


def test_other_threads_than_those_running_are_refused():
    found = in_a_new_process(
        """
prepare(DevicesSettings(intra_op_threads=2))
import tensorflow as tf
tf.ones(2)
prepare(DevicesSettings(intra_op_threads=2))
from t5repro.errors import DeviceError
try:
    prepare(DevicesSettings(intra_op_threads=1))
except DeviceError as error:
    print(error)
"""
    )
    assert "already runs with 2 threads" in found.stdout
    assert "devices.intra_op_threads is 1" in found.stdout


def test_bfloat16_on_top_of_onednn_is_refused(monkeypatch):
    monkeypatch.setenv(ONEDNN, "1")
    with pytest.raises(DeviceError, match="'bfloat16' .* set TF_ENABLE_ONEDNN_OPTS=0 before"):
        set_environment(DevicesSettings(precision="bfloat16"))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "gpu",
            r"TensorFlow sees no GPU; it sees \('CPU:0',\); install the gpu extra \(make cuda\)",
        ),
        ("mirrored", r"needs 2 or more GPUs; TensorFlow sees \('CPU:0',\)"),
        ("tpu", r"no TPU answers at devices.tpu 'nowhere'; TensorFlow sees \('CPU:0',\); run"),
    ],
)
def test_a_device_that_is_not_here_is_refused_with_what_is(kind, message):
    from t5repro.engines import tensorflow_engine

    if tensorflow_engine.tf.config.list_physical_devices("GPU"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(DeviceError, match=message):
        tensorflow_engine.devices(DevicesSettings(kind=kind, tpu="nowhere"), any_threads=True)
