import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.errors import ArtifactError, CheckpointError  # noqa: E402
from t5repro.model.checkpoints import (  # noqa: E402
    optimizer_variables,
    read_arrays,
    save_weights,
    weight_variables,
    write_arrays,
)
from t5repro.model.foreign_weights import fit, read_foreign  # noqa: E402
from t5repro.model.weight_names import shape_of, weight_names  # noqa: E402
from t5repro.publish.tokenizer_files import VocabularyFiles  # noqa: E402
from t5repro.publish.weights import write_huggingface, write_keras_hub  # noqa: E402

pytestmark = [
    pytest.mark.keras,
    # keras-hub's T5 warns about its own layers when a user builds it.
    pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning"),
    # ... and leaves the vocabulary's file to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed file.*vocabulary.spm:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in.*vocabulary.spm"),
]
VARIANTS = {"1.0": {}, "1.1": {"feed_forward": "gated_gelu", "tie_embeddings": False}}
HUB_SHAPE = {"num_decoder_layers": 2, "relative_position_max_distance": 128}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def variant(request):
    return request.param


def arrays_of(model):
    return {name: item.numpy() for name, item in weight_variables(model).items()}


def logits_of(model):
    ids = np.random.default_rng(1).integers(2, 96, (3, 12)).astype(np.int32)
    return np.asarray(
        model(
            {
                "encoder_ids": ids,
                "encoder_segments": np.ones_like(ids),
                "decoder_ids": ids[:, :7],
                "decoder_segments": np.ones_like(ids[:, :7]),
            }
        )
    )


@pytest.fixture(scope="module")
def vocabulary():
    """A vocabulary of 64 pieces, with and without eight sentinels."""
    import io

    import sentencepiece

    from t5repro.vocab.special_ids import add_sentinels

    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"word{n} and yes or no word{n + 1}" for n in range(200)),
        model_writer=trained,
        vocab_size=56,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return VocabularyFiles(add_sentinels(trained.getvalue(), 8), trained.getvalue(), 8)


@pytest.fixture(scope="module")
def preset_of(make_model, vocabulary, tmp_path_factory):
    """Return the model of a variant and the folder of its preset of keras-hub, written once."""

    @functools.cache
    def written(variant):
        model = make_model(seed=3, **HUB_SHAPE, **VARIANTS[variant])
        folder = tmp_path_factory.mktemp("preset")
        write_keras_hub(folder, model.settings, arrays_of(model), vocabulary)
        return model, folder

    return written


def copy_with(preset, folder, **change):
    """Copy a preset of keras-hub and change its configuration."""
    shutil.copytree(preset, folder, dirs_exist_ok=True)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    content["config"] |= change
    path.write_text(json.dumps(content))


def test_every_weight_of_every_variant_has_its_own_names(make_model, variant):
    model = make_model(**variant)
    table = weight_names(model.settings)
    assert {name.path for name in table} == set(weight_variables(model))
    for column in ("path", "huggingface", "released", "keras_hub"):
        names = [getattr(name, column) for name in table]
        assert len(set(names)) == len(names), column


@pytest.mark.parametrize("size", ["small", "v1_1_small"])
def test_a_shape_is_read_off_its_arrays(size):
    narrow = SIZES[size].model_copy(update={"d_model": 16, "d_ff": 32})
    from networks import text_network

    weights = arrays_of(text_network(narrow, embedding_rows=128, dropout_rate=0.0, seed=0))
    assert shape_of(weights) == narrow


def test_arrays_of_another_network_have_no_shape():
    with pytest.raises(CheckpointError, match="not those of a T5 encoder-decoder"):
        shape_of({"embedding": np.zeros((4, 4))})


def test_hugging_face_folders_are_read_back_unchanged(tmp_path, make_model, variant, vocabulary):
    model = make_model(seed=3, **variant)
    files = write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    assert sorted(path.name for path in files) == sorted(path.name for path in tmp_path.iterdir())
    foreign = read_foreign(tmp_path)
    assert foreign.model == model.settings
    assert foreign.form == "huggingface"
    assert foreign.vocabulary.data == vocabulary.without_sentinels
    for name, value in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[name], value)


