"""The network of the toy: an embedding and a head of labels, without blocks."""

from typing import Any

import keras
import numpy as np
from keras import ops

from t5repro.model.dense import ClassHead
from t5repro.model.initial_values import Initial, normal
from t5repro.model.segment_rows import padded_rows


class BagOfWords(keras.Model):
    """Takes ``encoder_ids`` and ``encoder_segments``; returns logits of labels."""

    form = (False, None)  # neither int8 nor LoRA, as `Network.form` says

    def __init__(self, model: Any, *, embedding_rows: int, seed: int, labels: int = 0, **_: Any):
        super().__init__(name="bag_of_words")
        self.settings, self.embedding_rows = model, embedding_rows
        self.rows_in_use, self.run_seed, self.labels = embedding_rows, seed, labels
        if labels:
            layer = {"seed": seed, "path": "label_head", "dtype": "float32"}
            self.label_head = ClassHead(model, inputs=model.d_model, outputs=labels, **layer)
        self.build(None)

    def build(self, input_shape: Any) -> None:
        shape = (self.embedding_rows, self.settings.d_model)
        initial = Initial(normal(0.5), self.run_seed, "embedding")
        self.embedding = self.add_weight(name="embedding", shape=shape, initializer=initial)
        if self.labels:
            self.label_head.build()
        self.built = True

    def call(self, features: Any, training: bool = False) -> Any:
        embedded = ops.take(self.embedding, ops.cast(features["encoder_ids"], "int32"), axis=0)
        inside = ops.cast(features["encoder_segments"], "float32")[..., None]
        return self.label_head(ops.sum(embedded * inside, axis=1) / ops.sum(inside, axis=1))

    def row_features(self, rows: Any, length: int) -> dict[str, np.ndarray]:
        return padded_rows("encoder", [row.ids for row in rows], length)

    def answer_logits(self, features: Any) -> Any:
        return self(features)
