"""Kept weights and copies in the cloud, on TensorFlow's `file://` file system."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.devices import DevicesSettings  # noqa: E402
from t5repro.engines.devices import Devices  # noqa: E402
from t5repro.errors import CheckpointError, StorageError  # noqa: E402
from t5repro.lineage import sources  # noqa: E402
from t5repro.model.checkpoints import read_arrays, write_arrays  # noqa: E402
from t5repro.train import loop, set_aside  # noqa: E402
from t5repro.train.cloud import CloudCopy, cloud_address  # noqa: E402

pytestmark = pytest.mark.keras


@pytest.fixture
def train(train_once, train_in_place, tmp_path):
    """Run a tiny training, or go on with it; with `cut`, the power fails after that step."""

    def start(name, **options):
        folder = tmp_path / name
        # The place of a copy in the cloud is that of the folder on this machine.
        is_shared = not folder.exists() and "cloud_folder" not in options
        return (train_once if is_shared else train_in_place)(folder, **options)

    return start


def weights_of(job, step=None):
    folder = job.folder if step is None else job.folder / f"step-{step}"
    return (folder / "weights.safetensors").read_bytes()


def test_the_weights_of_every_checkpoint_are_exported_and_recorded(train):
    job = train("all", keep_checkpoints="all")
    assert job.training.kept_steps == (4, 8, 10)
    assert weights_of(job, 10) == weights_of(job)
    assert len({weights_of(job, step) for step in (4, 8, 10)}) == 3
    assert weights_of(job, 4) == weights_of(train("four", steps=4))
    listed = [item["path"] for item in json.loads(job.manifest.read_text())["outputs"]]
    assert [path.split("results/")[1] for path in listed[3:]] == [
        f"step-{step}/weights.safetensors" for step in (4, 8, 10)
    ]
    assert not job.work.exists()


def test_by_default_the_last_weights_alone_are_exported_and_older_ones_removed(train):
    train("run", keep_checkpoints="all")
    job = train("run")
    assert list(job.folder.glob("step-*")) == []
    assert train("none", steps=0, keep_checkpoints="all").training.kept_steps == ()


def test_a_training_that_was_interrupted_keeps_the_weights_of_its_first_try(train):
    whole = train("whole", keep_checkpoints="all")
    train("cut", cut=9, keep_checkpoints="all")
    resumed = train("cut", keep_checkpoints="all")
    for step in (4, 8, 10):
        assert weights_of(resumed, step) == weights_of(whole, step)


def test_a_state_whose_kept_weights_were_lost_is_skipped(train, capfd):
    whole = train("whole", keep_checkpoints="all")
    cut = train("cut", cut=9, keep_checkpoints="all")
    (cut.work / "kept-000000008.safetensors").unlink()
    resumed = train("cut", keep_checkpoints="all")
    assert "resuming from" in (log := capfd.readouterr().err)
    assert "step-000000004" in log
    assert ": resumed at step 4 of 10\n" in log
    assert weights_of(resumed, 8) == weights_of(whole, 8)


@pytest.fixture
def cloud(tmp_path):
    return f"file://{tmp_path}/bucket"


def test_a_new_machine_goes_on_from_the_states_in_the_cloud(train, cloud, tmp_path, capfd):
    options = {"keep_checkpoints": "all", "cloud_folder": cloud}
    whole = train("whole", keep_checkpoints="all")
    cut = train("cut", cut=9, **options)
    copies = sorted(path.name for path in (tmp_path / "bucket").rglob("*.safetensors"))
    assert copies == sorted(path.name for path in cut.work.iterdir())
    assert "kept-000000004.safetensors" in copies
    shutil.rmtree(cut.work)
    resumed = train("cut", **options)
    assert "step-000000008" in capfd.readouterr().err
    assert weights_of(resumed) == weights_of(whole)
    assert weights_of(resumed, 4) == weights_of(whole, 4)
    assert list((tmp_path / "bucket").rglob("*.safetensors")) == []


def test_a_copy_that_was_interrupted_is_skipped(train, cloud, tmp_path, capfd):
    whole = train("whole")
    cut = train("cut", cut=9, cloud_folder=cloud)
    shutil.rmtree(cut.work)
    newest = max((tmp_path / "bucket").rglob("step-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:99])
    assert weights_of(train("cut", cloud_folder=cloud)) == weights_of(whole)
    assert "trying the checkpoint before it" in capfd.readouterr().err


def test_only_the_newest_states_stay_in_the_cloud(train, cloud, tmp_path):
    train("cut", cut=9, cloud_folder=cloud, checkpoint_every_steps=1)
    copies = sorted(path.name for path in (tmp_path / "bucket").rglob("*.safetensors"))
    assert copies == ["step-000000007.safetensors", "step-000000008.safetensors"]


def test_speeds_and_tensorboard_files_go_where_they_are_asked_for(train, cloud, tmp_path):
    job = train("run", monitor=True, cloud_folder=cloud)
    assert (job.monitor / "speed.csv").read_text().count("\n") == 5
    assert list(job.monitor.glob("events*")) == []
    assert len(list((tmp_path / "bucket").rglob("events.out.tfevents*"))) == 1
    local = train("local", monitor=True)
    assert len(list(local.monitor.glob("events.out.tfevents*"))) == 1


def test_a_cloud_that_cannot_be_reached_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    copy = CloudCopy(f"file://{tmp_path}/file/below")
    with pytest.raises(StorageError, match="cannot be read or written .* check devices.cloud_fold"):
        copy.push(tmp_path / "file", "file")
    with pytest.raises(StorageError, match="file/below cannot be read or written"):
        copy.names()
    with pytest.raises(StorageError, match="nowhere://x cannot be read or written"):
        CloudCopy("nowhere://x").names()


def test_a_folder_has_its_own_place_in_the_cloud():
    work = Path("work/demo/pretrain/baseline")
    assert cloud_address("gs://bucket/t5/", work) == "gs://bucket/t5/work/demo/pretrain/baseline"
    assert cloud_address("gs://bucket", Path("/disk/w")) == "gs://bucket/disk/w"


def test_an_address_has_a_scheme():
    assert DevicesSettings(cloud_folder="gs://bucket/t5").cloud_folder
    with pytest.raises(ValueError, match="cloud_folder"):
        DevicesSettings(cloud_folder="bucket/t5")


def test_kept_weights_can_be_read_as_any_others(train):
    job = train("run", keep_checkpoints="all")
    one, last = (read_arrays(job.folder / name / "weights.safetensors") for name in ("step-4", "."))
    assert one.keys() == last.keys()


# Checkpoints of another fingerprint


@pytest.fixture
def edit(monkeypatch):
    """Pretend that a source file of the package was edited."""
    closure = sources.closure

    def pretend(name):
        monkeypatch.setattr(
            sources,
            "closure",
            lambda rule: {
                path: "edited" if path.endswith(name) else digest
                for path, digest in closure(rule).items()
            },
        )

    return pretend


def files_below(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*.safetensors")
    }


def group_of(folder):
    (group,) = (folder / "set-aside").iterdir()
    return group


def event_of(job):
    return json.loads(job.manifest.read_text())["counters"].get("resumed_from_changed")


def test_an_edit_outside_the_closure_resumes(train, edit, capfd):
    train("run", cut=6)
    edit("metrics/text.py")
    job = train("run")
    assert "resuming from" in capfd.readouterr().err
    assert event_of(job) is None
    assert not job.work.exists()


def test_an_edit_of_the_model_sets_the_checkpoints_aside(train, edit, capfd):
    expected = train("expected")
    job = train("run", cut=6)
    checkpoint = (job.work / "step-000000004.safetensors").read_bytes()
    edit("model/transformer.py")
    train("run")
    log = capfd.readouterr().err
    group = group_of(job.work)
    assert re.fullmatch("other-code-[0-9a-f]{8}", group.name)
    assert f"1 checkpoint files set aside in {group}: written with other code;" in log
    assert "the option --resume-changed (setting run.resume_changed) resumes" in log
    assert (group / "step-000000004.safetensors").read_bytes() == checkpoint
    assert weights_of(job) == weights_of(expected)
    assert event_of(job) is None


@pytest.mark.parametrize("keep", ["last", "all"])
def test_a_checkpoint_of_other_code_is_resumed_on_request_and_recorded(train, edit, capfd, keep):
    expected = train("expected", keep_checkpoints=keep)
    train("run", cut=9, keep_checkpoints=keep)
    edit("model/transformer.py")
    job = train("run", keep_checkpoints=keep, resume_changed=True)
    path = group_of(job.work) / "step-000000008.safetensors"
    assert f"resuming from {path}, written with other code" in capfd.readouterr().err
    event = event_of(job)
    assert (event["step"], event["parts"]) == (8, ["code"])
    assert group_of(job.work).name == f"other-code-{event['fingerprint'][:8]}"
    assert len(event["fingerprint"]) == 64
    for name in files_below(expected.folder):
        assert (job.folder / name).read_bytes() == (expected.folder / name).read_bytes(), name


def test_the_event_outlives_another_interruption(train, edit):
    train("run", cut=5)
    edit("model/transformer.py")
    train("run", cut=9, resume_changed=True)
    job = train("run")
    assert (event_of(job)["step"], event_of(job)["parts"]) == (4, ["code"])


def test_an_undone_edit_resumes_without_a_request(train, edit, monkeypatch, capfd):
    with monkeypatch.context() as patch:
        train("run", cut=9)
        patch.setattr(sources, "closure", lambda rule: {})
        train("run", cut=5)
    capfd.readouterr()
    job = train("run")
    log = capfd.readouterr().err
    assert "other-code-" in log
    assert "step-000000008.safetensors" in log
    assert event_of(job) is None
    # Those of the attempt in between are set aside, too.
    assert len(list((job.work / "set-aside").iterdir())) == 2


def test_every_differing_part_is_named(train, edit, tmp_path):
    job = train("run", cut=6)
    edit("model/transformer.py")
    (tmp_path / "run" / "corpus").write_text("other ids")
    train("run", dropout_rate=0.2)
    assert group_of(job.work).name.startswith("other-settings-inputs-code-")


def test_checkpoints_of_the_first_format_are_of_unknown_parts(train, tmp_path):
    expected = train("expected")
    job = train("run", cut=9)
    for path in job.work.iterdir():
        arrays = {
            name: array
            for name, array in read_arrays(path).items()
            if not name.startswith(("others/fingerprint/", "others/format"))
        }
        arrays["others/fingerprint"] = np.full(32, 0xAB, np.uint8)
        write_arrays(path, arrays)
    resumed = train("run", resume_changed=True)
    assert group_of(job.work).name == "other-unknown-abababab"
    event = {"step": 8, "parts": ["unknown"], "fingerprint": "ab" * 32}
    assert event_of(resumed) == event
    assert weights_of(resumed) == weights_of(expected)


def test_a_checkpoint_of_another_shape_is_refused_with_the_cure(train, tiny, monkeypatch):
    train("run", cut=6)
    monkeypatch.setattr(tiny, "SHAPE", tiny.SHAPE.model_copy(update={"d_ff": 48}))
    with pytest.raises(CheckpointError, match="other settings and cannot be resumed: undo the ch"):
        train("run", resume_changed=True)


def test_a_checkpoint_beyond_the_last_step_is_skipped(train, capfd):
    train("run", cut=9)
    job = train("run", steps=6, resume_changed=True)
    assert "step-000000008.safetensors is beyond the last step 6; skipped" in capfd.readouterr().err
    assert event_of(job)["step"] == 4


def test_a_move_that_was_killed_is_completed_by_the_next_start(
    train, edit, tiny, tmp_path, monkeypatch, power_cut
):
    job = train("run", cut=9, keep_checkpoints="all")
    expected = files_below(job.work)
    assert len(expected) == 4
    replace = os.replace
    edit("model/transformer.py")
    job = tiny.make_job(tmp_path / "run", keep_checkpoints="all")
    for moves in range(3):
        with monkeypatch.context() as patch:
            remaining = iter(range(moves))

            def replace_or_die(source, target, remaining=remaining):
                if "set-aside" in str(target) and next(remaining, None) is None:
                    raise power_cut
                replace(source, target)

            patch.setattr(set_aside.os, "replace", replace_or_die)
            with pytest.raises(power_cut):
                loop.run(job, Devices("cpu", ("CPU:0",)))
        assert {Path(name).name: data for name, data in files_below(job.work).items()} == expected
    train("run", keep_checkpoints="all")
    group = group_of(job.work)
    assert files_below(group) == expected


def test_a_second_group_of_one_name_overwrites_nothing(tmp_path):
    folder = set_aside.SetAside(tmp_path, None)
    for text, suffix in (("one", ""), ("one", ""), ("two", "-2")):
        (tmp_path / "file").write_text(text)
        assert folder.move(["file"], "other-code-1").name == f"other-code-1{suffix}"
    for text, suffix in (("one", ""), ("two", "-2")):
        assert (tmp_path / "set-aside" / f"other-code-1{suffix}" / "file").read_text() == text


def test_copies_in_the_cloud_are_set_aside_alike_and_resumed_on_a_new_machine(
    train, edit, cloud, tmp_path
):
    options = {"keep_checkpoints": "all", "cloud_folder": cloud}
    expected = train("expected", keep_checkpoints="all")
    job = train("run", cut=9, **options)
    checkpoints = files_below(job.work)
    edit("model/transformer.py")
    train("run", cut=3, **options)
    copies = files_below(tmp_path / "bucket" / str(job.work).lstrip("/"))
    group = group_of(job.work).name
    assert copies == {f"set-aside/{group}/{name}": data for name, data in checkpoints.items()}
    shutil.rmtree(job.work)
    resumed = train("run", resume_changed=True, **options)
    assert event_of(resumed)["step"] == 8
    for step in (4, 8, 10):
        assert weights_of(resumed, step) == weights_of(expected, step)
    assert copies == files_below(tmp_path / "bucket" / str(job.work).lstrip("/"))


def test_the_same_name_in_the_cloud_is_not_overwritten(tmp_path):
    cloud = CloudCopy(f"file://{tmp_path}/bucket")
    folder = set_aside.SetAside(tmp_path / "work", cloud)
    (tmp_path / "work").mkdir()
    for text in ("one", "two", "six"):
        (tmp_path / "work" / "file").write_text(text)
        cloud.names()
        cloud.push(tmp_path / "work" / "file", "file")
        folder.move(["file"], "other-code-1")
        shutil.rmtree(tmp_path / "work" / "set-aside")
    below = tmp_path / "bucket" / "set-aside"
    texts = {path.name: (path / "file").read_text() for path in below.iterdir()}
    assert texts == {"other-code-1": "one", "other-code-1-2": "two", "other-code-1-3": "six"}
    assert not cloud.differ("file", "set-aside/other-code-1/file")
    assert {name for names in folder.groups("") for name in names} == {
        f"set-aside/other-code-1{suffix}/file" for suffix in ("", "-2", "-3")
    }
