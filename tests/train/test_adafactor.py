import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.sections.training import LearningRate  # noqa: E402
from t5repro.train.adafactor import Adafactor, factored_axes  # noqa: E402
from t5repro.train.schedules import schedule  # noqa: E402

pytestmark = pytest.mark.keras


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((), None),
        ((512,), None),
        ((512, 127), None),
        ((128, 128), (0, 1)),
        ((32_128, 512), (0, 1)),
        ((128, 4, 256), (0, 2)),
        ((32, 12), None),
    ],
)
def test_a_weight_is_factored_when_its_two_largest_dimensions_reach_128(shape, axes):
    assert factored_axes(shape) == axes


class Twin:
    """Adafactor written from its definition, in float64."""

    def __init__(self, weight, learning_rate, step=0):
        self.weight = weight.astype(np.float64)
        self.learning_rate = learning_rate
        self.step = step
        self.factored = weight.ndim >= 2 and sorted(weight.shape)[-2] >= 128
        if self.factored:  # the first and the last axis of the shapes below
            self.row = np.zeros(weight.shape[:-1])
            self.column = np.zeros(weight.shape[1:])
        else:
            self.full = np.zeros(weight.shape)

    def update(self, gradient):
        gradient = gradient.astype(np.float64)
        decay = 1 - (self.step + 1) ** -0.8
        square = gradient**2 + 1e-30
        if self.factored:
            self.row = decay * self.row + (1 - decay) * square.mean(-1)
            self.column = decay * self.column + (1 - decay) * square.mean(0)
            second = self.row[..., None] * self.column[None] / self.row.mean(0)[None, ..., None]
        else:
            self.full = decay * self.full + (1 - decay) * square
            second = self.full
        step = gradient / np.sqrt(second)
        step /= max(1.0, np.sqrt(np.mean(step**2)))
        scale = max(1e-3, np.sqrt(np.mean(self.weight**2)))
        self.weight -= self.learning_rate(self.step) * scale * step
        self.step += 1


@pytest.mark.parametrize("shape", [(130, 140), (130, 20), (200,), (160, 128), (128, 3, 140)])
@pytest.mark.parametrize("first_step", [0, 1000])
def test_fifty_steps_equal_the_definition(shape, first_step):
    generator = np.random.default_rng(1)
    start = generator.normal(size=shape).astype(np.float32)
    weight = keras.Variable(start, name="weight")
    optimizer = Adafactor(schedule(LearningRate(warmup_steps=20)))
    optimizer.build([weight])
    optimizer.iterations.assign(first_step)
    reference = Twin(start, lambda step: max(step, 20) ** -0.5, first_step)
    for number in range(50):
        # Sizes that vary by row and over time, and now and then a step that must be clipped.
        sizes = np.exp(generator.normal(size=shape[:1] + (1,) * (len(shape) - 1)))
        gradient = generator.normal(size=shape) * sizes
        gradient = (gradient * (50 if number % 10 == 9 else 1)).astype(np.float32)
        optimizer.apply([gradient], [weight])
        reference.update(gradient)
    np.testing.assert_allclose(np.asarray(weight), reference.weight, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("width", [20, 130])
def test_a_sparse_gradient_updates_as_the_dense_array_of_its_summed_rows(width):
    # The input embedding of T5 1.1 is only read: TensorFlow returns the gradient of the read rows.
    rows = np.array([3, 5, 3])
    values = np.random.default_rng(2).normal(size=(3, width)).astype(np.float32)
    dense = np.zeros((140, width), np.float32)
    np.add.at(dense, rows, values)
    sparse = tf.IndexedSlices(*map(tf.constant, (values, rows, dense.shape)))

    def updated(gradient):
        weight = keras.Variable(np.ones((140, width), np.float32), name="embedding")
        optimizer = Adafactor(schedule(LearningRate()))
        optimizer.build([weight])
        tf.function(lambda: optimizer.apply([gradient], [weight]), autograph=False)()
        return [np.asarray(variable) for variable in (weight, *optimizer.variables)]

    for actual, expected in zip(updated(sparse), updated(tf.constant(dense)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-12)


def test_a_weight_of_zeros_moves_by_the_least_scale():
    weight = keras.Variable(np.zeros(4, np.float32))
    optimizer = Adafactor(schedule(LearningRate(schedule="constant", factor=0.1)))
    optimizer.apply([np.ones(4, np.float32)], [weight])
    np.testing.assert_allclose(np.asarray(weight), -0.1 * 1e-3, rtol=1e-6)


def test_an_update_is_clipped_to_a_root_mean_square_of_one():
    weight = keras.Variable(np.ones(100, np.float32))
    optimizer = Adafactor(schedule(LearningRate(schedule="constant", factor=0.1)))
    optimizer.build([weight])
    optimizer.iterations.assign(10_000)
    optimizer.apply([np.ones(100, np.float32)], [weight])
    # The second moment is still (10001)^-0.8 of the square: unclipped, the step is 40 times this.
    np.testing.assert_allclose(np.asarray(weight), 1 - 0.1, rtol=1e-5)


def test_a_factored_weight_costs_two_vectors_of_memory():
    weights = [
        keras.Variable(np.zeros((300, 200), np.float32), name="large"),
        keras.Variable(np.zeros((300, 12), np.float32), name="small"),
    ]
    optimizer = Adafactor(schedule(LearningRate()))
    optimizer.build(weights)
    slots = {variable.name: tuple(variable.shape) for variable in optimizer.variables}
    shapes = sorted(shape for name, shape in slots.items() if name != "iteration")
    assert shapes == [(200,), (300,), (300, 12)]


def test_slots_are_named_by_their_weight(tiny, tmp_path):
    from t5repro.model.checkpoints import optimizer_variables
    from t5repro.train.loop import make_model

    model = make_model(tiny.make_job(tmp_path))
    names = set(optimizer_variables(model.optimizer))
    assert {"iteration", "embedding.moment", "encoder.block_0.self_attention.q.moment"} <= names
    assert len(names) == 1 + len(model.trainable_variables)
