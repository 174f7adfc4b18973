import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.model.initial_values import Initial, glorot_uniform, normal, truncated_normal  # noqa: E402
from t5repro.model.layers import Dropout, FeedForward, RMSNorm  # noqa: E402

pytestmark = pytest.mark.keras
PLACE = {"seed": 3, "path": "encoder/block_0/part", "dtype": "float32"}


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def test_rms_norm_divides_by_the_root_of_the_mean_square_and_does_not_centre():
    norm = RMSNorm(4, epsilon=1e-6, **PLACE)
    norm.build()
    norm.scale.assign([1.0, 2.0, 1.0, 0.5])
    x = np.asarray([[[1.0, 2.0, 3.0, 4.0]]], np.float32)
    expected = x / np.sqrt(30 / 4 + 1e-6) * [1, 2, 1, 0.5]
    np.testing.assert_allclose(values(norm(x)), expected, rtol=1e-6)


def test_rms_norm_keeps_its_statistics_in_float32_when_activations_are_bfloat16():
    norm = RMSNorm(512, epsilon=1e-6, **{**PLACE, "dtype": "mixed_bfloat16"})
    norm.build()
    x = np.random.default_rng(0).normal(size=(1, 3, 512)).astype(np.float32)
    x = values(keras.ops.cast(keras.ops.cast(x, "bfloat16"), "float32"))
    exact = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6)
    found = norm(keras.ops.cast(x, "bfloat16"))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    rounded = values(keras.ops.cast(keras.ops.cast(exact, "bfloat16"), "float32"))
    # A mean of 512 squares in bfloat16 would be off by percents.
    np.testing.assert_array_equal(values(keras.ops.cast(found, "float32")), rounded)


def test_initial_values_are_a_function_of_seed_and_name():
    def draw(seed, name):
        return values(Initial(normal(1.0), seed, name)((3, 4)))

    np.testing.assert_array_equal(draw(1, "encoder/q"), draw(1, "encoder/q"))
    assert not np.array_equal(draw(1, "encoder/q"), draw(2, "encoder/q"))
    assert not np.array_equal(draw(1, "encoder/q"), draw(1, "encoder/k"))


def test_normal_values_have_the_deviation_asked_for():
    drawn = normal(0.25)(np.random.default_rng(0), (400, 500))
    assert np.mean(drawn) == pytest.approx(0, abs=2e-3)
    assert np.std(drawn) == pytest.approx(0.25, rel=5e-3)


def test_truncated_values_stay_within_two_deviations_and_are_not_scaled_up():
    drawn = truncated_normal(0.5)(np.random.default_rng(0), (400, 500))
    assert np.abs(drawn).max() <= 1.0
    # Variance of a normal cut at two deviations: 1 - 4 * phi(2) / (2 * Phi(2) - 1).
    assert np.std(drawn) == pytest.approx(0.5 * 0.87962566, rel=5e-3)


def test_glorot_values_fill_the_interval_of_rows_and_columns():
    drawn = glorot_uniform()(np.random.default_rng(0), (300, 32))
    limit = np.sqrt(6 / 332)
    assert drawn.min() == pytest.approx(-limit, rel=1e-2)
    assert drawn.max() == pytest.approx(limit, rel=1e-2)
    assert np.std(drawn) == pytest.approx(limit / np.sqrt(3), rel=2e-2)


def test_dropout_drops_the_same_features_at_every_position_and_scales_the_rest():
    drop = Dropout(0.25, **PLACE)
    found = values(drop(np.ones((40, 5, 100), np.float32), training=True))
    assert set(np.unique(found)) == {np.float32(0), np.float32(1 / 0.75)}
    np.testing.assert_array_equal(found, np.repeat(found[:, :1], 5, axis=1))
    assert np.mean(found == 0) == pytest.approx(0.25, abs=0.03)
    assert not np.array_equal(found[0], found[1])


def test_dropout_on_attention_weights_is_shared_by_the_queries():
    drop = Dropout(0.5, **PLACE)
    found = values(drop(np.ones((2, 3, 4, 50), np.float32), training=True))
    np.testing.assert_array_equal(found, np.repeat(found[:, :, :1], 4, axis=2))
    assert not np.array_equal(found[0, 0], found[0, 1])


def test_dropout_does_nothing_outside_training_or_at_rate_zero():
    x = np.ones((1, 2, 3), np.float32)
    np.testing.assert_array_equal(values(Dropout(0.5, **PLACE)(x)), x)
    np.testing.assert_array_equal(values(Dropout(0.0, **PLACE)(x, training=True)), x)


def test_dropout_noise_changes_from_call_to_call_and_starts_from_its_place():
    x = np.ones((2, 1, 60), np.float32)

    def two_calls(path):
        drop = Dropout(0.5, **{**PLACE, "path": path})
        return values(drop(x, training=True)), values(drop(x, training=True))

    first, second = two_calls("encoder/a")
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, two_calls("encoder/a")[0])
    assert not np.array_equal(first, two_calls("encoder/b")[0])


def build_feed_forward(activation):
    shape = ModelSettings(d_model=3, feed_forward=activation)
    layer = FeedForward(shape, d_ff=5, dropout_rate=0.0, **PLACE)
    layer.build()
    return layer


def test_the_relu_feed_forward_is_two_matrices_with_negative_values_cut():
    layer = build_feed_forward("relu")
    x = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    expected = np.maximum(x @ values(layer.wi), 0) @ values(layer.wo)
    np.testing.assert_allclose(values(layer(x)), expected, rtol=1e-5, atol=1e-6)


def test_dropout_inside_the_feed_forward_layer_is_a_setting():
    x = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    for drops in (True, False):
        shape = ModelSettings(d_model=3, activation_dropout=drops)
        layer = FeedForward(shape, d_ff=5, dropout_rate=0.5, **PLACE)
        layer.build()
        changes = not np.array_equal(values(layer(x, training=True)), values(layer(x)))
        assert changes == drops


def test_swiglu_has_the_logistic_form_of_silu():
    layer = build_feed_forward("swiglu")
    x = 5 * np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    a = x @ values(layer.wi_0)
    expected = (a / (1 + np.exp(-a)) * (x @ values(layer.wi_1))) @ values(layer.wo)
    np.testing.assert_allclose(values(layer(x)), expected, rtol=1e-5, atol=1e-5)


def test_the_gated_feed_forward_uses_the_tanh_form_of_gelu():
    layer = build_feed_forward("gated_gelu")
    x = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    a = x @ values(layer.wi_0)
    gelu = 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))
    expected = (gelu * (x @ values(layer.wi_1))) @ values(layer.wo)
    np.testing.assert_allclose(values(layer(x)), expected, rtol=1e-5, atol=1e-6)