def write_changed(folder, config=None, drop=(), add=None):
    """Change configuration and arrays of a folder of Hugging Face."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (config or {})))
    arrays = read_arrays(folder / "model.safetensors")
    kept = {name: value for name, value in arrays.items() if name not in drop}
    write_arrays(folder / "model.safetensors", kept | (add or {}))


def test_the_configuration_of_transformers_5_is_read_as_that_of_4(
    tmp_path, make_model, variant, vocabulary
):
    model = make_model(seed=3, **variant)
    write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    scales = {"scale_decoder_outputs": model.settings.tie_embeddings}
    write_changed(tmp_path, {"tie_word_embeddings": True, **scales})
    foreign = read_foreign(tmp_path)
    assert foreign.model == model.settings
    for name, value in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[name], value)


def test_transformers_5_leaves_out_an_output_matrix_that_is_the_embedding(
    tmp_path, make_model, vocabulary
):
    model = make_model(seed=3, tie_embeddings=False)
    write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    write_changed(tmp_path, drop=["lm_head.weight"])
    with pytest.raises(CheckpointError, match="a T5 without its output matrix 'lm_head.weight'"):
        read_foreign(tmp_path)  # of transformers 4: an incomplete download
    write_changed(tmp_path, {"tie_word_embeddings": True, "scale_decoder_outputs": False})
    weights = read_foreign(tmp_path).weights
    np.testing.assert_array_equal(weights["output_matrix"], weights["embedding"].T)


def test_an_embedding_stored_under_the_name_of_a_stack_is_found_and_the_output_matrix_is_not_it(
    tmp_path, make_model, vocabulary
):
    model = make_model(seed=3, tie_embeddings=False)
    embedding = arrays_of(model)["embedding"]
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
        write_changed(tmp_path, drop=["shared.weight"], add={name: embedding})
        np.testing.assert_array_equal(read_foreign(tmp_path).weights["embedding"], embedding)
    write_changed(tmp_path, drop=["decoder.embed_tokens.weight"])
    with pytest.raises(CheckpointError, match=r"lacks 'embedding' .*shared.weight"):
        read_foreign(tmp_path)


def test_an_output_matrix_of_a_model_that_shares_its_embedding_is_equal_or_refused(
    tmp_path, make_model, vocabulary
):
    model = make_model(seed=3)
    embedding = arrays_of(model)["embedding"]
    write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    write_changed(tmp_path, add={"lm_head.weight": embedding})
    assert read_foreign(tmp_path).model.tie_embeddings
    write_changed(tmp_path, drop=["shared.weight"])
    np.testing.assert_array_equal(read_foreign(tmp_path).weights["embedding"], embedding)
    write_changed(tmp_path, add={"shared.weight": embedding + 1})
    with pytest.raises(CheckpointError, match=r"lm_head.weight is not its shared.weight; .*delete"):
        read_foreign(tmp_path)


def test_the_same_weights_are_the_same_hugging_face_bytes(tmp_path, make_model, vocabulary):
    model = make_model(seed=3)
    for name in ("one", "two"):
        write_huggingface(tmp_path / name, model.settings, arrays_of(model), vocabulary)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_shards_of_a_hugging_face_folder_are_joined(tmp_path, make_model, vocabulary):
    model = make_model(seed=3)
    write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    arrays = read_arrays(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    names = sorted(arrays)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, members in shards.items():
        write_arrays(tmp_path / shard, {name: arrays[name] for name in members})
    index = {"weight_map": {name: shard for shard, members in shards.items() for name in members}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    foreign = read_foreign(tmp_path)
    np.testing.assert_array_equal(foreign.weights["embedding"], arrays_of(model)["embedding"])

    index["weight_map"]["shared.weight"] = "../a.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(
        CheckpointError, match=r"'\.\./a\.safetensors', which is outside the folder"
    ):
        read_foreign(tmp_path)


def test_keras_hub_presets_come_back_and_compute_the_same(tmp_path, preset_of, vocabulary):
    import keras_hub

    model, folder = preset_of("1.0")
    foreign = read_foreign(folder)
    assert (foreign.form, foreign.model) == ("keras_hub", model.settings)
    assert foreign.vocabulary.data == vocabulary.with_sentinels
    for name, value in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[name], value)

    keras_hub_model = keras_hub.models.T5Seq2SeqLM.from_preset(str(folder))
    ids = np.random.default_rng(1).integers(2, 96, (3, 12)).astype(np.int32)
    expected = keras_hub_model(
        {
            "encoder_token_ids": ids,
            "encoder_padding_mask": np.ones_like(ids),
            "decoder_token_ids": ids[:, :7],
            "decoder_padding_mask": np.ones_like(ids[:, :7]),
        }
    )
    np.testing.assert_allclose(logits_of(model), np.asarray(expected), rtol=1e-4, atol=1e-5)
    tokens = keras_hub_model.preprocessor.tokenizer("word7 and yes")
    from t5repro.vocab.vocabulary import Vocabulary

    (tmp_path / "s.model").write_bytes(vocabulary.with_sentinels)
    assert list(np.asarray(tokens)) == Vocabulary.load(tmp_path / "s.model").encode("word7 and yes")


def test_a_preset_of_keras_hub_with_more_layers_than_its_configuration_is_refused(
    tmp_path, preset_of
):
    _, folder = preset_of("1.0")
    copy_with(folder, tmp_path, num_layers=1)
    with pytest.raises(ArtifactError, match="is not a T5 preset of keras-hub .*not be loaded"):
        read_foreign(tmp_path)


@pytest.mark.parametrize(
    ("variant", "activation"), [("1.0", "gelu"), ("1.0", "silu"), ("1.1", "relu"), ("1.1", "silu")]
)
def test_a_preset_of_keras_hub_with_another_activation_is_refused(
    tmp_path, preset_of, variant, activation
):
    _, folder = preset_of(variant)
    copy_with(folder, tmp_path, activation=activation)
    with pytest.raises(CheckpointError, match=rf"with activation '{activation}'; only .* can be"):
        read_foreign(tmp_path)


def test_a_gated_preset_of_keras_hub_has_the_same_logits(preset_of):
    import keras_hub

    model, folder = preset_of("1.1")
    assert read_foreign(folder).model == model.settings
    keras_hub_model = keras_hub.models.T5Seq2SeqLM.from_preset(str(folder))
    ids = np.random.default_rng(1).integers(2, 96, (3, 12)).astype(np.int32)
    expected = np.asarray(
        keras_hub_model(
            {
                "encoder_token_ids": ids,
                "encoder_padding_mask": np.ones_like(ids),
                "decoder_token_ids": ids[:, :7],
                "decoder_padding_mask": np.ones_like(ids[:, :7]),
            }
        )
    )
    error = np.abs(logits_of(model) - expected).max() / np.abs(expected).max()
    assert error < 1e-5


def test_a_shape_that_keras_hub_cannot_have_is_refused(tmp_path, make_model, vocabulary):
    model = make_model()
    with pytest.raises(
        CheckpointError,
        match=r"num_encoder_layers and .* must be equal; .*max_distance must be 128",
    ):
        write_keras_hub(tmp_path, model.settings, arrays_of(model), vocabulary)


def write_released(folder: Path, model, *, step=1000, renamed=False, slots=True):
    """Write a checkpoint as the T5 release does: with TensorFlow's own writer, by its names."""
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(2)
    arrays = {"global_step": np.asarray(step, np.int64)}
    for names in weight_names(model.settings):
        value = arrays_of(model)[names.path]
        name = names.released
        if renamed:
            name = name.replace("final_layer_norm", "rms_norm").replace("layer_norm", "rms_norm")
        arrays[name] = value
        if not slots:
            continue
        if value.ndim == 2 and min(value.shape) >= 128:
            largest = int(np.argmax(value.shape))  # the first of equals, as mesh sorts
            square = generator.random(value.shape).astype(np.float32)
            arrays[f"{name}_slot_vr"] = square.mean(axis=largest)
            arrays[f"{name}_slot_vc"] = square.mean(axis=1 - largest)
        else:
            arrays[f"{name}_slot_v"] = generator.random(value.shape).astype(np.float32)
    # Old releases store a bias of cross-attention that nothing reads.
    unread = "decoder/block_000/layer_001/EncDecAttention/relative_attention_bias"
    arrays[unread] = np.zeros((3, 32))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(name, initializer=value)
            for name, value in arrays.items()
        }
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(variables).save(session, str(folder / "model.ckpt"), step)
    return arrays


