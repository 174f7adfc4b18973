"""What each part of the report shows, as plain values; the template only places them.

To add a part, add a function here, call it in `report.py` and place it in `report.html.j2`.
"""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from t5repro.config.load import FREE_KEYS, describe, settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError
from t5repro.evaluate.charts import Series, legend, line_chart
from t5repro.evaluate.published import NO_PRETRAINING, published_value, rows_called
from t5repro.evaluate.table import (
    AVERAGE,
    BENCHMARKS,
    METRIC_TITLES,
    TASK_TITLES,
    ScoreRow,
    first_rows,
    shown,
)
from t5repro.files import read_json, sha256_of

DIGEST_CHARS = 12
NO_PRETRAINING_CHANGE = {"pretrain.steps": 0}

GROUPS = (
    ("glue_", "GLUE"),
    ("super_glue_", "SuperGLUE"),
    ("squad", "Question answering"),
    ("cnn_dailymail", "Summarisation"),
    ("wmt_", "Translation"),
)
OTHER_GROUP = "Other tasks"
AVERAGES_GROUP = "Benchmark averages"

# Where paper, released code and this project leave a choice, and the setting that makes it.
SWITCHES = (
    ("c4.recipe", "which account of C4 the cleaning starts from"),
    ("c4.clean.min_sentences", "sentences that a page must have"),
    ("c4.clean.min_words_per_line", "words that a line must have"),
    ("c4.clean.bad_words", "where listed words are looked for"),
    ("c4.dedup.unit", "what is kept only once in the corpus"),
    ("pretrain.noise_mask", "how corrupted tokens are chosen"),
    ("pretrain.noise_density", "share of corrupted tokens"),
    ("pretrain.concatenate_documents", "whether documents run on into each other"),
    ("pretrain.learning_rate.schedule", "decay of the learning rate in pre-training"),
    ("finetune.mixture", "how often each task is drawn"),
    ("finetune.mixture_limit", "examples from which a task counts no more"),
    ("evaluate.split", "split that is scored"),
    ("evaluate.max_decode_length", "tokens at which an answer is cut"),
)

# Where the raw inputs lay on a machine is no property of the result.
PLACES = ("run.", "data.", "experiments")


@dataclass(frozen=True)
class Arm:
    """An experiment as the page names it.

    Attributes:
        name: its name.
        style: number of its colour.
        changes: dotted setting -> value it changes.
        paper_row: the row of the paper that it stands for, and in which tables.
    """

    name: str
    style: int
    changes: Mapping[str, str]
    paper_row: str


def arms(settings: Settings, names: Sequence[str]) -> list[Arm]:
    """Return the experiments of the page, in its order."""
    known = {item.name: item for item in settings.experiments}
    listed = []
    for style, name in enumerate(names):
        item = known.get(name)
        listed.append(
            Arm(
                name=name,
                style=style,
                changes={key: plain(value) for key, value in item.change.items()} if item else {},
                paper_row=paper_row(item.row) if item else "",
            )
        )
    return listed


def paper_row(name: str) -> str:
    """Return a row's name with the tables that print it; nothing for a row that none has."""
    tables = [str(row.table) for row in rows_called(name)]
    if not tables:
        return ""
    return f"“{name}” of {'table' if len(tables) == 1 else 'tables'} {', '.join(tables)}"


