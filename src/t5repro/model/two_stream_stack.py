"""The blocks of XLNet: two streams on one set of weights, and the order that says what each sees.

The content stream is an encoder with relative attention. The query stream predicts some positions:
it begins with one vector for all of them, and sees contents as the order of the prediction allows,
never its own. A memory has the states of the text before the row.

The order is one number a position: a content sees the positions with at most its own number, a
query those with a smaller one. So equal numbers see each other, and a greater number than all
others is padding. `objectives.permutation` has the numbers of pre-training.

Source: Yang et al., 2019, sections 2.2 to 2.5; XLNet ``transformer_xl``.

Shape suffixes: B rows of the batch, L positions, M predicted positions, N positions of memory and
row, P distances, R directions of reading, D features.
"""

from functools import partial
from typing import Any, NamedTuple

from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.attention import BLOCKED
from t5repro.model.block import Block
from t5repro.model.initial_values import glorot_uniform
from t5repro.model.layers import SeededLayer, Tensor, dropout_layer
from t5repro.model.recomputation import recomputed
from t5repro.model.relative_attention import Relations, RelativeAttention, distance_rows


class Streams(NamedTuple):
    """The residual streams of a block: of contents, and of queries if positions are predicted."""

    contents: Tensor
    queries: Tensor | None


class TwoStreamBlock(Block):
    """Relative attention and feed-forward, the same for contents and queries.

    It has the arguments of `Block`.
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
        memory_length = 0 if memory is None else memory.shape[2]
        distances_RPD = ops.cast(
            distance_rows(
                length, memory_length + length, width, both_directions=self.both_directions
            ),
            self.compute_dtype,
        )
        distances_RPD = self.distance_dropout(distances_RPD, training=training)
        relations = (
            _relations(order_BL, types_BL, memory_length),
            None
            if positions_BM is None
            else _query_relations(order_BL, types_BL, positions_BM, memory_length),
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


def _relations(order_BL: Tensor, types_BL: Tensor, memory_length: int) -> Relations:
    """Return what contents know of memory and contents."""
    visible = order_BL[:, None, :] <= order_BL[:, :, None]
    differs = types_BL[:, None, :] != types_BL[:, :, None]
    # All of the memory is visible. Its tokens count as type 0.
    return _with_memory(visible, differs, types_BL, memory_length)


def _query_relations(
    order_BL: Tensor, types_BL: Tensor, positions_BM: Tensor, memory_length: int
) -> Relations:
    """Return what queries know of memory and contents."""
    order_BM, types_BM = (
        ops.take_along_axis(values, positions_BM, axis=1) for values in (order_BL, types_BL)
    )
    visible = order_BL[:, None, :] < order_BM[:, :, None]
    differs = types_BL[:, None, :] != types_BM[:, :, None]
    shifts = order_BL.shape[1] - positions_BM
    return _with_memory(visible, differs, types_BM, memory_length)._replace(shifts=shifts)


def _with_memory(visible: Tensor, differs: Tensor, types: Tensor, memory_length: int) -> Relations:
    mask = ops.pad(ops.where(visible, 0.0, BLOCKED), [[0, 0], [0, 0], [memory_length, 0]])
    if memory_length:
        of_memory = ops.repeat(types[:, :, None] != 0, memory_length, axis=2)
        differs = ops.concatenate([of_memory, differs], axis=2)
    return Relations(*(ops.cast(values, floatx())[:, None] for values in (mask, differs)))
