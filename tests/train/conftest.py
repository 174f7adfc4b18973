"""The tiny training, as a module and as a program."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import traced_steps
from checkout import SUPPORT

from t5repro.engines.tensorflow_environment import ENVIRONMENT

PROGRAM = SUPPORT / "tiny_training.py"


@pytest.fixture(scope="session")
def tiny() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_training", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PowerCutError(Exception):
    """The power fails while a step is being taken note of."""


@pytest.fixture(scope="session")
def power_cut() -> type[PowerCutError]:
    return PowerCutError


@pytest.fixture(scope="session")
def train_in_place(tiny: ModuleType) -> Callable[..., Any]:
    """Run a tiny training in a folder; with `cut`, the power fails after that step."""
    from t5repro.train import callback

    def start(folder: Path, *, cut: int | None = None, **options: Any) -> Any:
        job = tiny.make_job(folder, **options)
        show = callback.TrainingCallback._show

        def show_and_cut(self: Any, *arguments: Any) -> None:
            show(self, *arguments)
            if self._step == cut:
                raise PowerCutError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(callback.TrainingCallback, "_show", show_and_cut)
            if cut is None:
                traced_steps.run(job)
            else:
                with pytest.raises(PowerCutError):
                    traced_steps.run(job)
        return job

    return start


@pytest.fixture(scope="session")
def train_once(
    tiny: ModuleType, train_in_place: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """Copy a tiny training into a new folder. Each training runs once, wherever it is needed.

    What is in a training's folder is a function of its options and of the code that it records.
    """
    originals: dict[str, Path] = {}

    def copy(folder: Path, *, cut: int | None = None, **options: Any) -> Any:
        job = tiny.make_job(folder, **options)
        decides = (cut, job.rule, job.recorded_settings, dict(job.code), options)
        key = json.dumps(decides, sort_keys=True, default=str)
        if key not in originals:
            originals[key] = tmp_path_factory.mktemp("trained") / "run"
            train_in_place(originals[key], cut=cut, **options)
        shutil.copytree(originals[key], folder, dirs_exist_ok=True)
        return job

    return copy


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
