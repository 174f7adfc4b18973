import os
import subprocess
import sys

import numpy as np
import pytest
from checkout import SUPPORT

keras = pytest.importorskip("keras")
from t5repro.model.attention import RelativeBias  # noqa: E402
from t5repro.model.checkpoints import weight_variables  # noqa: E402

pytestmark = [
    pytest.mark.keras,
    pytest.mark.filterwarnings("ignore:Layer .* was passed an input with a mask"),
]


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def randomised(model, seed=5):
    """Move every weight, so that norm scales and biases count too."""
    generator = np.random.default_rng(seed)
    for variable in weight_variables(model).values():
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(values(variable) + 0.1 * noise)
    return model


def call(model, features, **options):
    return values(model({k: v for k, v in features.items() if k != "targets"}, **options))


@pytest.mark.parametrize(
    "change", [{}, {"feed_forward": "gated_gelu", "tie_embeddings": False}], ids=["1.0", "1.1"]
)
def test_packed_rows_give_the_logits_of_separate_rows(make_model, examples, pack, change):
    model = randomised(make_model(**change))
    separate = pack([[pair] for pair in examples], 12, 6)
    packed = pack([examples[:2], examples[2:]], 24, 11)
    alone, together = call(model, separate), call(model, packed)
    found = {}
    for row, pairs in enumerate((examples[:2], examples[2:])):
        start = 0
        for number, (_, targets) in enumerate(pairs):
            found[2 * row + number] = together[row, start : start + len(targets)]
            start += len(targets)
    for number, (_, targets) in enumerate(examples):
        np.testing.assert_allclose(
            found[number], alone[number, : len(targets)], rtol=1e-4, atol=1e-5
        )


def test_the_length_of_the_padding_does_not_change_the_logits(make_model, examples, pack):
    model = randomised(make_model())
    short = call(model, pack([[examples[0]]], 5, 3))
    long = call(model, pack([[examples[0]]], 30, 20))
    np.testing.assert_allclose(long[:, :3], short, rtol=1e-4, atol=1e-5)


def test_a_row_of_padding_alone_gives_finite_logits(make_model, pack):
    assert np.isfinite(call(make_model(), pack([[]], 8, 4))).all()


def test_the_decoder_does_not_see_what_comes_after(make_model, examples, pack):
    model = randomised(make_model())
    features = pack([[examples[1]]], 9, 6)
    changed = {name: array.copy() for name, array in features.items()}
    changed["decoder_ids"][0, 4] = 90
    before, after = call(model, features), call(model, changed)
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert not np.allclose(before[:, 4:], after[:, 4:])


def test_weights_are_a_function_of_the_seed(make_model):
    first, same, other = (weight_variables(make_model(seed=seed)) for seed in (1, 1, 2))
    differing = []
    for name, variable in first.items():
        np.testing.assert_array_equal(values(variable), values(same[name]))
        if not np.array_equal(values(variable), values(other[name])):
            differing.append(name)
    assert differing == [name for name in first if not name.endswith("scale")]


def test_weights_of_different_layers_differ(make_model):
    weights = weight_variables(make_model())
    a, b = (weights[f"encoder/block_{number}/self_attention/k"] for number in (0, 1))
    assert not np.array_equal(values(a), values(b))


def test_each_stack_has_one_table_of_position_biases(make_model):
    tables = [layer for layer in make_model()._flatten_layers() if isinstance(layer, RelativeBias)]
    assert [(table.model_path, table.bidirectional) for table in tables] == [
        ("encoder/relative_bias", True),
        ("decoder/relative_bias", False),
    ]


def test_embeddings_start_with_deviation_one_and_the_output_matrix_with_that_of_its_width():
    from networks import text_network

    from t5repro.config.sections.model import ModelSettings

    shape = ModelSettings(
        d_model=64,
        d_ff=64,
        d_kv=8,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        tie_embeddings=False,
    )
    model = text_network(shape, embedding_rows=4096, dropout_rate=0.0, seed=0)
    assert np.std(values(model.embedding)) == pytest.approx(1.0, rel=0.01)
    assert np.std(values(model.output_matrix)) == pytest.approx(0.8796 * 64**-0.5, rel=0.01)


def test_a_shared_matrix_scales_the_output_by_the_root_of_the_width(make_model):
    model = make_model()
    hidden = np.random.default_rng(0).normal(size=(1, 2, 24)).astype(np.float32)
    expected = hidden * 24**-0.5 @ values(model.embedding).T
    np.testing.assert_allclose(values(model.logits(hidden)), expected, rtol=1e-5, atol=1e-5)


