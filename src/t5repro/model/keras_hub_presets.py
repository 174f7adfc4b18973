"""Reads presets of keras-hub: a T5; a BERT, RoBERTa or ALBERT with the heads that its tasks have.

keras-hub rebuilds a network from its class, with constants that are settings here (D-055):
`ENCODERS` has them for both directions. `publish/keras_hub.py` writes presets.
"""

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import MERGES
from t5repro.errors import ArtifactError, CheckpointError, packages_of
from t5repro.files import read_file, read_json, write_json, write_text
from t5repro.model import leftovers
from t5repro.model.encoder_names import Family
from t5repro.model.foreign_vocabulary import ForeignVocabulary, sentencepiece_in
from t5repro.model.huggingface_encoders import ROBERTA_PADDING, encoder_shape
from t5repro.model.weight_name import TASK, WeightName
from t5repro.model.weight_names import Arrays, float32_array, weight_names
from t5repro.vocab.adopted.files import published_vocabulary
from t5repro.vocab.adopted.options import CONFIG as TOKENIZER_OPTIONS
from t5repro.vocab.adopted.piece_files import VERSION
from t5repro.vocab.special_pieces import without_special_pieces

WEIGHTS, CONFIG, TASK_CONFIG = "model.weights.h5", "config.json", "task.json"
TOKENIZER_CONFIG, PIECES = "tokenizer.json", Path("assets/tokenizer")
SENTENCEPIECE = "vocabulary.spm"
T5 = "T5"
# (gated, activation) of keras-hub's T5 -> ours. Its exact GELU differs by some thousandths.
FEED_FORWARD_OF_T5: dict[tuple[bool, str], Literal["relu", "gated_gelu"]] = {
    (False, "relu"): "relu",
    (True, "gelu"): "gated_gelu",
    (True, "gelu_approximate"): "gated_gelu",
}

Config = Mapping[str, Any]


class HubEncoder(NamedTuple):
    """An encoder of keras-hub.

    Attributes:
        name: with which its classes begin.
        fixed: settings of ours that are constants there.
        has_masked_lm: whether its head of masked pieces has the constants of its blocks.
        arguments: returns what only this backbone takes.
        face_config: returns sizes in a configuration of its backbone that Hugging Face's has too.
    """

    name: str
    fixed: Mapping[str, object]
    has_masked_lm: bool
    arguments: Callable[[ModelSettings], dict[str, Any]]
    face_config: Callable[[Config], dict[str, Any]]


def _of_albert(model: ModelSettings) -> dict[str, Any]:
    groups = model.block_groups or model.num_encoder_layers
    return {
        "num_segments": model.token_types,
        "embedding_dim": model.embedding_width,
        "num_groups": groups,
        "num_inner_repetitions": model.blocks_per_group,
        # It counts a group's blocks once.
        "num_layers": model.num_encoder_layers // model.blocks_per_group,
    }


def _albert_config(config: Config) -> dict[str, Any]:
    return {
        "type_vocab_size": config["num_segments"],
        "embedding_size": config["embedding_dim"],
        "num_hidden_groups": config["num_groups"],
        "inner_group_num": config["num_inner_repetitions"],
    }


TANH_GELU = {"feed_forward": "gelu_tanh", "norm_epsilon": 1e-12, "pair_separators": 1}
ENCODERS: Mapping[Family, HubEncoder] = {
    "bert": HubEncoder(
        "Bert",
        TANH_GELU,
        False,
        lambda model: {"num_segments": model.token_types},
        lambda config: {"type_vocab_size": config["num_segments"]},
    ),
    "roberta": HubEncoder(
        "Roberta",
        {"feed_forward": "gelu", "norm_epsilon": 1e-5, "pair_separators": 2},
        True,
        lambda model: {},
        # Its table of positions lacks the rows that Hugging Face's leaves unused.
        lambda config: {
            "max_position_embeddings": config["max_sequence_length"] + ROBERTA_PADDING + 1
        },
    ),
    "albert": HubEncoder("Albert", TANH_GELU, False, _of_albert, _albert_config),
}


class Preset(NamedTuple):
    """A preset of keras-hub.

    Attributes:
        model: shape of the network.
        weights: float32 arrays by path in our model, with a row for each id of the preset.
        vocabulary: of the preset; None if it has none.
    """

    model: ModelSettings
    weights: Arrays
    vocabulary: ForeignVocabulary | None


