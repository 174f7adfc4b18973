"""The paper's tables with our numbers beside them, and which differences count.

A table is shown where an experiment names one of its rows (`row` of the run file). A row that
prints the same configuration under another name, as most tables do with the baseline, is filled by
the same experiment. What counts as a difference is the paper's rule: more than two standard
deviations, of its own baseline trained ten times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.report.experiments import Group, counted
from t5repro.report.links import Behind, Files
from t5repro.report.published_scores import (
    DEVIATION,
    NOTED_IN,
    PREVIOUS_BEST,
    PublishedRow,
    counts_as_difference,
    deviation,
    near_best,
    published_rows,
    published_title,
    rows_called,
)
from t5repro.report.rows import (
    AVERAGE,
    BENCHMARKS,
    BEST,
    METRIC_TITLES,
    TASK_TITLES,
    ScoreRow,
    best_of,
    of_experiments,
    shown,
    spread,
)
from t5repro.report.score_table import group_of, signed, title_of

WIDE = 10  # columns from which a table is turned: numbers down, rows across


@dataclass(frozen=True)
class Number:
    """One cell.

    Attributes:
        text: the number, or a dash.
        exact: it in full; empty where there is none or it is the paper's.
        bold: whether it is within two deviations of the best of its column and kind.
        spread: standard deviation over our seeds.
        difference: ours minus the paper's.
        counts: whether that is a difference; None where the paper gives no deviation.
        why: why there is no number.
        behind: the runs behind it.
    """

    text: str
    exact: str = ""
    bold: bool = False
    spread: str = ""
    difference: str = ""
    counts: bool | None = None
    why: str = ""
    behind: tuple[Behind, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A row of the paper, or an experiment that stands for it.

    Attributes:
        name: of the row or of the experiment.
        note: number of its footnote; empty for none.
        ours: whether it is an experiment.
        style: number of the experiment's colour.
        runs: how many seeds, in words; empty for one.
        cells: one number a column.
    """

    name: str
    note: str
    ours: bool
    style: int
    runs: str
    cells: tuple[Number, ...]


@dataclass(frozen=True)
class Table:
    """One table of the paper.

    Attributes:
        number: of the table.
        title: what it is about.
        turned: whether it is shown with its numbers down and its rows across.
        columns: task and metric of each number, for people.
        deviations: the paper's standard deviation of each number, or a dash.
        entries: rows of the paper, each followed by the experiments that stand for it.
        notes: footnotes, in order.
        reasons: why numbers of ours are missing.
    """

    number: int
    title: str
    turned: bool
    columns: tuple[tuple[str, str], ...]
    deviations: tuple[str, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...]
    reasons: tuple[str, ...]


def paper_tables(
    rows: Sequence[ScoreRow],
    scores: Mapping[str, Mapping[str, Any]],
    listed: Sequence[Group],
    files: Files,
    *,
    split: str,
) -> list[Table]:
    """Return every table of the paper that an experiment names a row of.

    Args:
        rows: numbers of all arms.
        scores: arm -> content of its ``scores.json``.
        listed: the experiments.
        files: the way to what is behind a number.
        split: which split was scored; tables of another are left out.
    """
    named = [row for group in listed for row in rows_called(group.row) if row.split == split]
    ours = {(row.experiment, row.task, row.metric): row for row in of_experiments(rows)}
    known = {row.experiment for row in rows}
    both = [item for group in listed for item in (group, best_of(group)) if item.name in known]
    return [
        _table(number, both, _Ours(ours, scores, files))
        for number in sorted({row.table for row in named})
    ]


@dataclass(frozen=True)
class _Ours:
    """Our numbers, what they came from and what is behind them."""

    rows: Mapping[tuple[str, str, str], ScoreRow]
    scores: Mapping[str, Mapping[str, Any]]
    files: Files

    def value(self, group: Group, key: str) -> float | None:
        task, metric = key.split(".")
        row = self.rows.get((group.name, task, metric))
        return None if row is None else row.value

    def number(self, group: Group, key: str, paper: float, sd: float | None) -> Number:
        task, metric = key.split(".")
        row = self.rows.get((group.name, task, metric))
        if row is None or row.value is None:
            return Number(
                text=shown(None),
                why=self._why(group, task, metric),
                behind=self.files.behind(group, task, metric),
            )
        difference = row.value - paper
        return Number(
            text=shown(row.value),
            exact=repr(row.value),
            spread=spread(row.sd),
            difference=signed(difference),
            counts=counts_as_difference(difference, sd),
            behind=self.files.behind(group, task, metric),
        )

    def _why(self, group: Group, task: str, metric: str) -> str:
        if metric != AVERAGE:
            return "not in this run"
        missing: dict[str, None] = {}
        for arm in group.arms:
            found = self.scores[arm.removesuffix(BEST)]["averages"].get(task)
            missing |= dict.fromkeys(found["missing"] if found else ())
        if not missing:
            return "none of its tasks is in this run"
        return f"undefined, lacks {', '.join(map(title_of, missing))}"


