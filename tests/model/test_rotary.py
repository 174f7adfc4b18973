"""Rotary positions against a network in NumPy's float64, in caches, and where they are refused."""

import hashlib

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.errors import CheckpointError  # noqa: E402
from t5repro.model.beam import beam_search  # noqa: E402
from t5repro.model.checkpoints import save_weights, weight_variables  # noqa: E402
from t5repro.model.decode import greedy  # noqa: E402
from t5repro.model.foreign_weights import fit, read_foreign  # noqa: E402
from t5repro.model.rotary import Rotation, rotate, rotation  # noqa: E402
from t5repro.publish.tokenizer_files import VocabularyFiles  # noqa: E402
from t5repro.publish.weights import write_huggingface, write_keras_hub  # noqa: E402

pytestmark = pytest.mark.keras
ROTARY = {"positions": "rotary"}


def shaken(model):
    generator = np.random.default_rng(1)
    for variable in model.trainable_variables:
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + 0.5 * noise)
    return model


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def turned(x):
    """Turn an array of (..., positions, features) by its definition, a complex product."""
    positions, features = x.shape[-2:]
    pairs = features // 2
    angle = np.arange(positions)[:, None] * 10_000.0 ** (-2 * np.arange(pairs) / features)
    z = (x[..., :pairs] + 1j * x[..., pairs:]) * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag], axis=-1)


