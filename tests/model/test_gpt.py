"""GPT against its equations in NumPy's float64, in packed rows and caches; each of its settings."""

from math import erf, pi, sqrt

import numpy as np
import pytest
from pydantic import ValidationError

keras = pytest.importorskip("keras")
from t5repro.config.load import load_settings  # noqa: E402
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.errors import CheckpointError, SettingsError  # noqa: E402
from t5repro.model.beam import beam_search  # noqa: E402
from t5repro.model.checkpoints import load_weights, save_weights, weight_variables  # noqa: E402
from t5repro.model.decode import greedy  # noqa: E402
from t5repro.model.foreign_weights import read_foreign  # noqa: E402
from t5repro.model.layers import Dropout  # noqa: E402
from t5repro.model.sizes import parameter_count  # noqa: E402
from t5repro.model.weight_names import from_huggingface, to_huggingface, weight_names  # noqa: E402
from t5repro.publish.tokenizer_files import VocabularyFiles  # noqa: E402
from t5repro.publish.weights import write_huggingface, write_keras_hub  # noqa: E402

pytestmark = pytest.mark.keras

SHAPE = ("d_model", "d_ff", "d_kv", "num_heads", "num_decoder_layers", "num_encoder_layers")
GPT = {
    **{key: getattr(SIZES["gpt"], key) for key in SIZES["gpt"].model_fields_set - set(SHAPE)},
    "max_positions": 40,
}
NO_VOCABULARY = VocabularyFiles(b"", b"", 0)


def values(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def shaken(model):
    """Add noise to all weights; less to norms, so that the answers of a row vary."""
    generator = np.random.default_rng(1)
    for name, variable in weight_variables(model).items():
        noise = generator.normal(size=variable.shape).astype(np.float32)
        deviation = 0.1 if "norm/" in name else 0.5
        variable.assign(np.asarray(variable.numpy()) + deviation * noise)
    return model


@pytest.fixture
def gpt(make_model):
    return shaken(make_model(**GPT))


def arrays_of(model):
    return {name: values(variable) for name, variable in weight_variables(model).items()}


class Reference:
    """GPT on one example that begins with the id 0, in float64 from the equations."""

    def __init__(self, model):
        self.shape = model.settings
        self.weights = {name: array.astype(np.float64) for name, array in arrays_of(model).items()}

    def norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.shape.norm_epsilon)
        return centred / deviation * self.weights[f"{name}/scale"] + self.weights[f"{name}/bias"]

    def product(self, x, name):
        return x @ self.weights[name] + self.weights[f"{name}_bias"]

    def attention(self, x, name):
        heads = (len(x), self.shape.num_heads, self.shape.d_kv)
        q, k, v = (self.product(x, f"{name}/{m}").reshape(heads).swapaxes(0, 1) for m in "qkv")
        logits = q @ k.swapaxes(1, 2) / np.sqrt(self.shape.d_kv)
        logits = np.where(np.tri(len(x), dtype=bool), logits, -np.inf)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return self.product((shares @ v).swapaxes(0, 1).reshape(len(x), -1), f"{name}/o")

    def feed_forward(self, x, name):
        hidden = self.product(x, f"{name}/wi")
        hidden = 0.5 * hidden * (1 + np.tanh(sqrt(2 / pi) * (hidden + 0.044715 * hidden**3)))
        return self.product(hidden, f"{name}/wo")

    def logits(self, ids):
        x = self.weights["embedding"][ids] + self.weights["decoder/positions/table"][: len(ids)]
        for number in range(self.shape.num_decoder_layers):
            block = f"decoder/block_{number}"
            attended = x + self.attention(x, f"{block}/self_attention")
            x = self.norm(attended, f"{block}/self_attention_norm")
            transformed = x + self.feed_forward(x, f"{block}/feed_forward")
            x = self.norm(transformed, f"{block}/feed_forward_norm")
        return x @ self.weights["embedding"].T


