import csv
import json
import re
import signal
from types import SimpleNamespace
from unittest.mock import ANY

import numpy as np
import pytest
import traced_steps

keras = pytest.importorskip("keras")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.finetune import FinetuneSettings  # noqa: E402
from t5repro.errors import ArtifactError, CheckpointError  # noqa: E402
from t5repro.model.checkpoints import read_arrays  # noqa: E402
from t5repro.train import callback, loop  # noqa: E402
from t5repro.train.callback import TrainingDivergedError  # noqa: E402
from t5repro.train.history import LoopState  # noqa: E402

pytestmark = pytest.mark.keras

RESULTS = ("weights.safetensors", "optimizer.safetensors", "history.csv")


def bytes_of(job):
    return {name: (job.folder / name).read_bytes() for name in RESULTS}


def rows_of(job):
    with (job.folder / "history.csv").open() as handle:
        return [
            {name: float(value) for name, value in row.items()} for row in csv.DictReader(handle)
        ]


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """A tiny training that nothing interrupted, and that traced a step of its own."""
    job = tiny.make_job(tmp_path_factory.mktemp("whole"))
    traced_steps.run(job)
    return job


@pytest.fixture
def train(tiny, tmp_path):
    """Run a tiny training in this process; return it."""

    def start(name="run", **options):
        job = tiny.make_job(tmp_path / name, **options)
        traced_steps.run(job)
        return job

    return start


@pytest.fixture
def interrupt(monkeypatch):
    """Raise or send something while a step is being taken note of, once."""

    def at(step, action):
        show = callback.TrainingCallback._show

        def show_and_act(self, *arguments):
            show(self, *arguments)
            if self._step == step:
                monkeypatch.setattr(callback.TrainingCallback, "_show", show)
                action()

        monkeypatch.setattr(callback.TrainingCallback, "_show", show_and_act)

    return at


class PowerCutError(Exception):
    pass


def cut_power():
    raise PowerCutError


def test_two_processes_end_in_the_same_bytes_and_another_seed_in_others(
    tiny, tmp_path, train, whole, in_a_new_process, monkeypatch
):
    keras_home = tmp_path / "keras"
    keras_home.mkdir()
    (keras_home / "keras.json").write_text('{"floatx": "float64", "epsilon": 0.01}')
    monkeypatch.setenv("KERAS_HOME", str(keras_home))
    monkeypatch.setenv("KERAS_MAX_STEPS_PER_EPOCH", "2")
    done = in_a_new_process(tmp_path, {"again": {}})
    assert done.returncode == 0, done.stderr
    run, again, other = map(
        bytes_of, (whole, tiny.make_job(tmp_path / "again"), train("other", seed=1))
    )
    assert run == again
    assert run["weights.safetensors"] != other["weights.safetensors"]
    assert run["history.csv"] != other["history.csv"]


def test_training_lowers_the_loss(train):
    rows = rows_of(train(steps=40, log_every_steps=10))
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.2


@pytest.mark.parametrize("step", [2, 6])
def test_a_training_that_was_interrupted_and_resumed_ends_in_the_bytes_of_one_that_was_not(
    train, whole, interrupt, step, capfd
):
    interrupt(step, cut_power)
    with pytest.raises(PowerCutError):
        train("cut")
    resumed = train("cut")
    assert bytes_of(resumed) == bytes_of(whole)
    assert ("resuming from" in capfd.readouterr().err) == (step > 4)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_saves_the_state_of_its_step_and_the_next_try_goes_on_from_it(
    train, whole, interrupt, tmp_path, number, raised
):
    handler = signal.getsignal(number)
    interrupt(5, lambda: signal.raise_signal(number))
    with pytest.raises(raised) as caught:
        train("stopped")
    if raised is SystemExit:
        assert caught.value.code == 143
    assert signal.getsignal(number) == handler
    states = sorted(path.name for path in (tmp_path / "stopped" / "work").iterdir())
    assert states == ["step-000000004.safetensors", "step-000000005.safetensors"]
    assert not (tmp_path / "stopped" / "results").exists()
    assert bytes_of(train("stopped")) == bytes_of(whole)
    assert not (tmp_path / "stopped" / "work").exists()


