"""Batches of pre-training from the corpus as ids, for every objective (paper section 3.3).

The file of ids is mapped into memory, never copied, so the corpus may exceed the memory; `packing`
names the memory of each layout. The batch of step n depends only on the data, the settings, the
seed and n, never on the first step of a run or the engine that trains.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from t5repro.array_types import Array, Int32, Int64
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError
from t5repro.inputs.batches import (
    Batch,
    Batches,
    FlatSegments,
    encoder_decoder_batch,
    gather_pieces,
    joined_batch,
    pad_segments,
)
from t5repro.inputs.corpus_layout import CorpusLayout, lay_out
from t5repro.inputs.document_steps import steps_of_documents
from t5repro.inputs.packing import Stream
from t5repro.inputs.row_index import Reader, packed_reader, stream_reader
from t5repro.objectives.corruption import Corrupted, Segments, flatten
from t5repro.objectives.denoisers import Seeds, Texts, apply_objective, draw_denoisers
from t5repro.objectives.philox import fold_in
from t5repro.randomness import seed_pair
from t5repro.vocab.token_files import read_ids, read_offsets

CHECKED_IDS = 1 << 25  # ids whose range is checked when a file is opened
PROBED_STEPS = 32  # steps whose batches the counters are taken from


class Pieces(NamedTuple):
    """The pieces of the file of ids in the batch of a step.

    Attributes:
        starts: start of each piece, ``(pieces,)``.
        lengths: its tokens, ``(pieces,)``.
        rows: its row in the batch, ``(pieces,)``.
        segments: its segment in the batch, ``(pieces,)``.
    """

    starts: Int64
    lengths: Int64
    rows: Int64
    segments: Int64


@dataclass(frozen=True, kw_only=True)
class CorpusInputs(CorpusLayout):
    """The corpus, laid out for an objective.

    Attributes:
        vocab: of the vocabulary.
        ids: the mapped file of ids.
        joined: inputs and targets share one row, for a decoder-only network.
    """

    vocab: VocabSettings
    ids: Array
    joined: bool = False

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`; see `batches`."""
        read = self._reader()
        return Batches(lambda step: self._make(read, step)[0], first_step, steps)

    def counters(self, *, steps: int) -> dict[str, Any]:
        """Count tokens and faults in `PROBED_STEPS` steps, spread evenly over the first `steps`.

        Returns:
            ``padding_share`` of the batches, ``epochs`` of the steps, and totals of the probed
            steps: tokens, segments that were cut, sentinels that the vocabulary lacks.
        """
        if not steps:
            return {"probed_steps": 0}
        # Counting all steps would read the corpus again; some steps of the whole range suffice.
        probed = np.unique(np.linspace(0, steps - 1, PROBED_STEPS, dtype=np.int64))
        read = self._reader()
        totals: Counter[str] = Counter()
        for step in probed.tolist():
            totals.update(self._make(read, step)[1])
        rows = self.settings.batch_size * len(probed)
        size = rows * (self.settings.packed_inputs_length + self.settings.targets_length)
        filled = totals["input_tokens"] + totals["target_tokens"]
        return {
            "probed_steps": len(probed),
            "segment_tokens": self.segment_tokens,
            "rows_per_epoch": self.rows_per_epoch,
            "epochs": round(steps * self.settings.batch_size / self.rows_per_epoch, 4),
            "padding_share": round(1 - filled / size, 6),
            **totals,
        }

    def pieces(self, step: int) -> Pieces:
        """Return the pieces of the file of ids in the batch of a step."""
        starts, lengths, segment_lengths, _, segments_per_row = self._reader()(step)
        # Pieces and segments cover the same tokens: a piece is in the segment in whose range of
        # tokens it starts, and in the row of this segment.
        segment_ends = np.cumsum(segment_lengths, dtype=np.int64)
        # Pieces of length 0 belong to no segment.
        filled = lengths > 0
        piece_starts = (np.cumsum(lengths, dtype=np.int64) - lengths)[filled]
        segments = np.searchsorted(segment_ends, piece_starts, side="right")
        rows = np.searchsorted(np.cumsum(segments_per_row), segments, side="right")
        return Pieces(starts[filled], lengths[filled].astype(np.int64), rows, segments)

    def steps_of(self, documents: Sequence[int], *, steps: int) -> dict[int, list[int]]:
        """Return the steps below `steps` that read tokens of each document."""
        return steps_of_documents(self, documents, steps=steps)

    def denoisers(self, step: int) -> Int64 | None:
        """Return the index of the denoiser of each segment of a step; None without denoisers."""
        if not self.settings.denoisers:
            return None
        segments = len(self._reader()(step).segment_lengths)
        seed = self._seeds(step).denoiser
        return draw_denoisers(self.settings.denoisers, segments, seed).astype(np.int64)

    def _seeds(self, step: int) -> Seeds:
        """Return the seeds of a step: the noise of step n needs no state of earlier steps."""
        uses = (seed_pair(self.seed, "pretrain", use) for use in Seeds._fields)
        return Seeds(*(fold_in(np.array(pair, np.int32), step) for pair in uses))

    def _reader(self) -> Reader:
        if isinstance(self.layout, Stream):
            max_lengths = (self.settings.inputs_length, self.settings.targets_length)
            return stream_reader(self.layout, self.settings.batch_size, max_lengths, self.seed)
        return packed_reader(self.layout, self.settings.batch_size, self.seed)

    def _make(self, read: Reader, step: int) -> tuple[Batch, dict[str, int]]:
        """Return the batch of a step and its statistics."""
        settings = self.settings
        # 1. The raw tokens of the step's segments, padded to one width.
        pieces = read(step)
        lengths = pieces.segment_lengths
        flat = FlatSegments(gather_pieces(self.ids, pieces.starts, pieces.lengths), lengths)
        tokens = pad_segments(flat, self.segment_tokens)
        texts = Texts(tokens, lengths, self.vocab.total_ids, self.vocab.extra_ids)
        # 2. Inputs and targets. Padding is invalid to every corruption, so it stays out.
        pair = apply_objective(settings, texts, self._seeds(step))
        inputs = _flatten(pair.inputs, pieces.limits[:, 0])
        targets = _flatten(pair.targets, pieces.limits[:, 1])
        # 3. Rows of fixed shape.
        assemble = joined_batch if self.joined else encoder_decoder_batch
        batch = assemble(
            FlatSegments(inputs.ids, inputs.lengths),
            FlatSegments(targets.ids, targets.lengths),
            pieces.segments_per_row,
            inputs_length=settings.packed_inputs_length,
            targets_length=settings.targets_length,
        )
        return batch, _statistics(inputs, targets, pair.missing_sentinels)


