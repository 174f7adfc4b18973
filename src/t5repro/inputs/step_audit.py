"""Which documents a step of pre-training saw, and which steps saw a document.

The answers come from the layout that training itself reads, so they cannot differ from it. They
need the settings, the seed and the files of ids, all of which the manifest of pre-training names;
no weights and no history.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from pydantic import ValidationError

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.errors import ArtifactError
from t5repro.files import read_json
from t5repro.inputs.packing import Integers, Stream
from t5repro.inputs.pretraining import SpanInputs, load_span_inputs
from t5repro.inputs.row_index import phases, shuffled_rows
from t5repro.randomness import repeat_seed

ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Seen:
    """A run of tokens that a step read.

    Attributes:
        step: of pre-training, from 0.
        row: of the batch, from 0.
        document: place of the document among those of `tokens`, from 0.
        first_token: place of the first token within its document.
        tokens: how many, before corruption.
    """

    step: int
    row: int
    document: int
    first_token: int
    tokens: int


def open_recorded(manifest: Path) -> tuple[SpanInputs, int]:
    """Open the inputs of a pre-training from its manifest.

    Args:
        manifest: of the rule `pretrain`; its paths are looked up from the current folder.

    Returns:
        The inputs, and how many steps the training had.

    Raises:
        ArtifactError: it is no manifest of pre-training, or a file of ids is missing.
    """
    record = read_json(manifest)
    if not isinstance(record, dict) or record.get("rule") != "pretrain":
        raise ArtifactError(f"{manifest} is not a manifest of the rule pretrain")
    try:
        settings = PretrainStage.model_validate(record["settings"])
    except ValidationError as error:
        raise ArtifactError(
            f"{manifest} records settings that this version does not read: {error}"
        ) from error
    paths = {Path(item["path"]).name: Path(item["path"]) for item in record["inputs"]}
    if absent := {"train.ids", "train.offsets"} - set(paths):
        raise ArtifactError(f"{manifest} names no {sorted(absent)} among its inputs")
    return open_inputs(settings, ids=paths["train.ids"], offsets=paths["train.offsets"]), (
        settings.pretrain.steps
    )


def open_inputs(settings: PretrainStage, *, ids: Path, offsets: Path) -> SpanInputs:
    """Open the inputs of a pre-training from its settings and its files of ids."""
    return load_span_inputs(
        settings.pretrain,
        tokens=ids,
        offsets=offsets,
        vocab=settings.vocab,
        seed=repeat_seed(settings.seed, settings.pretrain.repeat),
        joined=settings.model.decoder_only,
    )


def seen_in_step(inputs: SpanInputs, step: int) -> list[Seen]:
    """Return what a step read, in the order of its rows.

    A document that stands in a row twice, or runs on, has an entry for each run of tokens.
    """
    starts, tokens, rows = inputs.pieces(step)
    documents = np.searchsorted(inputs.offsets, starts, side="right") - 1
    return [
        Seen(step, int(row), int(document), int(start - inputs.offsets[document]), int(count))
        for start, count, row, document in zip(starts, tokens, rows, documents, strict=True)
    ]


def steps_of_documents(
    inputs: SpanInputs, documents: Sequence[int], *, steps: int
) -> dict[int, list[int]]:
    """Return the steps below `steps` that read tokens of each document.

    Time is that of drawing the order of all rows once, millions a second, and does not depend on
    the length of a row; memory is that of the answer.

    Args:
        inputs: of the pre-training.
        documents: places among the documents of `tokens`.
        steps: how many steps the training had.

    Raises:
        ArtifactError: there is no such document.
    """
    count = len(inputs.offsets) - 1
    for document in documents:
        if not 0 <= document < count:
            raise ArtifactError(f"there is no document {document}; they go from 0 to {count - 1}")
    found: dict[int, list[npt.NDArray[np.int64]]] = {document: [] for document in documents}
    wanted = {document: _rows_of(inputs, document) for document in found}
    for numbers, row, epoch in _all_rows(inputs, steps * inputs.settings.batch_rows):
        phase = _phase(inputs, epoch)
        for document, spans in wanted.items():
            hits = numbers[spans.touched(row, phase)]
            found[document].append(np.unique(hits // inputs.settings.batch_rows))
    return {
        document: np.unique(np.concatenate([*parts, np.zeros(0, np.int64)])).tolist()
        for document, parts in found.items()
    }


def _all_rows(inputs: SpanInputs, count: int) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Yield the rows of the run, numbered from its start: number, row of the layout, epoch."""
    draw = tf.function(
        lambda number: shuffled_rows(number, inputs.rows_per_epoch, inputs.seed),
        input_signature=[tf.TensorSpec([None], tf.int64)],
    )
    for first in range(0, count, ROWS_AT_ONCE):
        numbers = np.arange(first, min(first + ROWS_AT_ONCE, count), dtype=np.int64)
        row, epoch = draw(tf.constant(numbers))
        yield numbers, row.numpy(), epoch.numpy()


def _phase(inputs: SpanInputs, epoch: Integers) -> Integers:
    if not isinstance(inputs.layout, Stream):
        return np.zeros_like(epoch)
    known, place = np.unique(epoch, return_inverse=True)
    drawn: Any = phases(tf.constant(known), inputs.layout.slack, inputs.seed).numpy()
    return np.asarray(drawn[place])


@dataclass(frozen=True)
class _InStream:
    """Where documents run on: one of them lies from token `low` to before `high`."""

    low: int
    high: int
    segment_tokens: int

    def touched(self, row: Integers, phase: Integers) -> npt.NDArray[np.bool_]:
        first = row * self.segment_tokens + phase
        return (first < self.high) & (first + self.segment_tokens > self.low)


@dataclass(frozen=True)
class _InRows:
    """Where segments are packed: the rows that hold one of a document."""

    rows: Integers

    def touched(self, row: Integers, phase: Integers) -> npt.NDArray[np.bool_]:
        return np.isin(row, self.rows)


def _rows_of(inputs: SpanInputs, document: int) -> _InStream | _InRows:
    low, high = inputs.offsets[document : document + 2]
    starts = inputs.layout.starts
    inside = np.flatnonzero((starts >= low) & (starts < high))
    if isinstance(inputs.layout, Stream):
        (place,) = inside  # one piece of each document is used
        ends = inputs.layout.ends
        begin = int(ends[place - 1]) if place else 0
        return _InStream(begin, int(ends[place]), inputs.layout.segment_tokens)
    return _InRows(np.unique(np.searchsorted(inputs.layout.splits, inside, side="right") - 1))
