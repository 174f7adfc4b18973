"""Published shapes of T5 and how many parameters each has (paper sections 3.6 and 3.7).

To add a size: add its entry to `SIZES`; its name can then be used in code and tests. The tests
hold each entry against its published parameter count.

Source: the released operative configurations of T5 1.0 and 1.1; `2x` and `4x` are the models of
section 3.6.
"""

from typing import Any

from t5repro.config.schema import ModelSettings

PUBLISHED_EMBEDDING_ROWS = 32_128  # 32,000 pieces and 100 sentinels, rounded up to 128


def v1_0(layers: int, d_model: int, d_ff: int, num_heads: int, d_kv: int) -> ModelSettings:
    """Return a T5 1.0 shape with as many layers in the decoder as in the encoder."""
    return _shape(layers, d_model, d_ff, num_heads, d_kv)


def v1_1(layers: int, d_model: int, d_ff: int, num_heads: int) -> ModelSettings:
    """Return a T5 1.1 shape: gated feed-forward, an output matrix of its own."""
    return _shape(
        layers, d_model, d_ff, num_heads, 64, feed_forward="gated_gelu", tie_embeddings=False
    )


def _shape(
    layers: int, d_model: int, d_ff: int, num_heads: int, d_kv: int, **others: Any
) -> ModelSettings:
    return ModelSettings(
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        d_model=d_model,
        d_ff=d_ff,
        num_heads=num_heads,
        d_kv=d_kv,
        **others,
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
}


def parameter_count(model: ModelSettings, embedding_rows: int = PUBLISHED_EMBEDDING_ROWS) -> int:
    """Return how many numbers training adjusts, without building the network.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding.
    """
    width = model.d_model
    attention = 4 * width * model.num_heads * model.d_kv
    matrices = 3 if model.feed_forward == "gated_gelu" else 2
    feed_forward = matrices * width * model.d_ff
    block = attention + feed_forward + 2 * width
    cross_attention = attention + width
    stack_ends = model.num_heads * model.relative_position_buckets + width  # bias table, last norm
    embeddings = embedding_rows * width * (1 if model.tie_embeddings else 2)
    decoder = model.num_decoder_layers * block + stack_ends
    if model.decoder_only:
        return embeddings + decoder
    decoder += model.num_decoder_layers * cross_attention
    if model.architecture == "shared_encoder_decoder":
        return embeddings + decoder
    return embeddings + decoder + model.num_encoder_layers * block + stack_ends
