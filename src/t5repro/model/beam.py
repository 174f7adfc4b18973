"""Beam search with a pool of alive and a pool of finished answers (paper sections 3.1.2 and 3.7).

Each step grows every alive answer by its likeliest ids and keeps the best 2 * width; those that
end compete for the finished pool by ``log p / ((5 + length) / 6) ^ alpha``, the others for the
alive pool. The search of a row is over when its best alive answer, given the longest length's
penalty, cannot beat the worst finished one.

Keys and values never move when answers change places: a table says in which place of each step
an answer's past was written, and a mask lets it read nothing else. So one step reads what one
step of greedy decoding would read for as many rows.

Shape suffixes: B rows of the batch, W answers of a row (width), C candidates of a row
(2 * width), T steps, M positions of the encoder, D features, H heads, K features of a head, V ids.
"""

import functools

import numpy as np
from keras import ops

from t5repro.errors import SettingsError
from t5repro.model.attention import BLOCKED
from t5repro.model.decode import call_compiled, write_step
from t5repro.model.decode_cache import memory_bias, own_bias, read_inputs
from t5repro.model.layers import Tensor, matmul
from t5repro.model.transformer import T5, Block
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

WORST = -1e9  # score of what cannot be chosen


def beam_search(
    model: T5,
    encoder_ids: np.ndarray,
    encoder_segments: np.ndarray | None = None,
    *,
    max_decode_length: int,
    width: int,
    length_penalty: float,
) -> np.ndarray:
    """Return the best answer that the search finds for each row of inputs.

    Args:
        model: the network.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        encoder_segments: int32 of the same shape, 1 where there is input; absent: where an id
            is not padding. One example a row.
        max_decode_length: ids written at most, the end included.
        width: answers kept alive, 1 or more.
        length_penalty: alpha; 0 compares log-probabilities as they are.

    Returns:
        int32 (batch, max_decode_length); 0 after the end. A row none of whose answers ended has
        its likeliest unfinished one.

    Raises:
        SettingsError: the network has no two ids to choose from, or the width is below 1.

    Source: mesh ``beam_search``; the length counts EOS.
    """
    if width < 1 or model.embedding_rows < 2:
        raise SettingsError(
            f"beam width is {width} over {model.embedding_rows} ids; it must be 1 or more, and "
            "there must be 2 ids or more"
        )
    return call_compiled(
        model,
        ("beam", max_decode_length, width, length_penalty),
        functools.partial(
            beam_graph,
            model,
            max_decode_length=max_decode_length,
            width=width,
            length_penalty=length_penalty,
        ),
        encoder_ids,
        encoder_segments,
    )