def test_a_killed_process_loses_the_steps_since_its_last_state_and_no_more(
    tiny, tmp_path, whole, in_a_new_process
):
    killed = in_a_new_process(tmp_path, {"run": {}}, kill_at=[7])
    assert json.loads(killed.stdout) == [-signal.SIGKILL, 0], killed.stderr
    assert re.findall(r"resuming from \S+step-(\d+)", killed.stderr) == ["000000004"]
    assert bytes_of(tiny.make_job(tmp_path / "run")) == bytes_of(whole)


def test_sigterm_ends_a_process_with_143_and_ctrl_c_like_python(tmp_path, in_a_new_process):
    stopped = in_a_new_process(tmp_path, {"run": {}}, signal_at=[int(signal.SIGTERM), 3])
    assert stopped.returncode == 143
    stopped = in_a_new_process(tmp_path, {"run": {}}, signal_at=[int(signal.SIGINT), 6])
    assert "step-000000003.safetensors" in stopped.stderr
    assert "KeyboardInterrupt" in stopped.stderr
    assert stopped.returncode in (130, -signal.SIGINT)


def test_a_damaged_state_is_passed_over_for_the_one_before_it(
    train, whole, interrupt, capfd, tmp_path
):
    interrupt(7, cut_power)
    with pytest.raises(PowerCutError):
        train("cut", checkpoint_every_steps=2)
    newest = tmp_path / "cut" / "work" / "step-000000006.safetensors"
    newest.write_bytes(newest.read_bytes()[:100])
    newest.with_name(".writing-abc-step-000000008.safetensors").write_bytes(b"half")
    resumed = train("cut", checkpoint_every_steps=2)
    log = capfd.readouterr().err
    assert "trying the checkpoint before it" in log
    assert "step-000000004" in log
    assert bytes_of(resumed) == bytes_of(whole)
    assert not newest.parent.exists()


def test_the_newest_two_states_are_kept(train, interrupt, tmp_path):
    interrupt(9, cut_power)
    with pytest.raises(PowerCutError):
        train(checkpoint_every_steps=1)
    names = sorted(path.name for path in (tmp_path / "run" / "work").iterdir())
    assert names == ["step-000000007.safetensors", "step-000000008.safetensors"]


def test_a_finished_training_is_not_run_again_when_only_its_results_are_missing(
    train, monkeypatch, capfd
):
    def full_disk(*arguments):
        raise PowerCutError

    with monkeypatch.context() as patch:
        patch.setattr(loop, "write_results", full_disk)
        with pytest.raises(PowerCutError):
            train(steps=8)
    job = train(steps=8)
    assert "resuming from" in capfd.readouterr().err
    assert len(rows_of(job)) == 3


def test_the_history_has_a_row_every_few_steps_and_at_the_end(tiny, train, whole):
    rows = rows_of(whole)
    fine = rows_of(train("fine", log_every_steps=1))
    assert [row["step"] for row in rows] == [3, 6, 9, 10]
    assert [row["step"] for row in fine] == list(range(1, 11))
    starts = (0, 3, 6, 9, 10)
    for row, first, last in zip(rows, starts, starts[1:], strict=False):
        part = fine[first:last]
        assert row["loss"] == pytest.approx(np.mean([item["loss"] for item in part]), rel=1e-6)
        assert row["tokens"] == sum(item["tokens"] for item in part)
    targets = [tiny.batch(step)[1] for step in range(10)]
    assert [row["tokens"] for row in fine] == [(ids > 0).sum() for ids in targets]
    assert all(row["learning_rate"] == pytest.approx(0.05) for row in rows)


def test_the_history_gives_the_rate_of_the_update_that_was_made(train):
    settings = {"schedule": "inverse_square_root", "warmup_steps": 4, "factor": 0.1}
    rows = rows_of(train(learning_rate=settings, log_every_steps=1))
    expected = [0.1 / max(step, 4) ** 0.5 for step in range(10)]
    np.testing.assert_allclose([row["learning_rate"] for row in rows], expected, rtol=1e-6)


