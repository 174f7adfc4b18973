"""What a task is: a value made of plain functions (paper section 2.4).

A task reads rows from original files, writes each as text, reads a prediction back, and scores
it::

    rows ── to_examples ──► inputs, targets, answer ── the model ──► prediction
                                             └── metrics ◄── read_prediction ──┘

`answer` is what a metric needs (a label's index, a number, a list of gold answers) and is null
for a row of an unlabelled test set. To add a task, make a `Task` and append it to the tuple of
its module; `registry` picks it up.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from t5repro.config.task_layouts import TASK_FILES

NO_TARGET = "<unk>"  # target of a row whose label is not public

Row = Mapping[str, Any]  # one record of a task file; "where" names file and line
Scored = Mapping[str, Any]  # idx, inputs, targets, answer, prediction
Read = Callable[[Sequence[Path], str, Counter[str]], Iterator[Row]]


@dataclass(frozen=True)
class Example:
    """One row as text.

    Attributes:
        inputs: what the model reads.
        targets: what it should write.
        idx: the row's identity in its source.
        answer: what the metrics compare with; None if not public.
    """

    inputs: str
    targets: str
    idx: Any
    answer: Any


@dataclass(frozen=True)
class Metric:
    """Scores over answers and predictions that were read back.

    Attributes:
        names: the keys that `compute` returns.
        compute: answers and predictions of all rows to one percentage per name.
    """

    names: tuple[str, ...]
    compute: Callable[[list[Any], list[Any]], dict[str, float]]


def metric(name: str, function: Callable[[list[Any], list[Any]], float]) -> Metric:
    """Return the metric of a function that computes one number."""
    return Metric((name,), partial(_named, name, function))


def _named(
    name: str, function: Callable[..., float], answers: list[Any], found: list[Any]
) -> dict[str, float]:
    return {name: function(answers, found)}


@dataclass(frozen=True)
class Baseline:
    """What a score must beat to show that a model has learnt something.

    Attributes:
        kind: ``majority`` gives every row the same answer, ``copy`` repeats the input.
        guess: rows to score and training rows to one prediction, already read back, per row.
    """

    kind: Literal["majority", "copy"]
    guess: Callable[[list[Scored], list[Row]], list[Any]]


@dataclass(frozen=True)
class Task:
    """One downstream task.

    Attributes:
        name: unique name; not the prefix of the inputs.
        read: files and split to rows; counts what it leaves out, by reason.
        to_examples: one row to its examples (ReCoRD has one per gold answer).
        read_prediction: text of the model and its row to what the metrics compare.
        is_invalid: whether a prediction that was read back is no possible answer.
        metrics: scores; empty for diagnostic sets.
        baseline: what a score is set beside.
        train_rows: rows the released mixtures count; 0: never trained on; None: those in the
            files.
        signature: how the metrics were computed, where a library has options.
    """

    name: str
    read: Read
    to_examples: Callable[[Row], Iterable[Example]]
    read_prediction: Callable[[str, Scored], Any]
    is_invalid: Callable[[Any], bool]
    metrics: tuple[Metric, ...]
    baseline_of: Baseline
    train_rows: int | None
    signature: Callable[[], str] | None = None

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of all scores, in the order of a report's columns."""
        return tuple(name for item in self.metrics for name in item.names)

    def files(self, split: str) -> tuple[str, ...]:
        """Return the files of a split in the layout of the original download; maybe none."""
        return TASK_FILES.get(self.name, {}).get(split, ())

    def score(self, rows: Iterable[Scored]) -> dict[str, float]:
        """Return every metric over the labelled rows, in percent; none if none is labelled.

        Args:
            rows: mappings with idx, inputs, targets, answer and the model's prediction.
        """
        labelled = _labelled(rows)
        return self._measure(
            labelled, [self.read_prediction(row["prediction"], row) for row in labelled]
        )

    def invalid_count(self, rows: Iterable[Scored]) -> int:
        """Return how many predictions are no possible answer, over all rows."""
        return sum(self.is_invalid(self.read_prediction(row["prediction"], row)) for row in rows)

    def baseline(self, rows: Iterable[Scored], train_rows: Iterable[Row]) -> dict[str, Any]:
        """Return the baseline's kind and metrics over the same rows as `score`.

        Args:
            rows: rows to score; predictions are not looked at.
            train_rows: training examples, for the most frequent answer.
        """
        labelled = _labelled(rows)
        guesses = self.baseline_of.guess(labelled, list(train_rows))
        return {"kind": self.baseline_of.kind, "metrics": self._measure(labelled, guesses)}

    def _measure(self, rows: list[Scored], found: list[Any]) -> dict[str, float]:
        if not rows:
            return {}
        answers = [row["answer"] for row in rows]
        scores: dict[str, float] = {}
        for item in self.metrics:
            scores.update(item.compute(answers, found))
        return scores


def _labelled(rows: Iterable[Scored]) -> list[Scored]:
    return [row for row in rows if row["answer"] is not None]


# Baselines


def _most_frequent(answers: Sequence[Any]) -> Any:
    """Return the most frequent answer; of several, the smallest."""
    counts = Counter(answers)
    return min(counts, key=lambda answer: (-counts[answer], answer))


def majority(
    rows: list[Scored],
    train_rows: list[Row],
    *,
    label: Callable[[Any], Any] = lambda answer: answer,
) -> list[Any]:
    """Give every row the most frequent training answer.

    Where no training row has an answer (a task that is only evaluated), the scored rows' own
    most frequent one: no constant can do better.
    """
    source = [row for row in train_rows if row["answer"] is not None] or rows
    if not source:
        return []
    return [_most_frequent([label(row["answer"]) for row in source])] * len(rows)


def majority_of_scored(rows: list[Scored], train_rows: list[Row]) -> list[Any]:
    """Give every row the most frequent answer of the scored rows.

    For tasks whose training rows are all of one label.
    """
    return majority(rows, [])


def mean_answer(rows: list[Scored], train_rows: list[Row]) -> list[Any]:
    """Give every row the mean training answer; its correlation with anything is 0.0."""
    answers = [float(row["answer"]) for row in train_rows if row["answer"] is not None]
    return [sum(answers) / len(answers) if answers else 0.0] * len(rows)


def copy_after(rows: list[Scored], train_rows: list[Row], *, marker: str) -> list[Any]:
    """Repeat what follows the first `marker` of each input."""
    return [row["inputs"].partition(marker)[2] for row in rows]


# Reading predictions


def label_index(text: str, row: Scored, *, labels: tuple[str, ...], invalid: int) -> int:
    """Return the index of the label spelled exactly `text`, else `invalid`.

    Nothing is repaired: a near miss is wrong.

    Source: released code, `postprocessors.string_label_to_class_id`.
    """
    return labels.index(text) if text in labels else invalid


def as_it_is(text: str, row: Scored) -> str:
    """Return the prediction itself."""
    return text


def is_blank(found: Any) -> bool:
    """Return whether a text says nothing."""
    return not found.strip()
