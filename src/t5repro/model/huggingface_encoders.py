"""Configurations and arrays of Hugging Face for encoders: BERT, RoBERTa, ALBERT, ELECTRA.

Its RoBERTa counts the positions of a row from the id of padding plus 1, so the first rows of its
table are unused; and it has one token type, a vector that is added everywhere.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError
from t5repro.model.activation_names import read_activation, written_activation
from t5repro.model.encoder_names import HEADS, TAG_HEAD, Family, family
from t5repro.model.trained_as import UNKNOWN, TrainedAs

CLASSES = {"bert": "Bert", "roberta": "Roberta", "albert": "Albert", "electra": "Electra"}
ROBERTA_POSITIONS = "roberta.embeddings.position_embeddings.weight"
ROBERTA_TYPES = "roberta.embeddings.token_type_embeddings.weight"
ROBERTA_PADDING = 1  # if a configuration does not say otherwise
CLASSIFIER = "classifier"
OF_TAGS = "ForTokenClassification"
PAIR_CLASSES = 2
# Names of the norms in the first releases.
FIRST_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# Names that begin the state of a network without heads.
BODY = ("embeddings.", "embeddings_project.", "encoder.", "pooler.")


def encoder_shape(path: Path, config: Mapping[str, Any]) -> ModelSettings:
    """Return the shape in a configuration of BERT, RoBERTa, ALBERT or ELECTRA.

    Args:
        path: file of the configuration, for messages.
        config: the configuration.

    Raises:
        CheckpointError: the network has parts that ours lacks.
        KeyError: a value is missing.
        ValidationError: a value is invalid.
    """
    kind, width, heads = config["model_type"], config["hidden_size"], config["num_attention_heads"]
    default = "gelu_new" if kind == "albert" else "gelu"
    activation = read_activation(path, "hidden_act", config.get("hidden_act", default))
    if (positions := config.get("position_embedding_type", "absolute")) != "absolute":
        raise CheckpointError(
            f"{path}: position_embedding_type is {positions!r}; only 'absolute' can be read"
        )
    if width % heads:
        raise CheckpointError(
            f"{path}: hidden_size {width} is not a multiple of num_attention_heads {heads}"
        )
    families = {"bert": _bert, "roberta": _roberta, "albert": _albert, "electra": _electra}
    family_settings = families[kind]
    layers = config["num_hidden_layers"]
    return ModelSettings.model_validate(
        {
            "architecture": "encoder",
            "d_model": width,
            "d_ff": config["intermediate_size"],
            "d_kv": width // heads,
            "num_heads": heads,
            "num_encoder_layers": layers,
            "num_decoder_layers": layers,
            "feed_forward": activation,
            "biases": True,
            "scale_attention": True,
            "positions": "learned",
            "max_positions": config["max_position_embeddings"],
            "norm": "layer",
            "norm_placement": "post",
            "norm_epsilon": config.get("layer_norm_eps", 1e-12),
            "initializer": "normal",
            "initializer_range": config.get("initializer_range", 0.02),
            "dropout_noise": "per_position",
            "activation_dropout": False,
            **family_settings(path, config),
        }
    )


def _bert(_: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"token_types": config.get("type_vocab_size", 2), "initializer": "truncated_normal"}


def _roberta(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    if (types := config.get("type_vocab_size", 1)) != 1:
        raise CheckpointError(f"{path}: type_vocab_size is {types}; RoBERTa has 1 token type")
    positions = config["max_position_embeddings"] - _unused_positions(config)
    return {"max_positions": positions, "pair_separators": 2, "pooler_dropout": True}


def _albert(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    groups, inner = config.get("num_hidden_groups", 1), config.get("inner_group_num", 1)
    layers = config["num_hidden_layers"]
    if groups < 1 or inner < 1 or layers % groups:
        raise CheckpointError(
            f"{path}: num_hidden_layers {layers} is not a multiple of num_hidden_groups "
            f"{groups}, or inner_group_num {inner} is not positive"
        )
    return {
        "token_types": config.get("type_vocab_size", 2),
        "initializer": "truncated_normal",
        "embedding_width": config["embedding_size"],
        "num_encoder_layers": layers * inner,  # a layer of theirs has this number of blocks
        "num_decoder_layers": layers * inner,
        "block_groups": groups,
        "blocks_per_group": inner,
    }


def _electra(_: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    embedding, width = config.get("embedding_size", 128), config["hidden_size"]
    # A generator in a folder of its own is a network that generates for itself.
    is_generator = any(name.endswith("ForMaskedLM") for name in config.get("architectures") or ())
    both = {"generator_tying": "all", "generator_width": 1.0} if is_generator else {}
    return {
        "architecture": "generator_detector",
        "token_types": config.get("type_vocab_size", 2),
        "initializer": "truncated_normal",
        "embedding_width": embedding if embedding != width else 0,
        **both,
    }


def _unused_positions(config: Mapping[str, Any]) -> int:
    padding = config.get("pad_token_id", ROBERTA_PADDING)
    return 1 + int(padding if padding is not None else ROBERTA_PADDING)


def encoder_config(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    *,
    padding: int,
    trained: TrainedAs = UNKNOWN,
) -> dict[str, Any]:
    """Return the configuration of an encoder-only network, without the ids of its vocabulary.

    Args:
        model: shape of the network.
        weights: arrays by path in our model, which show the heads.
        padding: id of padding.
        trained: dropout and names of labels.

    Raises:
        CheckpointError: no class of Hugging Face has these heads.
    """
    kind = family(model)
    act = written_activation(model.feed_forward)
    config: dict[str, Any] = {
        "architectures": [f"{CLASSES[kind]}{_task(kind, weights, trained)}"],
        "model_type": kind,
        "vocab_size": int(weights["embedding"].shape[0]),
        "hidden_size": model.d_model,
        "num_hidden_layers": model.num_encoder_layers,
        "num_attention_heads": model.num_heads,
        "intermediate_size": model.d_ff,
        "hidden_act": act,
        "hidden_dropout_prob": trained.dropout_rate,
        "attention_probs_dropout_prob": trained.dropout_rate,
        "max_position_embeddings": model.max_positions,
        "type_vocab_size": model.token_types,
        "layer_norm_eps": model.norm_epsilon,
        "initializer_range": model.initializer_range,
        "pad_token_id": padding,
        "torch_dtype": "float32",
    }
    labels = weights.get("label_head/bias", weights.get("tag_head/bias"))
    if labels is not None:
        # Ours are named by task; transformers has one list of classes.
        names = trained.label_names(len(labels))
        config["id2label"] = {str(label): name for label, name in enumerate(names)}
        config["label2id"] = {name: int(label) for label, name in config["id2label"].items()}
    if kind == "roberta":
        config["type_vocab_size"] = 1
        config["max_position_embeddings"] += _unused_positions(config)
    if kind == "albert":
        # Without groups every block has its own weights: as many groups as layers.
        inner = model.blocks_per_group if model.block_groups else 1
        layers = model.num_encoder_layers // inner
        config |= {
            "embedding_size": model.embedding_width,
            "num_hidden_layers": layers,
            "num_hidden_groups": model.block_groups or layers,
            "inner_group_num": inner,
            "classifier_dropout_prob": trained.head_dropout,
        }
    else:
        config["classifier_dropout"] = trained.classifier_dropout
    if kind == "electra":
        config["embedding_size"] = model.embedding_width or model.d_model
    return config


def _task(kind: Family, weights: Mapping[str, np.ndarray], trained: TrainedAs) -> str:
    """Return the end of the name of the class with the heads of these weights."""
    # A class of Hugging Face has one kind of head.
    heads = [head for head in ("label", "span", "tag") if f"{head}_head/bias" in weights]
    if len(heads) > 1:
        raise CheckpointError(
            f"the network has heads of {'s, '.join(heads)}s, and those of other libraries have one "
            "head; fine-tune each kind apart (finetune.groups)"
        )
    if heads == ["span"]:
        return "ForQuestionAnswering"
    if heads == ["tag"]:
        return OF_TAGS
    if heads and "label_head" not in HEADS[kind]:
        raise CheckpointError(
            "the network has a linear layer of labels on the first position, and ElectraFor"
            "SequenceClassification a dense layer below it; give the weights of pretrain, or those "
            "of a task with spans or tags"
        )
    if heads:
        kinds = [answer.kind for answer in trained.columns.answers.values()]
        # RoBERTa's class of choices has another head than its class of labels, which is ours.
        is_choice = kinds == ["choice"] and kind != "roberta"
        return "ForMultipleChoice" if is_choice else "ForSequenceClassification"
    if "detector_head/logit/bias" in weights:
        return "ForPreTraining"
    if (bias := weights.get("pair_head/bias")) is None:
        return "ForMaskedLM"
    if "pair_head" not in HEADS[kind]:
        raise CheckpointError(
            "the network has a head of pairs, which no RoBERTa of other libraries has; pre-train "
            "with pretrain.masked_lm.pair_task: none, or export its fine-tuning"
        )
    if len(bias) != PAIR_CLASSES:
        raise CheckpointError(
            f"the head of pairs has {len(bias)} classes, that of other libraries {PAIR_CLASSES}; "
            "train with model and pretrain settings of BERT or ALBERT"
        )
    return "ForPreTraining"


def stored_arrays(
    arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the state of an encoder-only network as its class stores it.

    The head of tags has the name of a classifier, and RoBERTa additional rows, all zeros.

    Args:
        arrays: arrays by Hugging Face's names.
        config: its configuration.
    """
    arrays = {
        name.replace(f"{TAG_HEAD}.", f"{CLASSIFIER}."): array for name, array in arrays.items()
    }
    if config["model_type"] == "roberta":
        positions = arrays[ROBERTA_POSITIONS]
        arrays[ROBERTA_POSITIONS] = np.pad(positions, ((_unused_positions(config), 0), (0, 0)))
        arrays[ROBERTA_TYPES] = np.zeros((1, positions.shape[1]), np.float32)
    return arrays


