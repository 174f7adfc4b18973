"""Encoders alone against their equations in NumPy's float64, in all shapes and with each head."""

from math import erf, pi, sqrt

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.model.block_sharing import block_with_weights, blocks_with_weights  # noqa: E402
from t5repro.model.checkpoints import load_weights, noise_variables, save_weights, weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.gelu import gelu  # noqa: E402
from t5repro.model.network import UNUSED_LOGIT  # noqa: E402
from t5repro.model.sizes import parameter_count  # noqa: E402

pytestmark = pytest.mark.keras

ROWS, LENGTH = 96, 14
ODD = {
    "d_model": 15,
    "d_ff": 22,
    "d_kv": 5,
    "num_heads": 3,
    "num_encoder_layers": 4,
    "max_positions": 17,
}


def settings(size="bert_base", **change):
    of_size = {key: getattr(SIZES[size], key) for key in SIZES[size].model_fields_set}
    return ModelSettings(**{**of_size, **ODD, **change})


NETWORKS = {
    "bert": settings(),
    "spanbert": settings("spanbert_base"),
    "roberta": settings("roberta_base"),
    "albert": settings("albert_base", embedding_width=7),
    "albert of groups": settings(
        "albert_base", embedding_width=7, block_groups=2, blocks_per_group=2
    ),
    "albert of one width": settings("albert_base", embedding_width=15, block_groups=2),
    "shared without a projection": settings("albert_base", embedding_width=0),
}
HEADS = {"masked": {}, "pairs": {"pair_classes": 3}, "labels": {"labels": 4}}


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def network(model, *, dropout_rate=0.0, seed=0, **heads):
    return Encoder(model, embedding_rows=ROWS, dropout_rate=dropout_rate, seed=seed, **heads)


def shaken(model):
    """Add noise to all weights; less to norms, so that the answers of a row vary."""
    generator = np.random.default_rng(1)
    for name, variable in weight_variables(model).items():
        noise = generator.normal(size=variable.shape).astype(np.float32)
        deviation = 0.1 if "norm/" in name else 0.4
        variable.assign(np.asarray(variable.numpy()) + deviation * noise)
    return model


def arrays_of(model):
    return {name: values(variable) for name, variable in weight_variables(model).items()}


def batch(length=LENGTH):
    """Return rows of three lengths; padding has ids and types, which must have no effect."""
    generator = np.random.default_rng(2)
    lengths = np.array([[LENGTH], [9], [3]])
    positions = np.arange(length)[None]
    ids, types = np.zeros((2, 3, length), np.int32)
    ids[:, :LENGTH] = generator.integers(2, ROWS, (3, LENGTH))
    types[:, :LENGTH] = generator.integers(0, 2, (3, LENGTH))
    targets = generator.integers(0, LENGTH, (3, 5)) % lengths
    return {
        "encoder_ids": ids,
        "encoder_segments": (positions < lengths).astype(np.int32),
        "encoder_types": types,
        "target_positions": targets.astype(np.int32),
    }