def plain(value: Any) -> str:
    """Return a setting's value as text."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def lede(settings: Settings, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page's first sentences: how many experiments, tasks, and of what size."""
    tasks = {task for content in scores.values() for task in content["tasks"]}
    return (
        f"{counted(len(scores), 'experiment')} on {counted(len(tasks), 'task')}, "
        f"from the crawl to the scores. The model has {model_words(settings)}; "
        f"it saw {settings.pretrain.steps:,} steps of pre-training and "
        f"{settings.finetune.steps:,} of fine-tuning, as far as an experiment does not change them."
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def model_words(settings: Settings) -> str:
    """Return the shape of the model in words."""
    model = settings.model
    return (
        f"{model.num_encoder_layers} + {model.num_decoder_layers} layers of width {model.d_model}"
        f" and {settings.vocab.vocab_size:,} word pieces"
    )


def difference_title(settings: Settings, names: Sequence[str]) -> str:
    """Return what the difference of the first two experiments is called; nothing for one."""
    if len(names) < 2:
        return ""
    first, second = (_flat(settings_of_experiment(settings, name)) for name in names[:2])
    changed = {key: value for key, value in second.items() if first[key] != value}
    if changed == NO_PRETRAINING_CHANGE:
        return "pre-training adds"
    return f"{names[0]} − {names[1]}"


def _flat(settings: Settings) -> dict[str, Any]:
    """Return dotted setting -> value, free mappings as one value."""
    leaves: dict[str, Any] = {}

    def walk(tree: Mapping[str, Any], prefix: str) -> None:
        for key, value in tree.items():
            name = prefix + key
            if isinstance(value, dict) and key not in FREE_KEYS:
                walk(value, name + ".")
            else:
                leaves[name] = value

    walk(settings.model_dump(mode="json"), "")
    return leaves


# scores


@dataclass(frozen=True)
class Cell:
    """One experiment's number in the table of scores."""

    text: str
    exact: str
    best: bool
    beats: bool


@dataclass(frozen=True)
class Line:
    """One line of the table of scores.

    Attributes:
        name: the task's name in files.
        title: the task's name for people; empty on its further metrics.
        metric: name of the metric for people.
        baseline: score of the trivial answer, and its kind.
        cells: one number an experiment.
        difference: first experiment minus second.
        sign: ``up``, ``down`` or nothing.
        examples: how many were scored.
        invalid: answers that are none of the allowed, by experiment.
        paper: what the paper's baseline scores.
        paper_without: what the paper scores without pre-training.
        reason: why a number is not defined.
        marks: places on a scale from 0 to 100 for the drawing; only on a task's first metric.
    """

    name: str
    title: str
    metric: str
    baseline: str
    baseline_kind: str
    cells: tuple[Cell, ...]
    difference: str
    sign: str
    examples: str
    invalid: str
    paper: str
    paper_without: str
    reason: str
    marks: tuple["Mark", ...]


@dataclass(frozen=True)
class Mark:
    """A point of the drawing: whose, what it says, and how far to the right in per cent."""

    kind: str
    text: str
    place: str


def score_groups(
    rows: Sequence[ScoreRow], scores: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, list[Line]]]:
    """Return the table of scores: groups of tasks and their lines, averages last."""
    names = list(scores)
    found = {(row.task, row.metric, row.experiment): row for row in rows}
    groups: dict[str, list[Line]] = {}
    previous = ""
    for first in first_rows(rows):
        entries = [found.get((first.task, first.metric, name)) for name in names]
        group = AVERAGES_GROUP if first.metric == AVERAGE else group_of(first.task)
        line = _line(first, entries, is_first=first.task != previous)
        if all(row is None or row.value is None for row in entries):
            line = replace(line, reason=_reason(first, scores))
        groups.setdefault(group, []).append(line)
        previous = first.task
    return list(groups.items())


def group_of(task: str) -> str:
    """Return the heading that a task stands under."""
    return next((title for prefix, title in GROUPS if task.startswith(prefix)), OTHER_GROUP)


def _line(first: ScoreRow, entries: Sequence[ScoreRow | None], *, is_first: bool) -> Line:
    values = [None if row is None else row.value for row in entries]
    known = [value for value in values if value is not None]
    best = max(known) if len(known) > 1 and max(known) > min(known) else None
    difference = (
        values[0] - values[1]
        if len(values) > 1 and values[0] is not None and values[1] is not None
        else None
    )
    return Line(
        name=first.task,
        title=title_of(first.task) if is_first else "",
        metric=METRIC_TITLES.get(first.metric, first.metric),
        baseline=shown(first.baseline) if first.baseline_kind else "",
        baseline_kind=first.baseline_kind,
        cells=tuple(
            Cell(
                text=shown(value),
                exact="" if value is None else repr(value),
                best=value is not None and value == best,
                beats=value is not None and first.baseline is not None and value > first.baseline,
            )
            for value in values
        ),
        difference="" if difference is None else signed(difference),
        sign=""
        if difference is None or signed(difference) == signed(0.0)
        else ("up" if difference > 0 else "down"),
        examples="" if first.examples is None else f"{first.examples:,}",
        invalid=_invalid(entries),
        paper="" if first.paper_baseline is None else shown(first.paper_baseline),
        paper_without=_paper_without(first),
        reason="",
        marks=_marks(first, values) if is_first and first.metric != AVERAGE else (),
    )


