"""Predictions of a network of labels (BERT's kind): the likeliest label, option, number or span.

A choice, as in COPA, has a row for each option (`model/task_rows`); the option with the highest
score is the answer (`model/task_answers`). Its loss is `label_losses.option_losses`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.config.sections.evaluate import PredictStage
from t5repro.errors import ArtifactError
from t5repro.model.span_answers import SpanLimits, TaskTexts
from t5repro.model.task_rows import SegmentTexts, TaskRowEncoder, TaskRows, encode_rows, texts_of
from t5repro.progress import Progress
from t5repro.systems.answers import Answers, Rows

if TYPE_CHECKING:
    from t5repro.model.labels import LabelColumns
    from t5repro.vocab.vocabulary import Vocabulary


def answer_labels(
    settings: PredictStage,
    rows: Mapping[str, Rows],
    weight_sets: Sequence[Sequence[Path]],
    vocabulary: "Vocabulary",
    *,
    make_network: "Callable[[LabelColumns], Any]",
) -> Answers:
    """Return the answer to each example, for each set of weights; see `answering.answers`."""
    from t5repro.model.checkpoints import load_weights

    columns = shared_labels(weight_sets[0])
    encoded = task_rows(settings, vocabulary, texts_of(rows), columns)
    models = [make_network(columns) for _ in weight_sets[0]]
    texts: list[dict[str, TaskTexts]] = []
    total = len(weight_sets) * sum(len(rows_of_task.rows) for rows_of_task in encoded.values())
    with Progress("predict", total=total, unit="rows", begins="compiling") as progress:
        for paths in weight_sets:
            for path, model in zip(paths, models, strict=True):
                load_weights(path, model)
            texts.append(answer_rows(settings, encoded, models, columns, progress))
    counts = {
        task: {"examples": rows_of_task.examples, "truncated_inputs": len(rows_of_task.cut)}
        for task, rows_of_task in encoded.items()
    }
    return Answers(texts, counts)


def task_rows(
    settings: PredictStage,
    vocabulary: "Vocabulary",
    texts: Mapping[str, Sequence[SegmentTexts]],
    columns: "LabelColumns",
) -> dict[str, TaskRows]:
    """Return the rows of ids of examples.

    Args:
        settings: settings of the stage.
        vocabulary: of the run.
        texts: task -> segments and options of its examples.
        columns: of the head that answers them.

    Raises:
        ArtifactError: an example has other texts than in training, or the head lacks a task.
    """
    encoder = TaskRowEncoder(
        vocabulary,
        model=settings.model,
        length=settings.evaluate.inputs_length,
        windows=settings.tasks.windows,
        options_first=settings.tasks.options_first,
    )
    return encode_rows(encoder, texts, columns)


def answer_rows(
    settings: PredictStage,
    rows: Mapping[str, TaskRows],
    models: Sequence[Any],
    columns: "LabelColumns",
    progress: Progress,
) -> dict[str, TaskTexts]:
    """Return task -> the answers of models with their current weights.

    Args:
        settings: settings of the stage.
        rows: task -> rows of its examples.
        models: one network, or the members of an ensemble.
        columns: of the head of all members.
        progress: advanced by the rows of each batch.
    """
    from t5repro.model.task_answers import task_answers

    evaluate = settings.evaluate
    spans = SpanLimits(evaluate.answer_length, evaluate.span_candidates, evaluate.null_threshold)
    return {
        task: task_answers(
            models,
            rows_of_task,
            columns=columns,
            task=task,
            inputs_length=settings.evaluate.inputs_length,
            batch_size=settings.evaluate.batch_size,
            spans=spans,
            advance=progress.advance,
        )
        for task, rows_of_task in rows.items()
    }


def shared_labels(weights: Sequence[Path]) -> "LabelColumns":
    """Return the labels of some files of weights.

    Raises:
        ArtifactError: the files have different labels.
    """
    from t5repro.model.checkpoints import read_labels

    first, *further_columns = [read_labels(path) for path in weights]
    for path, columns in zip(weights[1:], further_columns, strict=True):
        if columns.answers != first.answers:
            raise ArtifactError(
                f"{path} answers {columns.as_text()}, {weights[0]} {first.as_text()}; members of "
                "evaluate.ensemble need the same tasks"
            )
    return first
