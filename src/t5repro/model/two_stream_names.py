"""XLNet in Hugging Face: names of its weights, their shapes there, and its configuration.

Its matrices of attention have an axis of heads: ``q``, ``k``, ``v`` and ``r`` of (width, heads,
features), and ``o`` of the same shape, which is contracted over heads and features.

Source: transformers ``XLNetLMHeadModel`` and ``XLNetForSequenceClassification``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError
from t5repro.model.activation_names import read_activation, written_activation
from t5repro.model.trained_as import UNKNOWN, TrainedAs
from t5repro.model.weight_name import WeightName

XLNET = "xlnet"  # model type
BODY = "transformer."  # before the names of a state with a head
QUERY_START = f"{BODY}mask_emb"
MATRICES = ("q", "k", "v", "o", "r")
# Our weight -> Hugging Face's, in a block.
BLOCK = {
    **{f"self_attention/{name}": f"rel_attn.{name}" for name in MATRICES},
    "self_attention/content_bias": "rel_attn.r_w_bias",
    "self_attention/distance_bias": "rel_attn.r_r_bias",
    "self_attention/type_bias": "rel_attn.r_s_bias",
    "self_attention/type_table": "rel_attn.seg_embed",
    "self_attention_norm/scale": "rel_attn.layer_norm.weight",
    "self_attention_norm/bias": "rel_attn.layer_norm.bias",
    "feed_forward/wi": "ff.layer_1.weight",
    "feed_forward/wi_bias": "ff.layer_1.bias",
    "feed_forward/wo": "ff.layer_2.weight",
    "feed_forward/wo_bias": "ff.layer_2.bias",
    "feed_forward_norm/scale": "ff.layer_norm.weight",
    "feed_forward_norm/bias": "ff.layer_norm.bias",
}
TRANSPOSED = ("feed_forward/wi", "feed_forward/wo", "self_attention/o")
HEADS = {  # ours -> Hugging Face's
    "masked_lm/bias": "lm_loss.bias",
    "pooler/matrix": "sequence_summary.summary.weight",
    "pooler/bias": "sequence_summary.summary.bias",
    "label_head/matrix": "logits_proj.weight",
    "label_head/bias": "logits_proj.bias",
}
# Settings of a configuration -> the only values with which the network is ours.
FIXED: dict[str, tuple[object, ...]] = {
    "attn_type": ("bi",),
    "untie_r": (True,),
    "clamp_len": (-1,),
    "same_length": (False,),
    "summary_type": ("last",),
    "summary_use_proj": (True,),
    "summary_activation": ("tanh",),
}


def two_stream_names(model: ModelSettings) -> Iterator[WeightName]:
    """Yield the names of every weight that an XLNet of this shape can have."""
    yield WeightName("embedding", f"{BODY}word_embedding.weight", transposed=False)
    yield WeightName("encoder/query_start", QUERY_START, transposed=False)
    for number in range(model.num_encoder_layers):
        for path, name in BLOCK.items():
            yield WeightName(
                f"encoder/block_{number}/{path}",
                f"{BODY}layer.{number}.{name}",
                transposed=path in TRANSPOSED,
            )
    for path, name in HEADS.items():
        yield WeightName(path, name, head=path.split("/")[0])


def two_stream_shape(path: Path, config: Mapping[str, Any]) -> ModelSettings:
    """Return the shape in a configuration of XLNet.

    Args:
        path: file of the configuration, for messages.
        config: the configuration.

    Raises:
        CheckpointError: the network has parts that ours lacks.
        KeyError: a value is missing.
        ValidationError: a value is invalid.
    """
    width, heads, layers = config["d_model"], config["n_head"], config["n_layer"]
    activation = read_activation(path, "ff_activation", config.get("ff_activation", "gelu"))
    for name, values in FIXED.items():
        if config.get(name, values[0]) not in values:
            raise CheckpointError(
                f"{path}: {name} is {config[name]!r}; only {values[0]!r} can be read: the network "
                "would be another one"
            )
    if width % heads:
        raise CheckpointError(f"{path}: d_model {width} is not a multiple of n_head {heads}")
    return ModelSettings.model_validate(
        {
            "architecture": "two_stream",
            "d_model": width,
            "d_ff": config["d_inner"],
            "d_kv": width // heads,
            "num_heads": heads,
            "num_encoder_layers": layers,
            "num_decoder_layers": layers,
            "feed_forward": activation,
            "biases": True,
            "scale_attention": True,
            "positions": "distances",
            "norm": "layer",
            "norm_placement": "post",
            "norm_epsilon": config.get("layer_norm_eps", 1e-12),
            "initializer": "normal",
            "initializer_range": config.get("initializer_range", 0.02),
            "dropout_noise": "per_position",
            "activation_dropout": True,
        }
    )


def two_stream_config(
    model: ModelSettings, weights: Mapping[str, np.ndarray], *, trained: TrainedAs = UNKNOWN
) -> dict[str, Any]:
    """Return the configuration of an XLNet, without the ids of its vocabulary.

    Args:
        model: shape of the network.
        weights: arrays by path in our model, which show the head.
        trained: dropout and names of labels.
    """
    labels = weights.get("label_head/bias")
    kind = "LMHeadModel" if labels is None else "ForSequenceClassification"
    config: dict[str, Any] = {
        "architectures": [f"XLNet{kind}"],
        "model_type": XLNET,
        "vocab_size": int(weights["embedding"].shape[0]),
        "d_model": model.d_model,
        "n_layer": model.num_encoder_layers,
        "n_head": model.num_heads,
        "d_inner": model.d_ff,
        "ff_activation": written_activation(model.feed_forward),
        **{name: values[0] for name, values in FIXED.items()},
        "layer_norm_eps": model.norm_epsilon,
        "initializer_range": model.initializer_range,
        "dropout": trained.dropout_rate,
        "summary_last_dropout": trained.dropout_rate,
        "torch_dtype": "float32",
    }
    if labels is not None:
        names = trained.label_names(len(labels))
        config["id2label"] = {str(label): name for label, name in enumerate(names)}
        config["label2id"] = {name: int(label) for label, name in config["id2label"].items()}
    return config


def flat_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the state of an XLNet with matrices of two axes and the names of a state with a head.

    Args:
        arrays: arrays of the files.
    """
    heads = {*HEADS.values(), "lm_loss.weight"}
    flat = {}
    for name, array in arrays.items():
        full_name = name if name.startswith(BODY) or name in heads else BODY + name
        if full_name == QUERY_START or _is_matrix(full_name):
            array = array.reshape(array.shape[0], -1)
        flat[full_name] = array
    return flat


def stored_two_stream_arrays(
    arrays: Mapping[str, np.ndarray], model: ModelSettings
) -> dict[str, np.ndarray]:
    """Return the state of an XLNet as its class stores it, see the module.

    Args:
        arrays: arrays by Hugging Face's names.
        model: shape of the network.
    """
    stored = {}
    for name, array in arrays.items():
        if _is_matrix(name):
            array = array.reshape(model.d_model, model.num_heads, model.d_kv)
        stored[name] = array[None] if name == QUERY_START else array
    return stored


def _is_matrix(name: str) -> bool:
    return ".rel_attn." in name and name.rsplit(".", 1)[-1] in MATRICES
