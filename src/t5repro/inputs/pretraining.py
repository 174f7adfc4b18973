"""Batches of pre-training from the corpus as ids, for every objective (paper section 3.3).

The file of ids is mapped into memory, never copied, so the corpus may be larger than the memory;
what each layout keeps is said in `sequences`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, CorpusError
from t5repro.inputs.batches import (
    Features,
    Flat,
    assemble,
    assemble_joined,
    gather_pieces,
    pad_segments,
)
from t5repro.inputs.packing import (
    Integers,
    PackedRows,
    Stream,
    chunk_documents,
    document_stream,
    pack_documents,
)
from t5repro.inputs.row_index import packed_reader, stream_reader
from t5repro.objectives.corruption import Corrupted, Segments, flatten, sentinel_overflow
from t5repro.objectives.masks import PHILOX
from t5repro.objectives.recipes import (
    OBJECTIVES,
    Segment,
    corrupt,
    corruption_limits,
    segment_length,
)
from t5repro.randomness import seed_pair
from t5repro.vocab.token_files import id_dtype, read_ids, read_offsets

CHECKED_IDS = 1 << 25  # ids looked at when a file is opened
PROBED_STEPS = 32  # steps that the counters look at


@dataclass(frozen=True)
class SpanInputs:
    """The corpus, laid out for an objective.

    Attributes:
        settings: of pre-training.
        vocab: of the vocabulary.
        seed: the run's seed.
        ids: the mapped file of ids.
        offsets: where documents begin in it, and where the last one ends.
        layout: which tokens form a row.
        segment_tokens: tokens of the longest segment.
        joined: inputs and targets are one row, for a decoder alone.
    """

    settings: PretrainSettings
    vocab: VocabSettings
    seed: int
    ids: tf.Tensor
    offsets: Integers
    layout: Stream | PackedRows
    segment_tokens: int
    joined: bool = False

    def batches(self, *, first_step: int, steps: int) -> tf.data.Dataset:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""
        make = self._batch_maker()
        dataset = tf.data.Dataset.range(first_step, first_step + steps)
        return dataset.map(
            lambda step: make(step)[:2], num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        ).prefetch(tf.data.AUTOTUNE)

    def counters(self, *, steps: int) -> dict[str, Any]:
        """Count tokens and faults over `PROBED_STEPS` steps spread over the first `steps`.

        Returns:
            ``padding_share`` of the batches, ``epochs`` that the steps make, and totals of the
            probed steps: tokens, targets that were cut, sentinels past the vocabulary's.
        """
        if not steps:
            return {"probed_steps": 0}
        probed = np.unique(np.linspace(0, steps - 1, PROBED_STEPS, dtype=np.int64))
        make = tf.function(self._batch_maker())
        totals = dict.fromkeys(STATISTICS, 0)
        for step in probed:
            for name, value in make(tf.constant(step))[2].items():
                totals[name] += int(value)
        rows = self.settings.batch_rows * len(probed)
        room = rows * (self.settings.inputs_room + self.settings.targets_length)
        filled = totals["input_tokens"] + totals["target_tokens"]
        return {
            "probed_steps": len(probed),
            "segment_tokens": self.segment_tokens,
            "rows_per_epoch": self.rows_per_epoch,
            "epochs": round(steps * self.settings.batch_rows / self.rows_per_epoch, 4),
            "padding_share": round(1 - filled / room, 6),
            **totals,
        }

    @property
    def rows_per_epoch(self) -> int:
        """Rows until every segment was taken once."""
        return self.layout.segments if isinstance(self.layout, Stream) else self.layout.rows

    def pieces(self, step: int) -> tuple[Integers, Integers, Integers]:
        """Return the pieces of the file of ids that a step's batch is made of.

        Returns:
            Where each piece begins, its tokens, and the row it is in; ``(pieces,)`` each.
        """
        reader = self._row_reader()
        starts, pieces, lengths, _, per_row = (
            item.numpy() for item in reader(tf.constant(step, tf.int64))
        )
        row_ends = np.cumsum(lengths, dtype=np.int64)[np.cumsum(per_row) - 1]
        piece_starts = np.cumsum(pieces, dtype=np.int64) - pieces
        rows = np.searchsorted(row_ends, piece_starts, side="right")
        used = pieces > 0
        return starts[used], pieces[used].astype(np.int64), rows[used]

    def documents(self, step: int) -> list[int]:
        """Return which documents have tokens in a step's batch, by their place in the file."""
        starts = self.pieces(step)[0]
        numbers = np.searchsorted(self.offsets, starts, side="right") - 1
        return sorted({int(number) for number in numbers})

    def _row_reader(self) -> Any:
        if isinstance(self.layout, Stream):
            room = (self.settings.inputs_length, self.settings.targets_length)
            return stream_reader(self.layout, self.settings.batch_rows, room, self.seed)
        return packed_reader(self.layout, self.settings.batch_rows, self.seed)

    def _batch_maker(self) -> Any:
        """Return the function from a step to features, targets and statistics."""
        settings, total_ids = self.settings, self.vocab.total_ids
        objective = OBJECTIVES[settings.objective]
        reader = self._row_reader()
        noise, corruption = (
            tf.constant(seed_pair(self.seed, "pretrain", use), tf.int32)
            for use in ("noise", "corruption")
        )
        width = self.segment_tokens
        lay = assemble_joined if self.joined else assemble
        room = {"inputs_length": settings.inputs_room, "targets_length": settings.targets_length}

        def make(step: tf.Tensor) -> tuple[Features, tf.Tensor, dict[str, tf.Tensor]]:
            starts, pieces, lengths, limits, segments_per_row = reader(step)
            flat = Flat(gather_pieces(self.ids, starts, pieces), lengths)
            tokens = pad_segments(flat, width)
            valid = tf.sequence_mask(lengths, width)
            seeds = [tf.random.fold_in(seed, step, alg=PHILOX) for seed in (noise, corruption)]
            mask = objective.mask(settings, lengths, width, seeds[0])
            sides = corrupt(settings, Segment(tokens, mask, valid, total_ids, seeds[1]))
            inputs, targets = (
                _flatten(side, limits[:, number]) for number, side in enumerate(sides)
            )
            features, labels = lay(
                Flat(inputs.ids, inputs.lengths),
                Flat(targets.ids, targets.lengths),
                segments_per_row,
                **room,
            )
            spans = mask if objective.unique_sentinels else tf.zeros_like(mask)
            overflow = sentinel_overflow(spans, valid, extra_ids=self.vocab.extra_ids)
            return features, labels, _statistics(inputs, targets, overflow)

        return make


