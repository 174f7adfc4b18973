"""Batches of fine-tuning on labels: one example a row, with its label or number.

Every example is encoded once and kept as ids, four bytes a token. `task_mixture` selects the
examples of each step, as for text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.errors import ArtifactError
from t5repro.files import read_json_lines
from t5repro.inputs.batches import Features, gather_pieces
from t5repro.inputs.task_mixture import Mixture, draw_rows
from t5repro.model.labels import LabelColumns, Words
from t5repro.model.segment_rows import SegmentEncoder, SegmentRow, segments_in
from t5repro.tasks.mixing_rates import mixing_rates, mixture_counts
from t5repro.vocab.vocabulary import Vocabulary


@dataclass(frozen=True)
class LabelledExamples:
    """The training examples of one task.

    Attributes:
        segments: texts of each example.
        targets: index of its label, or its number.
        words: labels by index; none if the targets are numbers.
    """

    segments: Sequence[tuple[str, ...]]
    targets: Sequence[float]
    words: Words


class EncodedTexts(NamedTuple):
    """The texts of all examples as ids, on the CPU.

    Attributes:
        ids: of all rows, one after another, int32.
        starts: first id of each row in `ids`, int64.
        lengths: ids of each row, int32; 0 where an example has no such text.
    """

    ids: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> "EncodedTexts":
        """Return the ids of texts."""
        lengths = np.fromiter(map(len, texts), np.int32, len(texts))
        ids = np.fromiter((token for text in texts for token in text), np.int32, lengths.sum())
        with tf.device("CPU:0"):
            return cls(
                tf.constant(ids),
                tf.constant(np.cumsum(lengths, dtype=np.int64) - lengths),
                tf.constant(lengths),
            )

    def rows(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the ids of some rows, one after another, and their lengths."""
        lengths = tf.gather(self.lengths, rows)
        return gather_pieces(self.ids, tf.gather(self.starts, rows), lengths), lengths


