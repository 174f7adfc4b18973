"""A mesh of devices on JAX trains, resumes and answers like one device.

The eight devices are logical ones of the CPU, which `engines.jax_environment` makes for a mesh.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import SUPPORT
from jax_environment import IF_INSTALLED, PYTHON, history, run, train, weights
from mesh_steps import EVERYWHERE, FREE, OF_FOUR_HEADS, STEPS

from t5repro.artifacts import STEPS as STEPS_FILE
from t5repro.train.history import CHANGED
from t5repro.train.repeated_steps import state_file

pytestmark = IF_INSTALLED
PROGRAM = str(SUPPORT / "mesh_steps.py")
GRID = {"mesh": {"data": 2, "model": 4}, "remat": "block"}
ON_EACH_MESH = [("2x4", name) for name in (*EVERYWHERE, *OF_FOUR_HEADS)] + [
    ("1x8", name) for name in EVERYWHERE
]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the steps of one device and of two meshes."""
    folder = tmp_path_factory.mktemp("mesh")
    for mesh in (("1", "1"), ("2", "4"), ("1", "8")):
        run(PYTHON, PROGRAM, str(folder), *mesh)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of trainings on a mesh and on one device."""
    folder = tmp_path_factory.mktemp("trained")
    options = {"dropout_rate": 0.1, "validation_every_steps": 3}
    train(folder, {"mesh": options}, places=GRID)
    train(folder, {"one": options})
    return folder


@pytest.mark.parametrize(("mesh", "case"), ON_EACH_MESH)
def test_steps_have_the_losses_and_updates_of_one_device(steps: Path, mesh: str, case: str) -> None:
    result = json.loads((steps / mesh / case / STEPS_FILE).read_text())
    assert len(result["losses"]) == STEPS
    # Dropout is on: its noise does not depend on the number of devices.
    np.testing.assert_allclose(result["losses"], result["losses_of_reference"], rtol=1e-5)
    assert max(distance["share"] for distance in result["distances"]) < 1e-5


@pytest.mark.parametrize("case", ["T5, wide", "prefix language model"])
def test_initial_weights_are_those_of_one_device(steps: Path, case: str) -> None:
    one, eight = ((steps / mesh / case / state_file(0)).read_bytes() for mesh in ("1x1", "2x4"))
    assert eight == one


@pytest.mark.parametrize(("mesh", "devices"), [("2x4", 4), ("1x8", 8)])
def test_a_device_has_its_part_of_weights_and_slots(steps: Path, mesh: str, devices: int) -> None:
    facts = json.loads((steps / mesh / "facts.json").read_text())
    assert facts["share"] < 1.1 / devices
    part = f"({128 // devices},)"
    slots = {path.removeprefix("adafactor/"): shape for path, shape in facts["slots"].items()}
    assert (slots["embedding.row_moment"], slots["embedding.column_moment"]) == (part, "(128,)")
    assert slots["encoder.block_0.self_attention.q.column_moment"] == part
    # Devices add up, and never send each other their parts of a matrix.
    assert set(facts["exchanges"]) == {"all-reduce"}


@pytest.mark.parametrize("mesh", ["2x4", "1x8", "1x1"])
def test_a_state_is_read_and_written_unchanged_on_every_mesh(steps: Path, mesh: str) -> None:
    run(PYTHON, PROGRAM, str(steps), *mesh.split("x"), "load")
    written = (steps / "2x4" / FREE / state_file(STEPS)).read_bytes()
    assert (steps / f"loaded-{mesh}.safetensors").read_bytes() == written


def test_a_training_has_the_losses_of_one_device(trained: Path) -> None:
    np.testing.assert_allclose(history(trained / "mesh"), history(trained / "one"), rtol=1e-5)


def test_a_training_that_is_killed_ends_in_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    options = {"dropout_rate": 0.1, "validation_every_steps": 3}
    statuses = train(tmp_path, {"mesh": options}, places=GRID, kill_at=[5])
    assert json.loads(statuses.splitlines()[-1]) == [-9, 0]
    assert weights(tmp_path / "mesh") == weights(trained / "mesh")


def test_a_training_resumes_on_another_mesh_if_the_user_says_so(
    trained: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"dropout_rate": 0.1, "validation_every_steps": 3}
    train(tmp_path, {"mesh": options}, places=GRID, kill_at=[5], unfinished=True)
    train(tmp_path, {"mesh": {**options, "resume_changed": True}})
    manifest = json.loads((tmp_path / "mesh/results/manifest.json").read_text())
    assert manifest["counters"][CHANGED]["parts"] == ["settings"]
    np.testing.assert_allclose(history(tmp_path / "mesh"), history(trained / "mesh"), rtol=1e-5)


def test_answers_are_those_of_one_device(tmp_path: Path) -> None:
    program = str(SUPPORT / "engine_answers.py")
    for name, mesh in (("one", ()), ("mesh", ("2", "4"))):
        run(PYTHON, program, "jax", str(tmp_path / f"{name}.npz"), *mesh)
    one, divided = (np.load(tmp_path / f"{name}.npz") for name in ("one", "mesh"))
    for name in one.files:
        if name == "logits":
            np.testing.assert_allclose(divided[name], one[name], rtol=1e-5)
        else:
            np.testing.assert_array_equal(divided[name], one[name], err_msg=name)


def test_what_devices_cannot_share_is_refused() -> None:
    weight, heads, rows, devices = run(PYTHON, str(SUPPORT / "mesh_refusals.py")).splitlines()
    assert weight.startswith("weight 'gain' is matched by no key of LAYOUTS in engines/weight")
    assert "of which 6 is not a multiple of devices.mesh.model 4; set" in heads
    assert rows == "3 rows cannot be shared evenly by 2 devices; make it a multiple"
    assert (
        "devices.mesh is 4 x 4, which needs 16 or more devices; JAX sees 8; set devices" in devices
    )
