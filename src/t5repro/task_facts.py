"""The facts of a task apart from its functions: one value, a row of the table of tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SplitName = Literal["train", "validation", "test"]
AnswerKind = Literal["label", "number", "choice", "span", "tags", "text"]
Files = Mapping[SplitName, tuple[str, ...]]

SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
OTHER_TASKS = "Other tasks"
OUTSIDE = "O"  # tag of a word that is part of no entity


@dataclass(frozen=True)
class Submission:
    """A task's file in the submission to the leaderboard of its benchmark.

    Attributes:
        file: name of the file in the zip.
        rows: number of rows of the public test set; queries of ReCoRD, answers of MultiRC.
        labels: the leaderboard's label for each label index; if empty, the task's own words, and
            predictions of a task without labels are written unchanged.
        majority: index of the label that most rows have, for systems that do not answer the task;
            None if no system leaves it out.
    """

    file: str
    rows: int
    labels: tuple[str | int, ...] = ()
    majority: int | None = None


@dataclass(frozen=True)
class TaskFacts:
    """The facts of one task.

    Attributes:
        name: unique name, the same as in `tasks.registry`.
        title: in the report.
        files: split -> original files in the layout of their download, below `tasks.folder`.
        heading: of its group of tasks in the report.
        answer: kind of the answer: a label, a number, one of several options of the row, a span of
            the row's text, tags of its words, or another text.
        options: options of a row; 1 if the answer is not a choice.
        validation_rows: rows of the validation split, from the task's paper; None if not known.
        benchmark: key of `task_table.BENCHMARK_TITLES`; empty if the task belongs to no benchmark.
        scores: scores that enter the benchmark's average; none if the task does not enter it.
        submission: its file on the leaderboard of the benchmark.
        bounds: the lowest and the highest number that the leaderboard accepts of a task of
            numbers; what lies outside, or is not a number, becomes the nearest of them.
    """

    name: str
    title: str
    files: Files = field(default_factory=dict)
    heading: str = OTHER_TASKS
    answer: AnswerKind = "label"
    options: int = 1
    validation_rows: int | None = None
    benchmark: str = ""
    scores: tuple[str, ...] = ()
    submission: Submission | None = None
    bounds: tuple[float, float] | None = None