def read_preset(folder: Path) -> Preset:
    """Read a preset that keras-hub wrote.

    Raises:
        ArtifactError: it is incomplete or damaged.
        CheckpointError: its network is not one of ours.
        PackageError: keras-hub is not installed.
        VocabularyError: its vocabulary cannot be used.
    """
    kinds: dict[str, Family] = {hub.name: kind for kind, hub in ENCODERS.items()}
    name = _class_name(folder / CONFIG)
    body = name.removesuffix("Backbone")
    if body == T5:
        network = _loaded(folder, name)
        model = _t5_shape(folder, network)
        return Preset(model, _arrays(folder, network, model), _pieces(folder))
    if body not in kinds:
        raise CheckpointError(
            f"{folder / CONFIG} is of a {name!r}; only those of T5, "
            f"{', '.join(kinds)} can be read: other networks of keras-hub are not among ours"
        )
    hub = ENCODERS[kinds[body]]
    network = _loaded(folder, _task_name(folder, hub) or name)
    model = _encoder_shape(folder, kinds[body])
    arrays = _arrays(folder, network, model)
    if not any(arrays[path].any() for path in arrays if path.startswith("pooler/")):
        # What a backbone has in place of a pooler that pre-training did not have.
        arrays = {path: array for path, array in arrays.items() if not path.startswith("pooler/")}
    return Preset(model, arrays, _adopted_vocabulary(folder))


def _class_name(path: Path) -> str:
    """Return the class that a configuration names, without keras-hub's prefix."""
    content = read_json(path)
    name = content.get("registered_name") if isinstance(content, dict) else None
    if not isinstance(name, str) or not isinstance(content.get("config"), dict):
        raise ArtifactError(
            f"{path} has no registered_name with a config; have keras-hub write the preset again "
            "with save_to_preset"
        )
    return name.rpartition(">")[2]


def _task_name(folder: Path, hub: HubEncoder) -> str:
    """Return the class of the task in a preset of an encoder, whose heads are ours; "" if none.

    Raises:
        CheckpointError: our networks do not have its heads.
    """
    path = folder / TASK_CONFIG
    if not path.is_file():
        return ""
    name = _class_name(path)
    readable = [f"{hub.name}TextClassifier", *[f"{hub.name}MaskedLM"] * hub.has_masked_lm]
    if name not in readable:
        raise CheckpointError(
            f"{path} is of a {name!r}, whose head is another one than ours; only "
            f"{' and '.join(readable)} can be read: save its backbone alone, with "
            "task.backbone.save_to_preset(FOLDER)"
        )
    return name


def _loaded(folder: Path, name: str) -> Any:
    """Return a network of keras-hub with the weights of a preset, without its preprocessor."""
    with packages_of("exchange"):
        import keras_hub

    options = {} if name.endswith("Backbone") else {"preprocessor": None}
    try:
        with quiet_keras_hub():
            return getattr(keras_hub.models, name).from_preset(str(folder), **options)
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(
            f"{folder} is not a {name.removesuffix('Backbone')} preset of keras-hub ({error}); "
            "write it with save_to_preset"
        ) from error


def _arrays(folder: Path, network: Any, model: ModelSettings) -> Arrays:
    """Return the weights of a network of keras-hub by our names.

    Raises:
        CheckpointError: they are quantized, or the head is wider than the network.
    """
    backbone = getattr(network, "backbone", network)
    arrays = {}
    for name in weight_names(model):
        owner = network if name.in_keras_hub_task else backbone
        if not name.keras_hub or not _has(owner, name):
            continue
        value = np.asarray(keras_hub_variable(owner, name).numpy())
        leftovers.check_numbers(folder, {name.keras_hub: value})
        arrays[name.path] = float32_array(
            _without_heads(name.path, value), transposed=name.transposed_in_keras_hub
        )
    pooler = arrays.get("pooler/matrix")
    if pooler is not None and pooler.shape != (model.d_model, model.d_model):
        raise CheckpointError(
            f"{folder}: the dense layer below the labels has the shape {pooler.shape}, ours "
            f"{(model.d_model, model.d_model)}; save its backbone alone, with "
            "task.backbone.save_to_preset(FOLDER)"
        )
    return arrays


def _has(owner: Any, name: WeightName) -> bool:
    """Return whether a network has the layer of a weight; all but heads are there."""
    first = name.keras_hub.removeprefix(TASK).partition(".")[0]
    return not name.head or hasattr(owner, first)


def _without_heads(path: str, value: np.ndarray) -> np.ndarray:
    """Join the axes of heads and of their width: keras-hub has them apart in attention."""
    if "self_attention/" not in path:
        return value
    if path.endswith("_bias"):
        return value.reshape(-1)
    return (
        value.reshape(-1, value.shape[-1]) if path.endswith("/o") else value.reshape(len(value), -1)
    )


def _t5_shape(folder: Path, backbone: Any) -> ModelSettings:
    return ModelSettings(
        d_model=backbone.hidden_dim,
        d_ff=backbone.intermediate_dim,
        d_kv=backbone.key_value_dim or backbone.hidden_dim // backbone.num_heads,
        num_heads=backbone.num_heads,
        num_encoder_layers=backbone.num_layers,
        num_decoder_layers=backbone.num_layers,
        feed_forward=_feed_forward_of_t5(folder, backbone),
        tie_embeddings=backbone.tie_embedding_weights,
        norm_epsilon=backbone.layer_norm_epsilon,
    )


