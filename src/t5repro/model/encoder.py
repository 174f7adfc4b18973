"""An encoder-only network: the networks of BERT, RoBERTa, ALBERT and SpanBERT.

A row contains one example: one or two segments of text. In pre-training the network predicts the
pieces at given positions, and a class of a pair of segments; in fine-tuning one of some labels or
options, a number, a span of its text, or a tag of each word. To add a head, add a layer here and
its names to `encoder_names.py`.

Source: Devlin et al., 2018, and BERT ``BertModel`` and ``get_masked_lm_output``; Lan et al., 2019,
and ALBERT ``AlbertModel``.

Shape suffixes: B rows of the batch, L positions, M predicted positions, D features of the residual
stream, E features of the embedding, C classes, V ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.boundary_head import BoundaryHead
from t5repro.model.dense import ClassHead, Dense
from t5repro.model.encoder_stack import EncoderStack
from t5repro.model.layers import Tensor, dropout_layer, gather_positions, option_rows
from t5repro.model.masked_lm_head import MaskedLMHead
from t5repro.model.network import Network, as_integers, mask_unused_rows
from t5repro.model.san_head import SanHead
from t5repro.model.segment_rows import SegmentRow, padded_rows

HEADS = (
    *("masked_lm", "boundary_head", "pooler", "pair_head"),
    *("label_head", "san_head", "span_head", "tag_head"),
)


class Encoder(Network):
    """An encoder that predicts masked pieces and classes of pairs, or labels.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding; ids in use rounded up to a multiple of 128.
        dropout_rate: share of features dropped in training.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, ``float32`` or ``bfloat16``; weights are float32.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.
        pair_classes: classes of a pair of segments in pre-training; 0 means no such head.
        labels: labels of a task, 1 for a number or the score of an option.
        classifier_dropout: share of features dropped before `labels`; if absent, `dropout_rate`.
        predicts_spans: whether fine-tuning has the head of spans.
        tags: tags of words. Without labels, spans and tags the network is one of pre-training, with
            the head that predicts masked pieces.
        predicts_boundaries: whether pre-training has the head of SpanBERT's boundary objective.
        networks: tasks with a stochastic answer network, the first of their `labels` and how many.
        task_dropout: tasks with a `classifier_dropout` of their own: the task, the first of its
            `labels`, how many, and the share.
        turn_dropout: share of the turns of answer networks that training leaves out.

    Calling it takes a mapping of int32 arrays: ``encoder_ids``, ``encoder_segments`` (1, or 0 at
    padding) and, with token types, ``encoder_types``, of shape (batch, length); in pre-training
    ``target_positions`` of (batch, predicted positions). It returns float32 logits: in pre-training
    of (batch, predicted positions, embedding_rows), with `pair_classes` also of
    (batch, pair_classes); with `labels` of (batch, labels), with `predicts_spans` of the first and
    the last position of the answer, (batch, length, 2), with `tags` of (batch, length, tags), with
    several a tuple. Arrays may have an axis of options after the axis of rows; then each option is
    a row of the result.

    Source: the head of labels is BERT ``create_model``, with `model.pooler_dropout` fairseq's
    ``RobertaClassificationHead``; the head of tags is transformers ``BertForTokenClassification``.
    """

    weighted_layers: ClassVar[tuple[str, ...]] = ("encoder", *HEADS)
    has_pooler: ClassVar[bool] = True  # else labels read the first position itself
    has_glorot_heads: ClassVar[bool] = False  # heads of answers and the projection, see `Dense`

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
        pair_classes: int = 0,
        labels: int = 0,
        classifier_dropout: float | None = None,
        predicts_spans: bool = False,
        tags: int = 0,
        predicts_boundaries: bool = False,
        networks: Sequence[tuple[str, int, int]] = (),
        task_dropout: Sequence[tuple[str, int, int, float]] = (),
        turn_dropout: float = 0.0,
    ) -> None:
        super().__init__(
            model, name="encoder_only", embedding_rows=embedding_rows, seed=seed, dtype=dtype
        )
        # Without a head of answers the network is one of pre-training.
        self.has_answers = bool(labels or predicts_spans or tags)
        self.pair_classes = 0 if self.has_answers else pair_classes
        self.labels = labels
        self.predicts_spans = predicts_spans
        self.tags = tags
        self.encoder = EncoderStack(
            model,
            dropout_rate=dropout_rate,
            adapter_width=adapter_width,
            has_glorot_projection=self.has_glorot_heads,
            **self.layer("encoder"),
        )
        width = model.d_model
        if not self.has_answers:
            self.add_pretraining_heads(dropout_rate)
        if predicts_boundaries:
            self.boundary_head = BoundaryHead(
                model, embedding_rows=embedding_rows, **self.layer("boundary_head")
            )
        # Columns of labels without an answer network, which share one matrix.
        self.networks = tuple(networks)
        pooled = np.ones(labels, bool)
        for _, first, count in networks:
            pooled[first : first + count] = False
        self.pooled_columns = np.flatnonzero(pooled)
        # Heads, in the order of `HEADS`. Only pairs and labels read the pooled first position.
        if (len(self.pooled_columns) and self.has_pooler) or self.pair_classes:
            self.pooler = Dense(model, inputs=width, outputs=width, **self.layer("pooler"))
        if self.pair_classes:
            self.pair_head = ClassHead(
                model, inputs=width, outputs=pair_classes, **self.layer("pair_head")
            )
        rate = dropout_rate if classifier_dropout is None else classifier_dropout
        self.task_dropouts: list[Any] = []
        self.columns_of_dropout: list[np.ndarray] = []
        if len(self.pooled_columns):
            # RoBERTa drops features before the pooler as well, BERT only after it.
            pooler_rate = rate if model.pooler_dropout else 0.0
            self.pooler_dropout = dropout_layer(model, pooler_rate, **self.layer("pooler_dropout"))
            self.label_dropout = dropout_layer(model, rate, **self.layer("label_dropout"))
            self.label_head = self._answer_head("label_head", len(self.pooled_columns))
            for task, first, count, task_rate in task_dropout:
                own = (self.pooled_columns >= first) & (self.pooled_columns < first + count)
                if own.any():
                    dropout = dropout_layer(model, task_rate, **self.layer(f"label_dropout_{task}"))
                    self.task_dropouts.append(dropout)
                    self.columns_of_dropout.append(own)
        if networks:
            rates = {task: task_rate for task, _, _, task_rate in task_dropout}
            self.san_head = SanHead(
                model,
                tasks=[(task, count, rates.get(task, rate)) for task, _, count in networks],
                turn_dropout=turn_dropout,
                **self.layer("san_head"),
            )
        if predicts_spans:
            self.span_head = self._answer_head("span_head", 2)
        if tags:
            self.tag_dropout = dropout_layer(model, rate, **self.layer("tag_dropout"))
            self.tag_head = self._answer_head("tag_head", tags)
        self.build(None)

    def add_pretraining_heads(self, dropout_rate: float) -> None:
        """Create the layers of pre-training that are above the encoder or beside it."""
        self.masked_lm = MaskedLMHead(
            self.settings, embedding_rows=self.embedding_rows, **self.layer("masked_lm")
        )

    def _answer_head(self, path: str, outputs: int) -> ClassHead:
        return ClassHead(
            self.settings,
            inputs=self.settings.d_model,
            outputs=outputs,
            is_glorot=self.has_glorot_heads,
            **self.layer(path),
        )

    def features(self) -> Mapping[str, str | int]:
        """The features of a call, see `Network`."""
        types = ["encoder_types"] if self.settings.token_types else []
        rows: dict[str, str | int] = dict.fromkeys(
            ("encoder_ids", "encoder_segments", *types), "inputs"
        )
        return rows if self.has_answers else rows | {"target_positions": "targets"}

    def call(self, features: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of all heads."""
        features = as_integers(features)
        encoded_BLD = self.encode(features, training=training)
        if self.has_answers:
            heads = []
            if self.labels:
                heads.append(self.label_logits(encoded_BLD, features, training=training))
            if self.predicts_spans:
                heads.append(self.span_logits(encoded_BLD))
            if self.tags:
                heads.append(self.tag_logits(encoded_BLD, training=training))
            return heads[0] if len(heads) == 1 else tuple(heads)
        logits_BMV = self.masked_logits(encoded_BLD, features["target_positions"])
        if not self.pair_classes:
            return logits_BMV
        return logits_BMV, self.pair_head(self.pooled(encoded_BLD))

    def encode(self, features: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """Return the output of the encoder, (batch, length, d_model), with a row for each option.

        Args:
            features: int32 ids, segments and, with token types, types; see the class.
            training: apply dropout.
        """
        features = option_rows(features)
        types_BL = features["encoder_types"] if self.settings.token_types else None
        return self.encoder(
            # The embedding has its own width; `EncoderStack` projects it to `d_model`.
            self.embed(features["encoder_ids"]),
            features["encoder_segments"],
            types_BL,
            training=training,
        )

    def pooled(self, encoded_BLD: Tensor) -> Tensor:
        """Return the state of a row from its first position, (batch, d_model)."""
        # The product has a length axis of 1: without one, Grappler would fuse it with its bias to
        # an operation whose bits are not measured (D-043).
        return ops.tanh(self.pooler(encoded_BLD[:, :1]))[:, 0]

    def label_logits(
        self, encoded_BLD: Tensor, features: Mapping[str, Tensor], training: bool = False
    ) -> Tensor:
        """Return float32 logits of labels, (batch, labels).

        Args:
            encoded_BLD: output of the encoder.
            features: of which it is the output; answer networks read segments and types.
            training: apply dropout.
        """
        if not self.networks:
            return self.pooled_logits(encoded_BLD, training=training)
        features = option_rows(features)
        of_tasks = self.san_head(
            encoded_BLD, features["encoder_segments"], features["encoder_types"], training=training
        )
        # Columns in the order of the tasks, each of its own head.
        pieces = {
            first: logits for (_, first, _), logits in zip(self.networks, of_tasks, strict=True)
        }
        if len(self.pooled_columns):
            logits_BC = self.pooled_logits(encoded_BLD, training=training)
            for index, column in enumerate(self.pooled_columns.tolist()):
                pieces[column] = logits_BC[:, index : index + 1]
        return ops.concatenate([pieces[column] for column in sorted(pieces)], axis=-1)

    def pooled_logits(self, encoded_BLD: Tensor, training: bool = False) -> Tensor:
        """Return float32 logits of the labels without an answer network, see `label_logits`."""
        # `[CLS]` is the first piece of every row.
        first_BD = encoded_BLD[:, 0]
        if self.has_pooler:
            first_B1D = self.pooler_dropout(encoded_BLD[:, :1], training=training)
            first_BD = self.pooled(first_B1D)
        logits_BC = self.label_head(self.label_dropout(first_BD, training=training))
        if training:
            # A row has the loss of its task's columns, which read the noise of the task.
            for dropout, own_C in zip(self.task_dropouts, self.columns_of_dropout, strict=True):
                of_task = self.label_head(dropout(first_BD, training=training))
                logits_BC = ops.where(own_C[None], of_task, logits_BC)
        return logits_BC

    def row_features(self, rows: Sequence[SegmentRow], length: int) -> dict[str, np.ndarray]:
        """Return ids, segments and types of rows of a task, int32, padded to a length."""
        features = padded_rows("encoder", [row.ids for row in rows], length)
        # Type 1 from the second segment to the end of the row, 0 before it and in padding.
        types = np.zeros((len(rows), length), np.int32)
        for row, row_types in zip(rows, types, strict=True):
            row_types[row.first_length : len(row.ids)] = 1
        return features | {"encoder_types": types}

    def answer_logits(self, features: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of labels, numbers and options, (batch, labels)."""
        return self.label_logits(self.encode(features), features)

    def span_logits(self, encoded_BLD: Tensor) -> Tensor:
        """Return float32 logits of the first and last position of an answer, (batch, length, 2).

        Source: BERT ``run_squad.create_model``.
        """
        return self.span_head(encoded_BLD)

    def tag_logits(self, encoded_BLD: Tensor, training: bool = False) -> Tensor:
        """Return float32 logits of the tags of all pieces, (batch, length, tags).

        Args:
            encoded_BLD: output of the encoder.
            training: apply dropout.
        """
        return self.tag_head(self.tag_dropout(encoded_BLD, training=training))

    def masked_logits(self, encoded_BLD: Tensor, positions_BM: Tensor) -> Tensor:
        """Return float32 logits at some positions, (batch, predicted positions, ids).

        Args:
            encoded_BLD: output of the encoder.
            positions_BM: int32; in training with the position 0 in place of missing ones.
        """
        logits_BMV = self.masked_lm(
            gather_positions(encoded_BLD, positions_BM), self.embedded_ids()
        )
        return mask_unused_rows(logits_BMV, self.rows_in_use)

    def boundary_logits(self, encoded_BLD: Tensor, borders_BM2: Tensor, index_BM: Tensor) -> Tensor:
        """Return float32 logits of pieces of spans, (batch, predicted positions, ids).

        Args:
            encoded_BLD: output of the encoder.
            borders_BM2: positions before and after the span of each piece, int32.
            index_BM: index of each piece in its span, int32.
        """
        # Both borders of all pieces in one gather.
        rows, count, _ = borders_BM2.shape
        borders = gather_positions(encoded_BLD, ops.reshape(borders_BM2, (rows, 2 * count)))
        borders_BM2D = ops.reshape(borders, (rows, count, 2, borders.shape[-1]))
        return self.boundary_head(borders_BM2D, index_BM, self.embedded_ids())
