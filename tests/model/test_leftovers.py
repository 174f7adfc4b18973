"""What a foreign checkpoint has beyond our networks: known by name, or refused by name."""

import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

pytest.importorskip("keras")
from t5repro.errors import ArtifactError, CheckpointError, RawDataError, VocabularyError
from t5repro.model.checkpoints import load_weights, read_arrays, weight_variables, write_arrays
from t5repro.model.foreign_vocabulary import ForeignVocabulary
from t5repro.model.foreign_weights import read_foreign
from t5repro.publish.tokenizer_files import VocabularyFiles
from t5repro.publish.weights import write_huggingface
from t5repro.train.import_weights import import_weights, write_vocabulary
from t5repro.vocab.special_ids import add_sentinels
from t5repro.vocab.vocabulary import Vocabulary

pytestmark = pytest.mark.keras
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
BIASES = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def pieces(**options):
    """Return a vocabulary of 56 pieces."""
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"word{n} and yes or no word{n + 1}" for n in range(200)),
        model_writer=trained,
        minloglevel=2,
        **{"vocab_size": 56, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1} | options,
    )
    return trained.getvalue()


def here(data):
    return ForeignVocabulary(data, Path("here"))


@pytest.fixture
def folder(tmp_path, make_model):
    model = make_model(seed=3, feed_forward="gated_gelu", tie_embeddings=False)
    arrays = {name: item.numpy() for name, item in weight_variables(model).items()}
    proto = pieces()
    write_huggingface(
        tmp_path, model.settings, arrays, VocabularyFiles(add_sentinels(proto, 8), proto, 8)
    )
    return tmp_path


def change(folder: Path, config=None, drop=(), add=None):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (config or {})))
    weights = folder / "model.safetensors"
    left = {n: a for n, a in read_arrays(weights).items() if not n.startswith(tuple(drop))}
    write_arrays(weights, left | (add or {}))


def embedding(folder):
    return read_arrays(folder / "model.safetensors")["shared.weight"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(folder, value):
    change(folder, add={"shared.weight": np.full_like(embedding(folder), value)})
    with pytest.raises(CheckpointError, match="'embedding' contains NaN or infinity"):
        read_foreign(folder)


@pytest.mark.parametrize(
    ("config", "drop", "add", "message"),
    [
        ({"num_layers": 1}, (), {}, r"lacks: 'encoder.block.1.layer.0.SelfAttention.k.weight', .*"),
        ({"num_decoder_layers": 1}, (), {}, r"lacks: 'decoder.block.1.*more; the configuratio"),
        ({}, (), {"classification_head.dense.weight": np.ones(2)}, "lacks: 'classification_head"),
        ({}, ("decoder.", "lm_head"), {}, r"the encoder of a T5 only \(architectures: T5For"),
        ({"architectures": ["T5Model"]}, ("lm_head",), {}, "without its output matrix.*T5Model"),
        ({"dense_act_fn": "relu"}, (), {}, "dense_act_fn is 'relu'; only 'gelu_new' or 'gelu'"),
        ({"is_gated_act": False}, (), {}, "is_gated_act is False; only True can be read"),
        ({"decoder_start_token_id": 5}, (), {}, "decoder_start_token_id is 5; only 0 or None"),
        ({"pruned_heads": {"1": [0]}}, (), {}, r"pruned_heads is .*; only \{\} or None"),
        ({"quantization_config": {"bits": 4}}, (), {}, "quantization_config is"),
        ({"d_model": 10**12}, (), {}, "d_model is 1000000000000, the arrays have 24; correct the"),
        ({"num_heads": 4, "d_kv": 4}, (), {}, "d_kv is 4, the arrays have"),
        ({"architectures": 3}, ("decoder.", "lm_head"), {}, r"T5 only \(architectures: 3\)"),
        ({"vocab_size": 2000}, (), {}, "vocab_size of the configuration is 2000, the embedding ha"),
    ],
)
def test_what_the_network_lacks_is_refused_by_name(folder, config, drop, add, message):
    change(folder, config, drop, add)
    with pytest.raises(CheckpointError, match=message):
        read_foreign(folder)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "bool"])
