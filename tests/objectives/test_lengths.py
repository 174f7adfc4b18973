import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import SettingsError
from t5repro.objectives.lengths import corrupted_lengths, random_spans_lengths, span_counts

# Raw tokens and targets for 512 inputs, by noise density and mean span length: values of the
# released code's random_spans_helper.
FOR_512_INPUTS = {
    (0.10, 2): (538, 82),
    (0.10, 3): (548, 74),
    (0.10, 5): (556, 68),
    (0.10, 10): (561, 63),
    (0.15, 2): (552, 126),
    (0.15, 3): (568, 114),
    (0.15, 5): (581, 105),
    (0.15, 10): (591, 99),
    (0.25, 2): (584, 220),
    (0.25, 3): (614, 206),
    (0.25, 5): (639, 193),
    (0.25, 10): (660, 182),
    (0.50, 2): (682, 512),
    (0.50, 3): (766, 512),
    (0.50, 5): (852, 512),
    (0.50, 10): (930, 512),
}


@pytest.mark.parametrize(
    ("density", "mean", "tokens", "targets"),
    [(*key, *value) for key, value in FOR_512_INPUTS.items()],
)
def test_lengths_for_512_inputs_are_the_published_ones(density, mean, tokens, targets):
    found = random_spans_lengths(
        inputs_length=512, noise_density=density, mean_noise_span_length=mean
    )
    assert (found.tokens, found.targets) == (tokens, targets)
    assert found.inputs <= 512


def test_568_tokens_hold_85_noise_tokens_in_28_spans():
    noise, spans = span_counts(568, noise_density=0.15, mean_noise_span_length=3)
    assert (noise[568], spans[568]) == (85, 28)
    assert corrupted_lengths(np.array(568), noise[568], spans[568]) == (512, 114)


def test_a_share_is_rounded_in_float32_as_in_the_released_code():
    noise, _ = span_counts(5000, noise_density=0.15, mean_noise_span_length=3)
    assert noise[[190, 350, 390]].tolist() == [29, 53, 59]  # in float64 28, 52, 58


@pytest.mark.keras
@pytest.mark.parametrize("density", [0.1, 0.15, 0.25, 0.5])
def test_noise_tokens_are_rounded_as_tensorflow_rounds(density):
    tf = pytest.importorskip("tensorflow")
    lengths = tf.maximum(tf.range(5001), 2)
    noise, _ = span_counts(5000, noise_density=density, mean_noise_span_length=3)
    released = tf.round(tf.cast(lengths, tf.float32) * density)
    assert noise.tolist() == tf.clip_by_value(released, 1, 4999).numpy().tolist()


def test_halves_round_to_even():
    noise, spans = span_counts(30, noise_density=0.25, mean_noise_span_length=2)
    assert [noise[length] for length in (6, 10, 14)] == [2, 2, 4]  # 1.5, 2.5, 3.5
    assert spans[20] == 2  # 5 noise tokens, 2.5 spans


def test_the_shortest_segments_have_one_noise_token():
    noise, spans = span_counts(4, noise_density=0.15, mean_noise_span_length=3)
    assert noise.tolist() == [1, 1, 1, 1, 1]
    assert spans.tolist() == [1, 1, 1, 1, 1]


@given(st.floats(0.01, 0.99), st.floats(1, 20), st.integers(2, 400))
def test_every_span_has_noise_and_follows_a_token_kept(density, mean, longest):
    noise, spans = span_counts(longest, noise_density=density, mean_noise_span_length=mean)
    kept = np.maximum(np.arange(longest + 1), 2) - noise
    assert (spans >= 1).all()
    assert (spans <= noise).all()
    assert (spans <= kept).all()


def rounds_alike(tokens, density):
    """Return whether a share of noise rounds in float32 as in float64."""
    noise, _ = span_counts(tokens, noise_density=density, mean_noise_span_length=3)
    return noise[tokens] == round(tokens * density)


@given(st.integers(8, 600), st.sampled_from([0.1, 0.15, 0.25, 0.5]), st.sampled_from([2, 3, 5, 10]))
def test_the_segment_is_the_longest_that_fits(inputs_length, density, mean):
    found = random_spans_lengths(
        inputs_length=inputs_length, noise_density=density, mean_noise_span_length=mean
    )
    noise, spans = span_counts(found.tokens + 2, noise_density=density, mean_noise_span_length=mean)
    inputs, targets = corrupted_lengths(np.arange(found.tokens + 3), noise, spans)
    assert inputs[found.tokens] <= inputs_length
    if rounds_alike(found.tokens, density):
        assert targets[found.tokens] <= found.targets
    if density != 0.5 and rounds_alike(found.tokens + 1, density):
        assert inputs[found.tokens + 1] > inputs_length


def test_a_segment_with_a_half_of_a_noise_token_may_have_a_span_more_than_its_row():
    found = random_spans_lengths(inputs_length=351, noise_density=0.15, mean_noise_span_length=1)
    assert (found.tokens, found.targets) == (350, 105)  # 52.5 noise tokens: 52, which is even
    noise, spans = span_counts(350, noise_density=0.15, mean_noise_span_length=1)
    inputs, targets = corrupted_lengths(np.array(350), noise[350], spans[350])
    assert (noise[350], inputs, targets) == (53, 351, 107)  # 52.500004 in float32; cut to 105


def test_a_row_too_short_for_any_segment_is_refused():
    with pytest.raises(SettingsError, match=r"pretrain.inputs_length 2 at noise density 0.15"):
        random_spans_lengths(inputs_length=2, noise_density=0.15, mean_noise_span_length=3)
