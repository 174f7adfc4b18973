"""A task: a value made of plain functions (paper section 2.4).

A task reads rows from its original files, writes each as text, and reads a prediction back as an
answer, which its metrics compare with the row's own::

    rows ── to_examples ──► inputs, targets, answer ──► model ──► prediction
                                             └── metrics ◄── read_prediction ──┘

To add a task to the package, make a `Task`, append it to the tuple of its module, where `registry`
finds it, and add its row to `task_table`. The tasks of run files are made in `own`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

NO_TARGET = "<unk>"  # target of a row whose label is not public
INVALID_LABEL = -1  # index of a prediction that is no label

Row = Mapping[str, Any]  # one record of a task file; "location" names its file and line
ScoredRow = Mapping[str, Any]  # idx, inputs, targets, answer, prediction
Reader = Callable[[Sequence[Path], str, Counter[str]], Iterator[Row]]


@dataclass(frozen=True)
class Example:
    """One row as text.

    Attributes:
        inputs: text that the model reads.
        targets: text that the model should write.
        idx: identity of the row in its source.
        answer: value that the metrics compare with (a label's index, a number, gold answers); None
            if it is not public.
        segments: texts of the row's fields without prefix and names, the premise first; if empty,
            the inputs are one text.
        options: possible answers by index, one of them correct; `segments` lack them.
        spans: first character of each gold answer in the last segment, and the one after its last.
        number: number that a network of numbers is trained on, if it is not `answer`.
    """

    inputs: str
    targets: str
    idx: Any
    answer: Any
    segments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    number: float | None = None


@dataclass(frozen=True)
class Baseline:
    """A trivial answer, which a model must beat to show that it has learnt something.

    Attributes:
        kind: ``majority`` gives every row the same answer, ``copy`` repeats the input.
        predict: rows to score and training rows to one prediction per row, in the form that
            `Task.read_prediction` returns.
    """

    kind: Literal["majority", "copy"]
    predict: Callable[[Sequence[ScoredRow], Sequence[Row]], list[Any]]


@dataclass(frozen=True)
class Task:
    """One downstream task.

    Attributes:
        name: unique name; not the prefix of the inputs.
        read: files, split and a counter of excluded rows (by reason) to rows.
        to_examples: one row to its examples (ReCoRD has one per gold answer).
        read_prediction: text of the model and its row to the value that the metrics compare.
        is_invalid: whether a value of `read_prediction` is an impossible answer.
        metrics: names in `metrics.registry`; empty for diagnostic sets. Names and not functions,
            so that the rules before `evaluate_score` do not depend on the code of metrics.
        baseline: trivial answer; its scores are reported next to the model's.
        labels: words of the answers, by index; empty if answers are numbers or free text.
        trivial_answer: answer to a row of its files without a model, as `read_prediction` returns
            it, for a leaderboard that takes every task; None if no system leaves the task out.
        evaluation_only: whether the task is never trained on.
    """

    name: str
    read: Reader
    to_examples: Callable[[Row], Iterable[Example]]
    read_prediction: Callable[[str, ScoredRow], Any]
    is_invalid: Callable[[Any], bool]
    metrics: tuple[str, ...]
    baseline: Baseline
    labels: tuple[str, ...] = ()
    trivial_answer: Callable[[Row], Any] | None = None
    evaluation_only: bool = False

    def invalid_count(self, rows: Iterable[ScoredRow]) -> int:
        """Return the number of predictions that are impossible answers, over all rows."""
        return sum(self.is_invalid(self.read_prediction(row["prediction"], row)) for row in rows)
