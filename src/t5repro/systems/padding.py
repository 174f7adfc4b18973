"""Batches of padding, where only the shapes of a training step matter."""

import tensorflow as tf

from t5repro.config.sections.training import TrainingSettings
from t5repro.model.labels import LabelColumns
from t5repro.systems.loss import Features
from t5repro.systems.training import Batch


def two_sided(training: TrainingSettings, rows: int) -> Batch:
    """Return a batch of an encoder and a decoder."""
    inputs = tf.zeros((rows, training.packed_inputs_length), tf.int32)
    targets = tf.zeros((rows, training.targets_length), tf.int32)
    features = {
        "encoder_ids": inputs,
        "encoder_segments": inputs,
        "decoder_ids": targets,
        "decoder_segments": targets,
    }
    return features, targets


def joined(training: TrainingSettings, rows: int) -> Batch:
    """Return a batch of a decoder with inputs and targets in one row."""
    length = training.packed_inputs_length + training.targets_length
    ids = tf.zeros((rows, length), tf.int32)
    names = ("decoder_ids", "decoder_segments", "decoder_prefix")
    return dict.fromkeys(names, ids), ids


def answer_batch(features: Features, rows: int, columns: LabelColumns) -> Batch:
    """Return a batch of `LabelledInputs.batches` with these features of its texts."""
    features["label_columns"] = tf.tile([next(iter(columns.columns.values()))], (rows, 1))
    if columns.has_spans:
        features["answer_span"] = tf.zeros((rows, 2), tf.int32)
    return features, tf.zeros((rows, 1))


def texts(training: TrainingSettings, rows: int, columns: LabelColumns) -> tf.Tensor:
    """Return ids of the texts of examples, with an axis of options if a task has them."""
    options = () if columns.options == 1 else (columns.options,)
    return tf.zeros((rows, *options, training.inputs_length), tf.int32)