def test_the_record_says_what_ran(tiny, whole):
    job = whole
    record = json.loads(job.manifest.read_text())
    counted = [tiny.batch(step)[1] for step in range(10)]
    tokens = sum(int((ids > 0).sum()) for ids in counted)
    model = loop.make_model(job)
    assert record["rule"] == "pretrain"
    assert record["settings"] == job.recorded_settings
    assert [item["path"].rsplit("/", 1)[-1] for item in record["outputs"]] == list(RESULTS)
    assert record["counters"] == {
        "steps": 10,
        "optimizer_step": 10,
        "parameters": model.count_params(),
        "trained_parameters": model.count_params(),
        "final_loss": pytest.approx(rows_of(job)[-1]["loss"]),
        "loss_of_step": {"1": pytest.approx(4.4, abs=1), "5": ANY, "10": ANY},
        "target_tokens": tokens,
        "target_padding_share": 1 - tokens / sum(ids.size for ids in counted),
        "synthetic": True,
    }


def early_losses(job):
    return json.loads(job.manifest.read_text())["counters"]["loss_of_step"]


def test_the_manifest_has_the_losses_of_early_steps_interrupted_or_not(train, whole, interrupt):
    fine = {row["step"]: row["loss"] for row in rows_of(train("fine", log_every_steps=1))}
    losses = early_losses(whole)
    assert losses == {str(step): pytest.approx(fine[step], rel=1e-8) for step in (1, 5, 10)}
    interrupt(7, cut_power)
    with pytest.raises(PowerCutError):
        train("cut", checkpoint_every_steps=6)
    assert early_losses(train("cut", checkpoint_every_steps=6)) == losses
    # A call from the host that makes several steps has the mean of their losses only.
    assert early_losses(train("several", steps_per_execution=2)) == {}


def test_no_steps_hand_on_fresh_weights_and_an_empty_history(train):
    job = train(steps=0)
    assert rows_of(job) == []
    arrays = read_arrays(job.folder / "optimizer.safetensors")
    assert int(arrays.pop("iteration")) == 0
    assert not any(array.any() for array in arrays.values())
    fresh = loop.make_model(job).network
    weights = read_arrays(job.folder / "weights.safetensors")
    np.testing.assert_array_equal(weights["embedding"], fresh.embedding.numpy())
    counters = json.loads(job.manifest.read_text())["counters"]
    assert counters["final_loss"] is None
    assert counters["loss_of_step"] == {}
    assert "synthetic" not in counters


def test_fine_tuning_without_a_step_hands_on_the_weights_it_got(train, whole):
    after = train(rule="finetune", start=str(whole.folder), steps=0)
    for name in RESULTS[:2]:
        assert bytes_of(after)[name] == bytes_of(whole)[name]


def test_fine_tuning_goes_on_with_the_weights_the_slots_and_the_count_of_pretraining(
    train, whole, interrupt
):
    schedule = {"schedule": "inverse_square_root", "warmup_steps": 1, "factor": 0.1}
    options = {"rule": "finetune", "start": str(whole.folder), "learning_rate": schedule}
    after = train("finetune", log_every_steps=1, **options)
    rows = rows_of(after)
    assert [row["step"] for row in rows] == list(range(1, 11))
    expected = [0.1 / (10 + step) ** 0.5 for step in range(10)]
    np.testing.assert_allclose([row["learning_rate"] for row in rows], expected, rtol=1e-6)
    assert int(read_arrays(after.folder / "optimizer.safetensors")["iteration"]) == 20
    assert rows[0]["loss"] < rows_of(whole)[0]["loss"]

    interrupt(6, cut_power)
    with pytest.raises(PowerCutError):
        train("cut", log_every_steps=1, **options)
    assert bytes_of(train("cut", log_every_steps=1, **options)) == bytes_of(after)


def test_fine_tuning_may_begin_with_fresh_slots_and_a_count_of_zero(train, whole):
    after = train(
        "fresh", rule="finetune", start=str(whole.folder), optimizer_state="fresh", steps=0
    )
    assert bytes_of(after)["weights.safetensors"] == bytes_of(whole)["weights.safetensors"]
    arrays = read_arrays(after.folder / "optimizer.safetensors")
    assert int(arrays.pop("iteration")) == 0
    assert not any(array.any() for array in arrays.values())


