"""Both Adamaxes of MT-DNN against their formulas in float64."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.sections.training import TrainingSettings  # noqa: E402
from t5repro.train.adamax import Adamax  # noqa: E402
from t5repro.train.compiled_model import make_optimizer  # noqa: E402

pytestmark = pytest.mark.keras


class Twin:
    """MT-DNN's optimizers: of v0.1 without a correction of the bias, and of later versions."""

    def __init__(self, weight, rate, *, corrects_bias, decay, epsilon):
        self.weight, self.rate, self.decay = weight.astype(np.float64), rate, decay
        self.corrects_bias, self.epsilon = corrects_bias, epsilon
        self.first, self.largest = np.zeros(weight.shape), np.zeros(weight.shape)
        self.updates = 0

    def update(self, gradient):
        self.updates += 1
        gradient = gradient.astype(np.float64)
        self.first = 0.9 * self.first + 0.1 * gradient
        self.largest = np.maximum(0.999 * self.largest, np.abs(gradient) + self.epsilon)
        decay = self.decay if self.weight.ndim > 1 else 0
        if self.corrects_bias:
            self.weight = self.weight * (1 - self.rate * decay)
            step = self.rate / (1 - 0.9**self.updates)
            self.weight = self.weight - step * self.first / self.largest
        else:
            update = self.first / (self.largest + self.epsilon) + decay * self.weight
            self.weight = self.weight - self.rate * update


@pytest.mark.parametrize("corrects_bias", [True, False])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_sixty_steps_equal_the_definition(corrects_bias, decay, size):
    generator = np.random.default_rng(1)
    shapes = (30, 20), (50,)
    starts = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    weights = [keras.Variable(start, name="weight") for start in starts]
    options = {"corrects_bias": corrects_bias, "decay": decay, "epsilon": 1e-6}
    optimizer = Adamax(0.02, **options)
    optimizer.build(weights)
    references = [Twin(start, 0.02, **options) for start in starts]
    for _ in range(60):
        gradients = [(size * generator.normal(size=shape)).astype(np.float32) for shape in shapes]
        optimizer.apply(gradients, weights)
        for reference, gradient in zip(references, gradients, strict=True):
            reference.update(gradient)
    for weight, reference, start in zip(weights, references, starts, strict=True):
        assert abs(reference.weight - start).max() > 1e-3
        np.testing.assert_allclose(np.asarray(weight), reference.weight, rtol=2e-4, atol=2e-6)


def test_the_corrected_one_equals_that_of_keras_without_epsilon():
    weights = [keras.Variable(np.ones((4, 3), np.float32)) for _ in range(2)]
    optimizers = [Adamax(0.01, epsilon=1e-12), keras.optimizers.Adamax(0.01, epsilon=1e-12)]
    generator = np.random.default_rng(3)
    for _ in range(30):
        gradient = generator.normal(size=(4, 3)).astype(np.float32)
        for optimizer, weight in zip(optimizers, weights, strict=True):
            optimizer.apply([gradient], [weight])
    np.testing.assert_allclose(*map(np.asarray, weights), rtol=1e-5)


@pytest.mark.parametrize(("name", "corrects_bias"), [("adamax", True), ("adamax_mt_dnn", False)])
def test_the_settings_name_both(name, corrects_bias):
    optimizer = make_optimizer(TrainingSettings(optimizer=name, weight_decay=0.01, steps=9))
    assert isinstance(optimizer, Adamax)
    assert (optimizer.corrects_bias, optimizer.decay, optimizer.epsilon) == (
        corrects_bias, 0.01, 1e-6,
    )  # fmt: skip
    assert ("total" in optimizer.slot_shapes((2, 2))) == corrects_bias
