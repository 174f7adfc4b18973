"""Beam search with a pool of alive and a pool of finished answers (paper sections 3.1.2 and 3.7).

Each step continues every alive answer by its likeliest ids and selects the best 2 * width
candidates. Candidates that end compete for the finished pool by
``log p / ((5 + length) / 6) ^ alpha``, all others for the alive pool. The search of a row is over
when its best alive answer, with the penalty of the greatest length, cannot beat the worst finished
one.

Keys and values never move when answers change their order: a table records the cache index in which
each step of an answer was written, and a mask hides all others. So a step reads the same amount of
memory as a step of greedy decoding with the same number of rows.

Shape suffixes: B rows of the batch, W answers of a row (width), C candidates of a row
(2 * width), A finished answers and candidates together, T steps, P = T * W cache indices,
E ids considered per answer, M positions of the inputs, D features, H heads, V ids.
"""

import functools
from typing import NamedTuple

import numpy as np
from keras import ops

from t5repro.errors import SettingsError
from t5repro.model.attention import BLOCKED, Attention, bias_of_block
from t5repro.model.block import Block
from t5repro.model.decode import call_compiled
from t5repro.model.decode_cache import EncodedInputs
from t5repro.model.layers import Tensor
from t5repro.model.rotary import Rotation, rotate
from t5repro.model.step_cache import empty_caches, write_step
from t5repro.model.transformer import TextNetwork
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

WORST = -1e9  # score that no possible answer has


def beam_search(
    model: TextNetwork,
    encoder_ids: np.ndarray,
    encoder_segments: np.ndarray | None = None,
    *,
    max_decode_length: int,
    width: int,
    length_penalty: float,
) -> np.ndarray:
    """Return the best answer to each row of inputs.

    Args:
        model: the network.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        encoder_segments: int32 of the same shape, 1 at positions with an id; if absent, wherever
            an id is not padding. One example per row.
        max_decode_length: greatest number of ids, EOS included.
        width: alive answers per row, 1 or more.
        length_penalty: alpha; 0 compares log-probabilities without a penalty.

    Returns:
        int32 ids (batch, max_decode_length); 0 after EOS. If no answer of a row ended, its
        likeliest unfinished one.

    Raises:
        SettingsError: the network has fewer than two ids, or the width is below 1.

    Source: mesh ``beam_search``; the length includes EOS.
    """
    if width < 1 or model.embedding_rows < 2:
        raise SettingsError(
            f"beam width is {width} over {model.embedding_rows} ids; it must be 1 or more, and "
            "there must be 2 ids or more"
        )
    return call_compiled(
        [model],
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
    model: TextNetwork,
    encoder_ids_BM: Tensor,
    encoder_segments_BM: Tensor,
    *,
    max_decode_length: int,
    width: int,
    length_penalty: float,
) -> Tensor:
    """Return the ids of `beam_search`, in operations of the backend."""
    encoded = model.decoding.encode(encoder_ids_BM, encoder_segments_BM).of_two_rows_or_more()
    search = _Search(
        model, encoded, steps=max_decode_length, width=width, length_penalty=length_penalty
    )
    first = search.first(ops.shape(encoded.first_ids)[0])
    pools = _Pools(*ops.while_loop(search.unfinished, search.grow, first)[: len(_Pools._fields)])
    # Rows in which nothing ended within the steps return their best alive answer.
    has_answer_B1 = ops.any(pools.ended_BW, axis=1)[:, None]
    ids_BT = ops.where(has_answer_B1, pools.finished_BWT[:, 0], pools.ids_BWT[:, 0])
    return ids_BT[: ops.shape(encoder_ids_BM)[0]]


class _Pools(NamedTuple):
    """The two pools of answers after some steps; the best answer of each pool is its first.

    Attributes:
        step: number of steps.
        last_BW: last id of each alive answer.
        alive_BW: log-probability of each alive answer.
        ids_BWT: ids of each alive answer.
        origin_BWT: cache index in which each alive answer's keys of a step were written.
        scores_BW: score of each finished answer.
        ended_BW: whether an entry of the finished pool contains an answer yet.
        finished_BWT: ids of each finished answer.
    """

    step: Tensor
    last_BW: Tensor
    alive_BW: Tensor
    ids_BWT: Tensor
    origin_BWT: Tensor
    scores_BW: Tensor
    ended_BW: Tensor
    finished_BWT: Tensor


