"""Adam of each system and LAMB, against their formulas in float64."""

import math

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.sections.training import LearningRate  # noqa: E402
from t5repro.errors import CheckpointError  # noqa: E402
from t5repro.model.checkpoints import read_arrays  # noqa: E402
from t5repro.train.adafactor import Adafactor  # noqa: E402
from t5repro.train.adam import VARIANTS, Adam  # noqa: E402
from t5repro.train.schedules import schedule  # noqa: E402

pytestmark = pytest.mark.keras

COSINE = {"schedule": "cosine", "factor": 0.02, "final_factor": 1e-5, "warmup_steps": 4}
RESULTS = ("weights.safetensors", "optimizer.safetensors", "history.csv")


class Twin:
    """The optimizers as their papers and programs define them."""

    def __init__(self, variant, weight, rate, decay=0.0, betas=(0.9, 0.999), epsilon=1e-6):
        self.step = getattr(self, variant)
        self.weight, self.rate, self.decay = weight.astype(np.float64), rate, decay
        self.first, self.second = np.zeros(weight.shape), np.zeros(weight.shape)
        self.betas, self.epsilon, self.updates = betas, epsilon, 0

    def update(self, gradient):
        rate, gradient = self.rate(self.updates), gradient.astype(np.float64)
        self.updates += 1
        self.first = self.betas[0] * self.first + (1 - self.betas[0]) * gradient
        self.second = self.betas[1] * self.second + (1 - self.betas[1]) * gradient**2
        self.weight = self.step(rate)

    @property
    def is_matrix(self):
        return self.weight.ndim > 1

    @property
    def corrections(self):
        return [1 - beta**self.updates for beta in self.betas]

    def adamw(self, rate):
        """PyTorch's, with the step times max(1e-3, RMS of the weight); epsilon as nanoT5's."""
        scale = max(1e-3, np.linalg.norm(self.weight) / self.weight.size**0.5)
        first, second = self.corrections
        # nanoT5 adds epsilon to the root before the correction, so it is divided by it as well.
        root = np.sqrt(self.second / second) + self.epsilon / np.sqrt(second)
        decayed = self.weight * (1 - rate * self.decay) if self.is_matrix else self.weight
        return decayed - rate * scale * (self.first / first) / root

    def adam_bert(self, rate):
        update = self.first / (np.sqrt(self.second) + self.epsilon)
        if self.is_matrix:
            update = update + self.decay * self.weight
        return self.weight - rate * update

    def adam_fairseq(self, rate):
        first, second = self.corrections
        step = rate * np.sqrt(second) / first
        decayed = self.weight - self.decay * rate * self.weight
        return decayed - step * self.first / (np.sqrt(self.second) + self.epsilon)

    def adam_gpt(self, rate):
        first, second = self.corrections
        decay = self.decay * self.weight if self.is_matrix else 0
        update = self.first / (np.sqrt(self.second) + self.epsilon) + decay
        return self.weight - rate * np.sqrt(second) / first * update

    def lamb(self, rate):
        update = self.first / (np.sqrt(self.second) + self.epsilon)
        if not self.is_matrix:
            return self.weight - rate * update
        update = update + self.decay * self.weight
        norms = np.linalg.norm(self.weight), np.linalg.norm(update)
        return self.weight - rate * norms[0] / norms[1] * update