class Reference:
    """A rotary T5 on one unpacked example, in float64 from the equations."""

    def __init__(self, model):
        self.shape = model.settings
        self.weights = {
            name: np.asarray(variable.numpy(), np.float64)
            for name, variable in weight_variables(model).items()
        }

    def norm(self, x, name):
        mean_square = (x**2).mean(axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.shape.norm_epsilon) * self.weights[f"{name}/scale"]

    def attention(self, x, memory, name, *, turn, visible):
        heads = (-1, self.shape.num_heads, self.shape.d_kv)
        q, k, v = (
            (source @ self.weights[f"{name}/{matrix}"]).reshape(heads).transpose(1, 0, 2)
            for source, matrix in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        if turn:
            q, k = turned(q), turned(k)
        logits = np.where(visible, q @ k.transpose(0, 2, 1), -np.inf)
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        read = weights / weights.sum(axis=-1, keepdims=True) @ v
        return read.transpose(1, 0, 2).reshape(len(x), -1) @ self.weights[f"{name}/o"]

    def stack(self, ids, name, layers, visible, encoded=None):
        x = self.weights["embedding"][ids]
        for number in range(layers):
            block = f"{name}/block_{number}"
            normed = self.norm(x, f"{block}/self_attention_norm")
            x = x + self.attention(
                normed, normed, f"{block}/self_attention", turn=True, visible=visible
            )
            if encoded is not None:
                normed = self.norm(x, f"{block}/cross_attention_norm")
                x = x + self.attention(
                    normed, encoded, f"{block}/cross_attention", turn=False, visible=True
                )
            hidden = self.norm(x, f"{block}/feed_forward_norm")
            hidden = np.maximum(hidden @ self.weights[f"{block}/feed_forward/wi"], 0)
            x = x + hidden @ self.weights[f"{block}/feed_forward/wo"]
        return self.norm(x, f"{name}/norm")

    def logits(self, inputs, answer):
        encoded = self.stack(inputs, "encoder", self.shape.num_encoder_layers, True)
        order = np.tri(len(answer), dtype=bool)
        decoded = self.stack(answer, "decoder", self.shape.num_decoder_layers, order, encoded)
        return decoded * self.shape.d_model**-0.5 @ self.weights["embedding"].T


def test_the_network_is_that_of_the_equations_in_float64(make_model, examples, pack):
    model = shaken(make_model(**ROTARY))
    features = pack([[example] for example in examples], 14, 7)  # padded to different extents
    features.pop("targets")
    found = values(model(features))
    reference = Reference(model)
    for row, (inputs, targets) in enumerate(examples):
        expected = reference.logits(inputs, np.concatenate([[0], targets[:-1]]))
        np.testing.assert_allclose(found[row, : len(targets)], expected, rtol=2e-4, atol=2e-4)


def test_a_packed_example_has_the_logits_it_has_alone(make_model, examples, pack):
    model = shaken(make_model(**ROTARY))
    features = pack([examples[:3]], 30, 16)  # the second and third do not begin at position 0
    features.pop("targets")
    found = values(model(features))[0]
    reference, start = Reference(model), 0
    for inputs, targets in examples[:3]:
        expected = reference.logits(inputs, np.concatenate([[0], targets[:-1]]))
        place = slice(start, start + len(targets))
        np.testing.assert_allclose(found[place], expected, rtol=2e-4, atol=2e-4)
        start = place.stop


def test_products_of_queries_and_keys_depend_on_their_distance_alone():
    q, k = np.random.default_rng(0).normal(size=(2, 1, 1, 1, 8)).astype(np.float32)
    table = rotation(600, 8)

    def product(query, key):
        turns = (Rotation(table.cos[at], table.sin[at]) for at in (query, key))
        one, other = (values(rotate(x, turn)) for x, turn in zip((q, k), turns, strict=True))
        return float((one * other).sum())

    for distance in (0, 1, 7, 80):
        for start in (1, 100, 519):
            assert product(start + distance, start) == pytest.approx(product(distance, 0), abs=2e-6)
    assert abs(product(7, 0) - product(0, 0)) > 0.01
    assert abs(product(0, 7) - product(7, 0)) > 0.01


def test_the_angles_are_those_of_the_definition_with_fixed_bits():
    found = rotation(1024, 64)
    angle = np.arange(1024)[:, None] * 10_000.0 ** (-2 * np.arange(32) / 64)
    np.testing.assert_allclose(found.cos, np.cos(angle), rtol=0, atol=2**-25 + 1e-12)
    np.testing.assert_allclose(found.sin, np.sin(angle), rtol=0, atol=2**-25 + 1e-12)
    digest = hashlib.sha256(found.cos.tobytes() + found.sin.tobytes()).hexdigest()
    assert digest[:32] == "60291c1890efcd1fb34ec61c05808426"


def test_a_rotation_in_bfloat16_rounds_its_result_only():
    x = keras.ops.cast(np.random.default_rng(0).normal(size=(1, 1, 300, 8)), "bfloat16")
    found = rotate(x, rotation(300, 8))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    exact = turned(values(keras.ops.cast(x, "float32")).astype(np.float64))
    error = np.abs(values(keras.ops.cast(found, "float32")) - exact)
    assert (error <= 2**-8 * np.abs(exact) + 1e-6).all()


@pytest.mark.parametrize(
    "architecture",
    ["encoder_decoder", "shared_encoder_decoder", "language_model", "prefix_language_model"],
)
def test_no_architecture_has_position_biases_and_both_searches_agree(make_model, architecture):
    model = shaken(make_model(architecture=architecture, num_decoder_layers=2, **ROTARY))
    assert not [name for name in weight_variables(model) if "relative_bias" in name]
    embedding = model.embedding.numpy().copy()
    embedding[1] = 0  # the end is never among the likeliest, so a search of width 1 is greedy
    model.embedding.assign(embedding)
    inputs = np.random.default_rng(3).integers(2, 96, (8, 10)).astype(np.int32)
    inputs[::3, 6:] = 0
    found = greedy(model, inputs, max_decode_length=8)
    assert (found > 1).all()
    searched = beam_search(model, inputs, max_decode_length=8, width=1, length_penalty=0.0)
    np.testing.assert_array_equal(searched, found)


@pytest.mark.parametrize("write", [write_huggingface, write_keras_hub])
def test_an_export_is_refused_with_the_setting_and_the_cure(tmp_path, write):
    message = (
        "model.positions is 'rotary', only 'relative' can be exchanged: the T5 of other libraries "
        "has nothing else; train with these values"
    )
    with pytest.raises(CheckpointError, match=message):
        write(tmp_path, ModelSettings(**ROTARY), {}, VocabularyFiles(b"", b"", 0))
    assert not list(tmp_path.iterdir())


def test_imported_weights_are_never_those_of_a_rotary_network(tmp_path, make_model):
    model = make_model(relative_position_max_distance=128)
    save_weights(tmp_path / "weights.safetensors", model)
    foreign = read_foreign(tmp_path)
    assert foreign.model.positions == "relative"
    rotary = ModelSettings.model_validate(model.settings.model_dump() | ROTARY)
    message = "model.positions is 'rotary', the weights have 'relative'; set them to what"
    with pytest.raises(CheckpointError, match=message):
        fit(foreign, rotary, embedding_rows=96, where=tmp_path)
