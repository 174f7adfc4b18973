"""AdamW with scaled steps and the cosine schedule, against their formulas in float64."""

import math

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.sections.training import LearningRate  # noqa: E402
from t5repro.errors import CheckpointError  # noqa: E402
from t5repro.model.checkpoints import read_arrays  # noqa: E402
from t5repro.train import callback, loop  # noqa: E402
from t5repro.train.adamw import AdamW  # noqa: E402
from t5repro.train.optimizer import schedule  # noqa: E402

pytestmark = pytest.mark.keras

COSINE = {"schedule": "cosine", "factor": 0.02, "final_factor": 1e-5, "warmup_steps": 4}
RESULTS = ("weights.safetensors", "optimizer.safetensors", "history.csv")


class Twin:
    """AdamW of PyTorch, with the step times max(1e-3, RMS of the weight); epsilon as nanoT5's."""

    def __init__(self, weight, rate, decay=0.0):
        self.weight, self.rate, self.decay = weight.astype(np.float64), rate, decay
        self.first, self.second = np.zeros(weight.shape), np.zeros(weight.shape)
        self.updates = 0

    def update(self, gradient):
        rate, gradient = self.rate(self.updates), gradient.astype(np.float64)
        scale = max(1e-3, np.linalg.norm(self.weight) / self.weight.size**0.5)
        self.updates += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean = self.first / (1 - 0.9**self.updates)
        correction = 1 - 0.999**self.updates
        # nanoT5 adds epsilon to the root before the correction, so it is divided by it as well.
        root = np.sqrt(self.second / correction) + 1e-6 / np.sqrt(correction)
        decayed = self.weight * (1 - rate * self.decay) if self.weight.ndim > 1 else self.weight
        self.weight = decayed - rate * scale * mean / root


def cosine(step, steps=60):
    if step < 4:
        return 0.02 * (0.5 + 0.5 * step / 4)
    share = (step - 4) / (steps - 4)
    return 1e-5 + (0.02 - 1e-5) * (1 + math.cos(math.pi * share)) / 2


@pytest.mark.parametrize("shape", [(130, 140), (30, 20), (200,)])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_sixty_steps_equal_the_definition(shape, decay, size):
    generator = np.random.default_rng(1)
    start = generator.normal(size=shape).astype(np.float32)
    weight = keras.Variable(start, name="weight")
    optimizer = AdamW(schedule(LearningRate(**COSINE), steps=60), decay=decay)
    optimizer.build([weight])
    reference = Twin(start, cosine, decay)
    for _ in range(60):
        gradient = (size * generator.normal(size=shape)).astype(np.float32)
        optimizer.apply([gradient], [weight])
        reference.update(gradient)
    assert abs(reference.weight - start).max() > 1e-3
    np.testing.assert_allclose(np.asarray(weight), reference.weight, rtol=2e-4, atol=2e-6)


def test_a_weight_that_begins_later_is_corrected_from_its_own_first_update():
    weights = [keras.Variable(np.ones(3, np.float32), name=name) for name in ("early", "late")]
    optimizer = AdamW(0.1)
    optimizer.build(weights)
    optimizer._paths = ["early", "late"]
    optimizer.starts = {"late": 5}
    for number in range(8):
        optimizer.apply([np.ones(3, np.float32)] * 2, weights)
        if number == 4:
            np.testing.assert_array_equal(np.asarray(weights[1]), 1.0)
            assert not np.asarray(optimizer._slots[1][0]).any()
    reference = Twin(np.ones(3), lambda _: 0.1)
    for _ in range(3):
        reference.update(np.ones(3))
    np.testing.assert_allclose(np.asarray(weights[1]), reference.weight, rtol=1e-5)


def test_a_weight_of_zeros_moves_by_the_least_scale():
    weight = keras.Variable(np.zeros(4, np.float32))
    AdamW(0.1).apply([np.ones(4, np.float32)], [weight])
    np.testing.assert_allclose(np.asarray(weight), -0.1 * 1e-3, rtol=1e-4)