def test_quantized_weights_are_refused_with_their_type(kind, folder, tmp_path):
    name = "encoder.block.0.layer.0.SelfAttention.q.weight"
    array = read_arrays(folder / "model.safetensors")[name]
    change(folder, add={name: np.rint(array / np.abs(array).max() * 100).astype(kind)})
    with pytest.raises(CheckpointError, match=rf"'{name}' has numbers of the type {kind}; only .*"):
        import_weights(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_quantized_weights_of_this_project_are_refused_too(folder, tmp_path, make_model):
    model = make_model(seed=3)
    arrays = {name: item.numpy() for name, item in weight_variables(model).items()}
    path = tmp_path / "own" / "weights.safetensors"
    path.parent.mkdir()
    write_arrays(path, {name: np.ones_like(array, np.int8) for name, array in arrays.items()})
    with pytest.raises(CheckpointError, match=r"numbers of the type int8 \([0-9]+ such arrays\)"):
        read_foreign(path.parent)
    before = model.weights[0].numpy()
    with pytest.raises(CheckpointError, match="of the type int8, the model needs float32"):
        load_weights(path, model)
    np.testing.assert_array_equal(model.weights[0].numpy(), before)


def divided(folder, *shards):
    """Write the arrays of a folder as shards, each with the names that it has."""
    arrays = read_arrays(folder / "model.safetensors")
    places = {}
    for number, choose in enumerate(shards):
        file = f"model-{number}.safetensors"
        part = {name: array for name, array in arrays.items() if choose(name)}
        write_arrays(folder / file, part)
        places = dict.fromkeys(part, file) | places
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def test_shards_have_each_array_once_and_no_whole_file_beside_them(folder):
    whole = read_foreign(folder).weights
    divided(folder, lambda name: "encoder" in name, lambda name: "encoder" not in name)
    with pytest.raises(CheckpointError, match=r"has model.safetensors and the shards of .*delete"):
        read_foreign(folder)
    (folder / "model.safetensors").rename(folder / "whole.safetensors")
    for name, array in read_foreign(folder).weights.items():
        np.testing.assert_array_equal(array, whole[name])
    (folder / "whole.safetensors").rename(folder / "model.safetensors")
    divided(folder, lambda name: "encoder" in name, lambda name: True)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model-1.safetensors has 'encoder.* which another"):
        read_foreign(folder)


@pytest.mark.parametrize("shape", [(0, 24), (24, 0), (), (24,)])
def test_an_array_without_numbers_or_axes_is_no_weight(shape, folder):
    change(folder, add={"encoder.block.0.layer.0.SelfAttention.q.weight": np.zeros(shape, "f4")})
    with pytest.raises(CheckpointError, match="not those of a T5 encoder-decoder"):
        read_foreign(folder)


def test_known_leftovers_are_read_without_effect(folder):
    weights = read_foreign(folder).weights
    change(
        folder,
        add={
            BIASES: np.ones((32, 2), np.float32),
            "decoder.embed_tokens.weight": embedding(folder),
        },
    )
    again = read_foreign(folder).weights
    assert again.keys() == weights.keys()
    assert all(np.array_equal(again[name], weights[name]) for name in weights)


def test_a_second_name_of_an_array_has_its_values(folder):
    change(folder, add={"encoder.embed_tokens.weight": embedding(folder) + 1})
    with pytest.raises(CheckpointError, match=r"'encoder.embed_tokens.weight' is not equal to"):
        read_foreign(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_byt5_is_refused_as_a_network_of_bytes(folder, name):
    (folder / "spiece.model").unlink()
    path = folder / name
    stated = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(stated | {"tokenizer_class": "ByT5Tokenizer"}))
    with pytest.raises(CheckpointError, match="weights of ByT5, whose ids are bytes"):
        read_foreign(folder)


def test_weights_without_a_vocabulary_say_so(folder, tmp_path, capsys):
    (folder / "spiece.model").unlink()
    for path in folder.glob("*token*"):
        path.unlink()
    import_weights(folder, tmp_path / "out")
    assert "has no vocabulary (spiece.model, vocab.txt, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"user_defined_symbols": [f"<extra_id_{n}>" for n in range(8)]},
            r"here has the piece '<extra_id_0>' as id 3 \(8 such pieces\); .*as '▁<extra_id_0>'",
        ),
        (
            {"user_defined_symbols": [f"▁<extra_id_{n}>" for n in range(8)]},
            r"here has '▁<extra_id_0>' as id 3; .*in descending order, here 55",
        ),
        (
            {"pad_id": -1, "eos_id": 2, "unk_id": 0, "bos_id": 1},
            r"here has pad, eos, unk, bos \(-1, 2, 0, 1\), T5 needs \(0, 1, 2, -1\); name the",
        ),
    ],
)
def test_a_vocabulary_of_other_ids_is_refused_with_its_file(options, message, tmp_path):
    with pytest.raises(VocabularyError, match=message):
        write_vocabulary(tmp_path / "v", here(pieces(**options)), rows=128)
    assert not (tmp_path / "v").exists()


