"""The evaluated rows that a corpus has: counts by method, scores without them, both passages.

Rows and pages are text of other people, so control characters are replaced, and the template
escapes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.contamination.methods import BY_NAME, Method
from t5repro.errors import ArtifactError
from t5repro.files import read_json
from t5repro.report.answers import Rows
from t5repro.report.corpus import safe_text
from t5repro.report.render_lineage import FILE_PREFIX, anchor
from t5repro.report.subset_scores import first_metric, subset_scores
from t5repro.report.templates import render
from t5repro.report.titles import task_title
from t5repro.tasks.task import Task

MAX_PASSAGES = 50  # of a task, the longest first
CORPUS = "corpus"
PARTS = {"all": "all rows", "clean": "rows not found", "dirty": "rows found"}


@dataclass(frozen=True)
class Passage:
    """A field of an evaluated row, and the first page or training row that has it.

    Attributes:
        number: of the row among the examples, from 0.
        target: its id on the page; empty if an earlier passage of the row has one.
        row: ``idx`` of the row.
        field: its name.
        size: units of the passage, of all units of the field.
        methods: names of the methods by which it is found.
        in_row: the passage in the row.
        in_page: the passage in the page, with text around it.
        page: address of the page, or its file and number.
        file: the file that has the page.
        others: number of further pages with a part of the field.
    """

    number: int
    target: str
    row: str
    field: str
    size: str
    methods: str
    in_row: str
    in_page: str
    page: str
    file: str
    others: int


@dataclass(frozen=True)
class SearchedTask:
    """A task with searched rows.

    Attributes:
        name: its name.
        title: its title.
        rows: number of its rows.
        found: rows that the corpus has, by method.
        in_examples: rows that the training rows of other tasks have, by method.
        unchecked: rows that are too short for the first method.
        scored_by: the first method that finds a row, which divides the rows of `scores`.
        metric: first metric of the task; empty if it has none.
        scores: arm -> a text for each of `PARTS`; empty if no row is found.
        passages: found fields, at most `MAX_PASSAGES`.
        more: number of the others.
    """

    name: str
    title: str
    rows: int
    found: tuple[str, ...]
    in_examples: tuple[str, ...]
    unchecked: int
    scored_by: str
    metric: str
    scores: Mapping[str, tuple[str, ...]]
    passages: tuple[Passage, ...]
    more: int


@dataclass(frozen=True)
class SearchedCorpus:
    """A corpus that was searched.

    Attributes:
        arms: the arms that read it.
        methods: the methods.
        size: units that were read, as text.
        tasks: the tasks.
    """

    arms: tuple[str, ...]
    methods: tuple[Method, ...]
    size: str
    tasks: tuple[SearchedTask, ...]


def searched_corpora(
    files: Mapping[str, Path], tasks: Mapping[str, Task], answered: Mapping[str, Rows]
) -> list[SearchedCorpus]:
    """Return each corpus that was searched, with the scores of its arms.

    Args:
        files: arm -> the evaluated rows that its corpus has.
        tasks: name -> task with predictions.
        answered: task -> arm -> rows with predictions, in the order of the searched rows.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    arms_by_file: dict[Path, list[str]] = {}
    for arm, path in files.items():
        arms_by_file.setdefault(path, []).append(arm)
    return [_corpus(path, arms, tasks, answered) for path, arms in arms_by_file.items()]


def _corpus(
    path: Path, arms: Sequence[str], tasks: Mapping[str, Task], answered: Mapping[str, Rows]
) -> SearchedCorpus:
    content = read_json(path)
    try:
        methods = tuple(BY_NAME[name] for name in content["methods"])
        return SearchedCorpus(
            tuple(arms),
            methods,
            _size(content["searched"]),
            tuple(
                _task(
                    name,
                    sources,
                    methods,
                    tasks.get(name),
                    {arm: rows for arm, rows in answered.get(name, {}).items() if arm in arms},
                )
                for name, sources in content["tasks"].items()
            ),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{path} has not the rows of a search; rerun the stage contamination"
        ) from error


def _size(searched: Mapping[str, Mapping[str, int]]) -> str:
    return ", ".join(f"{count:,} {unit}" for unit, count in searched.get(CORPUS, {}).items())