class Reference:
    """An encoder on one row without padding, in float64 from the equations."""

    def __init__(self, model):
        self.shape = model.settings
        self.weights = {name: array.astype(np.float64) for name, array in arrays_of(model).items()}

    def norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.shape.norm_epsilon)
        return centred / deviation * self.weights[f"{name}/scale"] + self.weights[f"{name}/bias"]

    def product(self, x, name):
        return x @ self.weights[name] + self.weights[f"{name}_bias"]

    def dense(self, x, name):
        return x @ self.weights[f"{name}/matrix"] + self.weights[f"{name}/bias"]

    def activation(self, x):
        if self.shape.feed_forward == "gelu":
            return x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2
        return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))

    def attention(self, x, name):
        heads = (len(x), self.shape.num_heads, self.shape.d_kv)
        q, k, v = (self.product(x, f"{name}/{m}").reshape(heads).swapaxes(0, 1) for m in "qkv")
        logits = q @ k.swapaxes(1, 2) / np.sqrt(self.shape.d_kv)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return self.product((shares @ v).swapaxes(0, 1).reshape(len(x), -1), f"{name}/o")

    def encoded(self, ids, types):
        x = self.weights["embedding"][ids] + self.weights["encoder/positions/table"][: len(ids)]
        if self.shape.token_types:
            x = x + self.weights["encoder/token_types/table"][types]
        x = self.norm(x, "encoder/embedding_norm")
        if self.shape.embedding_width:
            x = self.dense(x, "encoder/embedding_projection")
        for layer in range(self.shape.num_encoder_layers // self.shape.blocks_per_group):
            for inner in range(self.shape.blocks_per_group):
                x = self.block(x, f"encoder/block_{self.first_block(layer, inner)}")
        return x

    def first_block(self, layer, inner):
        """Return the block whose weights a layer of ALBERT's code has."""
        layers = self.shape.num_encoder_layers // self.shape.blocks_per_group
        groups = self.shape.block_groups or layers
        group = int(layer / (layers / groups))
        return group * (layers // groups) * self.shape.blocks_per_group + inner

    def block(self, x, name):
        x = self.norm(
            x + self.attention(x, f"{name}/self_attention"), f"{name}/self_attention_norm"
        )
        hidden = self.activation(self.product(x, f"{name}/feed_forward/wi"))
        return self.norm(
            x + self.product(hidden, f"{name}/feed_forward/wo"), f"{name}/feed_forward_norm"
        )

    def masked_logits(self, x):
        hidden = self.activation(self.dense(x, "masked_lm/transform"))
        hidden = self.norm(hidden, "masked_lm/norm")
        return hidden @ self.weights["embedding"].T + self.weights["masked_lm/bias"]

    def class_logits(self, x, head):
        return self.dense(np.tanh(self.dense(x[0], "pooler")), head)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_is_that_of_the_equations_in_float64(name, head):
    model = shaken(network(NETWORKS[name], **HEADS[head]))
    features, reference = batch(), Reference(model)
    found = model(features)
    for row, segments in enumerate(features["encoder_segments"]):
        real = segments > 0
        x = reference.encoded(
            features["encoder_ids"][row][real], features["encoder_types"][row][real]
        )
        if head == "labels":
            expected = reference.class_logits(x, "label_head")
            np.testing.assert_allclose(values(found)[row], expected, rtol=1e-4, atol=1e-4)
            continue
        masked = values(found[0] if head == "pairs" else found)[row]
        expected = reference.masked_logits(x[features["target_positions"][row]])
        np.testing.assert_allclose(masked, expected, rtol=1e-4, atol=1e-4)
        if head == "pairs":
            expected = reference.class_logits(x, "pair_head")
            np.testing.assert_allclose(values(found[1])[row], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_more_padding_changes_no_logit(name):
    model = shaken(network(NETWORKS[name], pair_classes=2))
    for shorter, longer in zip(model(batch()), model(batch(LENGTH + 3)), strict=True):
        np.testing.assert_allclose(values(shorter), values(longer), rtol=0, atol=1e-5)


def test_ids_and_types_of_padding_have_no_effect():
    model = shaken(network(NETWORKS["bert"], labels=2))
    features = batch()
    before = values(model(features))
    padding = features["encoder_segments"] == 0
    features["encoder_ids"][padding] = 5
    features["encoder_types"][padding] = 1
    np.testing.assert_allclose(values(model(features)), before, rtol=0, atol=1e-6)


def test_blocks_of_a_group_have_the_same_weights():
    shape = settings(
        "albert_base", embedding_width=7, num_encoder_layers=12, block_groups=2, blocks_per_group=3
    )
    firsts = [block_with_weights(shape, number) for number in range(12)]
    assert firsts == [0, 1, 2, 0, 1, 2, 6, 7, 8, 6, 7, 8]
    assert blocks_with_weights(shape) == [0, 1, 2, 6, 7, 8]
    model = network(shape)
    blocks = model.encoder.blocks
    assert all(
        block.self_attention is blocks[firsts[n]].self_attention for n, block in enumerate(blocks)
    )
    names = {name.split("/")[1] for name in weight_variables(model) if "/block_" in name}
    assert names == {"block_0", "block_1", "block_2", "block_6", "block_7", "block_8"}


@pytest.mark.parametrize("part", ["attention", "feed_forward"])
def test_blocks_share_their_attention_or_their_feed_forward_layers(part):
    """Lan et al., 2020, table 4."""
    shape = settings("albert_base", embedding_width=7, block_groups=1, shared_parts=part)
    model = network(shape, labels=2)
    own = {"attention": "feed_forward", "feed_forward": "attention"}[part]
    shared_layer = {"attention": "self_attention", "feed_forward": "feed_forward"}
    blocks = model.encoder.blocks
    for block in blocks[1:]:
        assert getattr(block, shared_layer[part]) is getattr(blocks[0], shared_layer[part])
        norm = f"{shared_layer[part]}_norm"
        assert getattr(block, norm) is getattr(blocks[0], norm)
        assert getattr(block, shared_layer[own]) is not getattr(blocks[0], shared_layer[own])
    assert values(model(batch())).shape[-1] == 2
    count = sum(array.size for array in arrays_of(model).values())
    assert count == parameter_count(shape, ROWS, labels=2)


def test_every_shared_block_has_its_own_noise():
    model = network(NETWORKS["albert"], dropout_rate=0.1)
    paths = noise_variables(model)
    for number in range(4):
        assert f"encoder/block_{number}/feed_forward_dropout" in paths
    first, second = (values(model(batch(), training=True)) for _ in range(2))
    assert (first != second).any()


def test_albert_without_sharing_and_projection_is_bert():
    bert = shaken(network(NETWORKS["bert"], pair_classes=2))
    shape = settings("albert_base", embedding_width=0, block_groups=0)
    albert = network(shape, pair_classes=2, seed=5)
    variables = weight_variables(albert)
    assert variables.keys() == weight_variables(bert).keys()
    for name, array in arrays_of(bert).items():
        variables[name].assign(array)
    for ours, theirs in zip(bert(batch()), albert(batch()), strict=True):
        np.testing.assert_array_equal(values(ours), values(theirs))


def test_groups_of_one_block_are_blocks_with_weights_of_their_own():
    own, grouped = (
        network(settings("albert_base", embedding_width=7, block_groups=groups))
        for groups in (0, 4)
    )
    assert arrays_of(own).keys() == arrays_of(grouped).keys()
    np.testing.assert_array_equal(values(own(batch())), values(grouped(batch())))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_count_of_parameters_is_that_of_the_weights(name, head):
    model = network(NETWORKS[name], **HEADS[head])
    count = sum(array.size for array in arrays_of(model).values())
    assert count == sum(variable.numpy().size for variable in model.trainable_variables)
    assert count == parameter_count(NETWORKS[name], ROWS, **HEADS[head])


def test_heads_exist_where_they_are_used():
    def heads(**arguments):
        paths = weight_variables(network(NETWORKS["bert"], **arguments))
        return {path.split("/")[0] for path in paths} - {"embedding", "encoder"}

    assert heads() == {"masked_lm"}
    assert heads(pair_classes=2) == {"masked_lm", "pooler", "pair_head"}
    assert heads(labels=3) == {"pooler", "label_head"}
    assert heads(labels=3, pair_classes=2) == {"pooler", "label_head"}


@pytest.mark.parametrize(
    ("size", "is_truncated"),
    [("bert_tiny", True), ("albert_tiny", True), ("roberta_tiny", False), ("spanbert_tiny", False)],
)
def test_initial_values_are_those_of_the_published_code(size, is_truncated):
    model = network(SIZES[size], labels=100)
    inside = 1 - 4 * np.exp(-2) / (sqrt(2 * pi) * erf(sqrt(2)))  # variance of the truncated one
    deviation = 0.02 * sqrt(inside) if is_truncated else 0.02
    for name, array in arrays_of(model).items():
        last = name.rsplit("/", 1)[-1]
        if last.endswith("bias"):
            assert not array.any(), name
        elif last == "scale":
            assert (array == 1).all(), name
        else:
            # Five standard errors of a deviation.
            assert array.std() == pytest.approx(deviation, rel=5 / sqrt(2 * array.size)), name
            assert (abs(array).max() <= 0.04) == is_truncated or array.size < 1000, name


def test_initial_values_depend_on_the_seed_alone():
    first, again, other = (arrays_of(network(NETWORKS["bert"], seed=seed)) for seed in (0, 0, 1))
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    assert (first["encoder/positions/table"] != other["encoder/positions/table"]).any()


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "spanbert"])
def test_only_roberta_drops_the_first_state_and_none_drops_inside_a_feed_forward_layer(name):
    paths = noise_variables(network(NETWORKS[name], dropout_rate=0.1, labels=2))
    assert ("pooler_dropout" in paths) == (name == "roberta")
    assert not [path for path in paths if path.endswith("feed_forward/dropout")]
    inside = network(
        NETWORKS[name].model_copy(update={"activation_dropout": True}), dropout_rate=0.1
    )
    assert "encoder/block_0/feed_forward/dropout" in noise_variables(inside)


@pytest.mark.parametrize("name", ["bert", "roberta"])
@pytest.mark.parametrize(("rate", "of_heads"), [(0.0, 0.5), (0.5, 0.0)])
def test_the_head_of_labels_may_have_a_rate_of_its_own(name, rate, of_heads):
    model = shaken(
        network(NETWORKS[name], dropout_rate=rate, classifier_dropout=of_heads, labels=2)
    )
    at_head = {"label_dropout"} | ({"pooler_dropout"} if name == "roberta" else set())
    assert (set(noise_variables(model)) == at_head) == (of_heads > 0)
    assert bool(at_head & set(noise_variables(model))) == (of_heads > 0)
    features = batch()
    encoded = [values(model.encode(features, training=training)) for training in (True, False)]
    assert (encoded[0] != encoded[1]).any() == (rate > 0)
    assert (values(model(features, training=True)) != values(model(features))).any()


def test_dropout_acts_in_training_on_the_pooled_state_too():
    model = shaken(network(NETWORKS["bert"], dropout_rate=0.5, labels=2))
    assert "label_dropout" in noise_variables(model)
    features = batch()
    assert (values(model(features, training=True)) != values(model(features))).any()
    np.testing.assert_array_equal(values(model(features)), values(model(features)))


def test_weights_are_saved_and_rows_that_they_lack_are_not_predicted(tmp_path):
    model = shaken(network(NETWORKS["albert"]))
    embedding = values(model.embedding).copy()
    embedding[90:] = 0
    model.embedding.assign(embedding)
    save_weights(tmp_path / "weights.safetensors", model)
    other = network(NETWORKS["albert"], seed=3)
    load_weights(tmp_path / "weights.safetensors", other)
    assert other.rows_in_use == 90
    logits = values(other(batch()))
    assert (logits[..., 90:] == UNUSED_LOGIT).all()
    np.testing.assert_array_equal(logits[..., :90], values(model(batch()))[..., :90])


def test_adapters_are_in_every_block_and_shared_with_its_weights():
    model = network(NETWORKS["albert"], adapter_width=6)
    paths = [path for path in weight_variables(model) if "/adapter/" in path]
    assert {path.split("/")[1] for path in paths} == {"block_0"}


def test_gelu_and_its_gradient_are_those_of_the_error_function():
    import tensorflow as tf
    from scipy.special import ndtr

    x = np.linspace(-9, 9, 40_001).astype(np.float32)
    exact = x.astype(np.float64)
    with tf.GradientTape() as tape:
        variable = tf.constant(x)
        tape.watch(variable)
        found = gelu(variable)
    gradient = tape.gradient(found, variable)
    assert np.max(np.abs(values(found) - exact * ndtr(exact)) / (1 + np.abs(exact))) < 2e-7
    density = np.exp(-(exact**2) / 2) / sqrt(2 * pi)
    np.testing.assert_allclose(values(gradient), ndtr(exact) + exact * density, rtol=0, atol=4e-7)


def test_the_layer_of_each_feed_forward_setting_is_used_in_the_head_as_well():
    shapes = [settings(feed_forward=kind) for kind in ("relu", "gelu", "gelu_tanh")]
    models = [shaken(network(shape)) for shape in shapes]
    relu, exact, by_tanh = (values(model(batch())) for model in models)
    assert np.abs(relu - exact).max() > 0.05
    assert 1e-6 < np.abs(exact - by_tanh).max() < 0.05
