"""Documents that a step of pre-training read, and steps that read a document.

The answers are computed from the layout that training itself reads, so they cannot differ from it.
They need the settings, the seed and the files of ids, all of which the manifest of pre-training
names, and neither weights nor history.
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
from t5repro.inputs.pretraining import CorpusInputs, load_corpus_inputs
from t5repro.inputs.row_index import phases, shuffled_rows
from t5repro.randomness import repeat_seed

ROWS_PER_DRAW = 1 << 20


@dataclass(frozen=True)
class DocumentSpan:
    """Consecutive tokens of a document in the batch of a step.

    Attributes:
        step: of pre-training, from 0.
        row: of the batch, from 0.
        document: index of the document in the files of `tokens`, from 0.
        first_token: index of the first token within its document.
        tokens: number of tokens, before corruption.
    """

    step: int
    row: int
    document: int
    first_token: int
    tokens: int


def open_recorded_inputs(manifest: Path) -> tuple[CorpusInputs, int]:
    """Open the inputs of a pre-training from its manifest.

    Args:
        manifest: of the rule `pretrain`; its paths are relative to the current folder.

    Returns:
        The inputs, and the number of steps of the training.

    Raises:
        ArtifactError: it is not a manifest of pre-training, or a file of ids is missing.
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
    paths = {Path(entry["path"]).name: Path(entry["path"]) for entry in record["inputs"]}
    if absent := {"train.ids", "train.offsets"} - set(paths):
        raise ArtifactError(f"{manifest} names no {sorted(absent)} among its inputs")
    inputs = open_inputs(settings, ids=paths["train.ids"], offsets=paths["train.offsets"])
    return inputs, settings.pretrain.steps


def open_inputs(settings: PretrainStage, *, ids: Path, offsets: Path) -> CorpusInputs:
    """Open the inputs of a pre-training from its settings and its files of ids."""
    return load_corpus_inputs(
        settings.pretrain,
        ids=ids,
        offsets=offsets,
        vocab=settings.vocab,
        seed=repeat_seed(settings.seed, settings.pretrain.repeat),
        decoder_only=settings.model.decoder_only,
    )


def spans_in_step(inputs: CorpusInputs, step: int) -> list[DocumentSpan]:
    """Return the spans of documents that a step read, in the order of its rows.

    A document that occurs twice in a row, or continues in the next one, has a span for each.
    """
    starts, tokens, rows = inputs.pieces(step)
    documents = np.searchsorted(inputs.offsets, starts, side="right") - 1
    return [
        DocumentSpan(
            step, int(row), int(document), int(start - inputs.offsets[document]), int(count)
        )
        for start, count, row, document in zip(starts, tokens, rows, documents, strict=True)
    ]


def steps_of_documents(
    inputs: CorpusInputs, documents: Sequence[int], *, steps: int
) -> dict[int, list[int]]:
    """Return the steps below `steps` that read tokens of each document.

    The order of all rows is computed once, at millions of rows a second whatever the length of a
    row; memory is that of the result.

    Args:
        inputs: of the pre-training.
        documents: indices of documents in the files of `tokens`.
        steps: number of steps of the training.

    Raises:
        ArtifactError: there is no such document.
    """
    count = len(inputs.offsets) - 1
    for document in documents:
        if not 0 <= document < count:
            raise ArtifactError(f"there is no document {document}; they go from 0 to {count - 1}")
    batch_size = inputs.settings.batch_size
    positions = {document: _position(inputs, document) for document in documents}
    step_parts: dict[int, list[Integers]] = {document: [] for document in documents}
    for numbers, row, epoch in _all_rows(inputs, steps * batch_size):
        phase = _phase(inputs, epoch)
        for document, position in positions.items():
            matches = numbers[position.overlaps(row, phase)]
            step_parts[document].append(np.unique(matches // batch_size))
    return {
        document: np.unique(np.concatenate([*parts, np.zeros(0, np.int64)])).tolist()
        for document, parts in step_parts.items()
    }


def _all_rows(inputs: CorpusInputs, count: int) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Yield the rows of the run, numbered from its start: number, row of the layout, epoch."""
    draw = tf.function(
        lambda number: shuffled_rows(number, inputs.rows_per_epoch, inputs.seed),
        input_signature=[tf.TensorSpec([None], tf.int64)],
    )
    for first in range(0, count, ROWS_PER_DRAW):
        numbers = np.arange(first, min(first + ROWS_PER_DRAW, count), dtype=np.int64)
        row, epoch = draw(tf.constant(numbers))
        yield numbers, row.numpy(), epoch.numpy()


def _phase(inputs: CorpusInputs, epoch: Integers) -> Integers:
    """Return the token of the stream at which each epoch begins; 0 for packed rows."""
    if not isinstance(inputs.layout, Stream):
        return np.zeros_like(epoch)
    epochs, index = np.unique(epoch, return_inverse=True)
    by_epoch: Any = phases(tf.constant(epochs), inputs.layout.phase_range, inputs.seed).numpy()
    return np.asarray(by_epoch[index])


@dataclass(frozen=True)
class _StreamPosition:
    """A document in a stream: tokens `low` to `high - 1`."""

    low: int
    high: int
    segment_tokens: int

    def overlaps(self, row: Integers, phase: Integers) -> npt.NDArray[np.bool_]:
        """Tell for each row of the layout whether it contains a token of the document."""
        first = row * self.segment_tokens + phase
        return (first < self.high) & (first + self.segment_tokens > self.low)


@dataclass(frozen=True)
class _PackedPosition:
    """A document in packed rows: the rows with one of its segments."""

    rows: Integers

    def overlaps(self, row: Integers, phase: Integers) -> npt.NDArray[np.bool_]:
        """Tell for each row of the layout whether it contains a token of the document."""
        return np.isin(row, self.rows)


def _position(inputs: CorpusInputs, document: int) -> _StreamPosition | _PackedPosition:
    low, high = inputs.offsets[document : document + 2]
    starts = inputs.layout.starts
    indices = np.flatnonzero((starts >= low) & (starts < high))
    if isinstance(inputs.layout, Stream):
        (index,) = indices  # a stream uses one piece of each document
        ends = inputs.layout.ends
        begin = int(ends[index - 1]) if index else 0
        return _StreamPosition(begin, int(ends[index]), inputs.layout.segment_tokens)
    return _PackedPosition(np.unique(np.searchsorted(inputs.layout.splits, indices, "right") - 1))