def test_the_network_is_that_of_the_equations_in_float64(gpt, examples, join):
    features = join([[example] for example in examples], 20)  # padded to different extents
    features.pop("targets")
    found, reference = values(gpt(features)), Reference(gpt)
    for row, (inputs, targets) in enumerate(examples):
        ids = np.concatenate([[0], inputs, targets[:-1]])
        expected = reference.logits(ids)
        np.testing.assert_allclose(found[row, : len(ids)], expected, rtol=1e-4, atol=1e-4)


def test_a_packed_example_has_the_logits_that_it_has_alone(gpt, examples, join):
    features = join([examples[:3]], 40)  # the second and third begin at position 0 as well
    features.pop("targets")
    found, reference, start = values(gpt(features))[0], Reference(gpt), 0
    for inputs, targets in examples[:3]:
        expected = reference.logits(np.concatenate([[0], inputs, targets[:-1]]))
        place = slice(start, start + len(expected))
        np.testing.assert_allclose(found[place], expected, rtol=1e-4, atol=1e-4)
        start = place.stop


def test_decoding_with_caches_writes_what_the_whole_row_predicts(gpt, examples):
    inputs = np.zeros((len(examples), 12), np.int32)
    for row, (ids, _) in enumerate(examples):
        inputs[row, : len(ids)] = ids
    found = greedy(gpt, inputs, max_decode_length=8)
    reference = Reference(gpt)
    for row, (ids, _) in enumerate(examples):
        text = [0, *ids]
        for step in range(8):
            expected = int(reference.logits(np.array(text))[-1].argmax())
            assert found[row, step] == expected
            if expected == 1:
                break
            text.append(expected)
    searched = beam_search(gpt, inputs, max_decode_length=8, width=1, length_penalty=0.0)
    np.testing.assert_array_equal(searched, found)
    assert len(np.unique(found)) > 3


def test_an_encoder_decoder_may_have_its_parts_as_well(make_model, examples, pack):
    model = shaken(make_model(**{**GPT, "architecture": "encoder_decoder"}))
    features = pack([[example] for example in examples], 14, 7)
    targets = features.pop("targets")
    logits = values(model(features))
    inputs = features["encoder_ids"]
    found = greedy(model, inputs, max_decode_length=7)
    first = logits[:, 0].argmax(axis=-1)
    np.testing.assert_array_equal(found[:, 0], first)
    together = pack([examples[:2]], 30, 16)
    together.pop("targets")
    packed = values(model(together))[0]
    length = len(examples[0][1])
    np.testing.assert_allclose(packed[:length], logits[0, :length], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        packed[length : length + len(examples[1][1])],
        logits[1, : len(examples[1][1])],
        rtol=1e-4,
        atol=1e-4,
    )
    assert targets.any()


def test_stacks_that_share_weights_share_positions_and_norms(make_model):
    shared = {**GPT, "architecture": "shared_encoder_decoder", "num_decoder_layers": 2}
    model = make_model(**shared)
    assert model.decoder.positions is model.encoder.positions
    assert [name for name in weight_variables(model) if "positions" in name] == [
        "encoder/positions/table"
    ]


def test_initial_values_have_one_deviation_and_biases_start_at_0(make_model):
    model = make_model(**GPT)
    for name, array in arrays_of(model).items():
        last = name.rsplit("/", 1)[-1]
        if last.endswith("bias"):
            assert not array.any(), name
        elif last == "scale":
            assert (array == 1).all(), name
        else:
            error = 4 / sqrt(2 * array.size)  # four standard errors of a deviation
            assert array.std() == pytest.approx(0.02, rel=error), name
            assert abs(array).max() > 0.04, name  # not truncated
    truncated = make_model(**{**GPT, "initializer": "truncated_normal"})
    table = values(truncated.embedding)
    assert abs(table).max() <= 0.04
    # The variance within two deviations of a normal distribution.
    inside = 1 - 4 * np.exp(-2) / (sqrt(2 * pi) * erf(sqrt(2)))
    assert table.std() == pytest.approx(0.02 * sqrt(inside), rel=4 / sqrt(2 * table.size))


