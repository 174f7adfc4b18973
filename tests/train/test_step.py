import json

import numpy as np
import pytest
import traced_steps

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.engines.devices import Devices  # noqa: E402
from t5repro.errors import SettingsError  # noqa: E402
from t5repro.systems.token_loss import PaddedMeanLoss  # noqa: E402
from t5repro.train import loop  # noqa: E402

pytestmark = pytest.mark.keras


@pytest.fixture
def gradients(tiny, tmp_path):
    """Return the loss and the gradients of rows of a made-up batch, by name of the weight."""

    def of(rows=slice(None), **training):
        model = loop.make_model(tiny.make_job(tmp_path, dropout_rate=0.0, **training))
        features, targets = tiny.batch(3)
        features = {name: tf.constant(array[rows]) for name, array in features.items()}
        loss, arrays = model.loss_and_gradients(features, tf.constant(targets[rows]))
        names = [variable.path for variable in model.trainable_variables]
        return float(loss), dict(zip(names, map(np.asarray, arrays), strict=True))

    return of


def assert_equal(actual, expected, tolerance=1e-5):
    """Compare the loss, and the gradient of each weight by the norm of the difference.

    The norm is that of all elements together, and the largest: an element whose terms cancel keeps
    the rounding of its terms, which parts of a batch add in another order.
    """
    assert actual[0] == pytest.approx(expected[0], rel=tolerance)
    for name, array in expected[1].items():
        difference = actual[1][name] - array
        assert np.linalg.norm(difference) < tolerance * np.linalg.norm(array), name
        assert np.abs(difference).max() < tolerance * np.abs(array).max(), name


@pytest.mark.parametrize("normaliser", ["padded_size", "target_tokens"])
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_micro_batches_have_the_gradient_of_the_whole_batch(gradients, normaliser, parts):
    whole = gradients(loss_normaliser=normaliser)
    assert_equal(gradients(loss_normaliser=normaliser, micro_batches=parts), whole)


def test_two_batches_of_half_the_size_have_the_gradient_of_the_whole_batch(gradients):
    halves = [gradients(slice(0, 4)), gradients(slice(4, 8))]
    mean = {name: (array + halves[1][1][name]) / 2 for name, array in halves[0][1].items()}
    assert_equal(((halves[0][0] + halves[1][0]) / 2, mean), gradients())


def test_the_gradient_is_that_of_the_loss_that_keras_trains_with(tiny, tmp_path, gradients):
    model = loop.make_model(tiny.make_job(tmp_path, dropout_rate=0.0))
    features, targets = tiny.batch(3)
    with tf.GradientTape() as tape:
        loss = PaddedMeanLoss(1e-4)(targets, model(features, training=True))
    arrays = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    names = [variable.path for variable in model.trainable_variables]
    expected = dict(zip(names, map(np.asarray, map(tf.convert_to_tensor, arrays)), strict=True))
    assert_equal(gradients(), (float(loss), expected))


def test_target_tokens_divide_by_the_tokens_and_padded_size_by_the_positions(tiny, gradients):
    targets = tiny.batch(3)[1]
    tokens, positions = (targets > 0).sum(), targets.size
    by_tokens, by_positions = (
        gradients(loss_normaliser=name) for name in ("target_tokens", "padded_size")
    )
    assert tokens < positions
    assert by_tokens[0] * tokens == pytest.approx(by_positions[0] * positions, rel=1e-5)


def test_training_with_micro_batches_follows_training_without(tiny, tmp_path):
    curves = []
    for name, plan in (("whole", {}), ("parts", {"micro_batches": 4})):
        job = tiny.make_job(tmp_path / name, dropout_rate=0.0, log_every_steps=1, **plan)
        traced_steps.run(job)
        rows = (job.folder / "history.csv").read_text().splitlines()[1:]
        curves.append([[float(value) for value in row.split(",")] for row in rows])
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4)


def test_training_with_micro_batches_and_dropout_is_deterministic(tiny, tmp_path):
    hashes = []
    for name in ("one", "two"):
        job = tiny.make_job(tmp_path / name, dropout_rate=0.2, micro_batches=2)
        traced_steps.run(job)
        record = json.loads(job.manifest.read_text())
        hashes.append([item["sha256"] for item in record["outputs"]])
    assert hashes[0] == hashes[1]


def test_rows_that_devices_and_parts_cannot_share_are_refused(tiny, tmp_path):
    class Strategy:
        num_replicas_in_sync = 3

    job = tiny.make_job(tmp_path, micro_batches=2)
    with pytest.raises(SettingsError, match="batch_size 8 is not a multiple of 6: 3 devices times"):
        loop.run(job, Devices("mirrored", ("CPU:0",) * 3, Strategy()))