def standard_arrays(
    arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the state of an encoder-only network with today's names, without RoBERTa's rows.

    A vector of RoBERTa's single token type is added to all positions, which is where the network
    adds it.

    Args:
        arrays: arrays of the files.
        config: their configuration.
    """
    kind = config["model_type"]
    if any(name.endswith(OF_TAGS) for name in config.get("architectures") or ()):
        arrays = {
            name.replace(f"{CLASSIFIER}.", f"{TAG_HEAD}."): array for name, array in arrays.items()
        }
    # A state without heads lacks the name of the family before the names of its weights.
    has_heads = any(name.startswith(f"{kind}.") for name in arrays)
    renamed = {_today(name, kind, has_heads): array for name, array in arrays.items()}
    if kind == "roberta" and ROBERTA_POSITIONS in renamed:
        # Every position gets the vector of the one token type, so it can join the positions.
        table = renamed[ROBERTA_POSITIONS][_unused_positions(config) :]
        types = renamed.pop(ROBERTA_TYPES, np.zeros((1, 1), np.float32))
        renamed[ROBERTA_POSITIONS] = table + types if types.any() else table
    return renamed


def _today(name: str, kind: str, has_heads: bool) -> str:
    for first, today in FIRST_NAMES.items():
        name = name.replace(first, today)
    return f"{kind}.{name}" if not has_heads and name.startswith(BODY) else name


def incomplete_heads(paths: Collection[str], heads: Mapping[str, str]) -> list[str]:
    """Return the weights that are missing from incomplete heads.

    Args:
        paths: of the existing weights.
        heads: path -> head, of the weights above the blocks.
    """
    # A head may be absent as a whole, not in part.
    existing = {head for path, head in heads.items() if path in paths}
    return [path for path, head in heads.items() if head in existing and path not in paths]