def test_each_setting_of_gpt_changes_the_logits(make_model, examples, pack):
    features = pack([[example] for example in examples], 14, 7)
    features.pop("targets")
    changes = {key: value for key, value in GPT.items() if key != "architecture"}

    def logits(change):
        model = make_model(**change)
        generator = np.random.default_rng(5)
        for variable in weight_variables(model).values():
            variable.assign(generator.normal(size=variable.shape).astype(np.float32))
        return values(model(features))

    baseline = logits({})
    without_effect = {
        *("initializer", "initializer_range", "max_positions"),
        *("dropout_noise", "activation_dropout"),
    }
    for key in changes.keys() - without_effect - {"norm_epsilon"}:
        assert abs(logits({key: changes[key]}) - baseline).max() > 1e-3, key
    for key in without_effect:
        np.testing.assert_array_equal(logits({key: changes[key]}), baseline, err_msg=key)


def test_noise_per_position_differs_along_a_row():
    place = {"seed": 3, "path": "decoder/part", "dtype": "float32"}
    x = np.ones((4, 50, 60), np.float32)
    dropped = values(Dropout(0.25, per_position=True, **place)(x, training=True))
    assert (dropped == 0).mean() == pytest.approx(0.25, abs=4 * sqrt(0.25 * 0.75 / x.size))
    assert (dropped[:, 1:] != dropped[:, :-1]).any()
    np.testing.assert_allclose(dropped[dropped > 0], 1 / 0.75)


def test_the_number_of_parameters_is_that_of_the_released_model():
    # 40,478 ids; the count of `OpenAIGPTModel`.
    assert parameter_count(SIZES["gpt"], 40_478) == 116_534_784


@pytest.mark.parametrize("name", ["gpt_tiny", "gpt_mini"])
def test_the_count_of_parameters_is_that_of_the_weights(make_model, name):
    change = {key: getattr(SIZES[name], key) for key in SIZES[name].model_fields_set}
    model = make_model(**change)
    count = sum(array.size for array in arrays_of(model).values())
    assert count == parameter_count(model.settings, model.embedding_rows)


@pytest.mark.parametrize(
    "change",
    [
        {"norm": "layer"},
        {"norm_placement": "post"},
        {"biases": True},
        {"biases": True, "feed_forward": "swiglu", "tie_embeddings": False},
        {"positions": "learned", "max_positions": 30},
        {"feed_forward": "gelu_tanh"},
    ],
    ids=str,
)
def test_the_count_of_parameters_is_right_for_each_setting(make_model, change):
    model = make_model(**change)
    count = sum(array.size for array in arrays_of(model).values())
    assert count == parameter_count(model.settings, model.embedding_rows)


def square(make_model):
    """Return a GPT that other libraries can have: heads fill the width, d_ff is four times it."""
    return shaken(make_model(**GPT, d_ff=96, d_kv=8))


def test_weights_return_from_hugging_face_unchanged(make_model, tmp_path):
    model = square(make_model)
    write_huggingface(tmp_path, model.settings, arrays_of(model), NO_VOCABULARY)
    foreign = read_foreign(tmp_path)
    returned = foreign.model.model_dump() | {"num_encoder_layers": 2}
    expected = model.settings.model_dump()
    unused = model.settings.unused
    assert {k: v for k, v in returned.items() if k not in unused} == {
        k: v for k, v in expected.items() if k not in unused
    }
    assert foreign.weights.keys() == arrays_of(model).keys()
    for name, array in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[name], array, err_msg=name)


def test_every_weight_has_a_name_and_queries_keys_and_values_are_one_array(make_model):
    model = square(make_model)
    names = weight_names(model.settings)
    assert sorted(name.path for name in names) == sorted(weight_variables(model))
    state = to_huggingface(arrays_of(model), model.settings)
    q, k, v = (arrays_of(model)[f"decoder/block_1/self_attention/{name}"] for name in "qkv")
    np.testing.assert_array_equal(
        state["transformer.h.1.attn.c_attn.weight"], np.concatenate([q, k, v], axis=1)
    )
    returned = from_huggingface(state, model.settings)
    assert all((returned[name] == array).all() for name, array in arrays_of(model).items())


