"""Published shapes of T5 (paper sections 3.6 and 3.7) and GPT, by name.

`model.published` selects one; other settings of `model` in the run file replace its values. To add
a size, add an entry to `SIZES`. Tests compare each entry with its published number of parameters.

Source: the released operative configurations of T5 1.0 and 1.1; `2x` and `4x` are the models of
section 3.6. GPT: Radford et al., 2018, section 4.1, and the released code; `gpt_tiny` and
`gpt_mini` are small shapes of the same kind, which nobody published.
"""

from collections.abc import Mapping
from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.config.tree import lookup
from t5repro.errors import SettingsError, nearest


def v1_0(layers: int, d_model: int, d_ff: int, num_heads: int, d_kv: int) -> ModelSettings:
    """Return a T5 1.0 shape with as many layers in the decoder as in the encoder."""
    return _shape(layers, d_model, d_ff, num_heads, d_kv)


def v1_1(layers: int, d_model: int, d_ff: int, num_heads: int) -> ModelSettings:
    """Return a T5 1.1 shape: gated feed-forward, separate output matrix."""
    return _shape(
        layers, d_model, d_ff, num_heads, 64, feed_forward="gated_gelu", tie_embeddings=False
    )


def gpt(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of GPT with heads of 64 features."""
    return _shape(
        layers,
        d_model,
        4 * d_model,
        d_model // 64,
        64,
        architecture="language_model",
        feed_forward="gelu_tanh",
        biases=True,
        scale_attention=True,
        scale_decoder_outputs=False,
        initializer="normal",
        initializer_range=0.02,
        dropout_noise="per_position",
        positions="learned",
        max_positions=512,
        norm="layer",
        norm_placement="post",
        norm_epsilon=1e-5,
    )


def _shape(
    layers: int, d_model: int, d_ff: int, num_heads: int, d_kv: int, **options: Any
) -> ModelSettings:
    return ModelSettings(
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        d_model=d_model,
        d_ff=d_ff,
        num_heads=num_heads,
        d_kv=d_kv,
        **options,
    )


SIZES: dict[str, ModelSettings] = {
    "small": v1_0(6, 512, 2048, 8, 64),
    "base": v1_0(12, 768, 3072, 12, 64),
    "large": v1_0(24, 1024, 4096, 16, 64),
    "3b": v1_0(24, 1024, 16_384, 32, 128),
    "11b": v1_0(24, 1024, 65_536, 128, 128),
    "2x": v1_0(16, 1024, 4096, 16, 64),
    "4x": v1_0(32, 1024, 4096, 16, 64),
    "v1_1_small": v1_1(8, 512, 1024, 6),
    "v1_1_base": v1_1(12, 768, 2048, 12),
    "v1_1_large": v1_1(24, 1024, 2816, 16),
    "v1_1_xl": v1_1(24, 2048, 5120, 32),
    "v1_1_xxl": v1_1(24, 4096, 10_240, 64),
    "gpt_tiny": gpt(2, 128),
    "gpt_mini": gpt(4, 256),
    "gpt": gpt(12, 768),
}

SHAPE = (  # what every size sets; GPT's set more
    "d_model",
    "d_ff",
    "d_kv",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "feed_forward",
    "tie_embeddings",
)


def published_shape(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that `model.published` sets in a tree of settings.

    Raises:
        SettingsError: the size is unknown.
    """
    name = lookup(tree, "model", "published")
    if not name:
        return {}
    if name not in SIZES:
        suggestion = nearest(str(name), SIZES)
        raise SettingsError(f"model.published is {name!r}; sizes are {sorted(SIZES)}{suggestion}")
    size = SIZES[name]
    return {"model": {key: getattr(size, key) for key in sorted({*SHAPE, *size.model_fields_set})}}
