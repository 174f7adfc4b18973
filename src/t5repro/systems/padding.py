"""Batches of padding, where only the shapes of a training step matter."""

import numpy as np

from t5repro.array_types import Array
from t5repro.config.sections.training import TrainingSettings
from t5repro.inputs.batches import Batch, Features
from t5repro.model.labels import LabelColumns


def two_sided(training: TrainingSettings, rows: int) -> Batch:
    """Return a batch of an encoder and a decoder."""
    inputs = np.zeros((rows, training.packed_inputs_length), np.int32)
    targets = np.zeros((rows, training.targets_length), np.int32)
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
    ids = np.zeros((rows, length), np.int32)
    names = ("decoder_ids", "decoder_segments", "decoder_prefix")
    return dict.fromkeys(names, ids), ids


def predicted_rows(training: TrainingSettings, rows: int, *more: str) -> Batch:
    """Return a batch of an encoder that predicts pieces at positions.

    Args:
        training: of pre-training.
        rows: of the batch.
        more: names of further features of the shape of the ids.
    """
    text = np.zeros((rows, training.inputs_length), np.int32)
    positions = np.zeros((rows, training.targets_length), np.int32)
    names = ("encoder_ids", "encoder_segments", "encoder_types", *more)
    features: Features = {**dict.fromkeys(names, text), "target_positions": positions}
    return features, positions


def answer_batch(features: Features, rows: int, columns: LabelColumns) -> Batch:
    """Return a batch of `LabelledInputs.batches` with these features of its texts."""
    features["label_columns"] = np.tile(
        np.array([next(iter(columns.columns.values()))], np.int32), (rows, 1)
    )
    if columns.has_spans:
        features["answer_span"] = np.zeros((rows, 2), np.int32)
    if columns.tags:
        ids = features["encoder_ids"]
        features["piece_tags"] = np.zeros((rows, ids.shape[-1]), np.int32)
    return features, np.zeros((rows, 1), np.float32)


def texts(training: TrainingSettings, rows: int, columns: LabelColumns) -> Array:
    """Return ids of the texts of examples, with an axis of options if a task has them."""
    options = () if columns.options == 1 else (columns.options,)
    return np.zeros((rows, *options, training.inputs_length), np.int32)