def _task(
    name: str,
    sources: Mapping[str, Any],
    methods: Sequence[Method],
    task: Task | None,
    rows: Mapping[str, Sequence[Any]],
) -> SearchedTask:
    by_method = sources[CORPUS]["methods"]
    first = by_method[methods[0].name]
    names = [method.name for method in methods]
    scored_by = next((name for name in names if by_method[name]["dirty"]), names[0])
    found = [entry for source in sources.values() for entry in source["found"]]
    longest = sorted(found, key=lambda entry: -entry["length"])
    return SearchedTask(
        name=name,
        title=task_title(name),
        rows=sum(first["rows"].values()),
        found=_counts(by_method, methods),
        in_examples=_counts(sources.get("examples", {"methods": {}})["methods"], methods),
        unchecked=first["rows"]["unchecked"],
        scored_by=scored_by,
        metric=first_metric(task) if task else "",
        scores=_scores(task, rows, by_method[scored_by]) if task else {},
        passages=_passages(f"{'-'.join(rows)}-{name}", longest[:MAX_PASSAGES]),
        more=len(longest[MAX_PASSAGES:]),
    )


def _counts(by_method: Mapping[str, Any], methods: Sequence[Method]) -> tuple[str, ...]:
    """Return the rows that each method finds, empty where it does not search."""
    texts = []
    for method in methods:
        counts = by_method.get(method.name, {"rows": {}})["rows"]
        count, total = counts.get("dirty", 0), sum(counts.values())
        texts.append(f"{count:,} ({100 * count / total:.1f} %)" if total else "")
    return tuple(texts)


def _scores(
    task: Task, rows: Mapping[str, Sequence[Any]], entry: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return arm -> the score of all rows, of rows not found, and of rows found."""
    texts = {}
    for arm, predicted in rows.items():
        # `evaluate.max_examples` predicts the first rows only.
        numbers = [
            [number for number in entry[part] if number < len(predicted)]
            for part in ("dirty", "unchecked")
        ]
        scores = subset_scores(task, predicted, *numbers)
        if scores:
            texts[arm] = tuple(scores[part].to_text() for part in PARTS)
    return texts


def _passages(prefix: str, entries: Sequence[Mapping[str, Any]]) -> tuple[Passage, ...]:
    rows: set[int] = set()
    passages = []
    for entry in entries:
        target = "" if entry["row"] in rows else f"{prefix}-{entry['row']}"
        rows.add(entry["row"])
        passages.append(_passage(entry, target))
    return tuple(passages)


def _passage(entry: Mapping[str, Any], target: str) -> Passage:
    return Passage(
        number=entry["row"],
        target=target,
        row=safe_text(str(entry["idx"])),
        field=entry["field"],
        size=f"{entry['length']:,} of {entry['of']:,} {entry['unit']}",
        methods=", ".join(entry["methods"]),
        in_row=safe_text(entry["in_row"]),
        in_page=safe_text(entry["in_page"]),
        page=safe_text(entry["name"] or f"{entry['file']} {entry['document']}"),
        file=entry["file"],
        others=entry["pages"] - 1,
    )


def passage_links(searched: Sequence[SearchedCorpus], task: str, page: str) -> dict[int, str]:
    """Return number of a row of a task, from 1 -> link to its longest passage.

    If several corpora have the row, it is the passage in the first.

    Args:
        searched: the corpora that were searched.
        task: name of the task.
        page: link to the page; empty without one.
    """
    links: dict[int, str] = {}
    for corpus in searched if page else ():
        for entry in corpus.tasks:
            for passage in entry.passages if entry.name == task else ():
                links.setdefault(passage.number + 1, f"{page}#{passage.target}")
    return links


def contamination_page(
    searched: Sequence[SearchedCorpus], *, run: str, report: str, lineage: str = ""
) -> str:
    """Return the page as HTML.

    Args:
        searched: the corpora that were searched.
        run: name of the run.
        report: link to the report.
        lineage: link to the lineage page; empty without one.
    """
    files = {
        passage.file: f"{lineage}#{anchor(passage.file, FILE_PREFIX)}"
        for corpus in searched
        for task in corpus.tasks
        for passage in task.passages
        if lineage
    }
    return render(
        "contamination.html.j2",
        searched=searched,
        parts=list(PARTS.values()),
        most=MAX_PASSAGES,
        run=run,
        report=report,
        files=files,
    )