def test_a_refused_vocabulary_leaves_no_weights_behind(folder, tmp_path):
    (folder / "spiece.model").write_bytes(pieces(pad_id=-1, eos_id=2, unk_id=0, bos_id=1))
    with pytest.raises(VocabularyError, match="has pad, eos, unk, bos"):
        import_weights(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_sentinels_that_only_the_settings_of_the_trainer_name_are_no_pieces(tmp_path):
    # Field 3 of the model, its normaliser; protocol buffers merge by concatenation.
    proto = pieces() + bytes([3 << 3 | 2, 14, 1 << 3 | 2, 12]) + b"<extra_id_0>"
    assert write_vocabulary(tmp_path / "v", here(proto), rows=64) == (56, 8)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (300, r"300 rows, here makes 156 ids with 100 sentinels, padded to 256; .*added"),
        (40, "40 rows, here makes 56 ids with 0 sentinels, padded to 128; .*different checkpoints"),
    ],
)
def test_an_embedding_of_other_rows_than_the_vocabulary_is_refused(rows, message, tmp_path):
    with pytest.raises(VocabularyError, match=message):
        write_vocabulary(tmp_path / "v", here(pieces()), rows=rows)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "spiece.model"])
def test_a_pointer_of_git_lfs_is_named_in_place_of_damage(folder, name):
    (folder / name).write_text(POINTER)
    with pytest.raises(RawDataError, match=f"{name} is a pointer of git LFS .*run git lfs pull"):
        read_foreign(folder)


def test_a_piece_whose_score_is_no_number_is_refused():
    proto = pieces()
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    score = struct.pack("<f", processor.GetScore(20))
    damaged = proto.replace(score, struct.pack("<f", np.nan))
    assert damaged != proto
    with pytest.raises(ArtifactError, match="v has scores of pieces that are no numbers"):
        Vocabulary.from_bytes(damaged, Path("v"))


def test_a_vocabulary_that_is_a_pointer_is_named(tmp_path):
    (tmp_path / "v.model").write_text(POINTER)
    with pytest.raises(RawDataError, match=r"v.model is a pointer of git LFS"):
        Vocabulary.load(tmp_path / "v.model")


def state(folder: Path, name: str, **values):
    """Write one file of a tokenizer in place of the exported ones."""
    for path in folder.glob("*token*"):
        path.unlink()
    (folder / name).write_text(json.dumps(values))


def ids(first, step, count=8):
    return {f"<extra_id_{k}>": first + step * k for k in range(count)}


