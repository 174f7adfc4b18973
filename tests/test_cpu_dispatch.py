"""NumPy and OpenBLAS use the same instructions on every CPU."""

import json
import os
import platform
import subprocess
import sys

import pytest

from t5repro import cpu_dispatch

REPORT = """
import json, os
import t5repro
import numpy, threadpoolctl
from numpy._core._multiarray_umath import __cpu_features__ as features
(blas,) = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
levels = [features["X86_V3"], features["X86_V4"]]
print(json.dumps([*levels, blas["architecture"], blas["num_threads"]]))
"""


@pytest.mark.skipif(
    not cpu_dispatch.has_required_instructions(), reason="needs an x86-64 CPU with AVX2 and FMA"
)
@pytest.mark.parametrize("given", [{}, {"NPY_DISABLE_CPU_FEATURES": "X86_V3"}])
def test_numpy_and_its_products_use_avx2_whatever_the_cpu_has_and_the_user_set(
    given: dict[str, str],
) -> None:
    kept = {name: v for name, v in os.environ.items() if name not in cpu_dispatch.VARIABLES}
    found = subprocess.run(
        [sys.executable, "-c", REPORT],
        env={**kept, "OPENBLAS_NUM_THREADS": "2", **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == [True, False, "Haswell", 1]


def test_a_cpu_without_avx2_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_dispatch, "cpu_flags", lambda: frozenset({"sse4_2", "avx"}))
    environment: dict[str, str] = {}
    cpu_dispatch.fix(environment)
    assert environment == {}


def test_the_flags_of_linux_are_read(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text("model name\t: X\nflags\t\t: fpu avx2 fma\nflags\t\t: fpu\n")
    monkeypatch.setattr(cpu_dispatch, "CPU_INFO", listing)
    assert cpu_dispatch.cpu_flags() == {"fpu", "avx2", "fma"}
    monkeypatch.setattr(cpu_dispatch, "CPU_INFO", tmp_path / "absent")
    assert cpu_dispatch.cpu_flags() == frozenset()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert not cpu_dispatch.has_required_instructions()
