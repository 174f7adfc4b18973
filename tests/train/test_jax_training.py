"""Whole trainings and answers on JAX, in an environment without TensorFlow."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import traced_steps
from checkout import SUPPORT
from jax_environment import MARKS, PYTHON, history, run, train, weights

pytestmark = MARKS


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of trainings on JAX."""
    folder = tmp_path_factory.mktemp("jax")
    runs = {
        "whole": {"dropout_rate": 0.1},
        "calls_of_five_steps": {"dropout_rate": 0.1, "steps_per_execution": 5},
        "without_dropout": {"dropout_rate": 0.0, "validation_every_steps": 3, "monitor": True},
        "encoder": {"dropout_rate": 0.0, "validation_every_steps": 3, "encoder": True},
        "electra": {"dropout_rate": 0.0, "validation_every_steps": 3, "electra": True},
    }
    train(folder, runs)
    return folder


@pytest.fixture
def train_here(tiny: ModuleType, tmp_path: Path) -> Callable[..., None]:
    """Run a tiny training on TensorFlow, in this process."""

    def start(name: str, **options: Any) -> None:
        traced_steps.run(tiny.make_job(tmp_path / name, **options))

    return start


def test_its_environment_has_no_tensorflow() -> None:
    program = "import importlib.util as u; print(u.find_spec('tensorflow'), u.find_spec('jax'))"
    none, _, jax = run(PYTHON, "-c", program).partition(" ")
    assert none == "None"
    assert jax.startswith("ModuleSpec")


def test_a_training_that_is_killed_twice_ends_in_the_same_bytes(
    trained: Path, tmp_path: Path
) -> None:
    statuses = train(tmp_path, {"whole": {"dropout_rate": 0.1}}, kill_at=[5, 9])
    assert json.loads(statuses.splitlines()[-1]) == [-9, -9, 0]
    assert weights(tmp_path / "whole") == weights(trained / "whole")


def test_a_second_phase_that_is_killed_ends_in_the_same_bytes_and_near_tensorflow(
    trained: Path, tmp_path: Path, train_here: Callable[..., None]
) -> None:
    first = str(trained / "encoder/results")
    second = {"phase": first, "encoder": True, "dropout_rate": 0.0, "seed": 2}
    statuses = train(tmp_path, {"killed": second, "whole": second}, kill_at=[7])
    assert json.loads(statuses.splitlines()[-1]) == [-9, 0]
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    record = json.loads((tmp_path / "whole/results/manifest.json").read_text(encoding="utf-8"))
    assert record["counters"]["optimizer_step"] == 20
    train_here("other_engine", **second)
    losses = (history(tmp_path / name) for name in ("whole", "other_engine"))
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_training_with_a_memory_that_is_killed_ends_in_the_same_bytes(tmp_path: Path) -> None:
    options = {"two_stream": True, "dropout_rate": 0.1}
    statuses = train(tmp_path, {"killed": options, "whole": options}, kill_at=[6])
    assert json.loads(statuses.splitlines()[-1]) == [-9, 0]
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


def test_the_steps_of_a_call_from_the_host_change_no_byte(trained: Path) -> None:
    assert weights(trained / "calls_of_five_steps") == weights(trained / "whole")


@pytest.mark.parametrize("name", ["without_dropout", "encoder", "electra"])
def test_losses_are_those_of_tensorflow(
    trained: Path, tmp_path: Path, train_here: Callable[..., None], name: str
) -> None:
    options = {"dropout_rate": 0.0, "validation_every_steps": 3}
    options |= {name: True} if name != "without_dropout" else {}
    train_here(name, **options)
    np.testing.assert_allclose(history(trained / name), history(tmp_path / name), rtol=1e-5)


def test_two_devices_train_like_one(trained: Path, tmp_path: Path) -> None:
    options = {"dropout_rate": 0.0, "validation_every_steps": 3}
    train(tmp_path, {"two": options}, replicas=2)
    expected = history(trained / "without_dropout")
    np.testing.assert_allclose(history(tmp_path / "two"), expected, rtol=1e-5)


def test_speeds_are_written_for_tensorboard(trained: Path) -> None:
    logs = trained / "without_dropout" / "logs"
    (events,) = logs.glob("events.out.tfevents.*")
    assert b"steps_per_second" in events.read_bytes()
    rows = (logs / "speed.csv").read_text().splitlines()
    assert [row.partition(",")[0] for row in rows] == ["step", "3", "6", "9", "10"]


def test_answers_are_those_of_tensorflow(tmp_path: Path) -> None:
    program = str(SUPPORT / "engine_answers.py")
    for engine, python in (("tensorflow", sys.executable), ("jax", PYTHON)):
        run(python, program, engine, str(tmp_path / f"{engine}.npz"))
    theirs, ours = (np.load(tmp_path / f"{name}.npz") for name in ("tensorflow", "jax"))
    assert len(ours.files) == 7
    for name in ours.files:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, err_msg=name)
