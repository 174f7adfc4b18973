"""The tiny training, as a module and as a program."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from checkout import SUPPORT

from t5repro.config.sections.devices import DevicesSettings
from t5repro.model.devices import ENVIRONMENT, set_environment

set_environment(DevicesSettings())  # before any test module imports TensorFlow

PROGRAM = SUPPORT / "tiny_training.py"


@pytest.fixture(scope="session")
def tiny() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_training", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def in_a_new_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run tiny trainings, by name, in a process of their own."""

    def start(
        folder: Path, runs: dict[str, dict[str, Any]], **options: Any
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(PROGRAM), str(folder), json.dumps(runs), json.dumps(options)],
            env={name: value for name, value in os.environ.items() if name not in ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )

    return start