def test_weights_to_start_from_that_are_missing_are_named(train, tmp_path):
    with pytest.raises(ArtifactError, match="weights.safetensors is missing; run the stage"):
        train(rule="finetune", start=str(tmp_path / "nowhere"))


def test_weights_of_another_network_are_refused(train, whole, tiny, monkeypatch):
    monkeypatch.setattr(tiny, "SHAPE", tiny.SHAPE.model_copy(update={"d_ff": 48}))
    with pytest.raises(CheckpointError, match="check the model and vocab settings"):
        train(rule="finetune", start=str(whole.folder))


def test_a_loss_that_is_not_a_number_ends_training_at_its_step(train, tmp_path):
    with pytest.raises(TrainingDivergedError, match=r"the loss is (nan|inf) at step \d+; lower"):
        train(learning_rate={"schedule": "constant", "factor": 1e30})
    assert not (tmp_path / "run" / "results").exists()


def test_several_steps_a_call_train_the_same_weights_and_resume_like_single_ones(
    train, whole, interrupt
):
    options = {"steps_per_execution": 4, "log_every_steps": 4}
    several = train("several", **options)
    for name in RESULTS[:2]:
        assert bytes_of(several)[name] == bytes_of(whole)[name]
    assert [row["step"] for row in rows_of(several)] == [4, 8, 10]
    interrupt(8, cut_power)
    with pytest.raises(PowerCutError):
        train("cut", **options)
    assert bytes_of(train("cut", **options)) == bytes_of(several)


def test_two_replicas_train_like_one_and_repeat_themselves(tiny, train, tmp_path, in_a_new_process):
    plain, noisy = {"dropout_rate": 0.0}, {"dropout_rate": 0.2}
    for name, runs in (("a", {"plain": plain, "noisy": noisy}), ("b", {"noisy": noisy})):
        done = in_a_new_process(tmp_path / name, runs, replicas=2)
        assert done.returncode == 0, done.stderr
    one = train(dropout_rate=0.0)
    two, noisy, again = (
        tiny.make_job(tmp_path / name) for name in ("a/plain", "a/noisy", "b/noisy")
    )
    for single, both in zip(rows_of(one), rows_of(two), strict=True):
        assert both["tokens"] == single["tokens"]
        assert both["loss"] == pytest.approx(single["loss"], rel=1e-5)
    weights = [read_arrays(item.folder / RESULTS[0]) for item in (one, two)]
    for name, array in weights[0].items():
        np.testing.assert_allclose(weights[1][name], array, rtol=1e-3, atol=1e-4)
    assert bytes_of(noisy) == bytes_of(again)


def test_each_replica_gets_noise_of_its_own_that_follows_from_the_first(
    tiny, tmp_path, monkeypatch
):
    from types import SimpleNamespace

    def state(seed):
        return keras.Variable(np.asarray([seed, 5]), dtype="int64").value

    replicas = [state(2**31 - 1), state(2**31 - 1), state(2**31 - 1)]
    variable = SimpleNamespace(
        value=SimpleNamespace(values=replicas), numpy=lambda: replicas[0].numpy()
    )
    monkeypatch.setattr(loop, "noise_variables", lambda model: {"place": variable})
    loop.separate_noise(SimpleNamespace(network=None))
    seeds, drawn = zip(*(replica.numpy() for replica in replicas), strict=True)
    assert seeds == (2**31 - 1, 1_000_002, 2_000_005)
    assert drawn == (5, 5, 5)


@pytest.mark.parametrize(("size", "share"), [("bert_tiny", None), ("small", 0.9)])
def test_labels_have_no_padding_of_targets(size, share):
    """A row of a network of labels has one target, whatever `targets_length` is."""
    job = SimpleNamespace(
        training=FinetuneSettings(steps=2, batch_size=4, targets_length=10),
        settings=SimpleNamespace(model=SIZES[size]),
        counters=lambda steps: {},
    )
    state = LoopState(offset=0)
    state.history.add(1.0, 2, tokens=8)
    optimizer = SimpleNamespace(iterations=SimpleNamespace(numpy=lambda: 2))
    model = SimpleNamespace(weights=[], trainable_variables=[], optimizer=optimizer)
    assert loop.counters_of(job, model, state)["target_padding_share"] == share
