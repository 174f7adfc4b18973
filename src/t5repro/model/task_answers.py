"""Answers of a network of labels: a label, an option, a number, a span or tags, as text.

Networks that write text are scored by the same texts, so scores and submissions do not depend on
the architecture.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from keras import ops

from t5repro.model.decode import call_compiled
from t5repro.model.decode_inputs import padded_length
from t5repro.model.labels import LabelColumns
from t5repro.model.layers import Tensor
from t5repro.model.segment_rows import SegmentRow
from t5repro.model.single_rows import two_rows_or_more
from t5repro.model.span_answers import SpanLimits, TaskTexts, best_spans, span_texts
from t5repro.model.task_rows import TaskRows, trained_task
from t5repro.task_facts import OUTSIDE

DECIMALS = 4  # of a predicted number
NumberedRow = tuple[int, SegmentRow]
Head = Callable[[Any, Mapping[str, Tensor]], Tensor]


class AnsweringNetwork(Protocol):
    """A network with a head of labels, perhaps one of spans, or both."""

    def row_features(self, rows: Sequence[SegmentRow], length: int) -> dict[str, np.ndarray]:
        """Return the features of rows, padded to a length, by name."""

    def answer_logits(self, features: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of labels, numbers and options, (batch, columns)."""


def task_answers(
    models: Sequence[AnsweringNetwork],
    rows: TaskRows,
    *,
    columns: LabelColumns,
    task: str,
    inputs_length: int,
    batch_size: int,
    spans: SpanLimits,
    advance: Callable[[int], None] | None = None,
) -> TaskTexts:
    """Return the answer to each example of a task.

    The padded length of a row depends only on its own ids and `inputs_length`, as in decoding.

    Args:
        models: one network, or the members of an ensemble, combined by the mean of the logits.
        rows: the rows of the task.
        columns: columns of the head of all members.
        task: name of the task.
        inputs_length: most ids of a row.
        batch_size: rows of a batch.
        spans: limits of answers that are spans.
        advance: called with the number of rows of each batch.

    Raises:
        ArtifactError: the networks were not fine-tuned on the task.
    """
    trained = trained_task(columns, task)
    (first, width, _), answer = columns.columns[trained], columns.answers[trained]
    head = {"span": _span_head, "tags": _tag_head}.get(answer.kind, _label_head)
    logits = [np.zeros(0, np.float32)] * len(rows.rows)
    # Every batch has the same number of rows, so each padded length is compiled once.
    for batch in _batches(rows.rows, inputs_length, batch_size):
        features = _features(models[0], batch, inputs_length, batch_size)
        # An ensemble averages logits, not probabilities, as for texts (section 3.6).
        values = np.mean([_logits(model, head, features) for model in models], axis=0)
        # Rows that fill up the batch have no number: the shorter `batch` ends the loop.
        for (number, _), row_values in zip(batch, values, strict=False):
            logits[number] = row_values
        if advance:
            advance(len(batch))
    if answer.kind == "span":
        return span_texts(best_spans(rows, logits, spans), answer.words, spans)
    if answer.kind == "tags":
        tags = slice(first, first + width)
        return TaskTexts(
            [
                _tags_as_text(values[:, tags], places, answer.words)
                for values, places in zip(logits, rows.first_pieces, strict=True)
            ]
        )
    row_logits = np.array([values[first : first + width] for values in logits])
    if answer.kind == "number":
        return TaskTexts([f"{value * answer.scale:.{DECIMALS}f}" for (value,) in row_logits])
    # A row has the columns of its labels, or an example the single columns of its options.
    example_logits = row_logits.reshape(rows.examples, -1)
    return TaskTexts([answer.words[index] for index in np.argmax(example_logits, axis=1)])


def _batches(
    rows: Sequence[SegmentRow], longest: int, batch_size: int
) -> Iterator[list[NumberedRow]]:
    """Yield batches of one padded length, short rows first."""
    rows_of_length: dict[int, list[NumberedRow]] = {}
    for number, row in enumerate(rows):
        length = padded_length(len(row.ids), longest=longest)
        rows_of_length.setdefault(length, []).append((number, row))
    for _, numbered in sorted(rows_of_length.items()):
        for first in range(0, len(numbered), batch_size):
            yield numbered[first : first + batch_size]


def _features(
    model: AnsweringNetwork, batch: Sequence[NumberedRow], longest: int, size: int
) -> dict[str, np.ndarray]:
    """Return the features of a batch by name; the first row fills it up."""
    length = padded_length(max(len(row.ids) for _, row in batch), longest=longest)
    rows = [batch[index if index < len(batch) else 0][1] for index in range(size)]
    return model.row_features(rows, length)


def _logits(model: AnsweringNetwork, head: Head, features: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the float32 logits of a head, with the rows of the features."""
    names = tuple(features)
    graph = functools.partial(_graph, model, head, names)
    return call_compiled([model], (head, *names), graph, *features.values())


def _graph(model: AnsweringNetwork, head: Head, names: Sequence[str], *arrays: Tensor) -> Tensor:
    features = dict(zip(names, map(two_rows_or_more, arrays), strict=True))
    return ops.cast(head(model, features), "float32")[: ops.shape(arrays[0])[0]]


def _label_head(model: Any, features: Mapping[str, Tensor]) -> Tensor:
    """Return the logits of labels, numbers and options, (batch, columns)."""
    return model.answer_logits(features)


def _tags_as_text(logits: np.ndarray, first_pieces: Sequence[int], tags: Sequence[str]) -> str:
    """Return the likeliest tag of each word; of a word that was cut off the one outside entities.

    Args:
        logits: of all positions of a row, (length, tags).
        first_pieces: position of each word, see `TaskRows`.
        tags: by index.
    """
    likeliest = np.argmax(logits, axis=1)
    return " ".join(tags[likeliest[position]] if position else OUTSIDE for position in first_pieces)


def _tag_head(model: Any, features: Mapping[str, Tensor]) -> Tensor:
    """Return the logits of the tags of all positions, (batch, length, tags)."""
    return model.tag_logits(model.encode(features))


def _span_head(model: Any, features: Mapping[str, Tensor]) -> Tensor:
    """Return the logits of the first and last positions of spans, (batch, length, 2)."""
    return model.span_logits(model.encode(features))