def signed(value: float) -> str:
    """Return a difference with its sign, two places."""
    text = f"{value:+.2f}".replace("-", "−")
    return "±0.00" if text[1:] == "0.00" else text


def _invalid(entries: Sequence[ScoreRow | None]) -> str:
    counts = ["" if row is None or row.invalid is None else str(row.invalid) for row in entries]
    return counts[0] if len(set(counts)) == 1 else " / ".join(counts)


def _paper_without(row: ScoreRow) -> str:
    value = published_value(row.task, row.metric, row=NO_PRETRAINING)
    return "" if value is None else shown(value)


def _marks(first: ScoreRow, values: Sequence[float | None]) -> tuple[Mark, ...]:
    """Return the points of a task's drawing; what lies below 0 is drawn at 0."""
    points = [("baseline", first.baseline_kind, first.baseline)]
    points += [(f"series-{style}", "", value) for style, value in enumerate(values)]
    return tuple(
        Mark(kind=kind, text=text, place=f"{min(max(value, 0.0), 100.0):.2f}")
        for kind, text, value in points
        if value is not None
    )


def _reason(first: ScoreRow, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why no experiment has this number."""
    title = title_of(first.task)
    if first.metric != AVERAGE:
        return f"{title}: not defined, because no scored example has a known answer."
    missing: dict[str, None] = {}
    for content in scores.values():
        missing |= dict.fromkeys(content["averages"].get(first.task, {}).get("missing", ()))
    names = ", ".join(title_of(task) for task in missing)
    return f"{title}: not defined, because it also needs {names}."


def title_of(task: str) -> str:
    """Return the name of a task or a benchmark for people."""
    return (TASK_TITLES | BENCHMARKS).get(task, task)


@dataclass(frozen=True)
class Tally:
    """How many tasks an experiment answers better than the trivial answer does."""

    name: str
    style: int
    beaten: int
    of: int


def tallies(scores: Mapping[str, Mapping[str, Any]]) -> list[Tally]:
    """Return for each experiment how many tasks beat their trivial answer."""
    return [
        Tally(
            name=name,
            style=style,
            beaten=content["beats_baseline"]["beaten"],
            of=content["beats_baseline"]["of"],
        )
        for style, (name, content) in enumerate(scores.items())
    ]


@dataclass(frozen=True)
class Effect:
    """What the first experiment has over the second, over the first metric of each task."""

    better: int
    worse: int
    equal: int
    mean: str


def effect(scores: Mapping[str, Mapping[str, Any]]) -> Effect | None:
    """Compare the first two experiments; None where there is nothing to compare."""
    if len(scores) < 2:
        return None
    first, second = list(scores.values())[:2]
    differences = []
    for task, entry in first["tasks"].items():
        metric = entry["primary_metric"]
        own = entry["metrics"].get(metric)
        other = second["tasks"].get(task, {"metrics": {}})["metrics"].get(metric)
        if own is not None and other is not None:
            differences.append(own - other)
    if not differences:
        return None
    return Effect(
        better=sum(value > 0 for value in differences),
        worse=sum(value < 0 for value in differences),
        equal=sum(value == 0 for value in differences),
        mean=signed(math.fsum(differences) / len(differences)),
    )


# loss curves


@dataclass(frozen=True)
class Curve:
    """The losses of one phase: the drawing, its key, and the numbers behind it."""

    title: str
    chart: Markup | None
    key: Markup | None
    rows: tuple[tuple[str, str, str, str, str], ...]


def curve(phase: str, title: str, histories: Mapping[str, Path]) -> Curve:
    """Draw the losses of one phase of all experiments; equal histories share a line.

    Args:
        phase: ``pretrain`` or ``finetune``.
        title: what the phase is called.
        histories: experiment -> ``history.csv``.
    """
    lines: dict[str, tuple[list[str], int, list[tuple[float, float]]]] = {}
    for style, (name, path) in enumerate(histories.items()):
        points = read_history(path)
        if points:
            lines.setdefault(sha256_of(path), ([], style, points))[0].append(name)
    series = [
        Series(name=" = ".join(names), points=tuple(points), style=style)
        for names, style, points in lines.values()
    ]
    if not series:
        return Curve(title=title, chart=None, key=None, rows=())
    rows = tuple(
        (
            line.name,
            f"{line.points[-1][0]:,.0f}",
            f"{line.points[0][1]:.3f}",
            f"{line.points[-1][1]:.3f}",
            f"{min(loss for _, loss in line.points):.3f}",
        )
        for line in series
    )
    said = "; ".join(
        f"{name}: from {first} to {last} in {steps} steps" for name, steps, first, last, _ in rows
    )
    chart = line_chart(
        f"loss-{phase}",
        series,
        title=f"Training loss, {title.lower()}",
        description=said,
        x_label="step",
        y_label="training loss (sum / padded size)",
    )
    return Curve(title=title, chart=chart, key=legend(series), rows=rows)


def read_history(path: Path) -> list[tuple[float, float]]:
    """Return (step, loss) from a training history; finite losses only.

    Raises:
        ArtifactError: it is missing or is no history; the line is named.
    """
    try:
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage that trains") from error
    if not {"step", "loss"} <= set(reader.fieldnames or ()):
        raise ArtifactError(f"{path} has columns {reader.fieldnames}; it needs step and loss")
    points = []
    for number, row in enumerate(reader, start=2):
        try:
            step, loss = float(row["step"]), float(row["loss"])
        except (TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} line {number} is no step and loss ({error}); rerun the stage that trains"
            ) from error
        if math.isfinite(loss):
            points.append((step, loss))
    return points


# settings


@dataclass(frozen=True)
class Setting:
    """One setting: its value in each experiment, the paper's, and what it means."""

    name: str
    values: tuple[str, ...]
    paper: str
    differs: bool
    meaning: str


def all_settings(settings: Settings, names: Sequence[str]) -> list[Setting]:
    """Return every setting that can move a number, with the paper's baseline beside it."""
    resolved = [_flat(settings_of_experiment(settings, name)) for name in names]
    paper = _flat(Settings())
    return [
        Setting(
            name=name,
            values=tuple(plain(values[name]) for values in resolved),
            paper=plain(paper[name]),
            differs=any(values[name] != paper[name] for values in resolved),
            meaning=describe(name),
        )
        for name in resolved[0]
        if not name.startswith(PLACES)
    ]


def switches(listed: Sequence[Setting]) -> list[tuple[str, Setting]]:
    """Return the choices in force: question and setting."""
    known = {item.name: item for item in listed}
    return [(question, known[name]) for name, question in SWITCHES]


# where the numbers come from


@dataclass(frozen=True)
class Source:
    """A file that the page was made from."""

    experiment: str
    what: str
    path: str
    digest: str


def sources(
    scores: Mapping[str, Path],
    histories: Mapping[str, Mapping[str, Path]],
    corpus: Mapping[str, Path],
) -> list[Source]:
    """Return every input of the page with the head of its SHA-256."""
    listed = [
        *((name, "scores", path) for name, path in scores.items()),
        *(
            (name, f"history of {phase}", path)
            for name, phases in histories.items()
            for phase, path in phases.items()
        ),
        *((name, "manifest of the corpus", path) for name, path in corpus.items()),
    ]
    return [
        Source(
            experiment=name, what=what, path=path.as_posix(), digest=sha256_of(path)[:DIGEST_CHARS]
        )
        for name, what, path in listed
    ]


def read_scores(path: Path, order: Sequence[str]) -> dict[str, Any]:
    """Read a ``scores.json``, its tasks in the given order, others after them.

    Raises:
        ArtifactError: it is missing or lacks a part.
    """
    content = read_json(path)
    absent = [key for key in ("tasks", "averages", "beats_baseline") if key not in content]
    if absent:
        raise ArtifactError(f"{path} lacks {absent}; rerun the stage evaluate_score")
    tasks = content["tasks"]
    names = [*(name for name in order if name in tasks), *sorted(set(tasks) - set(order))]
    return {**content, "tasks": {name: tasks[name] for name in names}}