def beam_graph(
    model: T5,
    encoder_ids_BM: Tensor,
    encoder_segments_BM: Tensor,
    *,
    max_decode_length: int,
    width: int,
    length_penalty: float,
) -> Tensor:
    """Return the ids as `beam_search` does, in operations of the backend."""
    batch = ops.shape(encoder_ids_BM)[0]
    steps, blocks = max_decode_length, model.decoder.blocks
    memory = read_inputs(model, encoder_ids_BM, encoder_segments_BM)
    bias_THT = own_bias(model, steps)
    output_DV = model.output()
    longest = _penalty(float(steps), length_penalty)

    def unfinished(
        step: Tensor,
        last_BW: Tensor,
        alive_BW: Tensor,
        ids_BWT: Tensor,
        written_BWT: Tensor,
        scores_BW: Tensor,
        ended_BW: Tensor,
        finished_BWT: Tensor,
        *_: Tensor,
    ) -> Tensor:
        hope_B = alive_BW[:, 0] / longest
        # Places that hold no finished answer count as 0, which is above every score.
        worst_B = ops.min(ops.where(ended_BW, scores_BW, 0.0), axis=1)
        worst_B = ops.where(ops.any(ended_BW, axis=1), worst_B, WORST)
        return ops.logical_and(step < steps, ops.logical_not(ops.all(worst_B > hope_B)))

    def grow(
        step: Tensor,
        last_BW: Tensor,
        alive_BW: Tensor,
        ids_BWT: Tensor,
        written_BWT: Tensor,
        scores_BW: Tensor,
        ended_BW: Tensor,
        finished_BWT: Tensor,
        *caches: Tensor,
    ) -> tuple[Tensor, ...]:
        now_T = ops.arange(steps, dtype="int32") == step
        place_W = ops.arange(width, dtype="int32")
        written_BWT = ops.where(now_T, place_W[None, :, None], written_BWT)
        bias_BHWP = _past_bias(step, written_BWT, bias_THT, width=width)
        reading = memory_bias(model, memory.segments, step, steps=steps)
        x_BWD = model.embed(last_BW)
        longer: list[Tensor] = []
        for number, block in enumerate(blocks):
            own = caches[2 * number : 2 * number + 2]
            read = (*memory.keys_values[number], reading)
            x_BWD, own = _step(block, x_BWD, step, own, bias_BHWP, read)
            longer += own
        logits_BWV = model.logits(model.decoder.norm(x_BWD), output_DV)
        log_BC, parent_BC, id_BC = _candidates(logits_BWV, alive_BW, width)
        score_BC = log_BC / _penalty(ops.cast(step + 1, "float32"), length_penalty)
        ends_BC = ops.equal(id_BC, EOS_ID)
        ids_BCT = ops.where(
            now_T, id_BC[:, :, None], ops.take_along_axis(ids_BWT, parent_BC[:, :, None], axis=1)
        )
        _, kept_BW = ops.top_k(ops.where(ends_BC, score_BC + WORST, score_BC), width)
        kept_BW1 = kept_BW[:, :, None]
        parent_BW = ops.take_along_axis(parent_BC, kept_BW, axis=1)
        scores_BA = ops.concatenate(
            [scores_BW, ops.where(ends_BC, score_BC, score_BC + WORST)], axis=1
        )
        scores_BW, best_BW = ops.top_k(scores_BA, width)
        ended_BW = ops.take_along_axis(
            ops.concatenate([ended_BW, ends_BC], axis=1), best_BW, axis=1
        )
        finished_BWT = ops.take_along_axis(
            ops.concatenate([finished_BWT, ids_BCT], axis=1), best_BW[:, :, None], axis=1
        )
        return (
            step + 1,
            ops.take_along_axis(id_BC, kept_BW, axis=1),
            ops.take_along_axis(log_BC, kept_BW, axis=1),
            ops.take_along_axis(ids_BCT, kept_BW1, axis=1),
            ops.take_along_axis(written_BWT, parent_BW[:, :, None], axis=1),
            scores_BW,
            ended_BW,
            finished_BWT,
            *longer,
        )

    rows = batch * model.settings.num_heads * steps
    empty = ops.zeros((rows, width * model.settings.d_kv), dtype=model.compute_dtype)
    no_ids_BWT = ops.full((batch, width, steps), PAD_ID, dtype="int32")
    only_first_W = np.where(np.arange(width) == 0, 0.0, WORST).astype(np.float32)
    first = (
        ops.convert_to_tensor(0, dtype="int32"),
        ops.repeat(memory.first_ids[:, None], width, axis=1),
        ops.broadcast_to(only_first_W, (batch, width)),
        no_ids_BWT,
        ops.zeros((batch, width, steps), dtype="int32"),
        ops.full((batch, width), WORST, dtype="float32"),
        ops.zeros((batch, width), dtype="bool"),
        no_ids_BWT,
        *[empty] * (2 * len(blocks)),
    )
    _, _, _, ids_BWT, _, _, ended_BW, finished_BWT, *_ = ops.while_loop(unfinished, grow, first)
    return ops.where(ops.any(ended_BW, axis=1)[:, None], finished_BWT[:, 0], ids_BWT[:, 0])


