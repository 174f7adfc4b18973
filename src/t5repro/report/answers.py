"""The answers page of a task: its rows with the answers of every experiment, right and wrong.

Tasks with labels also have a confusion matrix and scores by class. Rows are text of task files and
of models, so they are cut, control characters are replaced, and the template escapes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t5repro.evaluate.score import read_rows
from t5repro.metrics.question_answering import squad
from t5repro.report.corpus import safe_text
from t5repro.report.experiments import Experiment
from t5repro.report.templates import render
from t5repro.report.titles import format_score, task_title
from t5repro.tasks.task import ScoredRow, Task

MAX_EXAMPLES = 200  # on a page; one half of them wrong, if there are enough
INPUT_CHARS, ANSWER_CHARS = 700, 300
SHADES = 5  # of the cells of a confusion matrix
INVALID = "no label"
STEP_PREFIX = "step-"  # of a folder with the predictions of a kept checkpoint

Rows = Mapping[str, Sequence[ScoredRow]]  # arm -> rows with predictions


@dataclass(frozen=True)
class Answer:
    """An answer of an experiment: its text, the seeds that gave it, and whether it is right."""

    text: str
    seeds: str
    is_right: bool


@dataclass(frozen=True)
class Example:
    """A row of a task.

    Attributes:
        number: its position in the file, from 1.
        inputs: text that the models read.
        target: text that they should write.
        answers: answers of each experiment, the most frequent one first.
        wrong: numbers of the experiments of which at least one seed is wrong.
    """

    number: int
    inputs: str
    target: str
    answers: tuple[tuple[Answer, ...], ...]
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
        predictions: arm -> files named after the task; kept steps have folders ``step-<n>``.

    Raises:
        ArtifactError: a file is missing, empty or lacks a key.
    """
    tasks: dict[str, dict[str, Sequence[ScoredRow]]] = {}
    for arm, paths in predictions.items():
        for path in paths:
            if not path.parent.name.startswith(STEP_PREFIX):
                rows = read_rows(path, "inputs", "targets", "answer", "prediction")
                tasks.setdefault(path.stem, {})[arm] = rows
    return tasks


def is_right(task: Task, row: ScoredRow) -> bool:
    """Return whether a prediction equals its answer, as the task's metrics read both."""
    prediction = task.read_prediction(row["prediction"], row)
    answer = row["answer"]
    if "squad" in task.metrics:
        return squad([answer], [prediction])["em"] > 0
    if isinstance(answer, Mapping):  # MultiRC and ReCoRD name the group of a row as well
        golds = answer.get("answers", [answer.get("label")])
        return prediction in golds
    return bool(prediction == answer)


def answers_page(
    task: Task,
    rows: Rows,
    experiments: Sequence[Experiment],
    *,
    run: str,
    split: str,
    report: str,
    others: Mapping[str, str],
) -> str:
    """Return the page of a task.

    Args:
        task: the task.
        rows: arm -> its rows; every arm has the same rows.
        experiments: the experiments of the report.
        run: name of the run.
        split: the scored split.
        report: link to the report.
        others: task -> link to its page, of every task with a page.
    """
    answering = [entry for entry in experiments if all(arm in rows for arm in entry.arms)]
    examples = _examples(task, rows, answering)
    shown = _selection(examples)
    return render(
        "answers.html.j2",
        script="answers.js",
        title=task_title(task.name),
        task=task.name,
        run=run,
        split=split,
        report=report,
        others={task_title(name): link for name, link in others.items() if name != task.name},
        experiments=answering,
        shares=[_share(examples, number) for number in range(len(answering))],
        confusions=[_confusion(task, rows, entry) for entry in answering] if task.labels else [],
        examples=shown,
        total=len(examples),
    )


def _examples(task: Task, rows: Rows, experiments: Sequence[Experiment]) -> list[Example]:
    arms = [arm for experiment in experiments for arm in experiment.arms]
    right = {arm: [is_right(task, row) for row in rows[arm]] for arm in arms}
    examples = []
    for position, row in enumerate(rows[arms[0]] if arms else ()):
        answers = []
        wrong = []
        for number, experiment in enumerate(experiments):
            seeds: dict[tuple[str, bool], list[int]] = {}
            for arm, seed in zip(experiment.arms, experiment.seeds, strict=True):
                text = safe_text(str(rows[arm][position]["prediction"]), ANSWER_CHARS)
                seeds.setdefault((text, right[arm][position]), []).append(seed)
            if not all(right[arm][position] for arm in experiment.arms):
                wrong.append(number)
            answers.append(_answers(seeds, has_seeds=experiment.has_seeds))
        examples.append(
            Example(
                number=position + 1,
                inputs=safe_text(str(row["inputs"]), INPUT_CHARS),
                target=safe_text(str(row["targets"]), ANSWER_CHARS),
                answers=tuple(answers),
                wrong=tuple(wrong),
            )
        )
    return examples


def _answers(
    seeds: Mapping[tuple[str, bool], Sequence[int]], *, has_seeds: bool
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
    first_wrong = wrong[: max(half, MAX_EXAMPLES - len(right))]
    selected = first_wrong + right[: MAX_EXAMPLES - len(first_wrong)]
    return sorted(selected, key=lambda example: example.number)


def _share(examples: Sequence[Example], number: int) -> str:
    right = sum(number not in example.wrong for example in examples)
    return f"{right:,} of {len(examples):,}"


def _confusion(task: Task, rows: Rows, experiment: Experiment) -> Confusion:
    """Return the confusion matrix of an experiment over its seeds."""
    size = len(task.labels)
    counts = [[0] * (size + 1) for _ in task.labels]
    for arm in experiment.arms:
        for row in rows[arm]:
            if isinstance(row["answer"], int):
                counts[row["answer"]][task.read_prediction(row["prediction"], row)] += 1
    return Confusion(
        columns=(*task.labels, INVALID),
        rows=tuple(
            (label, tuple((count, _shade(count, sum(row))) for count in row))
            for label, row in zip(task.labels, counts, strict=True)
        ),
        labels=tuple(_label_scores(task.labels[label], counts, label) for label in range(size)),
    )


def _shade(count: int, total: int) -> int:
    return -(-SHADES * count // total) if total else 0


def _label_scores(name: str, counts: Sequence[Sequence[int]], label: int) -> LabelScores:
    right = counts[label][label]
    answered = sum(counts[label])
    predicted = sum(row[label] for row in counts)
    return LabelScores(
        label=name,
        precision=_percentage(right, predicted),
        recall=_percentage(right, answered),
        f1=_percentage(2 * right, predicted + answered),
        rows=answered,
    )


def _percentage(part: int, total: int) -> str:
    return format_score(100 * part / total if total else None)
