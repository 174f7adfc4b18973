"""The environment variables that TensorFlow and oneDNN read when they start.

On a CPU three things decide the bytes of a result: the instruction set of oneDNN (a setting: AVX2,
which every x86-64 server has, or the processor's widest), the number of threads inside one
operation (a setting), and operations without a fixed order of addition (replaced by their ordered
forms).
"""

import os
import sys

from t5repro.config.sections.devices import DevicesSettings
from t5repro.errors import DeviceError

QUIET = "TF_CPP_MIN_LOG_LEVEL"
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
ENVIRONMENT = {QUIET: "2", ONEDNN: "1", "KERAS_BACKEND": "tensorflow", "ONEDNN_MAX_CPU_ISA": "AVX2"}
INSTRUCTION_SETS = {"avx2": "AVX2", "native": "DEFAULT"}  # values of oneDNN's variable


def set_variables(settings: DevicesSettings) -> None:
    """Set the variables.

    Raises:
        DeviceError: TensorFlow is imported already, with oneDNN kernels that would crash.
    """
    environment = {**ENVIRONMENT, "ONEDNN_MAX_CPU_ISA": INSTRUCTION_SETS[settings.instruction_set]}
    if settings.kind == "cpu":
        # Without a GPU driver TensorFlow reports an error, which does not matter on a CPU.
        environment[QUIET] = "3"
    if settings.precision == "bfloat16":
        # oneDNN's bfloat16 kernels end in a segmentation fault below AVX-512.
        environment[ONEDNN] = "0"
        if "tensorflow" in sys.modules and os.environ.get(ONEDNN) != "0":
            raise DeviceError(
                "devices.precision is 'bfloat16' and TensorFlow already runs with oneDNN, which "
                f"can crash; set {ONEDNN}=0 before TensorFlow is imported"
            )
    # The level of the log changes no result, so a level set by the user takes precedence.
    os.environ.setdefault(QUIET, environment.pop(QUIET))
    os.environ.update(environment)
