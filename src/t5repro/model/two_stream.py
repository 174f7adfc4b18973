"""XLNet: an encoder that predicts pieces in any order, or labels of rows.

Its streams, their order and the memory are in `two_stream_stack`.

Source: Yang et al., 2019; XLNet ``transformer_xl``, ``lm_loss``, ``summarize_sequence``.

Shape suffixes: B rows of the batch, L positions, M predicted positions, D features, V ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.dense import ClassHead, Dense
from t5repro.model.initial_values import zeros
from t5repro.model.layers import SeededLayer, Tensor, dropout_layer, option_rows, products_of_rows
from t5repro.model.network import Network, as_integers, mask_unused_rows
from t5repro.model.segment_rows import SegmentRow, padded_rows, summary_types
from t5repro.model.stream_memory import StreamMemory
from t5repro.model.two_stream_stack import TwoStreamStack

HEADS = ("masked_lm", "pooler", "label_head")


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

    def call(self, x_BMD: Tensor, ids_VD: Tensor) -> Tensor:
        """Return float32 logits of ids, (batch, predicted positions, ids)."""
        return ops.cast(products_of_rows(x_BMD, ids_VD), floatx()) + self.bias


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
    length); in pre-training ``encoder_order``, see `two_stream_stack`, and ``target_positions`` of
    (batch, predicted positions); with `labels` ``encoder_segments``, 1, or 0 at padding, which is
    on the left. It returns float32 logits: in pre-training of (batch, predicted positions,
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
        logits_BMV = self.masked_lm(queries, self.embedded_ids())
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
