"""Examples as token ids, grouped into batches of one padded length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t5repro.vocab.special_ids import EOS_ID

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
        padded_length: a function of the number of tokens alone.
    """

    task: str
    row: int
    tokens: tuple[int, ...]
    truncated: bool
    padded_length: int


def end_inputs(
    task: str, ids: Sequence[Sequence[int]], *, inputs_length: int, end: tuple[int, ...] = (EOS_ID,)
) -> list[EncodedInputs]:
    """Cut token lists to a length, append their end and determine their padded lengths.

    Args:
        task: name of the task.
        ids: token ids of each example, without EOS.
        inputs_length: maximum length including the end; tokens.
        end: ids that end each list.

    Source: released code, ``seqio.preprocessors.append_eos_after_trim``.
    """
    max_tokens = inputs_length - len(end)
    return [
        EncodedInputs(
            task=task,
            row=row,
            tokens=(*tokens[:max_tokens], *end),
            truncated=len(tokens) > max_tokens,
            padded_length=padded_length(
                min(len(tokens) + len(end), inputs_length), longest=inputs_length
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
    start = 0
    while start < len(ordered):
        length = ordered[start].padded_length
        batch = [row for row in ordered[start : start + batch_size] if row.padded_length == length]
        yield batch
        start += len(batch)


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
