"""The answers page of a task: its rows with the answers of every experiment, right and wrong.

Answers are not marked if the right one is not public, or if the task's metrics know no right or
wrong: BLEU, ROUGE and correlations. Tasks with labels also have a confusion matrix and scores by
class. Rows are text of task files and of models, so they are cut, control characters are replaced,
and the template escapes them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.evaluate.score import read_rows
from t5repro.metrics.question_answering import squad
from t5repro.metrics.squad_v2 import answer_scores
from t5repro.report.corpus import safe_text
from t5repro.report.experiments import Experiment
from t5repro.report.templates import render
from t5repro.report.titles import format_score, task_title
from t5repro.tasks.task import ScoredRow, Task

MAX_EXAMPLES = 200  # on a page; one half of them wrong, if there are enough
INPUT_CHARS, ANSWER_CHARS = 700, 300
SHADES = 5  # of the cells of a confusion matrix
INVALID = "no label"
UNMARKED = frozenset({"bleu", "rouge", "pearson_corrcoef", "spearman_corrcoef"})  # metrics

Rows = Mapping[str, Sequence[ScoredRow]]  # arm -> rows with predictions


@dataclass(frozen=True)
class Answer:
    """An answer of an experiment: its text, the seeds that gave it, and whether it is right.

    An answer that cannot be marked is neither right nor wrong.
    """

    text: str
    seeds: str
    is_right: bool | None


@dataclass(frozen=True)
class Example:
    """A row of a task.

    Attributes:
        number: its position among the rows of all experiments, from 1; that in the file if they
            have the same rows.
        inputs: text that the models read.
        target: text that they should write; empty if it is not known.
        answers: number of an experiment that has the row -> its answers, the most frequent first.
        right: numbers of the experiments that are right with every seed.
        wrong: numbers of the experiments that are wrong with at least one seed.
    """

    number: int
    inputs: str
    target: str
    answers: Mapping[int, tuple[Answer, ...]]
    right: tuple[int, ...]
    wrong: tuple[int, ...]


@dataclass(frozen=True)
class LabelScores:
    """Precision, recall and F1 of a label, and the number of its rows."""

    label: str
    precision: str
    recall: str
    f1: str
    rows: int


@dataclass(frozen=True)
class Confusion:
    """The confusion matrix of an experiment, over all seeds.

    Attributes:
        columns: predicted labels; the last one is for predictions that are none.
        rows: label -> (count, shade from 0 to `SHADES`) by predicted label.
        labels: scores by label.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    labels: tuple[LabelScores, ...]


def read_predictions(predictions: Mapping[str, Sequence[Path]]) -> Mapping[str, Rows]:
    """Return task -> arm -> rows at the last step.

    Args:
        predictions: arm -> files named after the task.

    Raises:
        ArtifactError: a file is missing, empty or lacks a key.
    """
    tasks: dict[str, dict[str, Sequence[ScoredRow]]] = {}
    for arm, paths in predictions.items():
        for path in paths:
            rows = read_rows(path, "inputs", "targets", "answer", "prediction")
            tasks.setdefault(path.stem, {})[arm] = rows
    return tasks


def has_marks(task: Task) -> bool:
    """Return whether an answer to a task is right or wrong; without metrics, its labels decide."""
    return not task.metrics or not UNMARKED.issuperset(task.metrics)


def is_right(task: Task, row: ScoredRow) -> bool | None:
    """Return whether a prediction equals its answer, as the task's metrics read both.

    None if the answer is not known or the task has no marks.
    """
    answer = row["answer"]
    if answer is None or not has_marks(task):
        return None
    prediction = task.read_prediction(row["prediction"], row)
    # ReCoRD's answer has the group of its row as well, which only the metric needs.
    if "record" in task.metrics:
        answer = answer["answers"]
    if {"squad", "record"}.intersection(task.metrics):
        return squad([answer], [prediction])["em"] > 0
    if "squad_v2" in task.metrics:
        return answer_scores(answer, prediction["text"]).em > 0
    if "entity_f1" in task.metrics:
        return set(prediction) == set(map(tuple, answer["entities"]))
    return bool(prediction == _label(answer))


def _label(answer: Any) -> Any:
    """Return the answer of a row; MultiRC names the group of a row as well."""
    return answer["label"] if isinstance(answer, Mapping) else answer


def answers_page(
    task: Task,
    rows: Rows,
    experiments: Sequence[Experiment],
    *,
    run: str,
    split: str,
    report: str,
    task_links: Mapping[str, str],
    lineage: Mapping[str, str] | None = None,
    unwritable: Mapping[str, str] | None = None,
    in_corpus: Mapping[int, str] | None = None,
) -> str:
    """Return the page of a task.

    Args:
        task: the task.
        rows: arm -> its rows; the arms of an experiment have the same rows, and two experiments
            may have others (`evaluate.max_examples`, `evaluate.split`).
        experiments: the experiments of the report.
        run: name of the run.
        split: the scored split.
        report: link to the report.
        task_links: task -> link to its page, of every task with a page.
        lineage: arm -> link to its predictions on the lineage page.
        unwritable: experiment -> which targets its vocabulary cannot spell.
        in_corpus: number of a row, from 1 -> link to its passage in the corpus.
    """
    # Not every experiment has the task.
    answering = [entry for entry in experiments if all(arm in rows for arm in entry.arms)]
    examples = _examples(task, rows, answering)
    shown = _selection(examples)
    has_labels = bool(task.labels) and any(entry.right or entry.wrong for entry in examples)
    return render(
        "answers.html.j2",
        script="answers.js",
        title=task_title(task.name),
        task=task.name,
        run=run,
        split=split,
        report=report,
        others={task_title(name): link for name, link in task_links.items() if name != task.name},
        experiments=answering,
        shares=[_share(examples, *numbered) for numbered in enumerate(answering)],
        confusions=[_confusion(task, rows, entry) for entry in answering] if has_labels else [],
        has_marks=has_marks(task),
        lineage=lineage or {},
        unwritable=unwritable or {},
        in_corpus=in_corpus or {},
        examples=shown,
        total=len(examples),
    )