def test_dropout_applies_in_training_alone_and_changes_from_step_to_step(
    make_model, examples, pack
):
    model = make_model(dropout_rate=0.3)
    features = pack([[examples[0]]], 5, 3)
    still = call(model, features)
    np.testing.assert_array_equal(still, call(model, features))
    np.testing.assert_allclose(still, call(make_model(), features), rtol=1e-6)
    first, second = (call(model, features, training=True) for _ in range(2))
    assert not np.allclose(first, second)


def test_bfloat16_keeps_weights_and_logits_in_float32_and_near_those_of_float32():
    # In a process of its own: TensorFlow must start without oneDNN for bfloat16 on a CPU.
    program = """
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.engines.devices import prepare
prepare(DevicesSettings(precision="bfloat16"))
import numpy as np
from t5repro.model.decode import greedy
from networks import text_network
shape = ModelSettings(
    d_model=24, d_ff=40, d_kv=6, num_heads=3, num_encoder_layers=2, num_decoder_layers=2
)
features = {name: np.ones((2, 8), np.int32) for name in
            ("encoder_ids", "encoder_segments", "decoder_ids", "decoder_segments")}
logits = []
for dtype in ("float32", "bfloat16"):
    model = text_network(shape, embedding_rows=96, dropout_rate=0.1, seed=0, dtype=dtype)
    assert {str(v.dtype) for v in model.trainable_variables} == {"float32"}
    logits.append(model(features).numpy())
    assert model.encode(features["encoder_ids"], features["encoder_segments"]).dtype.name == dtype
    assert np.isfinite(model(features, training=True)).all()
    assert greedy(model, features["encoder_ids"], max_decode_length=3).shape == (2, 3)
exact, rounded = logits
assert rounded.dtype == np.float32
assert 0 < np.abs(exact - rounded).max() < 0.1, np.abs(exact - rounded).max()
"""
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def keras_hub_backbone(model, gated):
    """Return keras-hub's backbone with the weights of `model`."""
    hub = pytest.importorskip("keras_hub")
    shape = model.settings
    backbone = hub.models.T5Backbone(
        vocabulary_size=model.embedding_rows,
        num_layers=shape.num_encoder_layers,
        num_heads=shape.num_heads,
        hidden_dim=shape.d_model,
        intermediate_dim=shape.d_ff,
        key_value_dim=shape.d_kv,
        dropout=0.0,
        # Its "gelu" is the erf form; T5 1.1 was trained with the tanh form.
        activation=(lambda x: keras.ops.gelu(x, approximate=True)) if gated else "relu",
        use_gated_activation=gated,
        tie_embedding_weights=shape.tie_embeddings,
    )
    ours = weight_variables(model)
    order = ["embedding"] + ([] if shape.tie_embeddings else ["output_matrix"])
    for stack, reads in (
        ("encoder", ["self_attention"]),
        ("decoder", ["self_attention", "cross_attention"]),
    ):
        for number in range(shape.num_encoder_layers):
            block = f"{stack}/block_{number}"
            order += [f"{stack}/relative_bias/table"] if number == 0 else []
            for read in reads:
                order += [f"{block}/{read}/{name}" for name in "qkvo"]
                order.append(f"{block}/{read}_norm/scale")
            names = ("wi_0", "wi_1", "wo") if gated else ("wi", "wo")
            order += [f"{block}/feed_forward/{name}" for name in names]
            order.append(f"{block}/feed_forward_norm/scale")
        order.append(f"{stack}/norm/scale")
    for name, theirs in zip(order, backbone.weights, strict=True):
        value = values(ours[name])
        theirs.assign(value.T if name.endswith("table") else value)
    assert sorted(order) == sorted(ours)
    return backbone


@pytest.mark.parametrize("gated", [False, True], ids=["1.0", "1.1"])
def test_the_forward_pass_equals_that_of_keras_hub(make_model, examples, pack, gated):
    change = {"feed_forward": "gated_gelu", "tie_embeddings": False} if gated else {}
    # keras-hub knows one number of layers for both stacks, and the published distances alone.
    model = randomised(
        make_model(num_decoder_layers=2, relative_position_max_distance=128, **change)
    )
    features = pack([[pair] for pair in examples], 12, 6)
    backbone = keras_hub_backbone(model, gated)
    theirs = backbone(
        {
            "encoder_token_ids": features["encoder_ids"],
            "encoder_padding_mask": features["encoder_segments"],
            "decoder_token_ids": features["decoder_ids"],
            "decoder_padding_mask": features["decoder_segments"],
        }
    )["decoder_sequence_output"]
    expected = values(model.logits(theirs))
    found = call(model, features)
    real = features["decoder_segments"] > 0
    scale = np.abs(expected[real]).max()
    np.testing.assert_allclose(found[real], expected[real], rtol=1e-4, atol=1e-5 * scale)
