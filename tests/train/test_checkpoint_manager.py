"""Kept weights and copies in the cloud, on TensorFlow's `file://` file system."""

import shutil

import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.devices import DevicesSettings  # noqa: E402
from t5repro.errors import StorageError  # noqa: E402
from t5repro.model.checkpoints import read_arrays  # noqa: E402
from t5repro.train import callback, loop  # noqa: E402
from t5repro.train.checkpoint_manager import CloudCopy, cloud_address  # noqa: E402

pytestmark = pytest.mark.keras


class PowerCutError(Exception):
    pass


@pytest.fixture
def train(tiny, tmp_path, monkeypatch):
    """Run a tiny training; with `cut`, the power fails after that step."""

    def start(name, cut=None, **options):
        training = tiny.make_training(tmp_path / name, **options)
        show = callback.KeepHistory._show

        def show_and_cut(self, *arguments):
            show(self, *arguments)
            if self._step == cut:
                raise PowerCutError

        with monkeypatch.context() as patch:
            patch.setattr(callback.KeepHistory, "_show", show_and_cut)
            if cut is None:
                loop.run(training, tiny.on_this_process())
            else:
                with pytest.raises(PowerCutError):
                    loop.run(training, tiny.on_this_process())
        return training

    return start


def weights_of(training, step=None):
    folder = training.folder if step is None else training.folder / f"step-{step}"
    return (folder / "weights.safetensors").read_bytes()


def test_the_weights_of_every_checkpoint_are_handed_on_and_recorded(train):
    training = train("all", keep_checkpoints="all")
    assert training.plan.kept_steps == (4, 8, 10)
    assert weights_of(training, 10) == weights_of(training)
    assert len({weights_of(training, step) for step in (4, 8, 10)}) == 3
    assert weights_of(training, 4) == weights_of(train("four", steps=4))
    listed = [item["path"] for item in loop.json.loads(training.manifest.read_text())["outputs"]]
    assert [path.split("results/")[1] for path in listed[3:]] == [
        f"step-{step}/weights.safetensors" for step in (4, 8, 10)
    ]
    assert not training.work.exists()


def test_by_default_the_last_weights_alone_are_handed_on_and_older_ones_removed(train):
    train("run", keep_checkpoints="all")
    training = train("run")
    assert list(training.folder.glob("step-*")) == []
    assert train("none", steps=0, keep_checkpoints="all").plan.kept_steps == ()


def test_a_training_that_was_cut_off_keeps_the_weights_of_its_first_try(train):
    whole = train("whole", keep_checkpoints="all")
    train("cut", cut=9, keep_checkpoints="all")
    resumed = train("cut", keep_checkpoints="all")
    for step in (4, 8, 10):
        assert weights_of(resumed, step) == weights_of(whole, step)


def test_a_state_whose_kept_weights_were_lost_is_passed_over(train, capfd):
    whole = train("whole", keep_checkpoints="all")
    cut = train("cut", cut=9, keep_checkpoints="all")
    (cut.work / "kept-000000008.safetensors").unlink()
    resumed = train("cut", keep_checkpoints="all")
    assert "going on from" in (told := capfd.readouterr().err)
    assert "step-000000004" in told
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


def test_a_copy_that_was_cut_off_is_passed_over(train, cloud, tmp_path, capfd):
    whole = train("whole")
    cut = train("cut", cut=9, cloud_folder=cloud)
    shutil.rmtree(cut.work)
    newest = max((tmp_path / "bucket").rglob("step-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:99])
    assert weights_of(train("cut", cloud_folder=cloud)) == weights_of(whole)
    assert "trying the state before it" in capfd.readouterr().err


def test_only_the_newest_states_stay_in_the_cloud(train, cloud, tmp_path):
    train("cut", cut=9, cloud_folder=cloud, checkpoint_every_steps=1)
    copies = sorted(path.name for path in (tmp_path / "bucket").rglob("*.safetensors"))
    assert copies == ["step-000000007.safetensors", "step-000000008.safetensors"]


def test_speeds_and_tensorboard_files_go_where_they_are_asked_for(train, cloud, tmp_path):
    training = train("run", monitor=True, cloud_folder=cloud)
    assert (training.monitor / "speed.csv").read_text().count("\n") == 5
    assert list(training.monitor.glob("events*")) == []
    assert len(list((tmp_path / "bucket").rglob("events.out.tfevents*"))) == 1
    local = train("local", monitor=True)
    assert len(list(local.monitor.glob("events.out.tfevents*"))) == 1


def test_a_cloud_that_cannot_be_reached_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    copy = CloudCopy(f"file://{tmp_path}/file/below")
    with pytest.raises(StorageError, match="cannot be read or written .* check devices.cloud_fold"):
        copy.push(tmp_path / "file")
    with pytest.raises(StorageError, match="file/below cannot be read or written"):
        copy.names()
    with pytest.raises(StorageError, match="nowhere://x cannot be read or written"):
        CloudCopy("nowhere://x").names()


def test_a_folder_has_its_own_place_in_the_cloud():
    work = loop.Path("work/demo/pretrain/baseline")
    assert cloud_address("gs://bucket/t5/", work) == "gs://bucket/t5/work/demo/pretrain/baseline"
    assert cloud_address("gs://bucket", loop.Path("/disk/w")) == "gs://bucket/disk/w"


def test_an_address_has_a_scheme():
    assert DevicesSettings(cloud_folder="gs://bucket/t5").cloud_folder
    with pytest.raises(ValueError, match="cloud_folder"):
        DevicesSettings(cloud_folder="bucket/t5")


def test_kept_weights_can_be_read_as_any_others(train):
    training = train("run", keep_checkpoints="all")
    one, last = (
        read_arrays(training.folder / name / "weights.safetensors") for name in ("step-4", ".")
    )
    assert one.keys() == last.keys()
