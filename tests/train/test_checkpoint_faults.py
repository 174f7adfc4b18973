"""Checkpoints after kills and damage, without training: files are written as `save` names them."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import contextlib

from t5repro.model.checkpoints import write_arrays
from t5repro.train import checkpoint_manager, set_aside
from t5repro.train.fingerprint import PARTS, Fingerprint

pytestmark = pytest.mark.keras
KEPT_STEPS = (10, 20, 30, 40)


class Model:
    network = optimizer = None
    objective = SimpleNamespace(columns=None)


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """Return a manager of the work folder for code of a name."""
    monkeypatch.setattr(
        checkpoint_manager,
        "save_state",
        lambda path, model, optimizer, arrays: write_arrays(
            path, {f"others/{name}": np.asarray(value) for name, value in arrays.items()}
        ),
    )
    monkeypatch.setattr(
        checkpoint_manager,
        "save_weights",
        lambda path, network, columns: path.write_bytes(b"weights"),
    )
    (tmp_path / "work").mkdir()

    def make(code, kept_steps=()):
        digests = {
            part: hashlib.sha256((code if part == "code" else part).encode()).hexdigest()
            for part in PARTS
        }
        return checkpoint_manager.CheckpointManager(
            tmp_path / "work", Fingerprint(digests), log=print, kept_steps=kept_steps
        )

    return make


def save(manager, *steps):
    for step in steps:
        manager.save(step, Model, {"offset": np.asarray(0)})


def steps_in(folder):
    return sorted(int(path.stem[-9:]) for path in folder.glob("step-*"))


@pytest.mark.parametrize("moves", range(6))
def test_an_edit_undone_after_a_killed_move_resumes_where_it_was(
    manager, moves, tmp_path, monkeypatch
):
    save(manager("first", KEPT_STEPS), 10, 20, 30)
    move = set_aside.SetAside._move_file
    done = []

    def killed(self, name, target):
        if len(done) == moves:
            raise KeyboardInterrupt
        done.append(name)
        move(self, name, target)

    with monkeypatch.context() as patch:
        patch.setattr(set_aside.SetAside, "_move_file", killed)
        with contextlib.suppress(KeyboardInterrupt):
            list(manager("second", KEPT_STEPS).resumable(changed=False))
    again = manager("first", KEPT_STEPS)
    checkpoint = next(again.resumable(changed=False))
    assert checkpoint.step == 30
    again.adopt(checkpoint)
    assert all(again.kept_weights(step).read_bytes() == b"weights" for step in (10, 20, 30))


def test_damaged_checkpoints_of_later_steps_do_not_cost_the_one_just_saved(manager, tmp_path):
    work = tmp_path / "work"
    for step in (20, 30):
        (work / f"step-{step:09d}.safetensors").write_bytes(b"damaged")
    assert list(manager("first").resumable(changed=False)) == []
    save(manager("first"), 5, 10, 15)
    assert steps_in(work) == [10, 15, 20, 30]
    assert next(manager("first").resumable(changed=False)).step == 15


def test_a_lost_file_of_kept_weights_does_not_cost_new_checkpoints(manager, tmp_path):
    save(manager("first", KEPT_STEPS), 10, 20, 30)
    manager("first", KEPT_STEPS).kept_weights(10).unlink()
    assert list(manager("first", KEPT_STEPS).resumable(changed=False)) == []
    save(manager("first", KEPT_STEPS), 5)
    assert next(manager("first", KEPT_STEPS).resumable(changed=False)).step == 5