@dataclass(frozen=True)
class LabelledInputs:
    """The encoded examples of a mixture of tasks.

    Attributes:
        settings: of fine-tuning.
        seed: the run's seed.
        mixture: tasks and rates.
        columns: of the head.
        texts: ids of each example.
        swapped: ids with the segments in the other order, if the network reads both.
        is_decoder: whether the network is a decoder only, not an encoder only.
        first_lengths: ids of each row before its second segment, int32.
        targets: label or number of each example, float32.
        cut: whether ids of an example were cut off.
    """

    settings: FinetuneSettings
    seed: int
    mixture: Mixture
    columns: LabelColumns
    texts: EncodedTexts
    swapped: EncodedTexts | None
    is_decoder: bool
    first_lengths: npt.NDArray[np.int32]
    targets: npt.NDArray[np.float32]
    cut: npt.NDArray[np.bool_]

    @property
    def labels(self) -> Mapping[str, Words]:
        """The labels of each task."""
        return self.columns.words

    def examples(self, *, first_step: int, steps: int) -> npt.NDArray[np.int32]:
        """Return the examples of some steps, `batch_size` of each."""
        batch_size = self.settings.batch_size
        return draw_rows(
            self.mixture,
            max_lengths=(1, 1),
            first_row=first_step * batch_size,
            rows=steps * batch_size,
            seed=self.seed,
        ).examples

    def batches(self, *, first_step: int, steps: int) -> tf.data.Dataset:
        """Return the batches of steps `first_step` to `first_step + steps - 1`.

        For an encoder only a batch has the features ``encoder_ids``, ``encoder_segments`` and
        ``encoder_types``, int32 ``(rows, inputs_length)``; for a decoder only ``decoder_ids`` and
        ``decoder_segments`` of that shape, ``last_positions``, ``(rows, 1)``, and if a task is read
        in both orders ``swapped_ids`` and ``swapped_segments``. All have ``label_columns``, int32
        ``(rows, 3)``, see `Columns`; and the targets, float32 ``(rows, 1)``.
        """
        settings = self.settings
        drawn = self.examples(first_step=first_step, steps=steps)
        columns = np.array([self.columns.columns[task] for task in self.mixture.tasks], np.int32)
        with tf.device("CPU:0"):
            examples = tf.constant(drawn.reshape(steps, settings.batch_size))
            first_lengths = tf.constant(self.first_lengths)
            targets = tf.constant(self.targets)
            columns_of = tf.constant(columns[self.mixture.task_indices])

        def make(step: tf.Tensor) -> tuple[Features, tf.Tensor]:
            rows = examples[step]
            shape = (settings.batch_size, settings.inputs_length)
            flat, lengths = self.texts.rows(rows)
            if self.is_decoder:
                features = text_features("decoder", flat, lengths, shape=shape)
                features["last_positions"] = lengths[:, tf.newaxis] - 1
                if self.swapped:
                    features |= text_features("swapped", *self.swapped.rows(rows), shape=shape)
            else:
                features = row_features(flat, lengths, tf.gather(first_lengths, rows), shape=shape)
            features["label_columns"] = tf.gather(columns_of, rows)
            return features, tf.gather(targets, rows)[:, tf.newaxis]

        return (
            tf.data.Dataset.range(steps)
            .map(make, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(tf.data.AUTOTUNE)
        )

    def counters(self, *, first_step: int, steps: int) -> dict[str, Any]:
        """Count the examples of some steps, see `TaskInputs.counters`."""
        drawn = self.examples(first_step=first_step, steps=steps)
        task_indices, tasks = self.mixture.task_indices, len(self.mixture.tasks)
        draws = np.bincount(task_indices[drawn], minlength=tasks)
        size = len(drawn) * self.settings.inputs_length
        lengths = self.texts.lengths.numpy()

        def by_task(values: npt.NDArray[Any]) -> dict[str, Any]:
            return dict(zip(self.mixture.tasks, values.tolist(), strict=True))

        return {
            "rates_asked": by_task(np.round(self.mixture.shares, 6)),
            "rates_drawn": by_task(np.round(draws / max(draws.sum(), 1), 6)),
            "drawn": by_task(draws),
            "examples": by_task(self.mixture.counts),
            "truncated_inputs": by_task(np.bincount(task_indices[self.cut], minlength=tasks)),
            "labels": {task: list(words) for task, words in self.labels.items()},
            "padding_share": round(1 - int(lengths[drawn].sum()) / size, 6) if size else 0.0,
        }


def row_features(
    flat: tf.Tensor, lengths: tf.Tensor, first_lengths: tf.Tensor, *, shape: tuple[int, int]
) -> Features:
    """Return ids, segments and token types of rows, int32 of `shape`, 0 after the end of a row.

    Args:
        flat: ids of all rows, one after another, int32.
        lengths: ids of each row, int32.
        first_lengths: ids of each row before its second segment, int32.
        shape: rows and ids of a row.
    """
    features = text_features("encoder", flat, lengths, shape=shape)
    inside = tf.sequence_mask(lengths, shape[1])
    second = tf.logical_and(inside, tf.logical_not(tf.sequence_mask(first_lengths, shape[1])))
    return {**features, "encoder_types": tf.cast(second, tf.int32)}


def text_features(
    name: str, flat: tf.Tensor, lengths: tf.Tensor, *, shape: tuple[int, int]
) -> Features:
    """Return ids and segments of rows, int32 of `shape`, 0 after the end of a row.

    Args:
        name: of the features, before ``_ids`` and ``_segments``.
        flat: ids of all rows, one after another, int32.
        lengths: ids of each row, int32.
        shape: rows and ids of a row.
    """
    ragged = tf.RaggedTensor.from_row_lengths(flat, lengths, validate=False)
    return {
        f"{name}_ids": tf.ensure_shape(ragged.to_tensor(shape=shape), shape),
        f"{name}_segments": tf.sequence_mask(lengths, shape[1], tf.int32),
    }


def load_labelled_inputs(
    settings: FinetuneStage, *, examples: Mapping[str, Path], vocabulary: Path, seed: int
) -> LabelledInputs:
    """Read and encode the training examples of every task.

    Args:
        settings: of the stage.
        examples: task -> file of training examples.
        vocabulary: the SentencePiece model.
        seed: of this repetition of the stage.

    Raises:
        ArtifactError: a file is missing, empty or damaged, or its targets are free text.
    """
    training = settings.finetune
    tasks = {task: read_labelled(examples[task]) for task in sorted(examples)}
    counts = {task: len(read.targets) for task, read in tasks.items()}
    rates = mixing_rates(
        mixture_counts(
            counts, examples=training.mixture_examples, weights=training.mixture_weights
        ),
        kind=training.mixture,
        limit=training.mixture_limit,
        temperature=training.mixture_temperature,
    )
    encoder = SegmentEncoder(
        Vocabulary.load(vocabulary), model=settings.model, length=training.inputs_length
    )
    rows: list[SegmentRow] = []
    for task, read in tasks.items():
        rows += encoder.rows(read.segments, task=task)
    count = len(rows)
    targets = [target for read in tasks.values() for target in read.targets]
    return LabelledInputs(
        settings=training,
        seed=seed,
        mixture=Mixture(
            tasks=tuple(tasks),
            rates=np.array([rates[task] for task in tasks], np.float64),
            counts=np.array(list(counts.values()), np.int64),
            lengths=np.ones((count, 2), np.int32),  # each example fills a row
        ),
        columns=LabelColumns({task: read.words for task, read in tasks.items()}),
        texts=EncodedTexts.of([row.ids for row in rows]),
        swapped=EncodedTexts.of([row.swapped for row in rows])
        if any(row.swapped for row in rows)
        else None,
        is_decoder=settings.model.decoder_only,
        first_lengths=np.fromiter((row.first_length for row in rows), np.int32, count),
        targets=np.array(targets, np.float32),
        cut=np.fromiter((row.cut for row in rows), np.bool_, count),
    )


def read_labelled(path: Path) -> LabelledExamples:
    """Read the training examples of a task.

    Raises:
        ArtifactError: the file is missing or has no rows, a row lacks segments or an answer, or
            the targets are free text.
    """
    segments: list[tuple[str, ...]] = []
    targets: list[float] = []
    words: dict[int, str] = {}
    for number, row in enumerate(read_json_lines(path), start=1):
        segments.append(segments_in(row, path, number))
        answer = row.get("answer")
        if isinstance(answer, dict):  # of MultiRC, with the question's id
            answer = answer.get("label")
        if isinstance(answer, int) and words.setdefault(answer, row["targets"]) != row["targets"]:
            answer = None  # targets of one label differ, as those of Winograd schemas
        if not isinstance(answer, int | float):
            raise ArtifactError(
                f"{path} line {number} has the target {row.get('targets')!r}, which is neither one "
                "of a few labels nor a number; a network of labels predicts no text: take "
                "the task out of tasks.names"
            )
        targets.append(answer)
    if not targets:
        raise ArtifactError(f"{path} has no examples to train on; check the task's training files")
    if not words:
        return LabelledExamples(segments, targets, ())
    # A label that no training row has is never predicted; its column still has a word.
    return LabelledExamples(
        segments, targets, tuple(words.get(index, "") for index in range(max(words) + 1))
    )
