"""Networks of every family as Keras models: saved, cloned, exported, with LoRA, and as int8."""

import subprocess
import sys

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from checkout import SUPPORT  # noqa: E402
from jax_environment import PYTHON, run  # noqa: E402

from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.errors import SettingsError  # noqa: E402
from t5repro.model.attention import Attention  # noqa: E402
from t5repro.model.block import Block  # noqa: E402
from t5repro.model.checkpoints import noise_variables, weight_variables  # noqa: E402
from t5repro.model.dense import Dense  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.transformer import Decoder, DecoderClassifier, EncoderDecoder  # noqa: E402

pytestmark = pytest.mark.keras

ROWS = 128
LENGTHS = {"inputs": 10, "targets": 6}
SMALL = {
    "d_model": 24,
    "d_ff": 40,
    "d_kv": 6,
    "num_heads": 4,
    "num_encoder_layers": 3,
    "num_decoder_layers": 3,
    "max_positions": 12,
}


def t5(**change):
    return ModelSettings(**{**SMALL, **change})


def sized(size, **change):
    of_size = {key: getattr(SIZES[size], key) for key in SIZES[size].model_fields_set}
    return ModelSettings(**{**of_size, **SMALL, **change})


FAMILIES = {
    "T5": lambda **a: EncoderDecoder(t5(), **a),
    "T5 1.1": lambda **a: EncoderDecoder(t5(feed_forward="gated_gelu", tie_embeddings=False), **a),
    "T5 with shared stacks": lambda **a: EncoderDecoder(
        t5(architecture="shared_encoder_decoder"), **a
    ),
    "umT5": lambda **a: EncoderDecoder(t5(relative_position_bias="per_layer"), **a),
    "T5 with adapters": lambda **a: EncoderDecoder(t5(), adapter_width=5, **a),
    "language model": lambda **a: Decoder(t5(architecture="language_model"), **a),
    "prefix language model": lambda **a: Decoder(t5(architecture="prefix_language_model"), **a),
    "rotary language model": lambda **a: Decoder(
        t5(architecture="language_model", positions="rotary", feed_forward="swiglu"), **a
    ),
    "GPT": lambda **a: Decoder(sized("gpt"), **a),
    "GPT on labels": lambda **a: DecoderClassifier(sized("gpt"), labels=3, **a),
    "BERT in pre-training": lambda **a: Encoder(sized("bert_base"), pair_classes=2, **a),
    "SpanBERT in pre-training": lambda **a: Encoder(
        sized("spanbert_base"), predicts_boundaries=True, **a
    ),
    "BERT on labels": lambda **a: Encoder(sized("bert_base"), labels=3, **a),
    "RoBERTa on labels": lambda **a: Encoder(sized("roberta_base"), labels=3, **a),
    "ALBERT on labels, spans and tags": lambda **a: Encoder(
        sized("albert_base", embedding_width=8), labels=3, predicts_spans=True, tags=4, **a
    ),
}
distinct = ("T5 1.1", "T5 with shared stacks", "GPT", "ALBERT on labels, spans and tags")
every_family = pytest.mark.parametrize("family", FAMILIES)


def made(family, *, dropout_rate=0.0, seed=3):
    """Return a network whose weights are not those of its seed, with fewer rows in use."""
    network = FAMILIES[family](embedding_rows=ROWS, dropout_rate=dropout_rate, seed=seed)
    generator = np.random.default_rng(1)
    for variable in network.weights:
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + 0.05 * noise)
    network.rows_in_use = 100
    return network


def features(network, rows=2):
    generator = np.random.default_rng(5)
    result = {}
    for name, axis in network.features().items():
        shape = (rows, LENGTHS.get(axis, axis))
        most = {"ids": 100, "types": 2, "positions": 5}.get(name.split("_")[1], 2)
        low = 1 if name.endswith(("segments", "prefix")) else 0
        result[name] = generator.integers(low, most, shape).astype(np.int32)
    return result


def answers(network, rows=None):
    rows = features(network) if rows is None else rows
    outputs = network(rows)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [np.asarray(keras.ops.convert_to_numpy(output)) for output in outputs]


