"""Greedy decoding: the likeliest next id until the end of the text (paper section 2.4).

The inputs are read once (`memory`). Keys and values of what is already written are kept, so each
step computes one position. Shapes never change, so one compiled program serves all batches of a
shape; it ends as soon as every row has ended.

Shape suffixes: B rows of the batch, T steps, M positions of the encoder, D features, H heads,
K features of a head.
"""

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from t5repro.model.decode_cache import memory_bias, own_bias, read_inputs
from t5repro.model.layers import Tensor
from t5repro.model.transformer import T5, Block
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

_COMPILED: weakref.WeakKeyDictionary[T5, dict[Hashable, Callable[..., Any]]] = (
    weakref.WeakKeyDictionary()
)


def greedy(
    model: T5,
    encoder_ids: np.ndarray,
    encoder_segments: np.ndarray | None = None,
    *,
    max_decode_length: int,
    others: Sequence[T5] = (),
) -> np.ndarray:
    """Return the ids the model, or an ensemble of models, writes for each row of inputs.

    Args:
        model: the network.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        encoder_segments: int32 of the same shape, 1 where there is input; absent: where an id
            is not padding. One example a row.
        max_decode_length: ids written at most, the end included.
        others: networks that answer together with the first, by the mean of the logits.

    Returns:
        int32 (batch, max_decode_length); 0 after the end.
    """
    return call_compiled(
        model,
        ("greedy", max_decode_length, *map(id, others)),
        functools.partial(
            greedy_graph, model, max_decode_length=max_decode_length, others=tuple(others)
        ),
        encoder_ids,
        encoder_segments,
    )


def call_compiled(
    model: T5,
    key: Hashable,
    graph: Callable[..., Tensor],
    encoder_ids: np.ndarray,
    encoder_segments: np.ndarray | None,
) -> np.ndarray:
    """Run a decoding graph; it is compiled once per model, key and shape of the inputs.

    Call it under the strategy that the model was made under: its replicas take equal parts of the
    rows.

    Args:
        model: the network that the graph reads.
        key: tells graphs of one model apart.
        graph: takes ids and segments as tensors, returns int32 ids.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        encoder_segments: 1 where there is input; absent: where an id is not padding.
    """
    if encoder_segments is None:
        encoder_segments = (encoder_ids != PAD_ID).astype(np.int32)
    compiled = _COMPILED.setdefault(model, {})
    if key not in compiled:
        compiled[key] = _compile(graph)
    ids = compiled[key](
        ops.convert_to_tensor(encoder_ids, dtype="int32"),
        ops.convert_to_tensor(encoder_segments, dtype="int32"),
    )
    return np.asarray(ops.convert_to_numpy(ids))


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled once per shape of its arguments, where the backend is TensorFlow.

    Under a strategy its replicas share the rows. The other backends run it as it is: training and
    prediction use TensorFlow.
    """
    if keras.backend.backend() == "tensorflow":
        from t5repro.model.distribution import compiled

        return compiled(function)
    return function


class _Writer:
    """One network on its way through the steps: what it reads, and one step of it.

    Args:
        model: the network.
        encoder_ids_BM: the inputs.
        encoder_segments_BM: 1 where there is input.
        steps: how many steps there may be.
    """

    def __init__(
        self, model: T5, encoder_ids_BM: Tensor, encoder_segments_BM: Tensor, *, steps: int
    ) -> None:
        self.model, self.steps = model, steps
        self.memory = read_inputs(model, encoder_ids_BM, encoder_segments_BM)
        self.bias_THT = own_bias(model, steps)
        self.output_DV = model.output()
        self.arrays = 2 * len(model.decoder.blocks)

    def empty(self, batch: Tensor) -> list[Tensor]:
        """Return the keys and values of no step, for each block."""
        settings = self.model.settings
        rows = batch * settings.num_heads * self.steps
        return [ops.zeros((rows, settings.d_kv), dtype=self.model.compute_dtype)] * self.arrays

    def step(
        self, step: Tensor, last_B: Tensor, caches: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the logits of the next id, (batch, ids), and the longer caches."""
        model = self.model
        x_B1D = model.embed(last_B[:, None])
        bias_H1T = ops.take(self.bias_THT, step, axis=0)[:, None, :]
        reading = memory_bias(model, self.memory.segments, step, steps=self.steps)
        longer: list[Tensor] = []
        for number, block in enumerate(model.decoder.blocks):
            own = tuple(caches[2 * number : 2 * number + 2])
            read = self.memory.keys_values[number]
            x_B1D, own = _step(block, x_B1D, step, own, bias_H1T, read, reading)
            longer += own
        return model.logits(model.decoder.norm(x_B1D), self.output_DV)[:, 0], longer


