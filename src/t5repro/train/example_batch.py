"""A batch of padding for a network, where only the shapes of a training step matter."""

from collections.abc import Collection
from typing import Any

from t5repro.config.sections.model import ModelSettings, has_label_head
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.labels import LabelColumns, TaskAnswer, TaskAnswers
from t5repro.model.segment_rows import orders_of
from t5repro.task_table import facts_of

ENCODER_FEATURES = ("encoder_ids", "encoder_segments", "encoder_types")


def example_labels(settings: Any) -> TaskAnswers:
    """Return answers of the tasks that a network of labels is fine-tuned on; none of others.

    Their kinds are those of the tasks, their words are placeholders.
    """
    layers = getattr(settings, "finetune", None)  # pre-training has none
    if layers is None or not has_label_head(settings.model, layers):
        return {}
    return {task: _example_answer(task, settings.model) for task in settings.tasks.names}


def _example_answer(task: str, model: ModelSettings) -> TaskAnswer:
    facts = facts_of(task)
    if facts.answer == "span" and model.encoder_only:
        return TaskAnswer("span")
    if facts.answer == "number":
        return TaskAnswer("number")
    if facts.answer == "choice":
        return TaskAnswer("choice", tuple(map(str, range(facts.options))))
    return TaskAnswer("label", ("no", "yes"))


def example_batch(
    training: TrainingSettings, rows: int, model: ModelSettings, labels: TaskAnswers
) -> tuple[dict[str, Any], Any]:
    """Return a batch of padding, for its shapes.

    Args:
        training: of the stage.
        rows: of the batch.
        model: shape of the network.
        labels: see `example_labels`.
    """
    import tensorflow as tf

    def ids(length: int) -> Any:
        return tf.zeros((rows, length), tf.int32)

    if labels:
        return _labelled_batch(training, rows, model, labels)
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


def _labelled_batch(
    training: TrainingSettings, rows: int, model: ModelSettings, labels: TaskAnswers
) -> tuple[dict[str, Any], Any]:
    """Return a batch of `LabelledInputs.batches`, of padding."""
    import tensorflow as tf

    columns = LabelColumns(labels)
    options = () if columns.options == 1 else (columns.options,)
    text = tf.zeros((rows, *options, training.inputs_length), tf.int32)
    features = dict.fromkeys(
        ENCODER_FEATURES if model.encoder_only else _decoder_features(model, labels), text
    )
    if model.decoder_only:
        features["last_positions"] = tf.zeros((rows, *options, 1), tf.int32)
    features["label_columns"] = tf.tile([next(iter(columns.columns.values()))], (rows, 1))
    if columns.has_spans:
        features["answer_span"] = tf.zeros((rows, 2), tf.int32)
    return features, tf.zeros((rows, 1))


def _decoder_features(model: ModelSettings, tasks: Collection[str]) -> list[str]:
    """Return the names of the features of texts, in each order that a task is read in."""
    return [
        f"{order}_{part}"
        for order in ("decoder", "swapped")[: orders_of(model, tasks)]
        for part in ("ids", "segments")
    ]
