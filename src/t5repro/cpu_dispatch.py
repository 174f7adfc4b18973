"""Holds NumPy and OpenBLAS to the instructions that every exact run uses.

Both choose their kernels by the CPU when NumPy is imported, and kernels of another width round
differently: the last digit of a correlation would depend on the machine. The package calls `fix`
before it imports anything else. `engines` does the same for TensorFlow and JAX, by settings.
"""

import os
import platform
from collections.abc import MutableMapping
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
# x86-64-v3, as Linux names its parts beyond x86-64-v2: `abm` has LZCNT.
REQUIRED_FLAGS = frozenset(("avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"))
# NumPy stops at its import if it is asked for a level that the CPU lacks. OpenBLAS splits a sum
# over its threads, whose number is that of the machine's cores.
VARIABLES = {
    "NPY_ENABLE_CPU_FEATURES": "X86_V3",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
}


def fix(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that NumPy and OpenBLAS read at their import, if this CPU has x86-64-v3."""
    if has_required_instructions():
        environment.pop("NPY_DISABLE_CPU_FEATURES", None)  # NumPy refuses to be given both
        environment.update(VARIABLES)


def has_required_instructions() -> bool:
    """Return whether this is an x86-64 CPU with AVX2 and FMA (x86-64-v3)."""
    return platform.machine() == "x86_64" and cpu_flags() >= REQUIRED_FLAGS


def cpu_flags() -> frozenset[str]:
    """Return the CPU's features as Linux names them; none where it does not report any."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())
