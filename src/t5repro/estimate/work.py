"""The work of a node: operations of a training or a prediction, bytes of any other job.

A training is counted as `config/flops.py` counts it. A prediction reads the decoder's weights for
every token that it writes, so the memory more often than the arithmetic decides its time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.config.flops import MULTIPLY_ADD, forward_multiplications, recomputed_flops, step_flops
from t5repro.config.sections.evaluate import EvaluateSettings
from t5repro.config.sections.model import AddedLayers, ModelSettings, tuned_family
from t5repro.config.sections.tasks import OwnTask
from t5repro.config.sections.training import TrainingSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.model.sizes import parameter_count
from t5repro.plan.memory import precision_bytes, texts_of, texts_of_row
from t5repro.task_table import facts_of

ASSUMED_EXAMPLES = 1000  # of the validation split of a task that the table has no number of


@dataclass(frozen=True)
class Work:
    """The work of one node.

    Attributes:
        flops: floating-point operations; 0 for jobs without the model.
        weight_bytes: bytes of weights that decoding reads, all examples together.
        input_bytes: bytes that a job without the model reads.
    """

    flops: float = 0
    weight_bytes: float = 0
    input_bytes: float = 0


def training_work(rule: str, settings: Any) -> Work:
    """Return the work of a training: its steps, without validation and checkpoints.

    Args:
        rule: one of `TRAININGS`.
        settings: with the sections of the rule.
    """
    return Work(flops=getattr(settings, rule).steps * step_work(rule, settings))


def step_work(rule: str, settings: Any) -> int:
    """Return the operations of a step of a training, with those that `devices.remat` repeats."""
    training: TrainingSettings = getattr(settings, rule)
    texts = texts_of_row(rule, settings)
    step = step_flops(
        settings.model, training, embedding_rows=settings.vocab.embedding_rows, texts=texts
    )
    return step + recomputed_flops(
        settings.model, training, remat=settings.devices.remat, texts=texts
    )


def prediction_work(
    model: ModelSettings,
    evaluate: EvaluateSettings,
    vocab: VocabSettings,
    examples: Mapping[str, int],
    *,
    layers: AddedLayers,
    own: Mapping[str, OwnTask] | None = None,
    models: int = 1,
    precision: str = "float32",
) -> Work:
    """Return the work of predictions that use their whole length, of SQuAD one window a question.

    Args:
        model: shape of the network.
        evaluate: lengths, batch size and beams.
        vocab: rows of the output matrix.
        examples: task -> number of its examples.
        layers: those that fine-tuning adds.
        own: the run's own tasks, if they are known.
        models: networks that predict: members of an ensemble times checkpoints.
        precision: `devices.precision`.
    """
    has_labels = not tuned_family(model, layers).writes_text
    embedding_rows = vocab.embedding_rows
    if has_labels:  # by one pass over each text, without logits of ids
        embedding_rows = 0
        evaluate = evaluate.model_copy(update={"max_decode_length": 0, "beam_tasks": []})
    written = evaluate.max_decode_length
    encoding = forward_multiplications(
        model, inputs_length=evaluate.inputs_length, targets_length=0, embedding_rows=embedding_rows
    )
    both = forward_multiplications(
        model,
        inputs_length=evaluate.inputs_length,
        targets_length=written,
        embedding_rows=embedding_rows,
    )
    read_bytes = parameter_count(model, vocab.embedding_rows) * precision_bytes(precision)
    flops, weight_bytes = 0.0, 0.0
    for task, rows in examples.items():
        beams = evaluate.beam_width if task in evaluate.beam_tasks else 1
        texts = texts_of(model, [task], own=own or {}) if has_labels else 1
        # Beams repeat the decoder but not the encoder.
        flops += MULTIPLY_ADD * rows * texts * (encoding + beams * (both - encoding))
        # A decoding step reads all weights once, for whatever number of rows.
        weight_bytes += -(-rows // evaluate.batch_size) * written * read_bytes
    return Work(flops=flops * models, weight_bytes=weight_bytes * models)


def examples_of(
    tasks: Iterable[str], evaluate: EvaluateSettings, row_counts: Mapping[str, int]
) -> dict[str, int]:
    """Return task -> number of examples to predict; an assumption for tasks without a number.

    Args:
        tasks: names of tasks.
        evaluate: the largest number of examples.
        row_counts: task -> rows of the split, where they were counted.
    """
    rows = {
        task: row_counts.get(task, facts_of(task).validation_rows or ASSUMED_EXAMPLES)
        for task in tasks
    }
    if evaluate.max_examples:
        return {task: min(count, evaluate.max_examples) for task, count in rows.items()}
    return rows
