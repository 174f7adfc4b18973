import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.systems.token_loss import (  # noqa: E402
    PaddedMeanLoss,
    losses_of_all_logits,
    losses_of_divided_logits,
    token_losses,
)
from t5repro.train.counts import FilledPositions, TargetCount  # noqa: E402

pytestmark = pytest.mark.keras


@pytest.fixture
def batch():
    generator = np.random.default_rng(0)
    logits = 4 * generator.normal(size=(3, 5, 17)).astype(np.float32)
    targets = generator.integers(1, 17, (3, 5)).astype(np.int32)
    targets[1, 2:] = 0
    targets[2] = 0
    return targets, logits


def reference(targets, logits, z_loss):
    """Return the loss of each target id in float64."""
    logits = logits.astype(np.float64)
    log_z = np.log(np.exp(logits).sum(-1))
    chosen = np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return (log_z - chosen + z_loss * log_z**2) * (targets > 0)


@pytest.mark.parametrize("z_loss", [0.0, 1e-4, 0.1])
def test_each_target_costs_its_cross_entropy_and_the_square_of_log_z(batch, z_loss):
    found = np.asarray(token_losses(*batch, z_loss))
    np.testing.assert_allclose(found, reference(*batch, z_loss), rtol=1e-5, atol=1e-6)


def test_the_sum_is_divided_by_the_padded_size_of_the_targets(batch):
    expected = reference(*batch, 1e-4).sum() / (3 * 5)
    assert float(PaddedMeanLoss(1e-4)(*batch)) == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_padding_costs_nothing(batch):
    assert float(PaddedMeanLoss(1e-4)(np.zeros((3, 5), np.int32), batch[1])) == 0


@pytest.mark.parametrize("z_loss", [0.0, 0.1])
def test_the_written_out_gradient_is_that_of_the_loss(batch, z_loss):
    targets, logits = batch
    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(token_losses(targets, variable, z_loss) * tf.range(1.0, 6.0))
    found = tape.gradient(loss, variable)
    with tf.GradientTape() as tape:
        log_z = tf.reduce_logsumexp(variable, -1)
        chosen = tf.gather(variable, targets, axis=-1, batch_dims=2)
        losses = (log_z - chosen + z_loss * log_z**2) * tf.cast(targets > 0, tf.float32)
        loss = tf.reduce_sum(losses * tf.range(1.0, 6.0))
    expected = tape.gradient(loss, variable)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_very_large_and_very_unlikely_logits_cost_a_finite_number():
    logits = np.asarray([[[5000.0, -5000.0, 0.0]]], np.float32)
    found = np.asarray(token_losses(np.asarray([[1]], np.int32), logits, 0.0))
    np.testing.assert_allclose(found, [[10_000.0]])


def test_targets_are_counted_until_the_counter_is_reset():
    counter = TargetCount()
    counter.update_state(7)
    counter.update_state(7)
    assert int(counter.result()) == 2 * 7
    counter.reset_state()
    assert int(counter.result()) == 0


def test_filled_positions_counts_what_belongs_to_a_segment_on_both_sides():
    counter = FilledPositions()
    counter.update_state(
        {
            "encoder_ids": np.asarray([[5, 0, 7]], np.int32),
            "encoder_segments": np.asarray([[1, 1, 2]], np.int32),
            "decoder_ids": np.asarray([[0, 4]], np.int32),
            "decoder_segments": np.asarray([[1, 0]], np.int32),
        }
    )
    assert int(counter.result()) == 4


@pytest.mark.parametrize("z_loss", [0.0, 0.1])
def test_the_form_for_divided_ids_has_the_losses_and_gradients_of_the_other(batch, z_loss):
    targets, logits = (tf.constant(array.reshape(15, *array.shape[2:])) for array in batch)
    results = []
    for form in (losses_of_all_logits, losses_of_divided_logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = form(z_loss)(logits, targets)
            weighted = tf.reduce_sum(losses * tf.range(1.0, 16.0))
        results.append((losses, tape.gradient(weighted, logits)))
    for whole, divided in zip(*results, strict=True):
        difference = np.linalg.norm(np.subtract(divided, whole))
        assert difference < 1e-6 * np.linalg.norm(whole)