@pytest.mark.parametrize("renamed", [False, True])
def test_a_checkpoint_of_the_release_is_read(tmp_path, make_model, variant, renamed):
    model = make_model(seed=5, relative_position_max_distance=128, **variant)
    write_released(tmp_path, make_model(seed=9, **variant), step=90)
    write_released(tmp_path, model, step=1000, renamed=renamed, slots=False)
    foreign = read_foreign(tmp_path)
    assert (foreign.form, foreign.model) == ("released", model.settings)
    assert foreign.optimizer == {}
    for name, value in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[name], value)


def test_moments_of_the_release_become_the_slots_of_our_optimizer(tmp_path, make_model):
    """Sizes from 128 on are factored; matrices wider than high, higher than wide, square."""
    from t5repro.train.adafactor import Adafactor
    from t5repro.train.schedules import Constant

    model = make_model(seed=5, d_model=128, d_ff=160, d_kv=64, num_heads=2)
    arrays = write_released(tmp_path, model, step=77)
    optimizer = Adafactor(Constant(0.1))
    optimizer.build(model.trainable_variables)
    slots = read_foreign(tmp_path).optimizer
    variables = optimizer_variables(optimizer)
    assert {name: value.shape for name, value in slots.items()} == {
        name: tuple(item.shape) for name, item in variables.items() if name != "learning_rate"
    }
    assert int(slots["iteration"]) == 77
    wi, wo = (f"encoder/block_000/layer_001/DenseReluDense/{name}/kernel" for name in ("wi", "wo"))
    slot = "encoder.block_0.feed_forward"
    # 128 x 160: `vr` is the mean over the 160 columns, one number a row.
    np.testing.assert_array_equal(slots[f"{slot}.wi.row_moment"], arrays[f"{wi}_slot_vr"])
    np.testing.assert_array_equal(slots[f"{slot}.wi.column_moment"], arrays[f"{wi}_slot_vc"])
    # 160 x 128: the largest dimension are the rows.
    np.testing.assert_array_equal(slots[f"{slot}.wo.row_moment"], arrays[f"{wo}_slot_vc"])
    np.testing.assert_array_equal(slots[f"{slot}.wo.column_moment"], arrays[f"{wo}_slot_vr"])


