"""Batches of span corruption from the corpus as ids (paper sections 3.1.4, 3.3.3 and 3.3.4).

The file of ids is mapped into memory, never copied, so the corpus may be larger than the memory;
what each layout keeps is said in `sequences`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t5repro.config.schema import PretrainSettings, VocabSettings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.inputs.batches import Features, Flat, assemble, gather_pieces, pad_segments
from t5repro.inputs.sequences import (
    Integers,
    PackedRows,
    Stream,
    document_stream,
    pack_documents,
)
from t5repro.objectives.corruption import (
    Segments,
    flatten,
    sentinel_overflow,
    spans_to_unique_sentinels,
    with_final_sentinel,
)
from t5repro.objectives.lengths import corrupted_lengths, random_spans_lengths, span_counts
from t5repro.objectives.masks import PHILOX, iid_noise_mask, random_spans_noise_mask
from t5repro.randomness import seed_pair
from t5repro.vocab.encode import Vocabulary, id_dtype, read_ids, read_offsets

CHECKED_IDS = 1 << 25  # ids looked at when a file is opened
SHUFFLE_ROUNDS = 8  # of the cipher behind `shuffle`; TensorFlow's own wrapper takes 4
PROBED_STEPS = 32  # steps that the counters look at


class Rows(NamedTuple):
    """Raw tokens of the segments of a batch.

    Attributes:
        flat: tokens before corruption.
        limits: most tokens of inputs and targets of each segment, int32 ``(segments, 2)``.
        segments_per_row: int32 ``(rows,)``.
    """

    flat: Flat
    limits: tf.Tensor
    segments_per_row: tf.Tensor


@dataclass(frozen=True)
class SpanInputs:
    """The corpus, laid out for span corruption.

    Attributes:
        settings: of pre-training.
        vocab: of the vocabulary.
        seed: the run's seed.
        ids: the mapped file of ids.
        offsets: where documents begin in it, and where the last one ends.
        layout: which tokens form a row.
        segment_tokens: tokens of the longest segment.
        final_sentinel: whether targets that end in noise are closed by one more sentinel.
    """

    settings: PretrainSettings
    vocab: VocabSettings
    seed: int
    ids: tf.Tensor
    offsets: Integers
    layout: Stream | PackedRows
    segment_tokens: int
    final_sentinel: bool = False

    def batches(self, *, first_step: int, steps: int) -> tf.data.Dataset:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""
        make = self._batch_maker()
        dataset = tf.data.Dataset.range(first_step, first_step + steps)
        return dataset.map(
            lambda step: make(step)[:2],
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
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
        room = rows * (self.settings.inputs_length + self.settings.targets_length)
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

    def documents(self, step: int) -> list[int]:
        """Return which documents have tokens in a step's batch, by their place in the file."""
        reader = self._row_reader()
        starts, lengths = (item.numpy() for item in reader(tf.constant(step, tf.int64))[:2])
        first = np.searchsorted(self.offsets, starts, side="right") - 1
        return sorted({int(number) for number in first[lengths > 0]})

    def _row_reader(self) -> Any:
        if isinstance(self.layout, Stream):
            room = (self.settings.inputs_length, self.settings.targets_length)
            return _stream_reader(self.layout, self.settings.batch_rows, room, self.seed)
        return _packed_reader(self.layout, self.settings.batch_rows, self.seed)

    def _batch_maker(self) -> Any:
        """Return the function from a step to features, targets and statistics."""
        settings, total_ids = self.settings, self.vocab.total_ids
        reader = self._row_reader()
        seed = tf.constant(seed_pair(self.seed, "pretrain", "noise"), tf.int32)
        width = self.segment_tokens

        def make(step: tf.Tensor) -> tuple[Features, tf.Tensor, dict[str, tf.Tensor]]:
            starts, pieces, lengths, limits, segments_per_row = reader(step)
            flat = Flat(gather_pieces(self.ids, starts, pieces), lengths)
            tokens = pad_segments(flat, width)
            valid = tf.sequence_mask(lengths, width)
            mask = self._mask(lengths, tf.random.fold_in(seed, step, alg=PHILOX))
            sides = [
                spans_to_unique_sentinels(tokens, replaced, valid, total_ids=total_ids)
                for replaced in (mask, tf.logical_not(mask))
            ]
            if self.final_sentinel:
                sides[1] = with_final_sentinel(sides[1], mask, valid, total_ids=total_ids)
            inputs, targets = (
                flatten(side, limits=limits[:, number], eos_id=Vocabulary.eos_id)
                for number, side in enumerate(sides)
            )
            features, labels = assemble(
                Flat(inputs.ids, inputs.lengths),
                Flat(targets.ids, targets.lengths),
                segments_per_row,
                inputs_length=settings.inputs_length,
                targets_length=settings.targets_length,
            )
            overflow = sentinel_overflow(mask, valid, extra_ids=self.vocab.extra_ids)
            return features, labels, _statistics(inputs, targets, overflow)

        return make

    def _mask(self, lengths: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        settings = self.settings
        if settings.noise_mask == "iid":
            return iid_noise_mask(
                lengths,
                max_tokens=self.segment_tokens,
                noise_density=settings.noise_density,
                seed=seed,
            )
        return random_spans_noise_mask(
            lengths,
            max_tokens=self.segment_tokens,
            noise_density=settings.noise_density,
            mean_noise_span_length=settings.mean_noise_span_length,
            seed=seed,
        )


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
    final_sentinel: bool = False,
) -> SpanInputs:
    """Open the corpus and lay it out.

    Args:
        settings: of pre-training.
        tokens: file of ids.
        offsets: file of document offsets.
        vocab: of the vocabulary that the ids belong to.
        seed: the run's seed.
        final_sentinel: close targets that end in noise by one more sentinel, as the paper's text
            does and the released code does not.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus does not fill a row.
        SettingsError: the targets of a segment do not fit `targets_length`.
    """
    segment_tokens = segment_length(settings, final_sentinel=final_sentinel)
    bounds = read_offsets(offsets)
    ids = _open_ids(tokens, vocab.total_ids, int(bounds[-1]))
    layout: Stream | PackedRows
    if settings.concatenate_documents:
        layout = document_stream(bounds, segment_tokens=segment_tokens, seed=seed)
    else:
        layout = pack_documents(
            bounds,
            segment_tokens=segment_tokens,
            limits_by_tokens=corruption_limits(
                settings, segment_tokens, final_sentinel=final_sentinel
            ),
            inputs_length=settings.inputs_length,
            targets_length=settings.targets_length,
            seed=seed,
        )
    return SpanInputs(settings, vocab, seed, ids, bounds, layout, segment_tokens, final_sentinel)


