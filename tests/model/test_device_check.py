"""A missing device is found in a process of its own."""

import subprocess

import pytest

pytest.importorskip("tensorflow")
from t5repro.config.sections.devices import DevicesSettings
from t5repro.model import device_check
from t5repro.model.device_check import device_fault

GPU = DevicesSettings(kind="gpu")


def test_a_cpu_is_there_and_tensorflow_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    assert device_fault(DevicesSettings()) == ""


@pytest.mark.keras
def test_a_missing_device_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # also where there is a GPU
    fault = device_fault(GPU)
    assert fault.startswith("devices.kind is 'gpu' but TensorFlow sees no GPU; it sees ('CPU:0',)")
    assert "\n" not in fault


def test_the_library_of_the_settings_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: run(["false"], capture_output=True, text=True)
    )
    fault = device_fault(DevicesSettings(kind="gpu", engine="jax"))
    assert fault == "devices.kind is 'gpu' and JAX cannot use it: no message"


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("raise SystemExit('libcuda is broken')", "TensorFlow cannot use it: libcuda is broken"),
        ("import os; os._exit(3)", "TensorFlow cannot use it: no message"),
        ("print('a line of a library')", ""),
        ("import time; time.sleep(60)", "TensorFlow did not start on it within 0.2 seconds"),
    ],
)
def test_a_process_that_says_nothing_or_never_ends_is_a_fault(
    program: str, fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    run = subprocess.run
    if "sleep" in program:
        monkeypatch.setattr(device_check, "LONGEST_SECONDS", 0.2)

    def replaced(command: list[str], **options: object) -> object:
        return run([command[0], "-c", program], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", replaced)
    found = device_fault(GPU)
    assert found.startswith("devices.kind is 'gpu' and " if fault else "")
    assert fault in found
