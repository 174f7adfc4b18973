"""The examples of a task as rows of ids, whatever the kind of its answer.

An example with a label or a number is one row, an example with options, as of COPA, has a row for
each, and an example with a span of its text as answer has a row for each window of the text. An
example with tags is one row, where the first piece of each word has the tag of the word.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.tasks import WindowSettings
from t5repro.errors import ArtifactError
from t5repro.model.labels import LabelColumns, TaskAnswer
from t5repro.model.segment_rows import OPTIONS, SEGMENTS, SegmentEncoder, SegmentRow
from t5repro.model.windows import Window, WindowEncoder
from t5repro.task_groups import ANSWERED_AS
from t5repro.vocab.vocabulary import Vocabulary


class SegmentTexts(NamedTuple):
    """The texts of an example that a network of labels reads.

    Attributes:
        segments: one or more texts.
        options: possible answers, one of them correct; may be empty.
    """

    segments: tuple[str, ...]
    options: tuple[str, ...] = ()


class TaskRows(NamedTuple):
    """The rows of a task's examples.

    Attributes:
        rows: example after example.
        windows: the windows of `rows`, for a task of spans.
        examples: number of examples.
        first_pieces: position of the first piece of each word of each row, for a task of tags; 0
            for a word that was cut off.
    """

    rows: Sequence[SegmentRow]
    windows: Sequence[Window]
    examples: int
    first_pieces: Sequence[Sequence[int]] = ()

    @property
    def cut(self) -> set[int]:
        """Indices of the examples with ids cut off."""
        if self.windows:
            return {window.example for window in self.windows if window.row.cut}
        examples = enumerate(self.rows_by_example())
        return {index for index, options in examples if any(row.cut for row in options)}

    def rows_by_example(self) -> list[Sequence[SegmentRow]]:
        """Return the rows of each example of a task without spans, one for each option."""
        # All examples of a task have the same number of options (`_check_texts`).
        options = len(self.rows) // max(self.examples, 1)
        return [
            self.rows[number * options : (number + 1) * options] for number in range(self.examples)
        ]


class TaskRowEncoder:
    """Writes the examples of tasks as rows of ids.

    Args:
        vocabulary: the vocabulary of the run.
        model: shape of the network.
        length: most ids of a row.
        windows: how long texts of spans are read.
        options_first: whether an option is before its text.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        model: ModelSettings,
        length: int,
        windows: WindowSettings,
        options_first: bool = False,
    ) -> None:
        self._option_order = -1 if options_first else 1
        self._segment_encoder = SegmentEncoder(vocabulary, model=model, length=length)
        self._window_encoder = functools.partial(
            WindowEncoder, vocabulary, model=model, length=length, windows=windows
        )

    def rows(self, examples: Sequence[SegmentTexts], *, task: str, answer: TaskAnswer) -> TaskRows:
        """Return the rows of a task's examples.

        Args:
            examples: their texts.
            task: its name.
            answer: kind of the answer, with its options and segments.

        Raises:
            ArtifactError: an example has another number of options or segments than in training.
            SettingsError: a question can fill a row.
        """
        _check_texts(examples, task, answer)
        order = -1 if answer.reverses else 1
        segments = [example.segments[::order] for example in examples]
        if answer.kind == "span":
            # Made only here: a task without spans has no limit on the length of a question.
            windows = self._window_encoder().windows(segments)
            return TaskRows([window.row for window in windows], windows, len(examples))
        if answer.kind == "tags":
            rows, places = self._segment_encoder.word_rows(
                [text.split(" ") for (text,) in segments]
            )
            return TaskRows(rows, (), len(examples), places)
        if answer.kind == "choice":
            # Multiple choice: the context with each option is a row of its own.
            pairs = [
                (" ".join(example.segments), option)[:: self._option_order]
                for example in examples
                for option in example.options
            ]
            return TaskRows(self._segment_encoder.rows(pairs), (), len(examples))
        return TaskRows(self._segment_encoder.rows(segments, task=task), (), len(examples))


def _check_texts(examples: Sequence[SegmentTexts], task: str, answer: TaskAnswer) -> None:
    """Raise ArtifactError if an example lacks the texts of its kind of answer."""
    # `TaskAnswer.options` is 1 for other kinds, which read the row without an option.
    options = answer.options if answer.kind == "choice" else 0
    for number, example in enumerate(examples, start=1):
        if len(example.options) != options:
            raise ArtifactError(
                f"line {number} of {task} has {len(example.options)} options, and the network was "
                f"trained with {options}; give it as many, or rerun the rules tasks and finetune"
            )
        # A question and its text, or the words of a sentence.
        segments = {"span": 2, "tags": 1}.get(answer.kind, answer.segments)
        if segments and len(example.segments) != segments:
            raise ArtifactError(
                f"line {number} of {task} has {len(example.segments)} segments, and the network "
                f"reads {segments}; give it as many, or rerun the rules tasks and finetune"
            )


def trained_task(columns: LabelColumns, task: str) -> str:
    """Return the task of a head with columns that answer a task, mostly the task itself.

    Raises:
        ArtifactError: there is none.
    """
    # Some tasks have no training set and are answered as another task, such as AX as MNLI.
    trained = (task, *ANSWERED_AS.get(task, ()))
    for name in trained:
        if name in columns.columns:
            return name
    raise ArtifactError(
        f"the weights have no labels of {task}, only of {sorted(columns.columns)}; fine-tune on "
        f"{trained[-1]}, or leave {task} out of tasks.names"
    )


def encode_rows(
    encoder: TaskRowEncoder, examples: Mapping[str, Sequence[SegmentTexts]], columns: LabelColumns
) -> dict[str, TaskRows]:
    """Return the rows of the examples of several tasks.

    Args:
        encoder: writes them.
        examples: task -> texts of its examples.
        columns: of the head that answers them.

    Raises:
        ArtifactError: an example has other texts than in training, or the head lacks a task.
        SettingsError: a question can fill a row.
    """
    encoded = {}
    # The head decides how a task is read: options and segments must be as in training.
    for task, texts in examples.items():
        answer = columns.answers[trained_task(columns, task)]
        encoded[task] = encoder.rows(texts, task=task, answer=answer)
    return encoded


def texts_of(examples: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[SegmentTexts]]:
    """Return the texts of rows of tasks' files.

    Args:
        examples: task -> rows of its file, from the first.

    Raises:
        ArtifactError: a row has no segments.
    """
    return {
        task: [texts_in(row, f"task {task}", number) for number, row in enumerate(rows, start=1)]
        for task, rows in examples.items()
    }


def texts_in(row: Mapping[str, Any], path: Path | str, number: int) -> SegmentTexts:
    """Return the segments and options of a row of a task's file.

    Args:
        row: the row.
        path: the file, or the name of its task, for errors.
        number: number of the line.

    Raises:
        ArtifactError: it has no segments, or a segment or option is not a text.
    """
    segments, options = row.get(SEGMENTS) or [], row.get(OPTIONS) or []
    if not segments:
        raise ArtifactError(
            f"{path} line {number} lacks {SEGMENTS}, which a network of labels reads; set "
            "tasks.segments to true and rerun the rule tasks"
        )
    # A hand-written file may contain numbers, which the tokenizer would refuse without a line.
    if not _are_texts(segments) or not _are_texts(options):
        raise ArtifactError(
            f"{path} line {number} has {SEGMENTS} {segments!r} and {OPTIONS} {options!r}; all of "
            "them must be texts: rerun the rule tasks"
        )
    return SegmentTexts(tuple(segments), tuple(options))


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