def assert_equal(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@every_family
def test_a_saved_network_answers_equally_and_has_the_noise_of_its_seed(family, tmp_path):
    network = made(family, dropout_rate=0.2)
    network.save(tmp_path / "network.keras")
    loaded = keras.saving.load_model(tmp_path / "network.keras")
    assert type(loaded) is type(network)
    assert loaded.rows_in_use == 100
    assert_equal(answers(network), answers(loaded))
    assert list(weight_variables(loaded)) == list(weight_variables(network))
    for path, state in noise_variables(network).items():
        np.testing.assert_array_equal(state.numpy(), noise_variables(loaded)[path].numpy())


@every_family
def test_a_clone_has_the_weights_of_the_seed_and_answers_equally_with_the_same_weights(family):
    network = made(family)
    clone = keras.models.clone_model(network)
    fresh = FAMILIES[family](embedding_rows=ROWS, dropout_rate=0.0, seed=3)
    fresh.rows_in_use = 100
    assert_equal(answers(fresh), answers(clone))
    clone.set_weights(network.get_weights())
    assert_equal(answers(network), answers(clone))


@every_family
def test_an_exported_network_answers_any_number_of_rows(family, tmp_path):
    tf = pytest.importorskip("tensorflow")
    network = made(family)
    signature = [network.input_signature(LENGTHS["inputs"], LENGTHS["targets"])]
    network.export(tmp_path / "served", input_signature=signature, verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    for rows in (2, 3):
        inputs = features(network, rows)
        outputs = served.serve(inputs)
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        for one, other in zip(answers(network, inputs), outputs, strict=True):
            np.testing.assert_allclose(one, np.asarray(other), rtol=0, atol=2e-5)


def test_an_export_without_lengths_takes_the_longest_rows(tmp_path):
    tf = pytest.importorskip("tensorflow")
    network = made("BERT on labels")
    network.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    shapes = {spec.shape[1] for spec in served.serve.input_signature[0].values()}
    assert shapes == {12}  # max_positions
    assert made("T5").input_signature()["decoder_ids"].shape == (None, 512)


@pytest.mark.parametrize("family", ["T5 with shared stacks", "BERT on labels"])
def test_a_file_is_loaded_by_a_process_that_imports_only_the_public_package(family, tmp_path):
    network = made(family)
    network.save(tmp_path / "network.keras")
    np.savez(tmp_path / "rows.npz", **features(network))
    code = (
        "import sys, numpy as np, t5repro\n"
        "network = t5repro.load_network(sys.argv[1] + '/network.keras')\n"
        "rows = dict(np.load(sys.argv[1] + '/rows.npz'))\n"
        "np.save(sys.argv[1] + '/answers.npy', np.asarray(network(rows)))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "answers.npy"), answers(network)[0])


def test_layers_are_made_again_from_their_configuration():
    block = {"dropout_rate": 0.1, "seed": 1, "path": "encoder/block_0", "dtype": "float32"}
    lender = Block(t5(), is_decoder=False, **block)
    for layer in (
        lender,
        Block(t5(), is_decoder=False, shared_with=lender, **block),
        Attention(t5(), **block),
        Dense(t5(), inputs=4, outputs=2, seed=1, path="pooler", dtype="mixed_bfloat16"),
    ):
        copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
        assert type(copy) is type(layer)
        assert copy.get_config() == layer.get_config()
        assert copy.compute_dtype == layer.compute_dtype
        layer.build()
        copy.build()
        assert_equal(layer.get_weights(), copy.get_weights())
    frozen = Dense(t5(), inputs=4, outputs=2, seed=1, path="pooler", dtype="float32")
    frozen.trainable = False
    assert not Dense.from_config(frozen.get_config()).trainable


# int8


@every_family
def test_an_int8_network_has_int8_matrices_and_nearly_equal_answers(family):
    network = made(family)
    before = answers(network)
    floats = {path: variable.numpy() for path, variable in weight_variables(network).items()}
    network.quantize("int8")
    int8 = {
        path: variable.numpy()
        for path, variable in weight_variables(network).items()
        if variable.dtype == "int8"
    }
    # All weights but norms, biases, small tables and heads of answers, at a quarter of their bytes.
    small = ("scale", "bias", "table", "indices")
    heads = ("label_head", "span_head", "tag_head", "pair_head")
    assert set(int8) == {
        path for path in floats if not path.endswith(small) and not path.startswith(heads)
    }
    for path, values in int8.items():
        scales = np.asarray(weight_variables(network)[f"{path}_scale"].numpy())
        by_row = path == "embedding"
        scales = scales[:, None] if by_row else scales[None]
        # Every row or column uses the whole range, and no value is off by more than half a step.
        assert (np.abs(values).max(axis=int(by_row)) == 127).all()
        assert (np.abs(values * scales - floats[path]) <= scales * 0.5001).all()
    for one, other in zip(before, answers(network), strict=True):
        used = one > -1e8
        assert np.abs(one - other)[used].max() < 0.05 * np.abs(one[used]).max()
        assert not np.array_equal(one, other)


@pytest.mark.parametrize("family", distinct)
def test_an_int8_network_is_saved_with_its_int8_weights(family, tmp_path):
    network = made(family)
    network.save(tmp_path / "float.keras")
    network.quantize("int8")
    network.quantize("int8")  # again: no change
    network.save(tmp_path / "int8.keras")
    loaded = keras.saving.load_model(tmp_path / "int8.keras")
    assert_equal(answers(network), answers(loaded))
    assert loaded.embedding.dtype == "int8"


def test_decoding_of_an_int8_network_equals_its_logits():
    from t5repro.model.decode import greedy

    network = made("T5")
    ids = np.random.default_rng(2).integers(2, 100, (3, 8)).astype(np.int32)
    greedy(network, ids, max_decode_length=5)  # compiled for float32 weights
    network.quantize("int8")
    network.embedding.assign(-network.embedding.numpy())  # only the int8 program reads these
    decoded = greedy(network, ids, max_decode_length=5)
    rows = {
        "encoder_ids": ids,
        "encoder_segments": np.ones_like(ids),
        "decoder_ids": np.pad(decoded[:, :-1], [(0, 0), (1, 0)]),
        "decoder_segments": np.ones_like(decoded),
    }
    best = answers(network, rows)[0].argmax(axis=-1)
    for ours, expected in zip(decoded, best, strict=True):
        end = [*ours.tolist(), 1].index(1) + 1
        assert ours[:end].tolist() == expected[:end].tolist()


def test_other_modes_are_refused_with_the_one_that_works():
    network = made("T5")
    for mode in ("float8", "int4"):
        with pytest.raises(SettingsError, match="'int8' weights only"):
            network.quantize(mode)
    steps = keras.quantizers.AbsMaxQuantizer(axis=0, value_range=(-7, 7))
    narrow = keras.quantizers.Int8QuantizationConfig(weight_quantizer=steps)
    with pytest.raises(SettingsError, match="without a config"):
        network.quantize(config=narrow)
    with pytest.raises(SettingsError, match="without a config or filters"):
        network.quantize("int8", filters="encoder")  # silently less than asked for
    with pytest.raises(SettingsError, match="'int8' weights only"):
        network.encoder.blocks[0].self_attention.quantize("float8")
    assert network.embedding.dtype == "float32"


# LoRA


@every_family
def test_lora_changes_no_answer_until_it_trains_and_trains_nothing_but_itself_and_heads(family):
    network = made(family)
    before = answers(network)
    network.enable_lora(4)
    assert_equal(before, answers(network))
    trained = {path for path, weight in weight_variables(network).items() if weight.trainable}
    heads = ("label_head/", "span_head/", "tag_head/", "pair_head/")
    lora = {path for path in trained if not path.startswith(heads)}
    assert lora
    assert all(path.endswith(("q_lora_a", "q_lora_b", "v_lora_a", "v_lora_b")) for path in lora)
    generator = np.random.default_rng(4)
    for path in lora:
        variable = weight_variables(network)[path]
        variable.assign(0.3 * generator.normal(size=variable.shape))
    changed = answers(network)
    assert not np.array_equal(before[0], changed[0])
    # The low-rank product added to the matrices gives the same answers.
    for layer in network._matrix_layers():
        if layer.lora:
            for name in layer.lora.matrices:
                down = getattr(layer, f"{name}_lora_a").numpy()
                up = getattr(layer, f"{name}_lora_b").numpy()
                matrix = getattr(layer, name)
                matrix.assign(matrix.numpy() + np.asarray(down) @ np.asarray(up))
                getattr(layer, f"{name}_lora_b").assign(np.zeros_like(up))
    for one, other in zip(changed, answers(network), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * np.abs(one[one > -1e8]).max())


def test_a_network_with_lora_is_fitted_saved_and_quantized(tmp_path):
    network = made("BERT on labels")
    network.enable_lora(2, lora_alpha=4, matrices=("q", "k", "v", "wi"))
    frozen = {
        path: weight.numpy()
        for path, weight in weight_variables(network).items()
        if not weight.trainable
    }
    network.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rows, labels = features(network, 8), np.arange(8) % 3
    losses = network.fit(rows, labels, epochs=20, batch_size=8, shuffle=False, verbose=0).history[
        "loss"
    ]
    assert losses[-1] < losses[0]
    for path, values in frozen.items():
        np.testing.assert_array_equal(values, weight_variables(network)[path].numpy())
    network.save(tmp_path / "lora.keras")
    loaded = keras.saving.load_model(tmp_path / "lora.keras")
    assert_equal(answers(network), answers(loaded))
    assert loaded.lora == network.lora
    loaded.quantize("int8")
    np.testing.assert_allclose(answers(loaded)[0], answers(network)[0], atol=0.1)
    loaded.save(tmp_path / "both.keras")
    both = keras.saving.load_model(tmp_path / "both.keras")
    assert_equal(answers(loaded), answers(both))


def test_a_dense_layer_has_lora_as_that_of_keras_has():
    ours = Dense(t5(), inputs=6, outputs=4, seed=1, path="pooler", dtype="float32")
    ours.build()
    theirs = keras.layers.Dense(4)
    theirs.build((None, 6))
    ours.bias.assign(np.arange(4.0))
    theirs.set_weights([ours.matrix.numpy(), ours.bias.numpy()])
    ours.enable_lora(3, 6)
    theirs.enable_lora(3, 6)
    generator = np.random.default_rng(0)
    down, up = generator.normal(size=(6, 3)), generator.normal(size=(3, 4))
    for layer, names in (
        (ours, ("matrix_lora_a", "matrix_lora_b")),
        (theirs, ("lora_kernel_a", "lora_kernel_b")),
    ):
        for name, values in zip(names, (down, up), strict=True):
            getattr(layer, name).assign(values)
    x = generator.normal(size=(2, 5, 6)).astype(np.float32)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-5, atol=1e-5)


def test_lora_is_refused_where_it_has_no_matrix_or_is_there_already():
    network = made("T5")
    with pytest.raises(SettingsError, match=r"network has \['k', 'o', 'q', 'v', 'wi', 'wo'\]"):
        network.enable_lora(2, matrices=("query",))
    with pytest.raises(SettingsError, match="rank of at least 1"):
        network.enable_lora(0)
    network.enable_lora(2)
    with pytest.raises(SettingsError, match="already"):
        network.enable_lora(2)
    with pytest.raises(SettingsError, match="already"):
        network.decoder.blocks[0].self_attention.enable_lora(2)
    head = made("GPT on labels").label_head
    with pytest.raises(SettingsError, match="trains without LoRA"):
        head.enable_lora(2)


@pytest.fixture(scope="module")
def on_jax(tmp_path_factory):
    """Return a folder with networks that TensorFlow saved and their answers on JAX."""
    folder = tmp_path_factory.mktemp("jax")
    for family in distinct:
        network = made(family)
        network.save(folder / f"{family}.keras")
        np.savez(folder / f"{family}.npz", **features(network))
    (folder / "printed").write_text(run(PYTHON, str(SUPPORT / "keras_on_jax.py"), str(folder)))
    return folder


@pytest.mark.jax
@pytest.mark.skipif(not PYTHON.exists(), reason="JAX is not installed: make .venv-jax/installed")
@pytest.mark.parametrize("family", distinct)
def test_a_file_that_tensorflow_saved_answers_on_jax_where_it_is_saved_cloned_and_quantized(
    family, on_jax
):
    actual = np.load(on_jax / f"{family}.answers.npy")
    np.testing.assert_allclose(actual, answers(made(family))[0], rtol=0, atol=2e-5)
    printed = (on_jax / "printed").read_text().splitlines()
    assert len(printed) == len(distinct)
    assert set(printed) == {
        "tensorflow is not installed; it is of the extra cpu: pip install 't5repro[cpu]', or "
        "make setup in a checkout"
    }