def test_a_sparse_gradient_updates_as_the_dense_array_of_its_summed_rows():
    rows = np.array([3, 5, 3])
    values = np.random.default_rng(2).normal(size=(3, 20)).astype(np.float32)
    dense = np.zeros((14, 20), np.float32)
    np.add.at(dense, rows, values)
    results = []
    for gradient in (tf.IndexedSlices(*map(tf.constant, (values, rows, dense.shape))), dense):
        weight = keras.Variable(np.ones((14, 20), np.float32))
        AdamW(0.1).apply([gradient], [weight])
        results.append(np.asarray(weight))
    np.testing.assert_allclose(*results, rtol=1e-6)


def test_the_cosine_rises_from_a_half_and_falls_to_the_final_rate():
    rate = schedule(LearningRate(**COSINE), steps=100)
    expected = [cosine(step, 100) for step in range(100)]
    np.testing.assert_allclose([float(rate(step)) for step in range(100)], expected, rtol=1e-6)
    assert float(rate(0)) == pytest.approx(0.01)
    assert float(rate(4)) == pytest.approx(0.02)
    assert float(rate(52)) == pytest.approx((0.02 + 1e-5) / 2)
    assert type(rate)(**rate.get_config())(7) == rate(7)


def test_the_cosine_of_a_stage_begins_at_its_first_update():
    rate = schedule(LearningRate(**COSINE), steps=100, offset=1000)
    assert float(rate(1000)) == pytest.approx(0.01)
    assert float(rate(1052)) == pytest.approx((0.02 + 1e-5) / 2)


@pytest.fixture
def train(tiny, tmp_path):
    def start(name, **options):
        recipe = {"optimizer": "adamw", "learning_rate": COSINE}
        job = tiny.make_job(tmp_path / name, **{**recipe, **options})
        loop.run(job, tiny.on_this_process())
        return job

    return start


def bytes_of(job):
    return {name: (job.folder / name).read_bytes() for name in RESULTS}


def test_an_interrupted_training_ends_in_the_same_bytes_also_in_fine_tuning(train, monkeypatch):
    before = train("pretrain")
    slots = read_arrays(before.folder / "optimizer.safetensors")
    assert slots["embedding.first_moment"].shape == slots["embedding.second_moment"].shape
    expected = [1 - 0.9**10, 1 - 0.999**10]
    np.testing.assert_allclose(slots["embedding.totals"], expected, rtol=2e-5)
    show = callback.TrainingCallback._show
    for name, options in (
        ("pretrain", {}),
        ("finetune", {"rule": "finetune", "start": str(before.folder)}),
    ):
        whole = train(f"{name}_whole", log_every_steps=1, **options)

        def cut(self, *arguments):
            show(self, *arguments)
            if self._step == 6:
                raise RuntimeError

        with monkeypatch.context() as patch:
            patch.setattr(callback.TrainingCallback, "_show", cut)
            with pytest.raises(RuntimeError):
                train(f"{name}_cut", log_every_steps=1, **options)
        assert bytes_of(train(f"{name}_cut", log_every_steps=1, **options)) == bytes_of(whole)
        lines = (whole.folder / "history.csv").read_text().splitlines()
        column = lines[0].split(",").index("learning_rate")
        rates = [float(line.split(",")[column]) for line in lines[1:]]
        np.testing.assert_allclose(rates, [cosine(step, 10) for step in range(10)], rtol=1e-5)


def test_fine_tuning_continues_the_moments_or_begins_with_none(train):
    before = train("pretrain")
    options = {"rule": "finetune", "start": str(before.folder), "steps": 0}
    slots = [
        read_arrays(train(state, optimizer_state=state, **options).folder / "optimizer.safetensors")
        for state in ("continue", "fresh")
    ]
    assert int(slots[0]["iteration"]) == 10
    assert slots[0]["embedding.second_moment"].any()
    assert not any(array.any() for array in slots[1].values())


def test_moments_of_another_optimizer_are_refused(train):
    before = train("pretrain", optimizer="adafactor")
    with pytest.raises(CheckpointError, match="lacks 'embedding.first_moment'"):
        train("finetune", rule="finetune", start=str(before.folder))


def test_published_weights_with_moments_of_another_optimizer_start_with_none(train, capfd):
    before = train("pretrain", optimizer="adafactor")
    after = train("start", published=before.folder, steps=0)
    assert "optimizer reinitialised" in capfd.readouterr().err
    slots = read_arrays(after.folder / "optimizer.safetensors")
    assert not any(array.any() for array in slots.values())