def test_the_released_names_without_a_head_are_read_too(make_model, tmp_path):
    from safetensors.numpy import load_file, save_file

    model = square(make_model)
    write_huggingface(tmp_path, model.settings, arrays_of(model), NO_VOCABULARY)
    path = tmp_path / "model.safetensors"
    state = {name.removeprefix("transformer."): array for name, array in load_file(path).items()}
    state["h.0.attn.bias"] = np.tri(40, dtype=np.float32)[None, None]  # its causal mask
    save_file(state, path)
    foreign = read_foreign(tmp_path)
    np.testing.assert_array_equal(foreign.weights["embedding"], values(model.embedding))
    state["h.7.attn.c_proj.bias"] = np.zeros(2, np.float32)
    save_file(state, path)
    with pytest.raises(CheckpointError, match=r"lacks: '(transformer\.)?h.7.attn.c_proj.bias'"):
        read_foreign(tmp_path)


def test_what_other_libraries_lack_is_refused_with_the_settings(make_model, tmp_path):
    shape = ModelSettings(**GPT).model_copy(update={"norm_placement": "pre", "d_ff": 100})
    message = (
        "model.norm_placement is 'pre', only 'post' can be exchanged; "
        "model.d_ff is 100, only 3072 can be exchanged: the GPT of other libraries"
    )
    with pytest.raises(CheckpointError, match=message):
        write_huggingface(tmp_path, shape, {}, NO_VOCABULARY)
    t5 = ModelSettings(norm="layer", biases=True)
    message = "model.biases is True, only False .*; model.norm is 'layer', only 'rms'"
    with pytest.raises(CheckpointError, match=message):
        write_huggingface(tmp_path, t5, {}, NO_VOCABULARY)
    with pytest.raises(CheckpointError, match="model.architecture must be encoder_decoder"):
        write_keras_hub(tmp_path, square(make_model).settings, {}, NO_VOCABULARY)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"afn": "relu"}, "afn is 'relu'; only 'gelu' can be read"),
        ({"n_head": 5}, "n_embd 24 is not a multiple of n_head 5"),
        ({"n_embd": None}, "has no 'n_embd'"),
        ({"n_positions": 0}, "model.max_positions is 0"),
    ],
)
def test_a_configuration_that_is_no_gpt_is_refused(make_model, tmp_path, change, message):
    import json

    model = square(make_model)
    write_huggingface(tmp_path, model.settings, arrays_of(model), NO_VOCABULARY)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    with pytest.raises(CheckpointError, match=message):
        read_foreign(tmp_path)


def test_own_weights_are_read_with_their_settings(make_model, tmp_path):
    model = square(make_model)
    save_weights(tmp_path / "weights.safetensors", model)
    other = make_model(seed=5, **GPT, d_ff=96, d_kv=8)
    load_weights(tmp_path / "weights.safetensors", other)
    np.testing.assert_array_equal(values(other.embedding), values(model.embedding))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"pretrain": {"targets_length": 513}},
            "rows of pretrain have 513 positions; make them shorter, or increase model.max_",
        ),
        ({"finetune": {"inputs_length": 500}}, "rows of finetune have "),
        (
            {"evaluate": {"inputs_length": 450, "max_decode_length": 62}},
            "rows of evaluate have 513 positions",
        ),
    ],
)
def test_rows_longer_than_the_table_are_refused(change, message):
    values = {
        "use": ["sizes/gpt"],
        "pretrain": {"objective": "lm", "targets_length": 512},
        "finetune": {"inputs_length": 384, "targets_length": 128},
        "evaluate": {"inputs_length": 384, "max_decode_length": 127},
    }
    load_settings(values)
    with pytest.raises(SettingsError, match=message):
        load_settings(values, change)


def test_a_table_of_biases_per_layer_without_biases_is_refused():
    with pytest.raises(ValidationError, match="model.positions learned has no position biases"):
        ModelSettings(positions="learned", relative_position_bias="per_layer")