def segment_length(settings: PretrainSettings, *, final_sentinel: bool = False) -> int:
    """Return the raw tokens of the longest segment whose corruption fits a row.

    Raises:
        SettingsError: the targets of random spans do not fit `targets_length`.

    Source: paper section 3.1.4; released code: one token less than a row for i.i.d. masks, which
    never lengthen the inputs, and ``random_spans_helper`` for random spans.
    """
    if settings.noise_mask == "iid":
        return settings.inputs_length - 1
    lengths = random_spans_lengths(
        inputs_length=settings.inputs_length,
        noise_density=settings.noise_density,
        mean_noise_span_length=settings.mean_noise_span_length,
    )
    targets = lengths.targets + final_sentinel
    if targets > settings.targets_length:
        raise SettingsError(
            f"pretrain.targets_length is {settings.targets_length}, but span corruption of "
            f"{settings.inputs_length} inputs gives {targets} targets; set it to {targets} or "
            f"more, or shorten pretrain.inputs_length"
        )
    return lengths.tokens


def corruption_limits(
    settings: PretrainSettings, segment_tokens: int, *, final_sentinel: bool = False
) -> npt.NDArray[np.int32]:
    """Return the tokens of inputs and targets set aside for a segment of 0, 1, ... tokens.

    Exact for random spans. An i.i.d. mask has no fixed number of noise tokens: its targets get
    the mean and four standard deviations of the noise tokens, each with a sentinel of its own, and
    what is longer is cut, as in any row.
    """
    tokens = np.arange(segment_tokens + 1)
    if settings.noise_mask == "random_spans":
        noise, spans = span_counts(
            segment_tokens,
            noise_density=settings.noise_density,
            mean_noise_span_length=settings.mean_noise_span_length,
        )
        inputs, targets = corrupted_lengths(np.maximum(tokens, 2), noise, spans)
    else:
        density = settings.noise_density
        most_noise = tokens * density + 4 * np.sqrt(tokens * density * (1 - density))
        inputs, targets = tokens + 1, 2 * np.ceil(np.minimum(most_noise, tokens)) + 2
    room = (settings.inputs_length, settings.targets_length)
    return np.minimum(np.stack([inputs, targets + final_sentinel], axis=1), room).astype(np.int32)


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


