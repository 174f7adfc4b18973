"""A batch of padding for a network, where only the shapes of a training step matter."""

from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.training import TrainingSettings

EXAMPLE_TASK = "task"


def example_labels(settings: Any) -> dict[str, tuple[str, ...]]:
    """Return labels that an encoder only may be fine-tuned on; none of any other training."""
    is_labelled = settings.model.encoder_only and hasattr(settings, "finetune")
    return {EXAMPLE_TASK: ("no", "yes")} if is_labelled else {}


def example_batch(
    training: TrainingSettings, rows: int, model: ModelSettings
) -> tuple[dict[str, Any], Any]:
    """Return a batch of padding, for its shapes."""
    import tensorflow as tf

    def ids(length: int) -> Any:
        return tf.zeros((rows, length), tf.int32)

    if model.encoder_only:
        names = ("encoder_ids", "encoder_segments", "encoder_types")
        features = dict.fromkeys(names, ids(training.inputs_length))
        if not isinstance(training, PretrainSettings):
            columns = tf.tile([[0, 2, 0]], (rows, 1))
            return {**features, "label_columns": columns}, tf.zeros((rows, 1))
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