def decoder_of(tokens):
    return {str(number): {"content": text} for text, number in tokens.items()}


def list_of(tokens):
    return [{"id": number, "content": text} for text, number in tokens.items()]


# The vocabulary has 56 pieces, the weights 96 rows: without a statement there are 40 sentinels.
@pytest.mark.parametrize(
    ("name", "values", "sentinels"),
    [
        ("config.json", {}, 40),
        ("added_tokens.json", ids(63, -1), 8),
        ("tokenizer_config.json", {"added_tokens_decoder": decoder_of(ids(63, -1))}, 8),
        ("tokenizer_config.json", {"additional_special_tokens": list(ids(0, 0, 5))}, 5),
        ("tokenizer_config.json", {"extra_special_tokens": list(ids(0, 0, 5))}, 5),
        ("tokenizer_config.json", {"extra_ids": 10}, 10),
        ("tokenizer_config.json", {"extra_ids": 0, "additional_special_tokens": None}, 40),
        ("special_tokens_map.json", {"extra_special_tokens": [{"content": "<extra_id_0>"}]}, 1),
        ("tokenizer.json", {"added_tokens": list_of(ids(63, -1) | {"[PAD]": 0, "</s>": 1})}, 8),
    ],
)
def test_sentinels_are_found_in_each_file_of_a_tokenizer(folder, tmp_path, name, values, sentinels):
    config = json.loads((folder / "config.json").read_text())
    state(folder, name, **(values or config))
    import_weights(folder, tmp_path / "out")
    vocabulary = Vocabulary.load(tmp_path / "out" / "sentencepiece.model")
    assert vocabulary.extra_ids == sentinels
    assert vocabulary.encode("<extra_id_0>") == [56 + sentinels - 1]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("added_tokens.json", ids(56, 1),
         "json has the token '<extra_id_0>' as id 56, the vocabulary of 64 ids .* has it as id 63"),
        ("added_tokens.json", ids(63, -1) | {"<sep>": 64}, "'<sep>' as id 64, .* lacks it"),
        ("added_tokens.json", {"<sep>": "many"}, "added token '<sep>' with id 'many'"),
        ("tokenizer_config.json", {"added_tokens_decoder": decoder_of(ids(100, -1))},
         "'<extra_id_0>' as id 100, .* has it as id 63"),
        ("tokenizer_config.json", {"added_tokens_decoder": ["<extra_id_0>"]},
         "'<extra_id_0>' as id 0, "),
        ("tokenizer_config.json", {"additional_special_tokens": ["<extra_id_7>"]},
         "'<extra_id_7>', the vocabulary of 57 ids with 1 sentinels lacks it"),
        ("tokenizer_config.json", {"additional_special_tokens": 7}, "added token 7"),
        ("tokenizer_config.json", {"extra_ids": "8"}, "extra_ids '8'; it must be a number"),
        ("tokenizer_config.json",
         {"extra_ids": 9, "additional_special_tokens": list(ids(0, 0))},
         "states extra_ids 9, the vocabulary has 8 sentinels"),
        ("special_tokens_map.json", {"additional_special_tokens": ["[ENT]"]},
         r"'\[ENT\]', .* lacks"),
        ("tokenizer.json", {"added_tokens": list_of({"word1": 100})}, "'word1' as id 100"),
    ],
)  # fmt: skip
def test_a_token_that_the_vocabulary_does_not_encode_so_is_refused_by_name(
    folder, tmp_path, name, values, message
):
    state(folder, name, **values)
    with pytest.raises(VocabularyError, match=message):
        import_weights(folder, tmp_path / "out")


def test_a_file_of_a_tokenizer_that_is_no_mapping_is_refused(folder, tmp_path):
    (folder / "added_tokens.json").write_text('["<extra_id_0>"]')
    with pytest.raises(ArtifactError, match="added_tokens.json has a list; it must be a mapping"):
        import_weights(folder, tmp_path / "out")