class _Candidates(NamedTuple):
    """The best longer answers of a row, the likeliest first.

    Attributes:
        log_BC: log-probability.
        score_BC: log-probability divided by the length penalty.
        parent_BC: index of the alive answer that is continued.
        id_BC: last id.
        ids_BCT: all ids.
        ends_BC: whether the last id is EOS.
    """

    log_BC: Tensor
    score_BC: Tensor
    parent_BC: Tensor
    id_BC: Tensor
    ids_BCT: Tensor
    ends_BC: Tensor


class _Search:
    """The loop of a beam search over the variables of `_Pools`, followed by the caches.

    Args:
        model: the network.
        encoded: its encoded inputs.
        steps: the greatest number of steps.
        width: alive answers per row.
        length_penalty: alpha.
    """

    def __init__(
        self,
        model: TextNetwork,
        encoded: EncodedInputs,
        *,
        steps: int,
        width: int,
        length_penalty: float,
    ) -> None:
        self.model, self.encoded = model, encoded
        self.steps, self.width, self.length_penalty = steps, width, length_penalty
        self.biases_THT = model.decoding.answer_biases(steps)
        rows = encoded.segments.shape[0]
        self.output_DV = model.output_of_steps(rows and rows * width)

    def first(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Return the variables before the first step."""
        settings, shape = self.model.settings, (batch, self.width)
        # A row of a cache is one step of one head of one example, with all answers side by side:
        # a step then writes whole rows.
        caches = empty_caches(
            2 * len(self.model.decoder.blocks),
            batch,
            settings.num_heads,
            steps=self.steps,
            features=self.width * settings.d_kv,
            dtype=self.model.compute_dtype,
        )
        no_ids_BWT = ops.full((*shape, self.steps), PAD_ID, dtype="int32")
        # All answers of a row are equal at first: only one may be continued.
        only_first_W = np.where(np.arange(self.width) == 0, 0.0, WORST).astype(np.float32)
        pools = _Pools(
            step=ops.convert_to_tensor(0, dtype="int32"),
            last_BW=ops.repeat(self.encoded.first_ids[:, None], self.width, axis=1),
            alive_BW=ops.broadcast_to(only_first_W, shape),
            ids_BWT=no_ids_BWT,
            origin_BWT=ops.zeros((*shape, self.steps), dtype="int32"),
            scores_BW=ops.full(shape, WORST, dtype="float32"),
            ended_BW=ops.zeros(shape, dtype="bool"),
            finished_BWT=no_ids_BWT,
        )
        return (*pools, *caches)

    def unfinished(self, *variables: Tensor) -> Tensor:
        """Return whether any row may still find a better finished answer."""
        pools, _ = _split(variables)
        # Log-probabilities only fall, so no continuation of the best alive answer scores higher.
        hope_B = pools.alive_BW[:, 0] / _penalty(float(self.steps), self.length_penalty)
        # Entries without a finished answer count as 0, which is above every score.
        worst_B = ops.min(ops.where(pools.ended_BW, pools.scores_BW, 0.0), axis=1)
        worst_B = ops.where(ops.any(pools.ended_BW, axis=1), worst_B, WORST)
        found_best = ops.all(worst_B > hope_B)
        return ops.logical_and(pools.step < self.steps, ops.logical_not(found_best))

    def grow(self, *variables: Tensor) -> tuple[Tensor, ...]:
        """Return the variables after one more step."""
        pools, caches = _split(variables)
        # 1. The keys of this step go to cache index `step * width + w` of answer w.
        now_T = ops.arange(self.steps, dtype="int32") == pools.step
        index_W = ops.arange(self.width, dtype="int32")
        pools = pools._replace(
            origin_BWT=ops.where(now_T, index_W[None, :, None], pools.origin_BWT)
        )
        # 2. Candidates: 2 * width of them, so that at least `width` do not end in EOS.
        logits_BWV, updated = self._logits(pools, caches)
        candidates = self._candidates(pools, logits_BWV, now_T)
        # 3. The best candidates that do not end stay alive. All candidates of a step have the same
        #    length, so their scores have the order of their log-probabilities.
        _, alive_BW = ops.top_k(
            ops.where(candidates.ends_BC, candidates.score_BC + WORST, candidates.score_BC),
            self.width,
        )
        parent_BW = ops.take_along_axis(candidates.parent_BC, alive_BW, axis=1)
        # 4. Candidates that end compete with the finished answers of earlier steps.
        scores_BW, ended_BW, finished_BWT = self._finished(pools, candidates)
        pools = _Pools(
            step=pools.step + 1,
            last_BW=ops.take_along_axis(candidates.id_BC, alive_BW, axis=1),
            alive_BW=ops.take_along_axis(candidates.log_BC, alive_BW, axis=1),
            ids_BWT=ops.take_along_axis(candidates.ids_BCT, alive_BW[:, :, None], axis=1),
            # Keys stay where they were written; an answer inherits the indices of its parent.
            origin_BWT=ops.take_along_axis(pools.origin_BWT, parent_BW[:, :, None], axis=1),
            scores_BW=scores_BW,
            ended_BW=ended_BW,
            finished_BWT=finished_BWT,
        )
        return (*pools, *updated)

    def _logits(self, pools: _Pools, caches: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
        """Return the logits of the next id of each alive answer, and the updated caches."""
        model, encoded = self.model, self.encoded
        biases_BHWP = [
            _answer_bias(pools.step, pools.origin_BWT, bias_THT, width=self.width)
            for bias_THT in self.biases_THT
        ]
        input_biases = model.decoding.encoded_biases(encoded.segments, pools.step, steps=self.steps)
        angles = model.decoding.rotation(encoded.segments, pools.step, steps=self.steps)
        x_BWD = model.decoding.embed(pools.last_BW, encoded.segments, pools.step)
        # The caches of a block are adjacent: keys, values.
        updated: list[Tensor] = []
        for number, block in enumerate(model.decoder.blocks):
            x_BWD, block_caches = _step(
                block,
                x_BWD,
                pools.step,
                caches[2 * number : 2 * number + 2],
                bias_of_block(biases_BHWP, number),
                (*encoded.keys_values[number], bias_of_block(input_biases, number)),
                angles,
            )
            updated += block_caches
        return model.logits(model.decoder.last_norm(x_BWD), self.output_DV), updated

    def _candidates(self, pools: _Pools, logits_BWV: Tensor, now_T: Tensor) -> _Candidates:
        log_BC, parent_BC, id_BC = _best_ids(logits_BWV, pools.alive_BW, self.width)
        length = ops.cast(pools.step + 1, "float32")
        parent_ids_BCT = ops.take_along_axis(pools.ids_BWT, parent_BC[:, :, None], axis=1)
        return _Candidates(
            log_BC=log_BC,
            score_BC=log_BC / _penalty(length, self.length_penalty),
            parent_BC=parent_BC,
            id_BC=id_BC,
            ids_BCT=ops.where(now_T, id_BC[:, :, None], parent_ids_BCT),
            ends_BC=ops.equal(id_BC, EOS_ID),
        )

    def _finished(self, pools: _Pools, candidates: _Candidates) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores, ended and ids of the finished pool with the candidates that end."""
        ends_BC, score_BC = candidates.ends_BC, candidates.score_BC
        scores_BA = ops.concatenate(
            [pools.scores_BW, ops.where(ends_BC, score_BC, score_BC + WORST)], axis=1
        )
        ended_BA = ops.concatenate([pools.ended_BW, ends_BC], axis=1)
        ids_BAT = ops.concatenate([pools.finished_BWT, candidates.ids_BCT], axis=1)
        scores_BW, best_BW = ops.top_k(scores_BA, self.width)
        return (
            scores_BW,
            ops.take_along_axis(ended_BA, best_BW, axis=1),
            ops.take_along_axis(ids_BAT, best_BW[:, :, None], axis=1),
        )


def _split(variables: tuple[Tensor, ...]) -> tuple[_Pools, tuple[Tensor, ...]]:
    """Return the pools and the caches of the loop's variables."""
    count = len(_Pools._fields)
    return _Pools(*variables[:count]), variables[count:]


def _penalty(length: Tensor, alpha: float) -> Tensor:
    """Return the divisor of an answer's log-probability; `length` includes EOS."""
    return ((5.0 + length) / 6.0) ** alpha


def _best_ids(logits_BWV: Tensor, alive_BW: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, parent and last id of the 2 * width best longer answers of a row.

    The best ids of each answer are selected first, then the best of a row, so that no array over
    all answers and ids except the logits is sorted or written.
    """
    ids = logits_BWV.shape[-1]
    each = min(2 * width, ids)
    top_BWE, id_BWE = ops.top_k(logits_BWV, each)
    # The first is the maximum, which keeps the exponentials of the softmax in range.
    norm_BW = ops.log(ops.sum(ops.exp(logits_BWV - top_BWE[:, :, :1]), axis=-1)) + top_BWE[:, :, 0]
    batch = ops.shape(logits_BWV)[0]
    log_BWE = top_BWE - norm_BW[:, :, None] + alive_BW[:, :, None]
    log_BC, index_BC = ops.top_k(ops.reshape(log_BWE, (batch, width * each)), 2 * width)
    # Index `w * each + e` of the flat candidates: parent w, and its e-th likeliest id.
    id_BC = ops.take_along_axis(ops.reshape(id_BWE, (batch, width * each)), index_BC, axis=1)
    return log_BC, index_BC // each, ops.cast(id_BC, "int32")


def _answer_bias(step: Tensor, origin_BWT: Tensor, bias_THT: Tensor, *, width: int) -> Tensor:
    """Return position bias and mask of one step, (batch, heads, width, steps * width).

    Cache index ``t * width + w`` contains the keys that answer `w` wrote at step `t`.
    """
    batch, _, steps = ops.shape(origin_BWT)
    index_W = ops.arange(width, dtype="int32")
    ancestor_BWTW = ops.equal(origin_BWT[:, :, :, None], index_W)
    # Indices of later steps are still empty.
    past_T = ops.arange(steps, dtype="int32") <= step
    visible_BWTW = ops.logical_and(ancestor_BWTW, past_T[:, None])
    mask_B1WP = ops.reshape(ops.where(visible_BWTW, 0.0, BLOCKED), (batch, 1, width, steps * width))
    bias_HT = ops.take(bias_THT, step, axis=0)
    return mask_B1WP + ops.repeat(bias_HT, width, axis=1)[None, :, None, :]


def _step(
    block: Block,
    x_BWD: Tensor,
    step: Tensor,
    caches: tuple[Tensor, ...],
    bias_BHWP: Tensor,
    encoded: tuple[Tensor, Tensor, Tensor],
    angles: Rotation | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run one block on one position of every answer; return its output and the updated caches."""
    batch, width = ops.shape(x_BWD)[:2]
    updated: list[Tensor] = []

    def split(attention: Attention, x_BWD: Tensor, name: str) -> Tensor:
        shape = (batch, width, attention.num_heads, attention.d_kv)
        return ops.transpose(ops.reshape(attention.product(x_BWD, name), shape), (0, 2, 1, 3))

    def attend(x_BWD: Tensor) -> Tensor:
        attention = block.self_attention
        heads, d_kv = attention.num_heads, attention.d_kv
        keys = rotate(split(attention, x_BWD, "k"), angles)
        updated.extend(
            write_step(cache, array, step)
            for cache, array in zip(caches, (keys, split(attention, x_BWD, "v")), strict=True)
        )
        keys, values = (ops.reshape(cache, (batch, heads, -1, d_kv)) for cache in updated)
        query = rotate(split(attention, x_BWD, "q"), angles)
        if block.has_cross_attention:
            return attention.read(query, keys, values, bias_BHWP)
        # Decoder-only: self-attention covers the inputs too.
        return attention.read_both(query, encoded, (keys, values, bias_BHWP))

    def attend_to_inputs(x_BWD: Tensor) -> Tensor:
        cross = block.cross_attention
        return cross.read(split(cross, x_BWD, "q"), *encoded)

    x_BWD = block.self_attention_sublayer(x_BWD, attend)
    if block.has_cross_attention:
        x_BWD = block.cross_attention_sublayer(x_BWD, attend_to_inputs)
    return block.feed_forward_sublayer(x_BWD), tuple(updated)
