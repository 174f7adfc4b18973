"""Published shapes of T5, of GPT and of the encoders before T5, by name.

Tests compare each published shape with its number of parameters.
"""

from collections.abc import Mapping
from typing import Any

from t5repro.config.presets.preset import Preset
from t5repro.config.sections.model import ModelSettings


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


POSTNORM: dict[str, Any] = {  # of all encoders
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
    """Return a shape of SpanBERT: as BERT, but with exact GELU and normal initial values."""
    heads = d_model // 64
    return _encoder(
        layers, d_model, heads, feed_forward="gelu", token_types=2, initializer="normal"
    )


def structbert(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of StructBERT: BERT's with the exact GELU of its released code."""
    return spanbert(layers, d_model)


def roberta(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of RoBERTa, without the two unused rows of its released table of positions."""
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
    """Return a shape of ALBERT: all blocks share their weights."""
    return _encoder(
        layers,
        d_model,
        num_heads,
        feed_forward="gelu_tanh",
        token_types=2,
        embedding_width=embedding_width,
        block_groups=1,
    )


def electra(
    layers: int, d_model: int, num_heads: int, embedding_width: int, generator_width: float
) -> ModelSettings:
    """Return a shape of ELECTRA: its detector, and the width of its generator as a share of it."""
    return _encoder(
        layers,
        d_model,
        num_heads,
        architecture="generator_detector",
        feed_forward="gelu",
        token_types=2,
        embedding_width=embedding_width if embedding_width != d_model else 0,
        generator_width=generator_width,
    )


def xlnet(layers: int, d_model: int) -> ModelSettings:
    """Return a shape of XLNet with heads of 64 features."""
    return _encoder(
        layers,
        d_model,
        d_model // 64,
        architecture="two_stream",
        feed_forward="gelu_tanh",
        positions="distances",
        activation_dropout=True,
        initializer="normal",
    )


def _encoder(layers: int, d_model: int, num_heads: int, **options: Any) -> ModelSettings:
    initial_values = {"initializer": "truncated_normal", "initializer_range": 0.02}
    defaults = {**POSTNORM, **initial_values, "norm_epsilon": 1e-12}
    if options.get("positions", "learned") != "learned":
        del defaults["max_positions"]
    d_kv = d_model // num_heads
    return _shape(layers, d_model, 4 * d_model, num_heads, d_kv, **(defaults | options))


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


NOT_PUBLISHED = "a small shape of the same kind, which was not published"

# Source -> name -> shape.
PUBLISHED: dict[str, dict[str, ModelSettings]] = {
    "Raffel et al., 2020, section 3.7; released operative configurations of T5 1.0": {
        "small": v1_0(6, 512, 2048, 8, 64),
        "base": v1_0(12, 768, 3072, 12, 64),
        "large": v1_0(24, 1024, 4096, 16, 64),
        "3b": v1_0(24, 1024, 16_384, 32, 128),
        "11b": v1_0(24, 1024, 65_536, 128, 128),
    },
    "Raffel et al., 2020, section 3.6": {
        "2x": v1_0(16, 1024, 4096, 16, 64),
        "4x": v1_0(32, 1024, 4096, 16, 64),
    },
    "released operative configurations of T5 1.1": {
        "v1_1_small": v1_1(8, 512, 1024, 6),
        "v1_1_base": v1_1(12, 768, 2048, 12),
        "v1_1_large": v1_1(24, 1024, 2816, 16),
        "v1_1_xl": v1_1(24, 2048, 5120, 32),
        "v1_1_xxl": v1_1(24, 4096, 10_240, 64),
    },
    "Radford et al., 2018, section 4.1, and the released code": {"gpt": gpt(12, 768)},
    "Devlin et al., 2019; configuration of the released weights": {
        "bert_base": bert(12, 768),
        "bert_large": bert(24, 1024),
    },
    "Joshi et al., 2020; configuration of the released weights": {
        "spanbert_base": spanbert(12, 768),
        "spanbert_large": spanbert(24, 1024),
    },
    "Liu et al., 2019; configuration of the released weights": {
        "roberta_base": roberta(12, 768),
        "roberta_large": roberta(24, 1024),
    },
    "Wang et al., 2020; sizes of BERT, activation of the released code": {
        "structbert_base": structbert(12, 768),
        "structbert_large": structbert(24, 1024),
    },
    "Lan et al., 2020; configuration of the released weights": {
        "albert_base": albert(12, 768, 12, 128),
        "albert_large": albert(24, 1024, 16, 128),
        "albert_xlarge": albert(24, 2048, 16, 128),
        "albert_xxlarge": albert(12, 4096, 64, 128),
    },
    "Clark et al., 2020, appendix A; google-research/electra": {
        "electra_small": electra(12, 256, 4, 128, 0.25),
        "electra_base": electra(12, 768, 12, 768, 1 / 3),
        "electra_large": electra(24, 1024, 16, 1024, 0.25),
    },
    "Yang et al., 2019; configuration of the released weights": {
        "xlnet_base": xlnet(12, 768),
        "xlnet_large": xlnet(24, 1024),
    },
    NOT_PUBLISHED: {
        "gpt_tiny": gpt(2, 128),
        "gpt_mini": gpt(4, 256),
        "bert_tiny": bert(2, 128),
        "bert_mini": bert(4, 256),
        "spanbert_tiny": spanbert(2, 128),
        "spanbert_mini": spanbert(4, 256),
        "structbert_tiny": structbert(2, 128),
        "structbert_mini": structbert(4, 256),
        "roberta_tiny": roberta(2, 128),
        "roberta_mini": roberta(4, 256),
        "albert_tiny": albert(2, 128, 2, 64),
        "albert_mini": albert(4, 256, 4, 128),
        "electra_tiny": electra(2, 128, 2, 64, 0.5),
        "electra_mini": electra(4, 256, 4, 128, 0.25),
        "xlnet_tiny": xlnet(2, 128),
        "xlnet_mini": xlnet(4, 256),
    },
}
SIZES = {name: shape for shapes in PUBLISHED.values() for name, shape in shapes.items()}

# Settings of every size, also of those that have T5's values.
SHAPE = (
    "d_model",
    "d_ff",
    "d_kv",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "feed_forward",
    "tie_embeddings",
)


def _values(name: str, shape: ModelSettings) -> Mapping[str, Any]:
    values = {key: getattr(shape, key) for key in sorted({*SHAPE, *shape.model_fields_set})}
    return {"model": {**values, "published": name}}


PRESETS = {
    name: Preset(_values(name, shape), source)
    for source, shapes in PUBLISHED.items()
    for name, shape in shapes.items()
}