def cosine(step, steps=60):
    if step < 4:
        return 0.02 * (0.5 + 0.5 * step / 4)
    share = (step - 4) / (steps - 4)
    return 1e-5 + (0.02 - 1e-5) * (1 + math.cos(math.pi * share)) / 2


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_sixty_steps_equal_the_definition(variant, decay, size):
    generator = np.random.default_rng(1)
    shapes = (130, 140), (30, 20), (200,)
    starts = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    weights = [keras.Variable(start, name="weight") for start in starts]
    options = {"betas": (0.8, 0.98), "epsilon": 1e-7} if size == 1 else {}
    rate = schedule(LearningRate(**COSINE), steps=60)
    optimizer = Adam(rate, variant=variant, decay=decay, **options)
    optimizer.build(weights)
    apply = tf.function(lambda *gradients: optimizer.apply(gradients, weights), autograph=False)
    references = [Twin(variant, start, cosine, decay, **options) for start in starts]
    for _ in range(60):
        gradients = [(size * generator.normal(size=shape)).astype(np.float32) for shape in shapes]
        apply(*map(tf.constant, gradients))
        for reference, gradient in zip(references, gradients, strict=True):
            reference.update(gradient)
    for weight, reference, start in zip(weights, references, starts, strict=True):
        assert abs(reference.weight - start).max() > 1e-3
        np.testing.assert_allclose(np.asarray(weight), reference.weight, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("shape", [(30, 20), (200,)])
def test_that_of_fairseq_equals_that_of_keras_if_epsilon_is_small(shape):
    # Keras adds epsilon after the correction of the bias.
    generator = np.random.default_rng(3)
    weights = [keras.Variable(np.ones(shape, np.float32)) for _ in range(2)]
    optimizers = [
        Adam(0.01, variant="adam_fairseq", betas=(0.9, 0.98), epsilon=1e-12, decay=0.1),
        keras.optimizers.AdamW(0.01, weight_decay=0.1, beta_1=0.9, beta_2=0.98, epsilon=1e-12),
    ]
    for _ in range(30):
        gradient = generator.normal(size=shape).astype(np.float32)
        for optimizer, weight in zip(optimizers, weights, strict=True):
            optimizer.apply([gradient], [weight])
    np.testing.assert_allclose(*map(np.asarray, weights), rtol=1e-5, atol=1e-6)


def test_variants_differ_in_their_steps():
    generator = np.random.default_rng(4)
    gradients = generator.normal(size=(5, 30, 20)).astype(np.float32)
    ends = []
    for variant in VARIANTS:
        weight = keras.Variable(np.full((30, 20), 2, np.float32))
        optimizer = Adam(0.01, variant=variant, decay=0.1)
        for gradient in gradients:
            optimizer.apply([gradient], [weight])
        ends.append(np.asarray(weight))
    distances = [abs(a - b).max() for number, a in enumerate(ends) for b in ends[:number]]
    assert min(distances) > 1e-4


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_lamb_steps_by_the_plain_rate_if_a_weight_or_its_step_is_zero(start):
    weight = keras.Variable(np.full((4, 4), start, np.float32))
    Adam(0.1, variant="lamb").apply([np.full((4, 4), 1 - start, np.float32)], [weight])
    expected = start - 0.1 * (1 - start) * 0.1 / (0.001**0.5 + 1e-6)
    np.testing.assert_allclose(np.asarray(weight), expected, rtol=1e-4)


def test_a_weight_that_begins_later_is_corrected_from_its_own_first_update():
    weights = [keras.Variable(np.ones(3, np.float32), name=name) for name in ("early", "late")]
    optimizer = Adam(0.1)
    optimizer.build(weights)
    optimizer._paths = ["early", "late"]
    optimizer.starts = {"late": 5}
    for number in range(8):
        optimizer.apply([np.ones(3, np.float32)] * 2, weights)
        if number == 4:
            np.testing.assert_array_equal(np.asarray(weights[1]), 1.0)
            assert not np.asarray(optimizer._slots[1][0]).any()
    reference = Twin("adamw", np.ones(3), lambda _: 0.1)
    for _ in range(3):
        reference.update(np.ones(3))
    np.testing.assert_allclose(np.asarray(weights[1]), reference.weight, rtol=1e-5)


def test_a_weight_of_zeros_moves_by_the_least_scale():
    weight = keras.Variable(np.zeros(4, np.float32))
    Adam(0.1).apply([np.ones(4, np.float32)], [weight])
    np.testing.assert_allclose(np.asarray(weight), -0.1 * 1e-3, rtol=1e-4)


def test_a_sparse_gradient_updates_as_the_dense_array_of_its_summed_rows():
    rows = np.array([3, 5, 3])
    values = np.random.default_rng(2).normal(size=(3, 20)).astype(np.float32)
    dense = np.zeros((14, 20), np.float32)
    np.add.at(dense, rows, values)
    results = []
    for gradient in (tf.IndexedSlices(*map(tf.constant, (values, rows, dense.shape))), dense):
        weight = keras.Variable(np.ones((14, 20), np.float32))
        Adam(0.1).apply([gradient], [weight])
        results.append(np.asarray(weight))
    np.testing.assert_allclose(*results, rtol=1e-6)


@pytest.fixture
def train(train_once, train_in_place, tmp_path):
    def start(name, **options):
        folder = tmp_path / name
        recipe = {"optimizer": "adamw", "learning_rate": COSINE}
        run = train_in_place if folder.exists() else train_once
        return run(folder, **{**recipe, **options})

    return start


@pytest.mark.parametrize("optimizer", [Adafactor, Adam])
@pytest.mark.parametrize("most", [0.0, 1.0, 100.0])
def test_gradients_are_scaled_down_to_the_norm_of_all_of_them_together(optimizer, most):
    gradients = [np.full((3, 4), 2, np.float32), np.full(4, -1, np.float32)]
    norm = (12 * 4 + 4) ** 0.5
    expected = min(1, most / norm) if most else 1
    weights = [keras.Variable(np.ones(gradient.shape, np.float32)) for gradient in gradients]
    made = optimizer(0.1, max_grad_norm=most)
    made.build(weights)
    tf.function(lambda: made.apply(gradients, weights), autograph=False)()
    share = 1 if optimizer is Adafactor else 0.1  # of the first gradient in the moment
    power = 2 if optimizer is Adafactor else 1
    for slots, gradient in zip(made._slots, gradients, strict=True):
        moment = share * (expected * gradient) ** power
        np.testing.assert_allclose(np.asarray(slots[0]), moment, rtol=1e-5)


def bytes_of(job):
    return {name: (job.folder / name).read_bytes() for name in RESULTS}


def test_an_interrupted_training_ends_in_the_same_bytes_also_in_fine_tuning(train):
    before = train("pretrain")
    slots = read_arrays(before.folder / "optimizer.safetensors")
    assert slots["embedding.first_moment"].shape == slots["embedding.second_moment"].shape
    expected = [1 - 0.9**10, 1 - 0.999**10]
    np.testing.assert_allclose(slots["embedding.totals"], expected, rtol=2e-5)
    for name, options in (
        ("pretrain", {}),
        ("finetune", {"rule": "finetune", "start": str(before.folder)}),
    ):
        whole = train(f"{name}_whole", log_every_steps=1, **options)
        train(f"{name}_cut", cut=6, log_every_steps=1, **options)
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
