"""The number of parameters of a network (paper sections 3.6 and 3.7; encoder-only networks).

The shapes themselves are data in `config/presets/sizes.py`.
"""

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.model import ModelSettings
from t5repro.model.block_sharing import blocks_with_weights

__all__ = ["PUBLISHED_EMBEDDING_ROWS", "SIZES", "parameter_count"]

PUBLISHED_EMBEDDING_ROWS = 32_128  # 32,000 pieces and 100 sentinels, rounded up to 128


def parameter_count(
    model: ModelSettings,
    embedding_rows: int = PUBLISHED_EMBEDDING_ROWS,
    *,
    pair_classes: int = 0,
    labels: int = 0,
) -> int:
    """Return the number of trainable parameters, without building the network.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding.
        pair_classes: of an encoder only, see `model.encoder.Encoder`.
        labels: of an encoder only, see `model.encoder.Encoder`, and of two streams; of a
            `generator_detector` those of its detector, without its generator.
    """
    width, inner = model.d_model, model.num_heads * model.d_kv
    is_layer_norm, is_post_norm = model.norm == "layer", model.norm_placement == "post"
    norm = width * (2 if is_layer_norm else 1)
    attention = 4 * width * inner + model.biases * (3 * inner + width)
    inwards = 2 if model.gated else 1
    feed_forward = (inwards + 1) * width * model.d_ff
    feed_forward += model.biases * (inwards * model.d_ff + width)
    block = attention + feed_forward + 2 * norm
    cross_attention = attention + norm
    bias_table = model.num_heads * model.relative_position_buckets
    bias_table *= model.positions == "relative"
    is_per_layer = model.relative_position_bias == "per_layer"
    block += bias_table * is_per_layer
    stack_ends = bias_table * (not is_per_layer) + norm * (not is_post_norm)
    stack_ends += model.max_positions * width * (model.positions == "learned")
    if model.family.has_generator:
        return _both_networks(model, embedding_rows, labels=labels)
    if model.positions == "distances":
        # The matrix, three biases and two vectors of types in each attention, which has no others.
        attention = 5 * width * inner + 5 * inner
        blocks = model.num_encoder_layers * (attention + feed_forward + 2 * norm)
        summary = _dense(width, width) + _dense(width, labels) if labels else embedding_rows
        return embedding_rows * width + width + blocks + summary
    if model.family.predicts_inputs:
        heads = _encoder_heads(model, embedding_rows, pair_classes=pair_classes, labels=labels)
        blocks = _encoder_blocks(
            model, attention=attention + norm, feed_forward=feed_forward + norm
        )
        return _embeddings(model, embedding_rows) + blocks + heads
    total = embedding_rows * width * (1 if model.tie_embeddings else 2)
    stacks = model.heights
    if model.architecture == "shared_encoder_decoder":
        stacks = {"decoder": model.num_decoder_layers}
    total += sum(blocks * block + stack_ends for blocks in stacks.values())
    if "encoder" in model.heights:
        total += model.num_decoder_layers * cross_attention
    return total


def _both_networks(model: ModelSettings, embedding_rows: int, *, labels: int) -> int:
    """Return the parameters of ELECTRA in pre-training, or of its detector with labels."""
    encoder = model.model_copy(update={"architecture": "encoder"})
    detector = parameter_count(encoder, embedding_rows)
    detector -= _encoder_heads(encoder, embedding_rows, pair_classes=0, labels=0)
    if labels:
        return detector + _dense(model.d_model, labels)
    detector += _dense(model.d_model, model.d_model) + _dense(model.d_model, 1)
    if model.generator_tying == "all":
        return detector + _encoder_heads(encoder, embedding_rows, pair_classes=0, labels=0)
    generator = parameter_count(model.generator, embedding_rows)
    if model.generator_tying == "embeddings":
        generator -= _tables(model, embedding_rows)
    return detector + generator


def _encoder_blocks(model: ModelSettings, *, attention: int, feed_forward: int) -> int:
    """Return the parameters of all blocks, given those of a block's parts with their norms."""
    shared, every = len(blocks_with_weights(model)), model.num_encoder_layers
    attentions = shared if model.shared_parts in ("all", "attention") else every
    feed_forwards = shared if model.shared_parts in ("all", "feed_forward") else every
    return attentions * attention + feed_forwards * feed_forward


def _embeddings(model: ModelSettings, embedding_rows: int) -> int:
    """Return the parameters of an encoder-only network below its blocks."""
    width = model.embedding_width
    return _tables(model, embedding_rows) + (_dense(width, model.d_model) if width else 0)


def _tables(model: ModelSettings, embedding_rows: int) -> int:
    """Return the parameters of ids, positions, token types and their norm."""
    width = model.embedding_width or model.d_model
    return (embedding_rows + model.max_positions + model.token_types + 2) * width


def _encoder_heads(
    model: ModelSettings, embedding_rows: int, *, pair_classes: int, labels: int
) -> int:
    """Return the parameters of an encoder-only network above its blocks, without the embedding."""
    width = model.embedding_width or model.d_model
    pooler = _dense(model.d_model, model.d_model)
    if labels:
        return pooler + _dense(model.d_model, labels)
    masked_lm = _dense(model.d_model, width) + 2 * width + embedding_rows
    return masked_lm + (pooler + _dense(model.d_model, pair_classes) if pair_classes else 0)


def _dense(inputs: int, outputs: int) -> int:
    """Return the parameters of a matrix and a bias."""
    return (inputs + 1) * outputs
