"""XLNet: an encoder that predicts pieces in any order, with two streams on one set of weights.

The content stream is an encoder with relative attention. In pre-training the query stream predicts
some positions: it begins with one vector for all of them, and sees contents as the order of the
prediction allows, never its own. A memory has the states of the text before the row.

The order is one number a position: a content sees the positions with at most its own number, a
query those with a smaller one. So equal numbers see each other, and a greater number than all
others is padding. `objectives.permutation` has the numbers of pre-training.

Source: Yang et al., 2019, sections 2.2 to 2.5; XLNet ``transformer_xl``.

Shape suffixes: B rows of the batch, L positions, M predicted positions, N positions of memory and
row, P distances, R directions of reading, D features, V ids.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.attention import BLOCKED
from t5repro.model.block import Block
from t5repro.model.dense import ClassHead, Dense
from t5repro.model.initial_values import glorot_uniform, zeros
from t5repro.model.layers import SeededLayer, Tensor, dropout_layer, matmul, option_rows
from t5repro.model.network import Network, as_integers, mask_unused_rows
from t5repro.model.recomputation import recomputed
from t5repro.model.relative_attention import Relations, RelativeAttention, distance_rows
from t5repro.model.segment_rows import SegmentRow, padded_rows, summary_types
from t5repro.model.stream_memory import StreamMemory

HEADS = ("masked_lm", "pooler", "label_head")


class Streams(NamedTuple):
    """The residual streams of a block: of contents, and of queries if positions are predicted."""

    contents: Tensor
    queries: Tensor | None


class TwoStreamBlock(Block):
    """Relative attention and feed-forward, the same for contents and queries.

    Its arguments are those of `Block`.
    """

    def __init__(self, model: ModelSettings, **options: Any) -> None:
        super().__init__(model, is_decoder=False, **options)

    def _attention(self, name: str) -> RelativeAttention:
        return RelativeAttention(self._shape, dropout_rate=self._dropout_rate, **self.inner(name))

    def both(
        self,
        streams: Streams,
        memory_BND: Tensor | None,
        distances_RPD: Tensor,
        relations: tuple[Relations, Relations | None],
        training: bool = False,
    ) -> Streams:
        """Return both streams after the block.

        Args:
            streams: before it.
            memory_BND: contents before the row, if there is a memory.
            distances_RPD: sinusoids of distances.
            relations: of contents and of queries to memory and contents.
            training: apply dropout.
        """
        inputs = (streams, memory_BND, distances_RPD, relations)
        if training and self.remat != "none":
            compute = partial(self._both, training=True)
            return Streams(*recomputed(self, compute, inputs, self.remat))
        return self._both(*inputs, training=training)

    def _both(
        self,
        streams: Streams,
        memory_BND: Tensor | None,
        distances_RPD: Tensor,
        relations: tuple[Relations, Relations | None],
        *,
        training: bool,
    ) -> Streams:
        attention: Any = self.self_attention
        seen = streams.contents
        if memory_BND is not None:
            seen = ops.concatenate([ops.cast(memory_BND, seen.dtype), seen], axis=1)
        keys_values = attention.keys_and_values(seen)
        distances = attention.distance_keys(distances_RPD)

        def after(x_BLD: Tensor, of_stream: Relations) -> Tensor:
            x_BLD = self.self_attention_sublayer(
                x_BLD,
                lambda x_BLD: attention.relate(
                    x_BLD, keys_values, distances, of_stream, training=training
                ),
                training=training,
            )
            return self.feed_forward_sublayer(x_BLD, training=training)

        of_contents, of_queries = relations
        contents = after(streams.contents, of_contents)
        if of_queries is None:
            return Streams(contents, None)
        return Streams(contents, after(streams.queries, of_queries))


class TwoStreamStack(SeededLayer):
    """The vector of queries, dropout of both inputs and of distances, blocks, dropout.

    Args:
        model: shape of the network.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapters; features; 0 means none.
        both_directions: whether every second row is read backwards.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        dropout_rate: float,
        adapter_width: int = 0,
        both_directions: bool = False,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.model = model
        self.both_directions = both_directions
        self.content_dropout, self.query_dropout, self.distance_dropout, self.output_dropout = (
            dropout_layer(model, dropout_rate, **self.inner(f"{name}_dropout"))
            for name in ("content", "query", "distance", "output")
        )
        self.blocks = [
            TwoStreamBlock(
                model,
                dropout_rate=dropout_rate,
                adapter_width=adapter_width,
                **self.inner(f"block_{number}"),
            )
            for number in range(model.num_encoder_layers)
        ]

    def build(self, input_shape: Any = None) -> None:
        """Create all weights."""
        # Without an initialiser in the released code: TensorFlow's default.
        self.query_start = self.weight("query_start", (1, self.model.d_model), glorot_uniform())
        for block in self.blocks:
            block.build()

    def call(
        self,
        x_BLD: Tensor,
        order_BL: Tensor,
        types_BL: Tensor,
        positions_BM: Tensor | None = None,
        memory: Tensor | None = None,
        training: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the states of contents, or of the predicted positions, and all blocks' inputs.

        Args:
            x_BLD: embedded ids.
            order_BL: order of the prediction, int32; see the module.
            types_BL: types of tokens, int32.
            positions_BM: positions to predict, int32; absent without a query stream.
            memory: states of the text before the row, (blocks, batch, positions, features).
            training: apply dropout.
        """
        rows, length, width = ops.shape(x_BLD)
        kept = 0 if memory is None else memory.shape[2]
        distances_RPD = ops.cast(
            distance_rows(length, kept + length, width, both_directions=self.both_directions),
            self.compute_dtype,
        )
        distances_RPD = self.distance_dropout(distances_RPD, training=training)
        relations = (
            _relations(order_BL, types_BL, kept),
            None
            if positions_BM is None
            else _query_relations(order_BL, types_BL, positions_BM, kept),
        )
        streams = Streams(self.content_dropout(x_BLD, training=training), None)
        if positions_BM is not None:
            start = ops.cast(self.query_start, self.compute_dtype)[None]
            queries = ops.broadcast_to(start, (rows, positions_BM.shape[1], width))
            queries = self.query_dropout(queries, training=training)
            streams = streams._replace(queries=queries)
        inputs = []
        for number, block in enumerate(self.blocks):
            inputs.append(streams.contents)
            of_block = None if memory is None else memory[number]
            streams = block.both(streams, of_block, distances_RPD, relations, training=training)
        last = streams.contents if streams.queries is None else streams.queries
        return self.output_dropout(last, training=training), inputs


def _relations(order_BL: Tensor, types_BL: Tensor, kept: int) -> Relations:
    """Return what contents know of memory and contents."""
    visible = order_BL[:, None, :] <= order_BL[:, :, None]
    differs = types_BL[:, None, :] != types_BL[:, :, None]
    # All of the memory is visible. Its tokens count as type 0.
    return _with_memory(visible, differs, types_BL, kept)


def _query_relations(
    order_BL: Tensor, types_BL: Tensor, positions_BM: Tensor, kept: int
) -> Relations:
    """Return what queries know of memory and contents."""
    order_BM, types_BM = (
        ops.take_along_axis(values, positions_BM, axis=1) for values in (order_BL, types_BL)
    )
    visible = order_BL[:, None, :] < order_BM[:, :, None]
    differs = types_BL[:, None, :] != types_BM[:, :, None]
    shifts = order_BL.shape[1] - positions_BM
    return _with_memory(visible, differs, types_BM, kept)._replace(shifts=shifts)


def _with_memory(visible: Tensor, differs: Tensor, types: Tensor, kept: int) -> Relations:
    mask = ops.pad(ops.where(visible, 0.0, BLOCKED), [[0, 0], [0, 0], [kept, 0]])
    if kept:
        of_memory = ops.repeat(types[:, :, None] != 0, kept, axis=2)
        differs = ops.concatenate([of_memory, differs], axis=2)
    return Relations(ops.cast(mask, floatx())[:, None], differs[:, None])


class PieceBias(SeededLayer):
    """The output of predictions: the product with the embedding, and a bias for each id.

    Args:
        embedding_rows: rows of the embedding.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, *, embedding_rows: int, **layer: Any) -> None:
        super().__init__(**layer)
        self.embedding_rows = embedding_rows

    def build(self, input_shape: Any = None) -> None:
        """Create the bias."""
        self.bias = self.weight("bias", (self.embedding_rows,), zeros())

    def call(self, x_BMD: Tensor, output_DV: Tensor) -> Tensor:
        """Return float32 logits of ids, (batch, predicted positions, ids)."""
        return ops.cast(matmul(x_BMD, output_DV), floatx()) + self.bias


