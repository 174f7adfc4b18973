import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

keras = pytest.importorskip("keras")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.model.attention import (  # noqa: E402
    BLOCKED,
    Attention,
    RelativeBias,
    causal_mask,
    relative_position_bucket,
    segment_mask,
)

pytestmark = pytest.mark.keras
PLACE = {"seed": 3, "path": "encoder/block_0/part", "dtype": "float32"}


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def bucket(relative, bidirectional, buckets=32, max_distance=128):
    return relative_position_bucket(
        np.asarray(relative),
        bidirectional=bidirectional,
        buckets=buckets,
        max_distance=max_distance,
    )


@pytest.mark.parametrize(
    ("bidirectional", "starts"),
    [
        (True, [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]),
        (False, [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]),
    ],
)
def test_buckets_of_the_published_sizes_start_where_the_definition_puts_them(bidirectional, starts):
    past = bucket(-np.arange(2000), bidirectional)
    assert [int(np.argmax(past == number)) for number in range(len(starts))] == starts
    assert past.max() == len(starts) - 1
    assert (np.diff(past) >= 0).all()


@pytest.mark.parametrize("distance", [16, 32, 64])
def test_distances_on_an_exact_boundary_are_in_the_farther_bucket(distance):
    # ln(2) / ln(16) * 8 = 2: in float32 the quotient may come out just under it.
    assert bucket(-distance, True) == bucket(-distance + 1, True) + 1


def test_keys_to_the_right_have_buckets_of_their_own_in_an_encoder_and_share_one_in_a_decoder():
    np.testing.assert_array_equal(bucket([-3, 0, 3], True), [3, 0, 19])
    np.testing.assert_array_equal(bucket([-3, 0, 3, 300], False), [3, 0, 0, 0])


@given(
    relative=st.integers(-5000, 5000),
    half=st.integers(1, 64),
    max_distance=st.integers(2, 1000),
    bidirectional=st.booleans(),
)
def test_every_distance_has_a_bucket_within_the_table(relative, half, max_distance, bidirectional):
    found = bucket(relative, bidirectional, 2 * half, max_distance)
    assert 0 <= found < 2 * half


def test_buckets_equal_those_of_keras_hub():
    pytest.importorskip("keras_hub")
    from keras_hub.src.models.t5.t5_multi_head_attention import T5MultiHeadAttention

    relative = np.arange(-400, 400)
    for bidirectional in (True, False):
        theirs = T5MultiHeadAttention._relative_position_bucket(
            relative.astype("int32"), bidirectional=bidirectional, num_buckets=32, max_distance=128
        )
        ours = bucket(relative, bidirectional)
        differing = np.abs(relative[values(theirs) != ours])
        # Theirs is float32: only exact boundaries may fall on the other side.
        assert set(differing) <= {16, 32, 64}


def test_the_bias_of_a_pair_is_the_heads_number_for_its_bucket():
    layer = RelativeBias(num_heads=2, buckets=8, max_distance=20, bidirectional=True, **PLACE)
    layer.build()
    found = values(layer(length=6))
    table = values(layer.table)
    assert found.shape == (2, 6, 6)
    assert found[1, 4, 1] == table[1, bucket(-3, True, 8, 20)]
    assert found[0, 0, 5] == table[0, bucket(5, True, 8, 20)]


def test_a_segment_sees_itself_alone_and_padding_sees_padding():
    segments = np.asarray([[1, 1, 2, 0]], np.int32)
    expected = np.where(
        np.asarray([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], bool), 0, BLOCKED
    )
    np.testing.assert_array_equal(values(segment_mask(segments, segments))[0, 0], expected)


def test_the_causal_mask_hides_what_comes_after():
    np.testing.assert_array_equal(
        causal_mask(3) == 0, [[True, False, False], [True, True, False], [True, True, True]]
    )


def make_attention(dropout_rate=0.0):
    shape = ModelSettings(d_model=8, num_heads=2, d_kv=3)
    layer = Attention(shape, dropout_rate=dropout_rate, **PLACE)
    layer.build()
    return layer


def reference(layer, x, memory, bias):
    """Attention of one row written out with loops over heads."""
    weights = {name: values(getattr(layer, name)) for name in "qkvo"}
    heads = []
    for head in range(2):
        part = slice(3 * head, 3 * head + 3)
        q, k, v = (
            source @ weights[name][:, part]
            for name, source in (("q", x), ("k", memory), ("v", memory))
        )
        logits = q @ k.T + bias[head]
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        heads.append(shares / shares.sum(-1, keepdims=True) @ v)
    return np.concatenate(heads, -1) @ weights["o"]


def test_self_attention_equals_its_definition_without_a_scale():
    layer = make_attention()
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 5, 8)).astype(np.float32)
    bias = generator.normal(size=(2, 2, 5, 5)).astype(np.float32)
    found = values(layer(x, bias))
    for row in range(2):
        np.testing.assert_allclose(
            found[row], reference(layer, x[row], x[row], bias[row]), rtol=1e-4, atol=1e-5
        )


def test_cross_attention_reads_the_memory():
    layer = make_attention()
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1, 2, 8)).astype(np.float32)
    memory = generator.normal(size=(1, 4, 8)).astype(np.float32)
    bias = np.zeros((1, 2, 2, 4), np.float32)
    np.testing.assert_allclose(
        values(layer(x, bias, memory))[0],
        reference(layer, x[0], memory[0], bias[0]),
        rtol=1e-4,
        atol=1e-5,
    )


def test_a_query_that_may_see_nothing_gets_finite_numbers():
    layer = make_attention()
    x = np.ones((1, 2, 8), np.float32)
    assert np.isfinite(values(layer(x, np.full((1, 1, 2, 2), BLOCKED, np.float32)))).all()


def test_initial_queries_carry_the_scale_that_the_logits_lack():
    shape = ModelSettings(d_model=256, num_heads=8, d_kv=64)
    layer = Attention(shape, dropout_rate=0.0, **PLACE)
    layer.build()
    assert np.std(values(layer.q)) == pytest.approx((256 * 64) ** -0.5, rel=0.01)
    assert np.std(values(layer.k)) == pytest.approx(256**-0.5, rel=0.01)
    assert np.std(values(layer.v)) == pytest.approx(256**-0.5, rel=0.01)
    assert np.std(values(layer.o)) == pytest.approx((8 * 64) ** -0.5, rel=0.01)
