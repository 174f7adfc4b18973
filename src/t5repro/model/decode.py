"""Greedy decoding: the likeliest next id until the end of the text (paper section 2.4).

The inputs are encoded once (`decode_cache`). Keys and values of the answer so far are cached, so
each step computes one position. Shapes never change, so one compiled program serves all batches of
a shape; it ends as soon as every row has ended.

Shape suffixes: B rows of the batch, T steps, M positions of the encoder, D features, H heads,
K features of a head.
"""

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from keras import ops

from t5repro.engines.engine import engine
from t5repro.model.attention import bias_of_block
from t5repro.model.block import Block
from t5repro.model.layers import Tensor
from t5repro.model.rotary import Rotation
from t5repro.model.step_cache import empty_caches, write_step
from t5repro.model.transformer import TextNetwork
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

# Graphs of a model live as long as the model.
_COMPILED: weakref.WeakKeyDictionary[Any, dict[Hashable, Callable[..., Any]]] = (
    weakref.WeakKeyDictionary()
)


def greedy(
    model: TextNetwork,
    encoder_ids: np.ndarray,
    encoder_segments: np.ndarray | None = None,
    *,
    max_decode_length: int,
    ensemble: Sequence[TextNetwork] = (),
) -> np.ndarray:
    """Return the answer of a model, or of an ensemble of models, to each row of inputs.

    Args:
        model: the network.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        encoder_segments: int32 of the same shape, 1 at positions with an id; if absent, wherever
            an id is not padding. One example per row.
        max_decode_length: greatest number of ids, EOS included.
        ensemble: further members of an ensemble, combined by the mean of the logits.

    Returns:
        int32 ids (batch, max_decode_length); 0 after EOS.
    """
    return call_compiled(
        (model, *ensemble),
        ("greedy", max_decode_length),
        functools.partial(
            greedy_graph, model, max_decode_length=max_decode_length, ensemble=tuple(ensemble)
        ),
        encoder_ids,
        encoder_segments,
    )


def call_compiled(
    networks: Sequence[Any],
    key: Hashable,
    graph: Callable[..., Tensor],
    encoder_ids: np.ndarray,
    encoder_segments: np.ndarray | None,
    *further_arrays: np.ndarray,
) -> np.ndarray:
    """Run a graph of prediction; it is compiled once per networks, key and shape of the inputs.

    Call it in the scope that the networks were created in: its devices share the rows.

    Args:
        networks: those that the graph reads.
        key: identifies the graph among all graphs of the networks.
        graph: takes ids, segments and `further_arrays` as tensors, returns an array with the same
            rows.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        encoder_segments: 1 at positions with an id; if absent, wherever an id is not padding.
        further_arrays: further int32 arrays of the same number of rows.
    """
    if encoder_segments is None:
        encoder_segments = (encoder_ids != PAD_ID).astype(np.int32)
    graphs = _COMPILED.setdefault(networks[0], {})
    # A network that became int8, or has LoRA now, has other weights than its compiled program.
    program = (key, *(network.form for network in networks), *map(id, networks[1:]))
    if program not in graphs:
        graphs[program] = engine().compiled_rows(networks, graph)
    tensors = (
        ops.convert_to_tensor(array, dtype="int32")
        for array in (encoder_ids, encoder_segments, *further_arrays)
    )
    return np.asarray(ops.convert_to_numpy(graphs[program](*tensors)))