def _flatten(side: Corrupted | None, limits: Int32) -> Segments:
    """Return one side of the segments; an objective without inputs has segments of length 0."""
    if side is not None:
        return flatten(side, limits=limits)
    zeros = np.zeros_like(limits)
    return Segments(np.zeros(0, np.int32), zeros, zeros)


def _statistics(inputs: Segments, targets: Segments, missing_sentinels: Int32) -> dict[str, int]:
    return {
        "segments": len(inputs.lengths),
        "input_tokens": len(inputs.ids),
        "target_tokens": len(targets.ids),
        "cut_inputs": int(np.count_nonzero(inputs.cut)),
        "cut_targets": int(np.count_nonzero(targets.cut)),
        "segments_past_sentinels": int(np.count_nonzero(missing_sentinels)),
        "spans_past_sentinels": int(missing_sentinels.sum()),
    }


def load_corpus_inputs(
    settings: PretrainSettings,
    *,
    ids: Path,
    offsets: Path,
    vocab: VocabSettings,
    seed: int,
    joined: bool = False,
) -> CorpusInputs:
    """Open the corpus and lay it out.

    Args:
        settings: of pre-training.
        ids: file of ids.
        offsets: file of document offsets.
        vocab: of the vocabulary that the ids belong to.
        seed: of this training; `repeat_seed` makes it from the run's.
        joined: inputs and targets share one row, for a decoder-only network.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus does not fill a row, or has fewer than `unique_tokens`.
        SettingsError: the targets of a segment do not fit `targets_length`.
    """
    bounds = read_offsets(offsets)
    mapped_ids = open_ids(ids, vocab.total_ids, int(bounds[-1]))
    corpus = lay_out(settings, bounds, seed=seed)
    return CorpusInputs(
        settings=settings,
        seed=seed,
        offsets=corpus.offsets,
        layout=corpus.layout,
        segment_tokens=corpus.segment_tokens,
        vocab=vocab,
        ids=mapped_ids,
        joined=joined,
    )


def open_ids(path: Path, total_ids: int, expected: int) -> Array:
    """Map `expected` ids into memory without copying them.

    Args:
        path: file of ids.
        total_ids: ids of the vocabulary.
        expected: end of the last document.

    Raises:
        ArtifactError: the file is missing or damaged, or the ids are of another vocabulary.
    """
    mapped = read_ids(path, total_ids)
    if len(mapped) != expected:
        raise ArtifactError(
            f"{path} contains {len(mapped)} ids, its offsets end at {expected}: one of the two is "
            f"damaged or of another vocabulary; delete both and rerun the rule tokens"
        )
    if len(mapped) and (largest := int(mapped[:CHECKED_IDS].max())) >= total_ids:
        raise ArtifactError(
            f"{path} contains the id {largest}, the vocabulary ends at {total_ids - 1}: it was "
            f"written with another vocabulary; rerun the rule tokens"
        )
    return mapped
