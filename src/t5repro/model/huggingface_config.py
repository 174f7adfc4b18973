"""What a configuration of Hugging Face (`config.json`) says of a T5: shape, shared arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError

# Our setting -> Hugging Face's.
FEED_FORWARD = {"relu": "relu", "gated_gelu": "gated-gelu", "swiglu": "gated-silu"}
UMT5 = "umt5"  # model type with a table of position biases in each block

SCALES_OUTPUTS = "scale_decoder_outputs"
EMBEDDING, OUTPUT_MATRIX = "shared.weight", "lm_head.weight"


def huggingface_shape(path: Path, config: Mapping[str, Any]) -> ModelSettings:
    """Return the shape in a configuration of Hugging Face.

    T5 1.1 has an output matrix of its own and does not scale what the decoder returns. Up to
    transformers 4 that is ``tie_word_embeddings: false``; transformers 5 writes ``true`` for every
    T5, and ``scale_decoder_outputs``.

    Raises:
        CheckpointError: a value is missing, or is none that a T5 can have.
    """
    feed_forward = config.get("feed_forward_proj", "relu")
    if feed_forward not in FEED_FORWARD.values():
        raise CheckpointError(
            f"{path}: feed_forward_proj is {feed_forward!r}; allowed are "
            f"{sorted(FEED_FORWARD.values())}"
        )
    try:
        return ModelSettings(
            d_model=config["d_model"],
            d_ff=config["d_ff"],
            d_kv=config["d_kv"],
            num_heads=config["num_heads"],
            num_encoder_layers=config["num_layers"],
            num_decoder_layers=config.get("num_decoder_layers") or config["num_layers"],
            feed_forward=next(ours for ours, name in FEED_FORWARD.items() if name == feed_forward),
            relative_position_bias="per_layer" if config.get("model_type") == UMT5 else "per_stack",
            tie_embeddings=config.get(SCALES_OUTPUTS, config.get("tie_word_embeddings", True)),
            relative_position_buckets=config.get("relative_attention_num_buckets", 32),
            relative_position_max_distance=config.get("relative_attention_max_distance", 128),
            norm_epsilon=config.get("layer_norm_epsilon", 1e-6),
        )
    except KeyError as error:
        raise CheckpointError(f"{path} has no {error}; the download may be incomplete") from error
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        raise CheckpointError(
            f"{path}: model.{name} is {fault['input']!r}; {fault['msg']}"
        ) from error


def add_shared_arrays(
    arrays: dict[str, np.ndarray], path: Path, config: Mapping[str, Any], model: ModelSettings
) -> None:
    """Add the embedding and the output matrix if they are stored under another array's name.

    Args:
        arrays: arrays of the files; changed.
        path: file of the configuration.
        config: the configuration.
        model: its shape.

    Raises:
        CheckpointError: there is an output matrix of a model that has none.
    """
    names = [EMBEDDING, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    if model.tie_embeddings:
        names.append(OUTPUT_MATRIX)
    stored = next((arrays[name] for name in names if name in arrays), None)
    if stored is None:
        return  # the reader refuses a weight that is missing
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