def _table(number: int, listed: Sequence[Group], ours: _Ours) -> Table:
    """Lay one table out."""
    printed = [row for row in published_rows() if row.table == number and row.name != DEVIATION]
    keys = list(printed[0].values)
    split = printed[0].split
    deviations = [deviation(key, split=split) for key in keys]
    standing = {row.name: [group for group in listed if stands_for(group, row)] for row in printed}
    bold = _bold(printed, standing, ours, keys, deviations)
    notes: list[str] = []
    entries = []
    for row in printed:
        if row.note:
            notes.append(f"{row.name}: {row.note} ({NOTED_IN[number]}).")
        entries.append(
            Entry(
                name=row.name,
                note=str(len(notes)) if row.note else "",
                ours=False,
                style=0,
                runs="",
                cells=tuple(
                    Number(text=shown(row.values[key]), bold=bold[False, row.name, key])
                    for key in keys
                ),
            )
        )
        entries += [
            _entry(group, row, ours, keys, deviations, bold) for group in standing[row.name]
        ]
    return Table(
        number=number,
        title=published_title(number),
        turned=len(keys) > WIDE,
        columns=tuple(map(_column, keys)),
        deviations=tuple("–" if sd is None else f"{sd:.3f}" for sd in deviations),
        entries=tuple(entries),
        notes=tuple(notes),
        reasons=_reasons(entries, keys),
    )


def stands_for(group: Group, row: PublishedRow) -> bool:
    """Whether an experiment is a row's configuration, under this name or another table's."""
    return group.row == row.name or any(row.is_same_as(other) for other in rows_called(group.row))


def _entry(
    group: Group,
    row: PublishedRow,
    ours: _Ours,
    keys: Sequence[str],
    deviations: Sequence[float | None],
    bold: Mapping[tuple[bool, str, str], bool],
) -> Entry:
    numbers = [
        ours.number(group, key, row.values[key], sd)
        for key, sd in zip(keys, deviations, strict=True)
    ]
    return Entry(
        name=group.name,
        note="",
        ours=True,
        style=group.style,
        runs=counted(len(group.arms), "seed") if group.several else "",
        cells=tuple(
            replace(item, bold=bold[True, group.name, key])
            for key, item in zip(keys, numbers, strict=True)
        ),
    )


def _bold(
    printed: Sequence[PublishedRow],
    standing: Mapping[str, Sequence[Group]],
    ours: _Ours,
    keys: Sequence[str],
    deviations: Sequence[float | None],
) -> dict[tuple[bool, str, str], bool]:
    """Return (ours, its name, key) -> whether it is near the best, the paper and ours apart."""
    models = [row for row in printed if row.name != PREVIOUS_BEST]
    groups = list({group.name: group for found in standing.values() for group in found}.values())
    found = {(False, row.name, key): False for row in printed for key in keys}
    for key, sd in zip(keys, deviations, strict=True):
        theirs = near_best([row.values[key] for row in models], sd)
        mine = near_best([ours.value(group, key) for group in groups], sd)
        found |= {(False, row.name, key): best for row, best in zip(models, theirs, strict=True)}
        found |= {(True, group.name, key): best for group, best in zip(groups, mine, strict=True)}
    return found


def _column(key: str) -> tuple[str, str]:
    """Return how people call a column: of a benchmark's mean the benchmark alone."""
    task, metric = key.split(".")
    title = title_of(task)
    if list(TASK_TITLES.values()).count(title) > 1:
        title = f"{title} ({group_of(task)})"
    return title, METRIC_TITLES[AVERAGE if task in BENCHMARKS else metric]


def _reasons(entries: Sequence[Entry], keys: Sequence[str]) -> tuple[str, ...]:
    """Return one sentence for each reason that an experiment lacks numbers for."""
    found: dict[tuple[str, str], list[str]] = {}
    together: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        for key, cell in zip(keys, entry.cells, strict=True):
            if cell.why:
                title, metric = _column(key)
                column = title if key.endswith(f".{AVERAGE}") else f"{title} {metric}"
                found.setdefault((entry.name, cell.why), []).append(column)
    for (name, why), columns in found.items():
        together.setdefault((", ".join(dict.fromkeys(columns)), why), []).append(name)
    return tuple(
        f"{columns}: {why} ({', '.join(dict.fromkeys(names))})."
        for (columns, why), names in together.items()
    )
