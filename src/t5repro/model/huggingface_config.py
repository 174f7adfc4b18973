"""The shape of a T5 in a configuration of Hugging Face (`config.json`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError

FEED_FORWARD = {"relu": "relu", "gated_gelu": "gated-gelu"}  # our setting -> Hugging Face's

SCALES_OUTPUTS = "scale_decoder_outputs"


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
            feed_forward="gated_gelu" if feed_forward == "gated-gelu" else "relu",
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
