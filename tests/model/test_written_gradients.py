"""Gradients that are written out agree with derivatives in float64."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
from t5repro.model.gelu import gelu, gelu_tanh  # noqa: E402
from t5repro.model.layers import products_of_rows  # noqa: E402
from t5repro.model.relative_attention import shifted_each  # noqa: E402

pytestmark = pytest.mark.keras
FACTOR = np.sqrt(2 / np.pi)


def gradients(
    function: Callable[..., object], arrays: Sequence[np.ndarray], upstream: np.ndarray
) -> list[np.ndarray]:
    """Return the gradients of the product of a function's result and `upstream`."""
    inputs = [tf.constant(array) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    found = tape.gradient(result, inputs, output_gradients=tf.constant(upstream))
    return [gradient.numpy() for gradient in found]


def test_gelu_by_the_tangent_has_the_gradient_of_its_formula() -> None:
    x = np.linspace(-9, 9, 721)
    argument = FACTOR * (x + 0.044715 * x**3)
    slope = FACTOR * (1 + 3 * 0.044715 * x**2)
    expected = 0.5 * (1 + np.tanh(argument)) + 0.5 * x * slope / np.cosh(argument) ** 2
    upstream = np.linspace(-1, 2, 721)
    (found,) = gradients(gelu_tanh, [x.astype(np.float32)], upstream.astype(np.float32))
    # The rounding of a tangent near 1, times up to 17.
    np.testing.assert_allclose(found, upstream * expected, atol=1e-5)


def test_both_forms_of_gelu_agree_within_the_approximation() -> None:
    x = np.linspace(-6, 6, 601).astype(np.float32)
    np.testing.assert_allclose(gelu_tanh(x), gelu(x), atol=5e-4)
    assert np.abs(np.asarray(gelu_tanh(x)) - np.asarray(gelu(x))).max() > 1e-4


def test_products_of_rows_and_both_gradients_equal_the_transposed_product() -> None:
    draw = np.random.default_rng(2)
    x, rows = draw.normal(size=(3, 5, 7)), draw.normal(size=(11, 7))
    upstream = draw.normal(size=(3, 5, 11))
    single = [array.astype(np.float32) for array in (x, rows, upstream)]
    np.testing.assert_allclose(
        products_of_rows(*map(tf.constant, single[:2])), x @ rows.T, 1e-4, 1e-5
    )
    of_x, of_rows = gradients(products_of_rows, single[:2], single[2])
    np.testing.assert_allclose(of_x, upstream @ rows, 1e-4, 1e-5)
    np.testing.assert_allclose(of_rows, np.einsum("abv,abd->vd", upstream, x), 1e-4, 1e-5)


def test_scores_of_distances_are_shifted_by_each_query_and_gradients_back() -> None:
    draw = np.random.default_rng(3)
    keys, length = 6, 4
    scores = draw.normal(size=(2, 3, 5, keys + length)).astype(np.float32)
    shifts = draw.integers(0, length + 1, (2, 5)).astype(np.int32)
    shifts[0, :2] = 0, length  # the first and the last place
    upstream = draw.normal(size=(2, 3, 5, keys)).astype(np.float32)
    expected, back = np.zeros_like(upstream), np.zeros_like(scores)
    for row, query in np.ndindex(2, 5):
        window = slice(shifts[row, query], shifts[row, query] + keys)
        expected[row, :, query] = scores[row, :, query, window]
        back[row, :, query, window] = upstream[row, :, query]
    np.testing.assert_array_equal(shifted_each(tf.constant(scores), shifts, keys), expected)
    (found,) = gradients(lambda x: shifted_each(x, shifts, keys), [scores], upstream)
    np.testing.assert_array_equal(found, back)
