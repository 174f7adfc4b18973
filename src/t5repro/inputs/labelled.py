"""Batches of fine-tuning on all kinds of answers but text: one example or window a row.

Every example is encoded once and kept as ids, four bytes a token. `task_mixture` selects the
examples of each step, as for text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Array, Int32
from t5repro.config.families import Family
from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.errors import ArtifactError
from t5repro.inputs.batches import Batch, Batches, Features, pad_segments
from t5repro.inputs.encoded_rows import (
    EncodedOption,
    EncodedTexts,
    row_features,
    summary_features,
    text_features,
)
from t5repro.inputs.labelled_examples import LabelledExamples, read_labelled
from t5repro.inputs.task_blocks import draw_blocks
from t5repro.inputs.task_mixture import Mixture, draw_rows
from t5repro.model.labels import LabelColumns, TaskAnswer, TaskAnswers
from t5repro.model.segment_rows import SegmentRow
from t5repro.model.task_rows import TaskRowEncoder, TaskRows
from t5repro.model.windows import Range
from t5repro.tasks.mixing_rates import mixing_rates, mixture_counts
from t5repro.vocab.vocabulary import Vocabulary

NO_SPAN = (0, 0)  # positions of the answer in a row that does not contain it


@dataclass(frozen=True)
class LabelledInputs:
    """The encoded examples of a mixture of tasks.

    Attributes:
        settings: of fine-tuning.
        seed: the run's seed.
        mixture: tasks and rates.
        columns: of the head.
        options: rows of all examples, for each option.
        family: of the network.
        targets: label, option or number of each row, float32.
        spans: positions of the first and last piece of the answer of each row, int32 ``(rows, 2)``.
        tags: of each piece of each row one more than the column of its tag, or 0.
        tasks: their examples.
    """

    settings: FinetuneSettings
    seed: int
    mixture: Mixture
    columns: LabelColumns
    options: Sequence[EncodedOption]
    family: Family
    targets: npt.NDArray[np.float32]
    spans: Int32
    tags: EncodedTexts
    tasks: Sequence["EncodedTask"]

    @property
    def labels(self) -> TaskAnswers:
        """The answers that each task has."""
        return self.columns.answers

    @property
    def texts(self) -> int:
        """Texts that the network reads of a row: each option, in one order or in both."""
        return len(self.options) * (1 if self.options[0].swapped is None else 2)

    def examples(self, *, first_step: int, steps: int) -> Int32:
        """Return the rows of some steps, `batch_size` of each."""
        batch_size = self.settings.batch_size
        if self.settings.batches == "tasks":
            return draw_blocks(
                self.mixture, batch_size, first_step=first_step, steps=steps, seed=self.seed
            )
        return draw_rows(
            self.mixture,
            max_lengths=(1, 1),
            first_row=first_step * batch_size,
            rows=steps * batch_size,
            seed=self.seed,
        ).examples

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`.

        For an encoder a batch has the features ``encoder_ids``, ``encoder_segments`` and
        ``encoder_types``, int32 ``(rows, inputs_length)``; for a decoder only ``decoder_ids`` and
        ``decoder_segments`` of that shape, ``last_positions``, ``(rows, 1)``, and if a task is read
        in both orders ``swapped_ids`` and ``swapped_segments``. With a task of choices all these
        have an axis of options after the axis of rows. All have ``label_columns``, int32
        ``(rows, 3)``, see `Columns`, with a task of spans ``answer_span``, ``(rows, 2)``, and with
        one of tags ``piece_tags``, ``(rows, inputs_length)``; and the targets, float32
        ``(rows, 1)``.
        """
        examples = self.examples(first_step=first_step, steps=steps)
        rows_of_step = examples.reshape(steps, self.settings.batch_size)
        columns = np.array([self.columns.columns[task] for task in self.mixture.tasks], np.int32)
        # By row, so that a step needs no lookup of tasks.
        columns_of_row = columns[self.mixture.task_indices]

        def make(step: int) -> Batch:
            rows = rows_of_step[step - first_step]
            option_features = [self._option_features(option, rows) for option in self.options]
            # Tasks with options and tasks without share a batch: all rows get the axis of options,
            # and missing options have empty rows.
            features = option_features[0]
            if len(option_features) > 1:
                features = {
                    name: np.stack([of_option[name] for of_option in option_features], axis=1)
                    for name in features
                }
            features["label_columns"] = columns_of_row[rows]
            if self.columns.has_spans:
                features["answer_span"] = self.spans[rows]
            if self.columns.tags:
                flat = self.tags.rows(rows)
                features["piece_tags"] = pad_segments(flat, self.settings.inputs_length)
            return features, self.targets[rows][:, np.newaxis]

        return Batches(make, first_step, steps)

    def _option_features(self, option: EncodedOption, rows: Array) -> Features:
        """Return the features of some rows with one of their options."""
        width = self.settings.inputs_length
        flat = option.texts.rows(rows)
        if not self.family.joined:
            features_of = summary_features if self.family.ends_with_summary else row_features
            return features_of(flat, option.first_lengths[rows], width=width)
        features = text_features("decoder", flat, width=width)
        # A missing option has a row of length 0; its position is not read.
        features["last_positions"] = np.maximum(flat.lengths[:, np.newaxis] - 1, 0)
        if option.swapped:
            features |= text_features("swapped", option.swapped.rows(rows), width=width)
        return features

    def counters(self, *, first_step: int, steps: int) -> dict[str, Any]:
        """Count the examples of some steps, see `TaskInputs.counters`."""
        indices = self.examples(first_step=first_step, steps=steps)
        draws = np.bincount(self.mixture.task_indices[indices], minlength=len(self.mixture.tasks))
        size = len(indices) * self.settings.inputs_length * len(self.options)
        filled = sum(int(option.texts.lengths[indices].sum()) for option in self.options)

        def name_tasks(values: Array) -> dict[str, Any]:
            return dict(zip(self.mixture.tasks, values.tolist(), strict=True))

        rows = name_tasks(self.mixture.counts)
        windows = {task: rows[task] for task in rows if self.labels[task].kind == "span"}
        # Examples whose answer is not in the text, which are not drawn.
        left_out = {task.name: n for task in self.tasks if (n := task.examples.left_out)}
        dropped = {task.name: task.dropped for task in self.tasks}
        return {
            "rates_asked": name_tasks(np.round(self.mixture.shares, 6)),
            "rates_drawn": name_tasks(np.round(draws / max(draws.sum(), 1), 6)),
            "drawn": name_tasks(draws),
            "examples": {task.name: len(task.examples.targets) for task in self.tasks},
            "truncated_inputs": {task.name: task.cut for task in self.tasks},
            "labels": {task: list(answer.words) for task, answer in self.labels.items()},
            "padding_share": round(1 - filled / size, 6) if size else 0.0,
            **({"windows": windows, "left_out": left_out} if windows else {}),
            **({"dropped": dropped} if self.settings.long_rows == "drop" else {}),
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
    encoder = TaskRowEncoder(
        Vocabulary.load(vocabulary),
        model=settings.model,
        length=training.inputs_length,
        windows=settings.tasks.windows,
        options_first=settings.tasks.options_first,
    )
    tasks = [
        _encoded_task(encoder, name, path, settings) for name, path in sorted(examples.items())
    ]
    columns = LabelColumns({task.name: task.answer for task in tasks})
    # Rows of all tasks in one list, task after task: the index of a row names it in the mixture.
    rows = [row for task in tasks for row in task.rows]
    # One task that is read in both orders gives every batch the second array.
    swaps = any(option.swapped for row in rows for option in row.options)
    return LabelledInputs(
        settings=training,
        seed=seed,
        mixture=_mixture(training, tasks),
        columns=columns,
        options=[
            EncodedOption.of([row.option(number) for row in rows], swaps=swaps)
            for number in range(columns.options)
        ],
        family=settings.model.family,
        targets=np.array([row.target for row in rows], np.float32),
        spans=np.array([row.span for row in rows], np.int32),
        tags=EncodedTexts.of(
            [
                [tag and columns.columns[task.name].first + tag for tag in row.tags]
                for task in tasks
                for row in task.rows
            ]
        ),
        tasks=tasks,
    )


def _mixture(training: FinetuneSettings, tasks: Sequence["EncodedTask"]) -> Mixture:
    """Return tasks and rates; each row that is drawn fills a row of the batch."""
    rates = mixing_rates(
        mixture_counts(
            {task.name: len(task.examples.targets) for task in tasks},
            examples=training.mixture_examples,
            weights=training.mixture_weights,
        ),
        kind=training.mixture,
        limit=training.mixture_limit,
        temperature=training.mixture_temperature,
    )
    # Rates follow the number of examples, draws the number of rows: an example of a span may have
    # several windows, which must not raise the share of its task.
    counts = [len(task.rows) for task in tasks]
    return Mixture(
        tasks=tuple(task.name for task in tasks),
        rates=np.array([rates[task.name] for task in tasks], np.float64),
        counts=np.array(counts, np.int64),
        # One example fills a row, whatever its length: nothing is packed.
        lengths=np.ones((sum(counts), 2), np.int32),
    )


class DrawnRow(NamedTuple):
    """The unit of a draw: an example, or a window of one.

    Attributes:
        options: its rows, one for each option.
        target: index of its label or option, or its number.
        span: positions of the first and last piece of the answer.
        tags: of each piece of the row one more than the index of its tag; 0 for a piece without.
    """

    options: Sequence[SegmentRow]
    target: float
    span: Range = NO_SPAN
    tags: Sequence[int] = ()

    def option(self, number: int) -> SegmentRow:
        """Return the row with an option; one without ids if there is none."""
        return self.options[number] if number < len(self.options) else SegmentRow([], 0, False)


class EncodedTask(NamedTuple):
    """The examples of one task.

    Attributes:
        name: of the task.
        examples: as in its file.
        answer: as this training has it.
        rows: its examples as rows of ids, or their windows.
        cut: number of examples with ids cut off.
        dropped: number of examples that were left out because they are too long.
    """

    name: str
    examples: LabelledExamples
    answer: TaskAnswer
    rows: Sequence[DrawnRow]
    cut: int
    dropped: int


def _encoded_task(
    encoder: TaskRowEncoder, name: str, path: Path, settings: FinetuneStage
) -> EncodedTask:
    """Read and encode the examples of one task.

    Raises:
        ArtifactError: the file is missing, empty or damaged, or all examples are too long.
    """
    training = settings.finetune
    examples = read_labelled(path, predicts_spans=settings.model.family.has_span_head)
    if examples.answer.kind == "number":
        examples = examples.scaled(training.number_scale)
    if name in training.doubled_tasks:
        examples = examples.doubled(path)
    answer = examples.answer.as_trained(
        training.pair_head, reverses=training.pair_order == "reversed"
    )
    encoded = encoder.rows(examples.texts, task=name, answer=answer)
    rows, cut = _drawn_rows(encoded, examples), encoded.cut
    # Windows continue a text that is too long: their questions alone are cut.
    if training.long_rows == "cut" or encoded.windows:
        return EncodedTask(name, examples, answer, rows, len(cut), 0)
    whole = [row for index, row in enumerate(rows) if index not in cut]
    if not whole:
        raise ArtifactError(
            f"all examples of {path} are longer than finetune.inputs_length "
            f"{training.inputs_length}; raise it, or set finetune.long_rows to cut"
        )
    return EncodedTask(name, examples, answer, whole, 0, len(cut))


def _drawn_rows(encoded: TaskRows, read: LabelledExamples) -> list[DrawnRow]:
    """Return the examples of a task, or their windows."""
    if read.answer.kind == "span":
        return [
            DrawnRow([window.row], 0, window.positions_of(read.spans[window.example]))
            for window in encoded.windows
        ]
    if read.answer.kind == "tags":
        return [
            DrawnRow([row], 0, tags=_piece_tags(row, places, tags))
            for row, places, tags in zip(encoded.rows, encoded.first_pieces, read.tags, strict=True)
        ]
    return [
        DrawnRow(options, target)
        for options, target in zip(encoded.rows_by_example(), read.targets, strict=True)
    ]


def _piece_tags(row: SegmentRow, first_pieces: Sequence[int], tags: Sequence[int]) -> list[int]:
    """Return one more than the tag of each piece of a row: only the first ones of words have it."""
    of_pieces = [0] * len(row.ids)
    for position, tag in zip(first_pieces, tags, strict=True):
        if position:  # not of a word that was cut off
            of_pieces[position] = tag + 1
    return of_pieces