def _penalty(length: Tensor, alpha: float) -> Tensor:
    """Return what divides the log-probability of an answer of `length` ids, the end included."""
    return ((5.0 + length) / 6.0) ** alpha


def _candidates(logits_BWV: Tensor, alive_BW: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, parent and last id of the 2 * width best longer answers of a row.

    The best of each answer first, then the best of those: no array over all answers and ids but
    the logits is sorted or written.
    """
    ids = logits_BWV.shape[-1]
    each = min(2 * width, ids)
    top_BWE, id_BWE = ops.top_k(logits_BWV, each)
    norm_BW = ops.log(ops.sum(ops.exp(logits_BWV - top_BWE[:, :, :1]), axis=-1)) + top_BWE[:, :, 0]
    batch = ops.shape(logits_BWV)[0]
    log_BWE = top_BWE - norm_BW[:, :, None] + alive_BW[:, :, None]
    log_BC, chosen_BC = ops.top_k(ops.reshape(log_BWE, (batch, width * each)), 2 * width)
    id_BC = ops.take_along_axis(ops.reshape(id_BWE, (batch, width * each)), chosen_BC, axis=1)
    return log_BC, chosen_BC // each, ops.cast(id_BC, "int32")


def _past_bias(step: Tensor, written_BWT: Tensor, bias_THT: Tensor, *, width: int) -> Tensor:
    """Return position bias and mask of one step, (batch, heads, width, steps * width).

    Place ``t * width + w`` of the last axis is what answer `w` wrote at step `t`.
    """
    batch, _, steps = ops.shape(written_BWT)
    places_W = ops.arange(width, dtype="int32")
    own_BWTW = ops.equal(written_BWT[:, :, :, None], places_W)
    past_T = ops.arange(steps, dtype="int32") <= step
    seen_BWTW = ops.logical_and(own_BWTW, past_T[:, None])
    mask_B1WP = ops.reshape(ops.where(seen_BWTW, 0.0, BLOCKED), (batch, 1, width, steps * width))
    near_HT = ops.take(bias_THT, step, axis=0)
    return mask_B1WP + ops.repeat(near_HT, width, axis=1)[None, :, None, :]


def _step(
    block: Block,
    x_BWD: Tensor,
    step: Tensor,
    caches: tuple[Tensor, ...],
    bias_BHWP: Tensor,
    read: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run one block on one position of every answer; return its output and the longer caches."""
    attention = block.self_attention
    heads, d_kv = attention.num_heads, attention.d_kv
    batch, width = ops.shape(x_BWD)[:2]

    def split(x: Tensor, weight: Tensor) -> Tensor:
        flat = ops.reshape(matmul(x, weight), (batch, width, heads, d_kv))
        return ops.transpose(flat, (0, 2, 1, 3))

    normed_BWD = block.self_attention_norm(x_BWD)
    new = [split(normed_BWD, weight) for weight in (attention.k, attention.v)]
    longer = tuple(
        write_step(cache, ops.reshape(item, (batch * heads, width * d_kv)), step)
        for cache, item in zip(caches, new, strict=True)
    )
    keys, values = (ops.reshape(cache, (batch, heads, -1, d_kv)) for cache in longer)
    query = split(normed_BWD, attention.q)
    if not block.reads_memory:  # a decoder alone: the inputs are its own keys and values
        return block.think(
            x_BWD + attention.read_both(query, read, (keys, values, bias_BHWP))
        ), longer
    x_BWD = x_BWD + attention.read(query, keys, values, bias_BHWP)
    cross = block.cross_attention
    query = split(block.cross_attention_norm(x_BWD), cross.q)
    read_keys, read_values, read_bias = read
    x_BWD = x_BWD + cross.read(query, read_keys, read_values, read_bias)
    return block.think(x_BWD), longer
