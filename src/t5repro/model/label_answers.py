"""Answers of a network of labels: the likeliest label of a task, or a number, as text.

The text is that which a network that writes text would be scored by, so scores and submissions do
not depend on the architecture.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from keras import ops

from t5repro.errors import ArtifactError
from t5repro.model.decode import call_compiled
from t5repro.model.decode_inputs import padded_length
from t5repro.model.distribution import shared_rows
from t5repro.model.encoder import Encoder
from t5repro.model.labels import LabelColumns
from t5repro.model.layers import Tensor
from t5repro.model.segment_rows import SegmentRow
from t5repro.model.transformer import T5

DECIMALS = 4  # of a predicted number
NumberedRow = tuple[int, SegmentRow]


def label_answers(
    models: Sequence[Encoder | T5],
    rows: Sequence[SegmentRow],
    *,
    columns: LabelColumns,
    task: str,
    batch_size: int,
    replicas: int = 1,
    advance: Callable[[int], None] | None = None,
) -> list[str]:
    """Return the answer to each row of a task.

    The padded length of a row depends on its own ids alone, as in decoding.

    Args:
        models: one network, or the members of an ensemble, combined by the mean of the logits.
        rows: the rows of the task.
        columns: columns of the head of all members.
        task: name of the task.
        batch_size: rows of a batch.
        replicas: devices that share a batch.
        advance: called with the number of rows of each batch.

    Raises:
        ArtifactError: the networks were not fine-tuned on the task.
    """
    if task not in columns.columns:
        raise ArtifactError(
            f"the weights have no labels of {task}, only of {sorted(columns.columns)}; fine-tune "
            "on it, or leave it out of tasks.names"
        )
    first, width, is_number = columns.columns[task]
    answers = [""] * len(rows)
    longest = max(len(row.ids) for row in rows)
    for batch in _batches(rows, longest, batch_size):
        size = shared_rows(batch_size, replicas)
        logits_BC = np.mean(
            [_logits(model, _features(model, batch, longest, size)) for model in models], axis=0
        )[: len(batch), first : first + width]
        for (number, _), values in zip(batch, logits_BC, strict=True):
            answers[number] = (
                f"{values[0]:.{DECIMALS}f}"
                if is_number
                else columns.words[task][int(np.argmax(values))]
            )
        if advance:
            advance(len(batch))
    return answers


def _batches(
    rows: Sequence[SegmentRow], longest: int, batch_size: int
) -> Iterable[list[NumberedRow]]:
    """Yield batches of one padded length, short rows first."""
    by_length: dict[int, list[NumberedRow]] = {}
    for number, row in enumerate(rows):
        length = padded_length(len(row.ids), longest=longest)
        by_length.setdefault(length, []).append((number, row))
    for _, numbered in sorted(by_length.items()):
        for start in range(0, len(numbered), batch_size):
            yield numbered[start : start + batch_size]


def _features(
    model: Encoder | T5, batch: Sequence[NumberedRow], longest: int, size: int
) -> dict[str, np.ndarray]:
    """Return the features of a batch by name; the first row fills it up."""
    length = padded_length(max(len(row.ids) for _, row in batch), longest=longest)
    rows = [batch[place if place < len(batch) else 0][1] for place in range(size)]
    stack = "encoder" if isinstance(model, Encoder) else "decoder"
    features = _padded(stack, [row.ids for row in rows], length)
    if isinstance(model, Encoder):
        types = np.zeros((size, length), np.int32)
        for row, row_types in zip(rows, types, strict=True):
            row_types[row.first_length : len(row.ids)] = 1
        return features | {"encoder_types": types}
    features["last_positions"] = np.array([[len(row.ids) - 1] for row in rows], np.int32)
    if any(row.swapped for row in rows):
        features |= _padded("swapped", [row.swapped for row in rows], length)
    return features


def _padded(name: str, rows: Sequence[Sequence[int]], length: int) -> dict[str, np.ndarray]:
    """Return ids and segments of rows, int32 ``(rows, length)``, 0 after the end of a row."""
    ids, segments = (np.zeros((len(rows), length), np.int32) for _ in range(2))
    for row, row_ids, row_segments in zip(rows, ids, segments, strict=True):
        row_ids[: len(row)] = row
        row_segments[: len(row)] = 1
    return {f"{name}_ids": ids, f"{name}_segments": segments}


def _logits(model: Encoder | T5, features: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return float32 logits, (batch, columns)."""
    names = tuple(features)
    graph = functools.partial(_graph, model, names)
    return call_compiled(model, ("labels", *names), graph, *features.values())


def _graph(model: Encoder | T5, names: Sequence[str], *arrays: Tensor) -> Tensor:
    features = dict(zip(names, arrays, strict=True))
    return ops.cast(model(features, training=False), "float32")
