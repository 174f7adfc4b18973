"""The network in a configuration of Hugging Face (`config.json`): its shape and shared arrays.

T5, mT5 and umT5, and GPT (`openai-gpt`); encoder-only networks are in `huggingface_encoders.py`,
XLNet in `two_stream_names.py`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError
from t5repro.model.encoder_names import HEADS
from t5repro.model.huggingface_encoders import encoder_shape, standard_arrays
from t5repro.model.two_stream_names import XLNET, flat_arrays, two_stream_shape
from t5repro.model.weight_names import GPT as GPT_NETWORK

# Our setting -> Hugging Face's.
FEED_FORWARD = {"relu": "relu", "gated_gelu": "gated-gelu", "swiglu": "gated-silu"}
UMT5 = "umt5"  # model type with a table of position biases in each block
GPT = "openai-gpt"
MODEL_TYPES = ("t5", "mt5", UMT5, GPT, *HEADS, XLNET)
GPT_STATE = "transformer."  # before the names of a state with the head of a language model

SCALES_OUTPUTS = "scale_decoder_outputs"
EMBEDDING, OUTPUT_MATRIX = "shared.weight", "lm_head.weight"


def huggingface_shape(path: Path, config: Mapping[str, Any]) -> ModelSettings:
    """Return the shape in a configuration of Hugging Face.

    Args:
        path: file of the configuration, for messages.
        config: the configuration; its `model_type` is one of `MODEL_TYPES`.

    Raises:
        CheckpointError: a value is missing, or our networks cannot have it.
    """
    try:
        return SHAPES.get(config.get("model_type", ""), _t5_shape)(path, config)
    except KeyError as error:
        raise CheckpointError(f"{path} has no {error}; the download may be incomplete") from error
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        raise CheckpointError(
            f"{path}: model.{name} is {fault['input']!r}; {fault['msg']}"
        ) from error


def _t5_shape(path: Path, config: Mapping[str, Any]) -> ModelSettings:
    """Return the shape of a T5.

    T5 1.1 has an output matrix of its own and does not scale the output of the decoder. Up to
    transformers 4 that is ``tie_word_embeddings: false``; transformers 5 writes ``true`` for every
    T5, and ``scale_decoder_outputs``.
    """
    feed_forward = config.get("feed_forward_proj", "relu")
    if feed_forward not in FEED_FORWARD.values():
        raise CheckpointError(
            f"{path}: feed_forward_proj is {feed_forward!r}; allowed are "
            f"{sorted(FEED_FORWARD.values())}"
        )
    return ModelSettings(
        d_model=config["d_model"],
        d_ff=config["d_ff"],
        d_kv=config["d_kv"],
        num_heads=config["num_heads"],
        num_encoder_layers=config["num_layers"],
        num_decoder_layers=config.get("num_decoder_layers") or config["num_layers"],
        feed_forward=next(
            setting for setting, name in FEED_FORWARD.items() if name == feed_forward
        ),
        relative_position_bias="per_layer" if config.get("model_type") == UMT5 else "per_stack",
        tie_embeddings=config.get(SCALES_OUTPUTS, config.get("tie_word_embeddings", True)),
        relative_position_buckets=config.get("relative_attention_num_buckets", 32),
        relative_position_max_distance=config.get("relative_attention_max_distance", 128),
        norm_epsilon=config.get("layer_norm_epsilon", 1e-6),
    )


def _gpt_shape(path: Path, config: Mapping[str, Any]) -> ModelSettings:
    """Return the shape of a GPT."""
    # Its "gelu" is the tanh approximation, as in the released code.
    if (activation := config.get("afn", "gelu")) != "gelu":
        raise CheckpointError(f"{path}: afn is {activation!r}; only 'gelu' can be read")
    width, heads = config["n_embd"], config["n_head"]
    if width % heads:
        raise CheckpointError(f"{path}: n_embd {width} is not a multiple of n_head {heads}")
    fixed = {setting: value for setting, (value,) in GPT_NETWORK.items()}
    return ModelSettings.model_validate(
        {
            **fixed,
            "d_model": width,
            "d_ff": 4 * width,
            "d_kv": width // heads,
            "num_heads": heads,
            "num_decoder_layers": config["n_layer"],
            "max_positions": config["n_positions"],
            "norm_epsilon": config.get("layer_norm_epsilon", 1e-5),
            "initializer": "normal",
            "initializer_range": config.get("initializer_range", 0.02),
            "dropout_noise": "per_position",
            "activation_dropout": False,
        }
    )


# Model type -> function that reads the shape; of all others T5's.
SHAPES: dict[str, Callable[[Path, Mapping[str, Any]], ModelSettings]] = {
    GPT: _gpt_shape,
    XLNET: two_stream_shape,
}
SHAPES |= dict.fromkeys(HEADS, encoder_shape)


def gpt_config(
    model: ModelSettings, *, embedding_rows: int, dropout_rate: float = 0.1
) -> dict[str, Any]:
    """Return the configuration of a GPT, without the ids of its vocabulary."""
    return {
        "architectures": ["OpenAIGPTLMHeadModel"],
        "model_type": GPT,
        "vocab_size": embedding_rows,
        "n_embd": model.d_model,
        "n_head": model.num_heads,
        "n_layer": model.num_decoder_layers,
        "n_positions": model.max_positions,
        "afn": "gelu",
        "layer_norm_epsilon": model.norm_epsilon,
        "initializer_range": model.initializer_range,
        "resid_pdrop": dropout_rate,
        "embd_pdrop": dropout_rate,
        "attn_pdrop": dropout_rate,
        "torch_dtype": "float32",
    }


def t5_config(
    model: ModelSettings, *, embedding_rows: int, dropout_rate: float = 0.1
) -> dict[str, Any]:
    """Return the configuration of a T5 or umT5, without the ids of its vocabulary."""
    is_umt5 = model.relative_position_bias == "per_layer"
    return {
        "architectures": [f"{'UMT5' if is_umt5 else 'T5'}ForConditionalGeneration"],
        "model_type": UMT5 if is_umt5 else "t5",
        "vocab_size": embedding_rows,
        "d_model": model.d_model,
        "d_ff": model.d_ff,
        "d_kv": model.d_kv,
        "num_heads": model.num_heads,
        "num_layers": model.num_encoder_layers,
        "num_decoder_layers": model.num_decoder_layers,
        "feed_forward_proj": FEED_FORWARD[model.feed_forward],
        "tie_word_embeddings": model.tie_embeddings,
        "relative_attention_num_buckets": model.relative_position_buckets,
        "relative_attention_max_distance": model.relative_position_max_distance,
        "layer_norm_epsilon": model.norm_epsilon,
        "dropout_rate": dropout_rate,
        "is_encoder_decoder": True,
        "torch_dtype": "float32",
    }


def add_shared_arrays(
    arrays: Mapping[str, np.ndarray], path: Path, config: Mapping[str, Any], model: ModelSettings
) -> dict[str, np.ndarray]:
    """Return arrays, completed by arrays that are stored only under another name.

    These are T5's embedding and output matrix, and all of a GPT without the head of a language
    model or of an encoder only without heads. XLNet's matrices get two axes.

    Args:
        arrays: arrays of the files.
        path: file of the configuration.
        config: the configuration.
        model: its shape.

    Raises:
        CheckpointError: there is an output matrix, and the model shares its embedding.
    """
    if config.get("model_type") == GPT:
        return {GPT_STATE + name.removeprefix(GPT_STATE): array for name, array in arrays.items()}
    if config.get("model_type") in HEADS:
        return standard_arrays(arrays, config)
    if config.get("model_type") == XLNET:
        return flat_arrays(arrays)
    arrays = dict(arrays)
    # Names of the one embedding; which of them a file has depends on the version of transformers.
    names = [EMBEDDING, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    if model.tie_embeddings:
        names.append(OUTPUT_MATRIX)
    stored = next((arrays[name] for name in names if name in arrays), None)
    if stored is None:
        return arrays  # the reader refuses a weight that is missing
    arrays[EMBEDDING] = stored
    if SCALES_OUTPUTS in config:  # transformers 5 leaves out what is equal
        arrays.setdefault(OUTPUT_MATRIX, stored)
    head = arrays.get(OUTPUT_MATRIX, stored)
    if model.tie_embeddings and head is not stored and not np.array_equal(head, stored):
        raise CheckpointError(
            f"{path}: the model scales the decoder's output as T5 1.0 does, and its "
            f"{OUTPUT_MATRIX} is not its {EMBEDDING}; transformers 4 ignores the former and "
            "transformers 5 uses it: delete it from the file if the embedding is meant"
        )
    return arrays
