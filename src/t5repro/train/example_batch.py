"""A batch of padding for a network, where only the shapes of a training step matter."""

from typing import Any

from t5repro.config.sections.model import AddedLayers, ModelSettings, has_label_head
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.labels import TaskAnswer

EXAMPLE_TASK = "task"
ENCODER_FEATURES = ("encoder_ids", "encoder_segments", "encoder_types")
DECODER_FEATURES = ("decoder_ids", "decoder_segments", "swapped_ids", "swapped_segments")


def example_labels(settings: Any) -> dict[str, TaskAnswer]:
    """Return labels that a network may be fine-tuned on; none if it writes text."""
    layers = getattr(settings, "finetune", None)  # pre-training has none
    is_labelled = layers is not None and has_label_head(settings.model, layers)
    return {EXAMPLE_TASK: TaskAnswer("label", ("no", "yes"))} if is_labelled else {}


def example_batch(
    training: TrainingSettings, rows: int, model: ModelSettings
) -> tuple[dict[str, Any], Any]:
    """Return a batch of padding, for its shapes."""
    import tensorflow as tf

    def ids(length: int) -> Any:
        return tf.zeros((rows, length), tf.int32)

    if isinstance(training, AddedLayers) and has_label_head(model, training):
        names = ENCODER_FEATURES if model.encoder_only else DECODER_FEATURES
        features = dict.fromkeys(names, ids(training.inputs_length))
        if model.decoder_only:
            features["last_positions"] = ids(1)
        features["label_columns"] = tf.tile([[0, 2, 0]], (rows, 1))
        return features, tf.zeros((rows, 1))
    if model.encoder_only and isinstance(training, PretrainSettings):
        features = dict.fromkeys(ENCODER_FEATURES, ids(training.inputs_length))
        positions = ids(training.targets_length)
        features["target_positions"] = positions
        if training.masked_lm.pair_task != "none":
            features["pair_label"] = tf.zeros((rows,), tf.int32)
        if training.masked_lm.boundary_weight:
            features["boundary_positions"] = tf.zeros((*positions.shape, 2), tf.int32)
            features["boundary_index"] = positions
        return features, positions
    if model.decoder_only:
        joined_ids = ids(training.packed_inputs_length + training.targets_length)
        names = ("decoder_ids", "decoder_segments", "decoder_prefix")
        return dict.fromkeys(names, joined_ids), joined_ids
    inputs, targets = ids(training.packed_inputs_length), ids(training.targets_length)
    features = {
        "encoder_ids": inputs,
        "encoder_segments": inputs,
        "decoder_ids": targets,
        "decoder_segments": targets,
    }
    return features, targets
