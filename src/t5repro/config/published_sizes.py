"""Published shapes of T5 (paper sections 3.6 and 3.7), GPT and encoders alone, by name.

`model.published` selects one; other settings of `model` in the run file replace its values. To add
a size, add an entry to `SIZES`. Tests compare each entry with its published number of parameters.

Source: the released operative configurations of T5 1.0 and 1.1; `2x` and `4x` are the models of
section 3.6. GPT: Radford et al., 2018, section 4.1, and the released code. BERT, RoBERTa, ALBERT
and SpanBERT: the configurations that were released with their weights. Sizes `tiny` and `mini` of
these systems are small shapes of the same kind, which nobody published with them.
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
        activation_dropout=False,
        positions="learned",
        max_positions=512,
        norm="layer",
        norm_placement="post",
        norm_epsilon=1e-5,
    )


POSTNORM: dict[str, Any] = {  # what all encoders alone have
    "architecture": "encoder",
    "biases": True,
    "scale_attention": True,
    "dropout_noise": "per_position",
    "activation_dropout": False,
    "positions": "learned",
    "max_positions": 512,
    "norm": "layer",
    "norm_placement": "post",
}


def bert(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of BERT with heads of 64 features."""
    return _encoder(layers, d_model, d_model // 64, feed_forward="gelu_tanh", token_types=2)


def spanbert(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of SpanBERT: BERT's, but GELU by the error function and normal values."""
    heads = d_model // 64
    return _encoder(
        layers, d_model, heads, feed_forward="gelu", token_types=2, initializer="normal"
    )


def roberta(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of RoBERTa; its released table of positions has two rows that no one uses."""
    return _encoder(
        layers,
        d_model,
        d_model // 64,
        feed_forward="gelu",
        pair_separators=2,
        pooler_dropout=True,
        initializer="normal",
        norm_epsilon=1e-5,
    )


def albert(layers: int, d_model: int, num_heads: int, embedding_width: int) -> ModelSettings:
    """Return a shape of ALBERT, whose blocks all have the same weights."""
    return _encoder(
        layers,
        d_model,
        num_heads,
        feed_forward="gelu_tanh",
        token_types=2,
        embedding_width=embedding_width,
        block_groups=1,
    )


def _encoder(layers: int, d_model: int, num_heads: int, **options: Any) -> ModelSettings:
    initial_values = {"initializer": "truncated_normal", "initializer_range": 0.02}
    of_all = {**POSTNORM, **initial_values, "norm_epsilon": 1e-12}
    d_kv = d_model // num_heads
    return _shape(layers, d_model, 4 * d_model, num_heads, d_kv, **(of_all | options))


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
    "bert_tiny": bert(2, 128),
    "bert_mini": bert(4, 256),
    "bert_base": bert(12, 768),
    "bert_large": bert(24, 1024),
    "spanbert_tiny": spanbert(2, 128),
    "spanbert_mini": spanbert(4, 256),
    "spanbert_base": spanbert(12, 768),
    "spanbert_large": spanbert(24, 1024),
    "roberta_tiny": roberta(2, 128),
    "roberta_mini": roberta(4, 256),
    "roberta_base": roberta(12, 768),
    "roberta_large": roberta(24, 1024),
    "albert_tiny": albert(2, 128, 2, 64),
    "albert_mini": albert(4, 256, 4, 128),
    "albert_base": albert(12, 768, 12, 128),
    "albert_large": albert(24, 1024, 16, 128),
    "albert_xlarge": albert(24, 2048, 16, 128),
    "albert_xxlarge": albert(12, 4096, 64, 128),
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
        raise SettingsError(f"model.published is {name!r}{suggestion}; sizes are {sorted(SIZES)}")
    size = SIZES[name]
    return {"model": {key: getattr(size, key) for key in sorted({*SHAPE, *size.model_fields_set})}}