def _feed_forward_of_t5(folder: Path, backbone: Any) -> Literal["relu", "gated_gelu"]:
    activation = getattr(backbone.activation, "__name__", repr(backbone.activation))
    pair = (bool(backbone.use_gated_activation), activation)
    if pair not in FEED_FORWARD_OF_T5:
        allowed = " or ".join(map(_pair_text, FEED_FORWARD_OF_T5))
        raise CheckpointError(
            f"{folder / CONFIG}: {_pair_text(pair)}; only {allowed} can be read: the "
            "network would be another one; name a preset of T5 1.0 or T5 1.1"
        )
    return FEED_FORWARD_OF_T5[pair]


def _pair_text(pair: tuple[bool, str]) -> str:
    return f"use_gated_activation {pair[0]} with activation {pair[1]!r}"


def _encoder_shape(folder: Path, kind: Family) -> ModelSettings:
    """Return the shape of an encoder: sizes of its configuration, constants of its class."""
    path, hub = folder / CONFIG, ENCODERS[kind]
    config = read_json(path)["config"]
    try:
        face_config = {
            "model_type": kind,
            "hidden_size": config["hidden_dim"],
            "num_hidden_layers": config["num_layers"],
            "num_attention_heads": config["num_heads"],
            "intermediate_size": config["intermediate_dim"],
            "max_position_embeddings": config["max_sequence_length"],
            **hub.face_config(config),
        }
    except KeyError as error:
        raise ArtifactError(f"{path} lacks {error}; write it with save_to_preset") from error
    shape = encoder_shape(path, face_config)
    return ModelSettings.model_validate({**shape.model_dump(), **hub.fixed})


def _pieces(folder: Path) -> ForeignVocabulary | None:
    return sentencepiece_in(folder / PIECES / SENTENCEPIECE)


# keras-hub's tokenizer -> file of its pieces, and its options under their names in Hugging Face.
TOKENIZERS: dict[str, tuple[str, Callable[[Config], dict[str, Any]]]] = {
    "BertTokenizer": (
        "vocabulary.txt",
        lambda config: {
            "do_lower_case": config["lowercase"],
            "strip_accents": config["strip_accents"],
            "tokenize_chinese_chars": config.get("split_on_cjk", True),
            "unk_token": config["oov_token"],
        },
    ),
    "RobertaTokenizer": (
        "vocabulary.json",
        lambda config: {"add_prefix_space": config["add_prefix_space"]},
    ),
    # It only runs SentencePiece, whose model has its normalisation.
    "AlbertTokenizer": (SENTENCEPIECE, lambda _: {"do_lower_case": False, "keep_accents": True}),
}


def _adopted_vocabulary(folder: Path) -> ForeignVocabulary | None:
    """Return the vocabulary of an encoder's preset, in the form of a run's."""
    path = folder / TOKENIZER_CONFIG
    if not path.is_file():
        return None
    name = _class_name(path)
    if name not in TOKENIZERS:
        raise CheckpointError(
            f"{path} is of a {name!r}; only {', '.join(TOKENIZERS)} can be read here"
        )
    file_name, options = TOKENIZERS[name]
    source = folder / PIECES / file_name
    if file_name == SENTENCEPIECE and (own := without_special_pieces(read_file(source))):
        return ForeignVocabulary(own, source)
    with tempfile.TemporaryDirectory(prefix="t5repro-") as temporary:
        stated = Path(temporary) / TOKENIZER_OPTIONS
        write_json(stated, options(read_json(path)["config"]))
        beside = [stated]
        if (merges := source.parent / MERGES).is_file():
            # keras-hub writes no first line about the version.
            beside.append(Path(temporary) / MERGES)
            text = merges.read_text(encoding="utf-8")
            write_text(beside[-1], text if text.startswith(VERSION) else f"{VERSION}\n{text}")
        data, order = published_vocabulary(source, beside)
    return ForeignVocabulary(data, source, order)


@contextlib.contextmanager
def quiet_keras_hub() -> Iterator[None]:
    """Silence the warnings and the output of keras-hub about its own layers."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.filterwarnings("ignore", ".*does not support masking", UserWarning)
        yield


def keras_hub_variable(network: Any, name: WeightName) -> Any:
    """Return the variable of a keras-hub backbone, or of a task (`WeightName`)."""
    value = network
    for attribute in name.keras_hub.removeprefix(TASK).split("."):
        value = value[int(attribute)] if attribute.isdigit() else getattr(value, attribute)
    return value