class _Member:
    """One network of an ensemble in the decoding loop.

    Args:
        model: the network.
        encoder_ids_BM: the inputs.
        encoder_segments_BM: 1 at positions with an id.
        steps: the greatest number of steps.
    """

    def __init__(
        self, model: TextNetwork, encoder_ids_BM: Tensor, encoder_segments_BM: Tensor, *, steps: int
    ) -> None:
        self.model, self.steps = model, steps
        encoded = model.decoding.encode(encoder_ids_BM, encoder_segments_BM)
        self.encoded = encoded.of_two_rows_or_more()
        self.biases_THT = model.decoding.answer_biases(steps)
        self.output_DV = model.output_of_steps(self.encoded.segments.shape[0])
        self.cache_count = 2 * len(model.decoder.blocks)  # keys and values of each block

    def empty_caches(self, batch: Tensor) -> list[Tensor]:
        """Return the keys and values before the first step."""
        settings = self.model.settings
        return empty_caches(
            self.cache_count,
            batch,
            settings.num_heads,
            steps=self.steps,
            features=settings.d_kv,
            dtype=self.model.compute_dtype,
        )

    def step(
        self, step: Tensor, last_B: Tensor, caches: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the logits of the next id, (batch, ids), and the updated caches."""
        model = self.model
        x_B1D = model.decoding.embed(last_B[:, None], self.encoded.segments, step)
        biases_H1T = [ops.take(bias, step, axis=0)[:, None, :] for bias in self.biases_THT]
        input_biases = model.decoding.encoded_biases(self.encoded.segments, step, steps=self.steps)
        angles = model.decoding.rotation(self.encoded.segments, step, steps=self.steps)
        updated: list[Tensor] = []
        for number, block in enumerate(model.decoder.blocks):
            x_B1D, block_caches = _step(
                block,
                x_B1D,
                step,
                tuple(caches[2 * number : 2 * number + 2]),
                bias_of_block(biases_H1T, number),
                self.encoded.keys_values[number],
                bias_of_block(input_biases, number),
                angles,
            )
            updated += block_caches
        return model.logits(model.decoder.last_norm(x_B1D), self.output_DV)[:, 0], updated


def greedy_graph(
    model: TextNetwork,
    encoder_ids_BM: Tensor,
    encoder_segments_BM: Tensor,
    *,
    max_decode_length: int,
    ensemble: Sequence[TextNetwork] = (),
) -> Tensor:
    """Return the ids of `greedy`, in operations of the backend."""
    members = [
        _Member(member, encoder_ids_BM, encoder_segments_BM, steps=max_decode_length)
        for member in (model, *ensemble)
    ]
    batch = ops.shape(members[0].encoded.first_ids)[0]

    def unfinished(step: Tensor, last_B: Tensor, done_B: Tensor, *_: Tensor) -> Tensor:
        return ops.logical_and(step < max_decode_length, ops.logical_not(ops.all(done_B)))

    def decode_step(
        step: Tensor, last_B: Tensor, done_B: Tensor, ids_TB: Tensor, *caches: Tensor
    ) -> tuple[Tensor, ...]:
        updated: list[Tensor] = []
        logits: list[Tensor] = []
        for member in members:
            # The caches of all members are one flat list of loop variables.
            member_caches = caches[len(updated) : len(updated) + member.cache_count]
            logits_BV, new_caches = member.step(step, last_B, member_caches)
            logits.append(logits_BV)
            updated += new_caches
        logits_BV = mean_logits(logits)
        # Rows that have ended write padding until the last row of the batch ends.
        best_B = ops.where(done_B, PAD_ID, ops.cast(ops.argmax(logits_BV, axis=-1), "int32"))
        ids_TB = ops.scatter_update(ids_TB, step[None, None], best_B[None])
        done_B = ops.logical_or(done_B, ops.equal(best_B, EOS_ID))
        return step + 1, best_B, done_B, ids_TB, *updated

    first = (
        ops.convert_to_tensor(0, dtype="int32"),
        members[0].encoded.first_ids,
        ops.zeros((batch,), dtype="bool"),
        # Steps first: a step writes one contiguous row.
        ops.full((max_decode_length, batch), PAD_ID, dtype="int32"),
        *[cache for member in members for cache in member.empty_caches(batch)],
    )
    ids_BT = ops.transpose(ops.while_loop(unfinished, decode_step, first)[3])
    return ids_BT[: ops.shape(encoder_ids_BM)[0]]


def mean_logits(logits: Sequence[Tensor]) -> Tensor:
    """Return the mean of the logits of several networks, before the softmax.

    Source: paper section 3.6.
    """
    return logits[0] if len(logits) == 1 else sum(logits) / len(logits)


def _step(
    block: Block,
    x_B1D: Tensor,
    step: Tensor,
    caches: tuple[Tensor, ...],
    bias_H1T: Tensor,
    encoded: list[Tensor],
    input_bias: Tensor,
    angles: Rotation | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run one block on one position; return its output and the updated caches."""
    attention = block.self_attention
    updated: list[Tensor] = []

    # The sub-layers apply norm and residual as in training; only attention differs.
    def attend(x_B1D: Tensor) -> Tensor:
        query, *key_value = attention.queries_keys_values(x_B1D, angles)
        batch, heads, _, d_kv = ops.shape(query)
        updated.extend(
            write_step(cache, array, step) for cache, array in zip(caches, key_value, strict=True)
        )
        keys, values = (ops.reshape(cache, (batch, heads, -1, d_kv)) for cache in updated)
        if block.has_cross_attention:
            return attention.read(query, keys, values, bias_H1T)
        # Decoder-only: self-attention covers the inputs too.
        return attention.read_both(query, (*encoded, input_bias), (keys, values, bias_H1T))

    def attend_to_inputs(x_B1D: Tensor) -> Tensor:
        keys, values = encoded
        query = block.cross_attention.queries(x_B1D)
        return block.cross_attention.read(query, keys, values, input_bias)

    x_B1D = block.self_attention_sublayer(x_B1D, attend)
    if block.has_cross_attention:
        x_B1D = block.cross_attention_sublayer(x_B1D, attend_to_inputs)
    return block.feed_forward_sublayer(x_B1D), tuple(updated)
