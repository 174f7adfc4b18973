"""What decoding reads of its inputs: keys and values, computed once, and the biases to them.

An encoder-decoder reads the encoder through cross-attention. A decoder alone reads its own keys
and values of the inputs, beside those of what it has written. Decoding is one program for both:
`read_inputs` before the first step, `memory_bias` and `own_bias` in each.

A decoder alone sees 0, the inputs and then what it writes. The last input id is what the first
step starts from; its keys are among the memory, so the first place of what is written stays
unused and masked.

Shape suffixes: B rows of the batch, M positions of the memory, T steps, D features, H heads.
"""

from typing import NamedTuple

from keras import ops

from t5repro.model.attention import BLOCKED, causal_mask, segment_mask
from t5repro.model.layers import Tensor
from t5repro.model.transformer import T5

START_ID = 0  # what a decoder begins with


class Memory(NamedTuple):
    """The inputs as decoding reads them.

    Attributes:
        keys_values: keys and values of each block of the decoder, (batch, heads, M, d_kv).
        segments: 1 where there is something to read, else 0; (batch, M).
        first_ids: what the first step starts from, (batch,).
    """

    keys_values: list[list[Tensor]]
    segments: Tensor
    first_ids: Tensor


def read_inputs(model: T5, ids_BM: Tensor, segments_BM: Tensor) -> Memory:
    """Run the network on its inputs.

    Args:
        model: the network.
        ids_BM: int32, EOS included, padded on the right.
        segments_BM: 1 where there is input, else 0.
    """
    if model.settings.decoder_only:
        return _read_prefix(model, ids_BM, segments_BM)
    encoded_BMD = model.encode(ids_BM, segments_BM)
    return Memory(
        [block.cross_attention.keys_and_values(encoded_BMD) for block in model.decoder.blocks],
        segments_BM,
        ops.full((ops.shape(ids_BM)[0],), START_ID, dtype="int32"),
    )


def _read_prefix(model: T5, ids_BM: Tensor, segments_BM: Tensor) -> Memory:
    """Run a decoder alone on 0 and its inputs, M + 1 positions."""
    # One position more than there are inputs is read: the one that predicts the first target.
    segments_BM = ops.pad(segments_BM, [[0, 0], [1, 0]], constant_values=1)
    shifted_BM = ops.pad(ids_BM, [[0, 0], [1, 0]]) * segments_BM
    whole = model.settings.architecture == "prefix_language_model"
    bias = model.decoder.self_bias(segments_BM, segments_BM if whole else None)
    x_BMD = model.embed(shifted_BM)
    keys_values = []
    for block in model.decoder.blocks:
        attention = block.self_attention
        queries, keys, values = attention.queries_keys_values(block.self_attention_norm(x_BMD))
        x_BMD = block.think(x_BMD + attention.read(queries, keys, values, bias))
        keys_values.append([keys, values])
    last_B1 = ops.sum(segments_BM, axis=1, keepdims=True) - 1
    return Memory(keys_values, segments_BM, ops.take_along_axis(shifted_BM, last_B1, axis=1)[:, 0])


def memory_bias(model: T5, segments_BM: Tensor, step: Tensor, *, steps: int) -> Tensor:
    """Return what is added to the logits of a step's reading of the memory, float32.

    Args:
        model: the network.
        segments_BM: of the memory; beams may have repeated its rows.
        step: number of the step, from 0.
        steps: how many steps there may be.

    Returns:
        (batch, 1 or heads, 1, M).
    """
    ones_B1 = ops.ones_like(segments_BM[:, :1])
    mask_B11M = segment_mask(ones_B1, segments_BM)
    if not model.settings.decoder_only:
        return mask_B11M
    length = segments_BM.shape[1]
    place_B1 = ops.sum(segments_BM, axis=1, keepdims=True) - 1 + step
    distance_BM = place_B1 - ops.arange(length, dtype="int32")[None]
    farthest = length + steps
    bias_HBM = model.decoder.relative_bias.looking_back(
        ops.clip(distance_BM, 0, farthest), farthest
    )
    return ops.transpose(bias_HBM, (1, 0, 2))[:, :, None] + mask_B11M


def own_bias(model: T5, steps: int) -> Tensor:
    """Return what is added to the logits of each step's reading of what is written, float32.

    Returns:
        (steps, heads, steps): by step, head and place.
    """
    mask_TT = causal_mask(steps)
    if model.settings.decoder_only:
        mask_TT[:, 0] = BLOCKED
    return ops.transpose(model.decoder.relative_bias(length=steps) + mask_TT, (1, 0, 2))
