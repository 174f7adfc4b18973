"""Shared weights, language models and prefix language models; all of them packed."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.model.attention import BLOCKED, prefix_mask  # noqa: E402
from t5repro.model.checkpoints import load_weights, noise_variables, save_weights, weight_variables  # noqa: E402

pytestmark = [
    pytest.mark.keras,
    pytest.mark.filterwarnings("ignore:Layer .* was passed an input with a mask"),
]
T5_1_1 = {"feed_forward": "gated_gelu", "tie_embeddings": False}
SWIGLU = {"feed_forward": "swiglu", "tie_embeddings": False}
PER_LAYER = {"relative_position_bias": "per_layer"}
ROTARY = {"positions": "rotary"}
SHARED = {"architecture": "shared_encoder_decoder", "num_decoder_layers": 2}
LANGUAGE = {"architecture": "language_model"}
PREFIX = {"architecture": "prefix_language_model"}
EVERY = pytest.mark.parametrize(
    "change",
    [
        {},
        T5_1_1,
        SHARED,
        LANGUAGE,
        PREFIX,
        {**PREFIX, **T5_1_1},
        {**SWIGLU, **PER_LAYER},
        {**SHARED, **PER_LAYER},
        {**PREFIX, **SWIGLU, **PER_LAYER},
        ROTARY,
        {**SHARED, **ROTARY},
        {**LANGUAGE, **ROTARY},
        {**PREFIX, **ROTARY},
    ],
    ids=[
        "1.0",
        "1.1",
        "shared",
        "language model",
        "prefix",
        "prefix, 1.1",
        "swiglu, per layer",
        "shared, per layer",
        "prefix, swiglu, per layer",
        "rotary",
        "shared, rotary",
        "language model, rotary",
        "prefix, rotary",
    ],
)
DECODERS = pytest.mark.parametrize("change", [LANGUAGE, PREFIX], ids=["language model", "prefix"])


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def randomised(model, seed=5):
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(values(variable) + 0.1 * noise)
    return model


def loss_and_slopes(model, features):
    import tensorflow as tf

    from t5repro.systems.token_loss import token_losses

    features = dict(features)
    targets = features.pop("targets")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(token_losses(targets, model(features), 1e-4))
    slopes = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return float(loss), [values(tf.convert_to_tensor(slope)) for slope in slopes]


@EVERY
def test_packed_rows_give_the_loss_and_the_gradients_of_separate_rows(
    make_model, examples, pack, join, change
):
    """The loss and the gradient of each weight agree to 1e-5 of their norms.

    The measure of a weight is |packed - separate| / |separate| over all its elements, and the
    largest difference against the largest element. Single elements cannot be held to 1e-5 of
    themselves: rows of other lengths add the same numbers in another order, and an element whose
    terms cancel keeps the rounding of its terms, about 1e-7 of them in float32.
    """
    model = randomised(make_model(**change))
    alone, together = [[pair] for pair in examples], [examples[:2], examples[2:]]
    if model.settings.family.joined:
        layouts = (join(alone, 20), join(together, 30))
    else:
        layouts = (pack(alone, 12, 6), pack(together, 24, 11))
    (loss, slopes), (packed_loss, packed) = (loss_and_slopes(model, rows) for rows in layouts)
    assert packed_loss == pytest.approx(loss, rel=1e-5)
    for one, other in zip(slopes, packed, strict=True):
        assert np.linalg.norm(other - one) < 1e-5 * np.linalg.norm(one)
        assert np.abs(other - one).max() < 1e-5 * np.abs(one).max()


def test_shared_stacks_have_one_set_of_weights_and_separate_cross_attention(make_model):
    model = make_model(**SHARED)
    names = set(weight_variables(model))
    assert {name for name in names if name.startswith("decoder")} == {
        f"decoder/block_{number}/{part}"
        for number in range(2)
        for part in ("cross_attention_norm/scale", *(f"cross_attention/{name}" for name in "qkvo"))
    }
    assert len(model.trainable_variables) == len(names)
    assert model.decoder.relative_bias.table is model.encoder.relative_bias.table
    assert not model.decoder.relative_bias.bidirectional


def test_shared_stacks_share_the_table_of_each_block(make_model):
    model = make_model(**SHARED, **PER_LAYER)
    tables = [name for name in weight_variables(model) if "relative_bias" in name]
    assert tables == [f"encoder/block_{number}/relative_bias/table" for number in range(2)]
    for one, other in zip(model.encoder.blocks, model.decoder.blocks, strict=True):
        assert one.relative_bias.table is other.relative_bias.table
        assert not other.relative_bias.bidirectional


def test_equal_tables_per_layer_are_the_table_of_a_stack(make_model, examples, pack):
    shared = randomised(make_model())
    apart = make_model(**PER_LAYER)
    known = weight_variables(shared)
    for name, variable in weight_variables(apart).items():
        stack = name.partition("/")[0]
        is_table = name.endswith("relative_bias/table")
        variable.assign(values(known[f"{stack}/relative_bias/table" if is_table else name]))
    features = pack([examples[:2], examples[2:]], 24, 11)
    features.pop("targets")
    np.testing.assert_array_equal(values(shared(features)), values(apart(features)))
    before = values(apart(features))
    table = apart.decoder.blocks[2].relative_bias.table
    table.assign(values(table) + np.arange(32, dtype=np.float32))
    assert abs(values(apart(features)) - before).max() > 1e-3


def test_shared_stacks_equal_two_stacks_of_equal_weights(make_model, examples, pack):
    shared = randomised(make_model(**SHARED))
    apart = make_model(num_decoder_layers=2)
    known = weight_variables(shared)
    for name, variable in weight_variables(apart).items():
        source = known[name if name in known else name.replace("decoder", "encoder")]
        variable.assign(values(source))
    features = pack([examples[:2], examples[2:]], 24, 11)
    features.pop("targets")
    np.testing.assert_allclose(
        values(shared(features)), values(apart(features)), rtol=1e-5, atol=1e-5
    )


def test_the_stacks_of_a_shared_model_have_noise_of_their_own_after_each_sub_layer(make_model):
    places = set(noise_variables(make_model(dropout_rate=0.1, **SHARED)))
    assert "encoder/block_0/self_attention_dropout" in places
    assert "decoder/block_0/self_attention_dropout" in places
    assert "decoder/block_0/feed_forward/dropout" not in places


def test_stacks_of_different_depth_cannot_share(make_model):
    with pytest.raises(ValueError, match=r"num_encoder_layers is 2, num_decoder_layers 3"):
        ModelSettings(
            architecture="shared_encoder_decoder", num_encoder_layers=2, num_decoder_layers=3
        )


@EVERY
def test_weights_survive_a_file(make_model, tmp_path, change):
    model = randomised(make_model(**change))
    save_weights(tmp_path / "w.safetensors", model)
    other = make_model(seed=9, **change)
    load_weights(tmp_path / "w.safetensors", other)
    for name, variable in weight_variables(model).items():
        np.testing.assert_array_equal(values(variable), values(weight_variables(other)[name]))


@DECODERS
def test_a_decoder_alone_has_no_encoder_and_reads_none(make_model, change):
    names = set(weight_variables(make_model(**change)))
    assert not [name for name in names if "cross" in name or name.startswith("encoder")]
    assert "decoder/block_2/feed_forward/wo" in names


def moved(model, features, place):
    """Return which logits move when the id at a place changes."""
    features = {name: array for name, array in features.items() if name != "targets"}
    changed = {name: array.copy() for name, array in features.items()}
    changed["decoder_ids"][0, place] = 90
    before, after = values(model(features)), values(model(changed))
    return (np.abs(before - after).max(axis=-1)[0] > 1e-6).tolist()


def test_a_language_model_does_not_see_what_comes_after(make_model, examples, join):
    model = randomised(make_model(**LANGUAGE))
    features = join([[examples[0]]], 9)  # 5 inputs, 3 targets, 1 of padding
    assert moved(model, features, 3) == [False] * 3 + [True] * 5 + [False]


def test_a_prefix_language_model_sees_the_inputs_whole_and_the_targets_from_behind(
    make_model, examples, join
):
    model = randomised(make_model(**PREFIX))
    features = join([[examples[0]]], 9)
    assert moved(model, features, 3) == [True] * 8 + [False]
    assert moved(model, features, 5) == [True] * 8 + [False]  # the position after the inputs
    assert moved(model, features, 6) == [False] * 6 + [True] * 2 + [False]


def test_the_mask_of_a_prefix():
    found = values(prefix_mask(np.array([[1, 1, 0, 0]], np.int32)))[0, 0]
    expected = [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    np.testing.assert_array_equal(found == BLOCKED, np.array(expected, bool))