class TwoStreamEncoder(Network):
    """XLNet: predicts pieces in pre-training; labels, numbers and options in fine-tuning.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding; ids in use rounded up to a multiple of 128.
        dropout_rate: share of features dropped in training.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, ``float32`` or ``bfloat16``; weights are float32.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.
        labels: labels of a task, 1 for a number or the score of an option; 0 in pre-training.
        classifier_dropout: share of features dropped before `labels`; if absent, `dropout_rate`.
        memory_shape: rows of a batch and positions of its memory; without one, empty.
        reuse_length: positions of a row that the memory takes up, from its start.
        both_directions: whether every second row of a batch is read backwards.

    Calling it takes a mapping of int32 arrays: ``encoder_ids`` and ``encoder_types`` of (batch,
    length); in pre-training ``encoder_order``, see the module, and ``target_positions`` of (batch,
    predicted positions); with `labels` ``encoder_segments``, 1, or 0 at padding, which is on the
    left. It returns float32 logits: in pre-training of (batch, predicted positions,
    embedding_rows) with a memory of zeros, with `labels` of (batch, labels). Arrays may have an
    axis of options after the axis of rows; then each option is a row of the result.

    Source: the head of labels is XLNet ``summarize_sequence`` and ``classification_loss``.
    """

    weighted_layers = ("encoder", *HEADS, "memory")

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
        labels: int = 0,
        classifier_dropout: float | None = None,
        memory_shape: tuple[int, ...] = (),
        reuse_length: int = 0,
        both_directions: bool = False,
    ) -> None:
        super().__init__(
            model, name="two_stream", embedding_rows=embedding_rows, seed=seed, dtype=dtype
        )
        self.labels = labels
        self.encoder = TwoStreamStack(
            model,
            dropout_rate=dropout_rate,
            adapter_width=adapter_width,
            both_directions=both_directions,
            **self.layer("encoder"),
        )
        width = model.d_model
        if labels:
            rate = dropout_rate if classifier_dropout is None else classifier_dropout
            self.pooler = Dense(model, inputs=width, outputs=width, **self.layer("pooler"))
            self.label_dropout = dropout_layer(model, rate, **self.layer("label_dropout"))
            self.label_head = ClassHead(
                model, inputs=width, outputs=labels, **self.layer("label_head")
            )
        else:
            self.masked_lm = PieceBias(embedding_rows=embedding_rows, **self.layer("masked_lm"))
        self.memory: StreamMemory | None = None
        if memory_shape and memory_shape[1]:
            self.memory = StreamMemory(
                (model.num_encoder_layers, *memory_shape, width),
                reuse_length=reuse_length,
                **self.layer("memory"),
            )
        self.build(None)
        # Without queries nothing reads their first vector: it is kept, and has no gradient.
        self.encoder.query_start.trainable = not labels

    def features(self) -> Mapping[str, str | int]:
        """The features of a call, see `Network`."""
        rows: dict[str, str | int] = {"encoder_ids": "inputs", "encoder_types": "inputs"}
        if self.labels:
            return rows | {"encoder_segments": "inputs"}
        return rows | {"encoder_order": "inputs", "target_positions": "targets"}

    def call(self, features: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of labels, or of the predicted positions with a memory of zeros."""
        features = as_integers(features)
        if self.labels:
            return self.label_logits(features, training=training)
        states = None if self.memory is None else ops.zeros_like(self.memory.states)
        return self.predict_pieces(features, states, training=training)[0]

    def predict_pieces(
        self, features: Mapping[str, Tensor], memory: Tensor | None, training: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """Return float32 logits of the predicted positions, and the inputs of all blocks.

        Args:
            features: see the class.
            memory: states of the text before the rows, see `TwoStreamStack.call`.
            training: apply dropout.
        """
        queries, inputs = self.encoder(
            self.embed(features["encoder_ids"]),
            features["encoder_order"],
            features["encoder_types"],
            features["target_positions"],
            memory,
            training=training,
        )
        logits_BMV = self.masked_lm(queries, self.output())
        return mask_unused_rows(logits_BMV, self.rows_in_use), inputs

    def encode(self, features: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """Return the states of contents of rows of tasks, (batch, length, d_model).

        Args:
            features: see the class; each option is a row of the result.
            training: apply dropout.
        """
        features = option_rows(features)
        # All tokens see each other, and padding only itself and what is before it in the order.
        order_BL = ops.cast(features["encoder_segments"] == 0, "int32")
        states, _ = self.encoder(
            self.embed(features["encoder_ids"]),
            order_BL,
            features["encoder_types"],
            training=training,
        )
        return states

    def label_logits(self, features: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """Return float32 logits of labels, (batch, labels), from the last position of each row."""
        last_B1D = self.encode(features, training=training)[:, -1:]
        # The product has a length axis of 1, see `Encoder.pooled`.
        summary_BD = ops.tanh(self.pooler(last_B1D))[:, 0]
        return self.label_head(self.label_dropout(summary_BD, training=training))

    def answer_logits(self, features: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of labels, numbers and options, (batch, labels)."""
        return self.label_logits(features)

    def row_features(self, rows: Sequence[SegmentRow], length: int) -> dict[str, np.ndarray]:
        """Return ids, segments and types of rows of a task, int32, padded on the left."""
        features = padded_rows("encoder", [row.ids[::-1] for row in rows], length)
        features = {name: values[:, ::-1] for name, values in features.items()}
        lengths = [len(row.ids) for row in rows]
        firsts = [row.first_length for row in rows]
        types = summary_types(np.array(firsts), np.array(lengths), length)
        return {**features, "encoder_types": types}