def _examples(task: Task, rows: Rows, experiments: Sequence[Experiment]) -> list[Example]:
    """Return the rows of all experiments, each once, beginning with the first experiment's."""
    positions = [_positions(rows[experiment.arms[0]]) for experiment in experiments]
    right = {arm: [is_right(task, row) for row in arm_rows] for arm, arm_rows in rows.items()}
    examples = []
    for number, key in enumerate(dict.fromkeys(key for keys in positions for key in keys), 1):
        answers = {}
        marks: dict[int, bool] = {}
        for index, (experiment, keys) in enumerate(zip(experiments, positions, strict=True)):
            position = keys.get(key)
            if position is None:
                continue
            row = rows[experiment.arms[0]][position]
            seeds: dict[tuple[str, bool | None], list[int]] = {}
            # Seeds that gave the same answer share a line.
            for arm, seed in zip(experiment.arms, experiment.seeds, strict=True):
                text = safe_text(str(rows[arm][position]["prediction"]), ANSWER_CHARS)
                seeds.setdefault((text, right[arm][position]), []).append(seed)
            seed_marks = [right[arm][position] for arm in experiment.arms]
            # A row without a known answer counts neither as right nor as wrong.
            if None not in seed_marks:
                marks[index] = all(seed_marks)
            answers[index] = _answers(seeds, has_seeds=experiment.has_seeds)
        examples.append(
            Example(
                number=number,
                inputs=safe_text(str(row["inputs"]), INPUT_CHARS),
                target=safe_text(str(row["targets"]), ANSWER_CHARS)
                if row["answer"] is not None
                else "",
                answers=answers,
                right=tuple(index for index, mark in marks.items() if mark),
                wrong=tuple(index for index, mark in marks.items() if not mark),
            )
        )
    return examples


def _positions(rows: Sequence[ScoredRow]) -> dict[tuple[str, str, int], int]:
    """Return row -> its position. Equal rows of a file are told apart by their order."""
    repetitions: Counter[tuple[str, str]] = Counter()
    positions = {}
    for position, row in enumerate(rows):
        texts = str(row["inputs"]), str(row["targets"])
        positions[*texts, repetitions[texts]] = position
        repetitions[texts] += 1
    return positions


def _answers(
    seeds: Mapping[tuple[str, bool | None], Sequence[int]], *, has_seeds: bool
) -> tuple[Answer, ...]:
    by_frequency = sorted(seeds.items(), key=lambda entry: -len(entry[1]))
    return tuple(
        Answer(text, f"seed {', '.join(map(str, numbers))}" if has_seeds else "", right)
        for (text, right), numbers in by_frequency
    )


def _selection(examples: Sequence[Example]) -> list[Example]:
    """Return the examples of the page in the order of the file: all, or as many wrong as right."""
    if len(examples) <= MAX_EXAMPLES:
        return list(examples)
    wrong = [example for example in examples if example.wrong]
    right = [example for example in examples if not example.wrong]
    half = MAX_EXAMPLES // 2
    # If one kind has too few rows, the other fills the page.
    first_wrong = wrong[: max(half, MAX_EXAMPLES - len(right))]
    selected = first_wrong + right[: MAX_EXAMPLES - len(first_wrong)]
    return sorted(selected, key=lambda example: example.number)


def _share(examples: Sequence[Example], number: int, experiment: Experiment) -> str:
    """Return how many of an experiment's rows with a mark it answers rightly, with every seed."""
    right = sum(number in example.right for example in examples)
    wrong = sum(number in example.wrong for example in examples)
    if not right + wrong:
        return "no answer known"
    seeds = f" with each of {len(experiment.arms)} seeds" if len(experiment.arms) > 1 else ""
    return f"{right:,} of {right + wrong:,} rows right{seeds}"


def _confusion(task: Task, rows: Rows, experiment: Experiment) -> Confusion:
    """Return the confusion matrix of an experiment over its seeds."""
    size = len(task.labels)
    # One more column than rows: predictions can be invalid, answers cannot.
    counts = [[0] * (size + 1) for _ in task.labels]
    for arm in experiment.arms:
        for row in rows[arm]:
            label = _label(row["answer"])
            if label is not None:
                # An invalid prediction is -1: the last column, as in `Confusion.columns`.
                counts[label][task.read_prediction(row["prediction"], row)] += 1
    return Confusion(
        columns=(*task.labels, INVALID),
        rows=tuple(
            (label, tuple((count, _shade(count, sum(row))) for count in row))
            for label, row in zip(task.labels, counts, strict=True)
        ),
        labels=tuple(_label_scores(task.labels[label], counts, label) for label in range(size)),
    )


def _shade(count: int, total: int) -> int:
    # Rounded up, so that a single row is visible.
    return -(-SHADES * count // total) if total else 0


def _label_scores(name: str, counts: Sequence[Sequence[int]], label: int) -> LabelScores:
    right = counts[label][label]
    answered = sum(counts[label])
    predicted = sum(row[label] for row in counts)
    return LabelScores(
        label=name,
        precision=_percentage(right, predicted),
        recall=_percentage(right, answered),
        # Equals the harmonic mean, without a division by zero if nothing was right.
        f1=_percentage(2 * right, predicted + answered),
        rows=answered,
    )


def _percentage(count: int, total: int) -> str:
    return format_score(100 * count / total if total else None)