def _flatten(side: Corrupted | None, limits: tf.Tensor) -> Segments:
    if side is not None:
        return flatten(side, limits=limits)
    nothing = tf.zeros_like(limits)
    return Segments(tf.zeros([0], tf.int32), nothing, nothing)


STATISTICS = (
    "segments",
    "input_tokens",
    "target_tokens",
    "cut_inputs",
    "cut_targets",
    "segments_past_sentinels",
    "spans_past_sentinels",
)


def _statistics(inputs: Segments, targets: Segments, overflow: tf.Tensor) -> dict[str, tf.Tensor]:
    def count(condition: tf.Tensor) -> tf.Tensor:
        return tf.math.count_nonzero(condition)

    values = (
        tf.size(inputs.lengths),
        tf.size(inputs.ids),
        tf.size(targets.ids),
        count(inputs.cut),
        count(targets.cut),
        count(overflow),
        tf.reduce_sum(overflow),
    )
    return dict(zip(STATISTICS, values, strict=True))


def load_span_inputs(
    settings: PretrainSettings,
    *,
    tokens: Path,
    offsets: Path,
    vocab: VocabSettings,
    seed: int,
    joined: bool = False,
) -> SpanInputs:
    """Open the corpus and lay it out.

    Args:
        settings: of pre-training.
        tokens: file of ids.
        offsets: file of document offsets.
        vocab: of the vocabulary that the ids belong to.
        seed: the run's seed.
        joined: inputs and targets are one row, for a decoder alone.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus does not fill a row, or has less than `unique_tokens`.
        SettingsError: the targets of a segment do not fit `targets_length`.
    """
    segment_tokens = segment_length(settings)
    bounds = read_offsets(offsets)
    ids = _open_ids(tokens, vocab.total_ids, int(bounds[-1]))
    bounds = first_tokens(bounds, settings.unique_tokens)
    documents = chunk_documents(bounds, chunk_tokens=settings.chunk_tokens, seed=seed)
    layout: Stream | PackedRows
    if settings.concatenate_documents:
        layout = document_stream(documents, segment_tokens=segment_tokens, seed=seed)
    else:
        layout = pack_documents(
            documents,
            segment_tokens=segment_tokens,
            limits_by_tokens=corruption_limits(settings, segment_tokens),
            inputs_length=settings.inputs_length,
            targets_length=settings.targets_length,
            seed=seed,
        )
    return SpanInputs(settings, vocab, seed, ids, bounds, layout, segment_tokens, joined)


def first_tokens(offsets: Integers, count: int) -> Integers:
    """Return the offsets of the first `count` tokens; the last document is cut. 0: all of them.

    The corpus is ordered by a hash of each page's address, so its beginning is a sample of it, and
    a smaller subset is a part of a larger one.

    Raises:
        CorpusError: there are fewer.

    Source: paper section 3.4.2.
    """
    if not count:
        return offsets
    if count > offsets[-1]:
        raise CorpusError(
            f"pretrain.unique_tokens is {count}, the corpus has {int(offsets[-1])} tokens; lower "
            f"it, or give it more text"
        )
    whole = int(np.searchsorted(offsets, count))
    return np.append(offsets[:whole], count).astype(np.int64)


def _open_ids(path: Path, total_ids: int, expected: int) -> tf.Tensor:
    """Map the ids into a tensor without copying them."""
    mapped = read_ids(path, total_ids)
    if len(mapped) != expected:
        raise ArtifactError(
            f"{path} holds {len(mapped)} ids, its offsets end at {expected}: one of the two is "
            f"damaged or of another vocabulary; delete both and rerun the rule tokens"
        )
    if len(mapped) and (largest := int(mapped[:CHECKED_IDS].max())) >= total_ids:
        raise ArtifactError(
            f"{path} holds the id {largest}, the vocabulary ends at {total_ids - 1}: it was "
            f"written with another vocabulary; rerun the rule tokens"
        )
    with tf.device("CPU:0"):
        if not expected:
            return tf.zeros([0], tf.as_dtype(id_dtype(total_ids)))
        return tf.raw_ops.ImmutableConst(
            dtype=tf.as_dtype(id_dtype(total_ids)),
            shape=[expected],
            memory_region_name=str(path.resolve()),
        )