def test_a_folder_of_this_project_is_read(tmp_path, make_model):
    model = make_model(seed=6, relative_position_max_distance=128)
    save_weights(tmp_path / "weights.safetensors", model)
    foreign = read_foreign(tmp_path)
    assert (foreign.form, foreign.model) == ("t5repro", model.settings)


def test_a_pickle_is_refused_with_the_cure(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(ArtifactError, match=r"a pickle, which can run code.*safe_serialization"):
        read_foreign(tmp_path)


def test_a_folder_without_weights_says_what_is_allowed(tmp_path):
    with pytest.raises(ArtifactError, match=r"contains no readable weights; allowed are"):
        read_foreign(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bart"}, r"is of a 'bart' model; only T5"),
        ({"feed_forward_proj": "swish"}, r"feed_forward_proj is 'swish'; allowed are"),
    ],
)
def test_a_model_that_is_no_t5_is_refused(tmp_path, make_model, vocabulary, change, message):
    model = make_model()
    write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(CheckpointError, match=message):
        read_foreign(tmp_path)


def test_a_missing_weight_is_named_by_its_names(tmp_path, make_model, vocabulary):
    model = make_model()
    write_huggingface(tmp_path, model.settings, arrays_of(model), vocabulary)
    arrays = read_arrays(tmp_path / "model.safetensors")
    del arrays["encoder.final_layer_norm.weight"]
    write_arrays(tmp_path / "model.safetensors", arrays)
    with pytest.raises(CheckpointError, match=r"lacks 'encoder/norm/scale' .*final_layer_norm"):
        read_foreign(tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "model.ckpt-1.index").write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="not a complete TensorFlow checkpoint"):
        read_foreign(tmp_path)


def test_weights_are_fitted_to_the_settings_or_refused(tmp_path, make_model):
    model = make_model(relative_position_max_distance=128, **VARIANTS["1.1"])
    save_weights(tmp_path / "weights.safetensors", model)
    foreign = read_foreign(tmp_path)
    same = fit(foreign, model.settings, embedding_rows=96, where=tmp_path)
    assert same["embedding"].shape == (96, 24)
    padded = fit(foreign, model.settings, embedding_rows=128, where=tmp_path)
    assert padded["embedding"].shape == (128, 24)
    assert padded["output_matrix"].shape == (24, 128)
    assert not padded["embedding"][96:].any()
    other = ModelSettings.model_validate(model.settings.model_dump() | {"d_ff": 48})
    with pytest.raises(CheckpointError) as refused:
        fit(foreign, other, embedding_rows=256, where=tmp_path)
    assert "model.d_ff is 48, the weights have 40" in str(refused.value)
    assert "make 256 rows of the embedding, the weights have 96" in str(refused.value)


def test_layers_that_keras_hub_lacks_are_refused_with_their_settings(tmp_path):
    model = ModelSettings(feed_forward="swiglu", relative_position_bias="per_layer")
    message = (
        "model.feed_forward must be relu or gated_gelu; "
        "model.relative_position_bias must be per_stack; export for Hugging Face instead"
    )
    with pytest.raises(CheckpointError, match=message):
        write_keras_hub(tmp_path, model, {}, VocabularyFiles(b"", b"", 0))