def shuffle(index: tf.Tensor, seed: tuple[int, int], epoch: tf.Tensor, count: int) -> tf.Tensor:
    """Return where each index goes in its epoch's permutation of ``0 .. count - 1``.

    Computed for the indices asked for alone, so that no permutation is ever held.

    Args:
        index: int64 ``(indices,)``.
        seed: two int32.
        epoch: int64 ``(indices,)``.
        count: length of the permutation.
    """
    seeds = tf.stack([tf.fill(tf.shape(epoch), tf.cast(part, tf.int64)) for part in seed], 1)
    return tf.raw_ops.RandomIndexShuffle(
        index=index,
        seed=tf.concat([seeds, epoch[:, tf.newaxis]], axis=1),
        max_index=tf.constant(count - 1, tf.int64),
        rounds=SHUFFLE_ROUNDS,
    )


def _shuffled_rows(
    step: tf.Tensor, batch_rows: int, rows: int, seed: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return which row of the layout each row of a batch is, and in which epoch."""
    number = step * batch_rows + tf.range(batch_rows, dtype=tf.int64)
    epoch = number // rows
    return shuffle(number % rows, seed_pair(seed, "pretrain", "rows"), epoch, rows), epoch


def _stream_reader(layout: Stream, batch_rows: int, room: tuple[int, int], seed: int) -> Any:
    """Return the function from a step to the pieces of documents that its segments consist of."""
    starts, ends = tf.constant(layout.starts), tf.constant(layout.ends)
    tokens = layout.segment_tokens
    limits = tf.constant([room] * batch_rows, tf.int32)
    phase_seed = seed_pair(seed, "pretrain", "phase")

    def read(step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        row, epoch = _shuffled_rows(step, batch_rows, layout.segments, seed)
        turn = layout.slack + 1
        phase = shuffle(epoch % turn, phase_seed, epoch // turn, turn)
        first = row * tokens + phase
        document = tf.searchsorted(ends, first, side="right", out_type=tf.int64)
        last = tf.searchsorted(ends, first + tokens - 1, side="right", out_type=tf.int64)
        pieces = tf.ragged.range(document, last + 1)
        owner = pieces.value_rowids()
        documents = pieces.flat_values
        begins = tf.where(documents > 0, tf.gather(ends, tf.maximum(documents - 1, 0)), 0)
        low = tf.maximum(begins, tf.gather(first, owner))
        high = tf.minimum(tf.gather(ends, documents), tf.gather(first, owner) + tokens)
        place = tf.gather(starts, documents) + low - begins
        lengths = tf.fill([batch_rows], tokens)
        return place, high - low, lengths, limits, tf.ones([batch_rows], tf.int32)

    return read


def _packed_reader(layout: PackedRows, batch_rows: int, seed: int) -> Any:
    """Return the function from a step to the segments of its rows."""
    starts, lengths = tf.constant(layout.starts), tf.constant(layout.lengths)
    limits, splits = tf.constant(layout.limits), tf.constant(layout.splits)

    def read(step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        row, _ = _shuffled_rows(step, batch_rows, layout.rows, seed)
        chosen = tf.ragged.range(tf.gather(splits, row), tf.gather(splits, row + 1))
        segment = chosen.flat_values
        tokens = tf.gather(lengths, segment)
        counts = tf.ensure_shape(tf.cast(chosen.row_lengths(), tf.int32), [batch_rows])
        return tf.gather(starts, segment), tokens, tokens, tf.gather(limits, segment), counts

    return read
