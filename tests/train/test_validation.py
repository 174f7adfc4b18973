import csv
import json

import numpy as np
import pytest
import traced_steps

keras = pytest.importorskip("keras")

from t5repro.config.sections.pretrain import PretrainSettings  # noqa: E402
from t5repro.errors import CorpusError  # noqa: E402
from t5repro.train import callback, loop  # noqa: E402
from t5repro.train import pretrain as pretrain_module  # noqa: E402
from t5repro.train.history import History  # noqa: E402
from t5repro.train.validation import Validation  # noqa: E402

pytestmark = pytest.mark.keras

EVERY_SIX = {"validation_every_steps": 6}


def history_of(job):
    with (job.folder / "history.csv").open() as handle:
        return list(csv.DictReader(handle))


@pytest.fixture(scope="module")
def measured(tiny, tmp_path_factory):
    """A tiny training with losses on held-out rows."""
    job = tiny.make_job(tmp_path_factory.mktemp("measured"), **EVERY_SIX, monitor=True)
    traced_steps.run(job)
    return job


def test_the_loss_is_the_mean_cross_entropy_of_the_target_ids_without_padding(tiny, tmp_path):
    model = loop.make_model(tiny.make_job(tmp_path, dropout_rate=0.5, z_loss=0.1))
    summed, tokens = 0.0, 0
    for step in (3, 4):
        features, targets = tiny.batch(step)
        logits = np.asarray(model(features))
        logits = logits.astype(np.float64)
        log_z = np.log(np.exp(logits).sum(axis=-1))
        at_target = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        summed += (log_z - at_target)[targets > 0].sum()
        tokens += (targets > 0).sum()
    validation = Validation(tiny.batches(3, 2), every_steps=1)
    losses = [validation.loss(model) for _ in range(2)]
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(summed / tokens, rel=1e-6)


def test_the_history_has_the_loss_at_its_interval_and_at_the_last_step(measured):
    rows = history_of(measured)
    assert [(row["step"], bool(row["validation_loss"])) for row in rows] == [
        ("3", False),
        ("6", True),
        ("9", False),
        ("10", True),
    ]
    first, last = (float(rows[number]["validation_loss"]) for number in (1, 3))
    assert 0 < last < first
    counters = json.loads(measured.manifest.read_text())["counters"]
    assert counters["final_validation_loss"] == pytest.approx(last, rel=1e-8)
    with (measured.monitor / "speed.csv").open() as handle:
        speeds = {row["step"]: row["validation_loss"] for row in csv.DictReader(handle)}
    assert {step for step, loss in speeds.items() if loss} == {"6", "10"}
    assert float(speeds["10"]) == pytest.approx(last, rel=1e-8)


def test_measuring_the_loss_changes_no_bit_of_the_training(tiny, tmp_path, measured):
    plain = tiny.make_job(tmp_path)
    traced_steps.run(plain)
    for name in ("weights.safetensors", "optimizer.safetensors"):
        assert (plain.folder / name).read_bytes() == (measured.folder / name).read_bytes(), name
    without = [{**row} for row in history_of(measured)]
    for row in without:
        del row["validation_loss"]
    assert history_of(plain) == without


def test_an_interrupted_training_has_the_same_losses(tiny, tmp_path, measured, monkeypatch):
    show = callback.TrainingCallback._show

    def show_and_stop(self, *arguments):
        show(self, *arguments)
        if self._step == 9:
            raise KeyboardInterrupt

    job = tiny.make_job(tmp_path, **EVERY_SIX)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(callback.TrainingCallback, "_show", show_and_stop)
        traced_steps.run(job)
    traced_steps.run(job)
    assert history_of(job) == history_of(measured)


def test_losses_survive_a_checkpoint_and_a_table_without_them_has_no_column():
    history = History()
    for step in (10, 20):
        history.add(2.5, 10, 7)
        history.finish_row(step, 0.5)
    assert history.as_csv() == "step,loss,learning_rate,tokens\n10,2.5,0.5,7\n20,2.5,0.5,7\n"
    history.validation_losses[20] = 1.25
    expected = "step,loss,learning_rate,tokens,validation_loss\n10,2.5,0.5,7,\n20,2.5,0.5,7,1.25\n"
    assert history.as_csv() == expected
    assert History.from_arrays(history.as_arrays()).as_csv() == expected


def test_an_interval_that_the_history_does_not_have_is_refused():
    with pytest.raises(
        ValueError, match="validation_every_steps 150 is not a multiple of log_every"
    ):
        PretrainSettings(validation_every_steps=150, log_every_steps=100)


@pytest.fixture
def stage(tiny):
    def make(repeat=0, **training):
        settings = {"validation_every_steps": 3, "inputs_length": 32, "targets_length": 24}
        return tiny.stage_settings(
            "pretrain",
            7,
            model=tiny.SHAPE,
            devices={},
            training={**settings, "repeat": repeat, **training},
        )

    return make


def write_split(folder, tokens):
    np.random.default_rng(0).integers(3, 100, tokens).astype("<u2").tofile(
        folder / "validation.ids"
    )
    np.array([0, tokens]).astype("<i8").tofile(folder / "validation.offsets")


def batches_of(settings, folder):
    return [targets for _, targets in pretrain_module.held_out_batches(settings, folder)]


def test_every_repetition_is_measured_on_the_same_corrupted_rows(stage, tmp_path):
    write_split(tmp_path, 4000)
    first, again, other = (
        batches_of(stage(repeat=repeat, unique_tokens=limit), tmp_path)
        for repeat, limit in ((0, 0), (0, 500), (2, 0))
    )
    assert len(first) == len(again) == len(other) > 1
    for batches in (again, other):
        assert all(map(np.array_equal, first, batches))


def test_a_small_split_is_read_once_and_one_without_a_row_is_refused(stage, tmp_path):
    write_split(tmp_path, 4000)
    assert len(batches_of(stage(validation_batches=2), tmp_path)) == 2
    whole = batches_of(stage(validation_batches=1000), tmp_path)
    assert len(whole) == 4000 // 31 // 8  # 31 tokens and EOS a row, 8 rows a batch
    write_split(tmp_path, 20)
    with pytest.raises(CorpusError, match="validation.ids: the corpus has 20 tokens"):
        batches_of(stage(), tmp_path)
