"""Inputs to predict from: examples as token ids, grouped into batches of one padded length."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError
from t5repro.files import read_json_lines
from t5repro.model.segment_rows import OPTIONS, SEGMENTS
from t5repro.vocab.special_ids import EOS_ID
from t5repro.vocab.vocabulary import Vocabulary, target_marker_ids

EXAMPLE_KEYS = ("idx", "inputs", "targets", "answer")

# Every padded length costs a compilation; below this one, padding costs less.
SHORTEST_LENGTH = 32

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class EncodedInputs:
    """The inputs of one example as token ids.

    Attributes:
        task: name of its task.
        row: its row in the task's file.
        tokens: its inputs, cut to the maximum length, with EOS.
        truncated: whether tokens were cut off.
        padded_length: length with padding, which depends only on the number of tokens.
    """

    task: str
    row: int
    tokens: tuple[int, ...]
    truncated: bool
    padded_length: int


def read_examples(path: Path, *, limit: int) -> list[dict[str, Any]]:
    """Read a task's examples.

    Args:
        path: JSON lines of the stage `tasks`.
        limit: number of examples to keep, from the first; 0 means all.

    Raises:
        ArtifactError: there are none, or a row lacks a key; the message names the line.
    """
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(read_json_lines(path), start=1):
        if limit and len(rows) == limit:
            break
        missing = [key for key in EXAMPLE_KEYS if key not in row]
        if missing:
            raise ArtifactError(f"{path} line {number} lacks {missing}; rerun the stage tasks")
        rows.append({key: row[key] for key in (*EXAMPLE_KEYS, SEGMENTS, OPTIONS) if key in row})
    if not rows:
        raise ArtifactError(
            f"{path} contains no example; check the task's file and rerun the stage tasks"
        )
    return rows


def encode(
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    vocabulary: Vocabulary,
    *,
    model: ModelSettings,
    inputs_length: int,
) -> list[EncodedInputs]:
    """Return the token ids of the inputs of each row, cut and ended as in training.

    Args:
        rows: task -> rows with the key ``inputs``.
        vocabulary: the vocabulary of the run.
        model: architecture and target marker, which decide the end.
        inputs_length: maximum length including the end; tokens.
    """
    suffix = target_marker_ids(vocabulary, model, inputs_length=inputs_length)
    return [
        inputs
        for task, task_rows in rows.items()
        for inputs in end_inputs(
            task,
            vocabulary.encode_batch([row["inputs"] for row in task_rows]),
            inputs_length=inputs_length,
            suffix=suffix,
        )
    ]


def end_inputs(
    task: str,
    ids: Sequence[Sequence[int]],
    *,
    inputs_length: int,
    suffix: tuple[int, ...] = (EOS_ID,),
) -> list[EncodedInputs]:
    """Cut token lists to a length, append their end and determine their padded lengths.

    Args:
        task: name of the task.
        ids: token ids of each example, without EOS.
        inputs_length: maximum length including the end; tokens.
        suffix: ids that end each list.

    Source: released code, ``seqio.preprocessors.append_eos_after_trim``.
    """
    max_tokens = inputs_length - len(suffix)
    return [
        EncodedInputs(
            task=task,
            row=row,
            tokens=(*tokens[:max_tokens], *suffix),
            truncated=len(tokens) > max_tokens,
            padded_length=padded_length(
                min(len(tokens) + len(suffix), inputs_length), longest=inputs_length
            ),
        )
        for row, tokens in enumerate(ids)
    ]


def padded_length(tokens: int, *, longest: int) -> int:
    """Return the padded length of a row: a power of two from 32, at most `longest`."""
    length = SHORTEST_LENGTH
    while length < tokens:
        length *= 2
    return min(length, longest)


def batches(inputs: Sequence[EncodedInputs], *, batch_size: int) -> Iterator[list[EncodedInputs]]:
    """Yield batches of one padded length, short rows first, each of at most `batch_size` rows."""
    # A batch decodes until its last row has ended. Within a length the tasks therefore stay
    # together: predictions of one task end at similar steps.
    ordered = sorted(
        inputs, key=lambda row: (row.padded_length, row.task, len(row.tokens), row.row)
    )
    position = 0
    while position < len(ordered):
        length = ordered[position].padded_length
        batch = [
            row for row in ordered[position : position + batch_size] if row.padded_length == length
        ]
        yield batch
        position += len(batch)


def pad_batch(batch: Sequence[EncodedInputs], *, batch_size: int) -> Ids:
    """Return the ids of a batch, ``(batch_size, padded_length)``, 0 after the end of a row.

    A batch with fewer rows repeats its first: every call has the same shape, and no row is empty,
    for which a decoder would run to the last step.
    """
    ids = np.zeros((batch_size, batch[0].padded_length), dtype=np.int32)
    for row in range(batch_size):
        tokens = batch[row if row < len(batch) else 0].tokens
        ids[row, : len(tokens)] = tokens
    return ids