def greedy_graph(
    model: T5,
    encoder_ids_BM: Tensor,
    encoder_segments_BM: Tensor,
    *,
    max_decode_length: int,
    others: Sequence[T5] = (),
) -> Tensor:
    """Return the ids as `greedy` does, in operations of the backend."""
    batch = ops.shape(encoder_ids_BM)[0]
    writers = [
        _Writer(member, encoder_ids_BM, encoder_segments_BM, steps=max_decode_length)
        for member in (model, *others)
    ]

    def unfinished(step: Tensor, last_B: Tensor, done_B: Tensor, *_: Tensor) -> Tensor:
        return ops.logical_and(step < max_decode_length, ops.logical_not(ops.all(done_B)))

    def write_one(
        step: Tensor, last_B: Tensor, done_B: Tensor, ids_TB: Tensor, *caches: Tensor
    ) -> tuple[Tensor, ...]:
        longer: list[Tensor] = []
        logits: list[Tensor] = []
        for writer in writers:
            own = caches[len(longer) : len(longer) + writer.arrays]
            logits_BV, new = writer.step(step, last_B, own)
            logits.append(logits_BV)
            longer += new
        logits_BV = mean_logits(logits)
        best_B = ops.where(done_B, PAD_ID, ops.cast(ops.argmax(logits_BV, axis=-1), "int32"))
        ids_TB = ops.scatter_update(ids_TB, step[None, None], best_B[None])
        done_B = ops.logical_or(done_B, ops.equal(best_B, EOS_ID))
        return step + 1, best_B, done_B, ids_TB, *longer

    first = (
        ops.convert_to_tensor(0, dtype="int32"),
        writers[0].memory.first_ids,
        ops.zeros((batch,), dtype="bool"),
        ops.full((max_decode_length, batch), PAD_ID, dtype="int32"),
        *[cache for writer in writers for cache in writer.empty(batch)],
    )
    return ops.transpose(ops.while_loop(unfinished, write_one, first)[3])


def mean_logits(logits: Sequence[Tensor]) -> Tensor:
    """Return the mean of several networks' logits, before the softmax; of one, its own.

    Source: paper section 3.6.
    """
    return logits[0] if len(logits) == 1 else sum(logits) / len(logits)


def _step(
    block: Block,
    x_B1D: Tensor,
    step: Tensor,
    caches: tuple[Tensor, ...],
    bias_H1T: Tensor,
    memory: list[Tensor],
    memory_bias: Tensor,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run one block on one position; return its output and the longer caches."""
    attention = block.self_attention
    query, *new = attention.queries_keys_values(block.self_attention_norm(x_B1D))
    batch, heads, _, d_kv = ops.shape(query)
    longer = tuple(
        write_step(cache, ops.reshape(item, (batch * heads, d_kv)), step)
        for cache, item in zip(caches, new, strict=True)
    )
    shape = (batch, heads, -1, d_kv)
    keys_BHTK, values_BHTK = (ops.reshape(cache, shape) for cache in longer)
    memory_keys_BHMK, memory_values_BHMK = memory
    if not block.reads_memory:  # a decoder alone: the inputs are its own keys and values
        written = (keys_BHTK, values_BHTK, bias_H1T)
        read = (memory_keys_BHMK, memory_values_BHMK, memory_bias)
        return block.think(x_B1D + attention.read_both(query, read, written)), longer
    x_B1D = x_B1D + attention.read(query, keys_BHTK, values_BHTK, bias_H1T)
    query = block.cross_attention.queries(block.cross_attention_norm(x_B1D))
    x_B1D = x_B1D + block.cross_attention.read(
        query, memory_keys_BHMK, memory_values_BHMK, memory_bias
    )
    return block.think(x_B1D), longer


def write_step(cache: Tensor, new: Tensor, step: Tensor) -> Tensor:
    """Put one step's keys or values into a cache, in place where the backend can.

    Args:
        cache: (rows * steps, features); a row is one head of one example.
        new: what to write, (rows, features).
        step: where.
    """
    rows = ops.shape(new)[0]
    steps = ops.shape(cache)[0] // rows
    places = ops.arange(rows, dtype="int32") * steps + step
    return ops.scatter_update(cache, places[:, None], new)
