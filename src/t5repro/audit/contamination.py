"""Which evaluated rows have a passage of the corpus, and the scores with and without them.

The measure is the longest run of ids that a field of a row shares with one page, in words. A row is
**found** if a run has `words` words or more, or all words of a field of `FEWEST_WORDS` or more; it
is **unchecked** if no field has as many. Prefix and names of fields are in no page, so a run never
crosses them. Two texts that differ in case, punctuation or spelling have other ids, so a paraphrase
or a translation is not found.

Source: ConTAM (Singh et al. 2024), where the longest match in ids, from 8 on, says more than the
union of all matches; Brown et al. 2020 (GPT-3), appendix C, for scores of the rows without matches.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.audit.page_trace import checkout_of
from t5repro.audit.suffix_array import END
from t5repro.audit.text_index import TextIndex, open_index
from t5repro.audit.text_trace import PassagePage, end_of_word, ids_of, pages_of
from t5repro.audit.token_documents import TOKENS
from t5repro.config.sections.score import ScoreStage
from t5repro.errors import LineageError, SettingsError
from t5repro.evaluate.score import finite, read_rows, score_rows
from t5repro.lineage.graph import Graph, Job
from t5repro.lineage.store import Store
from t5repro.lineage.trace import trace
from t5repro.metrics.registry import score_names
from t5repro.report.bootstrap import Interval, resample, score_interval_text
from t5repro.tasks.prefixes import field_names, fields_of
from t5repro.tasks.registry import task_named
from t5repro.tasks.task import Task

WORDS = 8
FEWEST_WORDS = 4  # of a field that is found as a whole
FEWEST_ROWS = 30  # of a score
TARGETS = "targets"
MAX_PAGES = 3  # of a row
MAX_ROWS_IN_TEXT = 10
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class FoundRow:
    """A row with a passage of the corpus.

    Attributes:
        task: its task.
        idx: its identity in the source.
        field: the field with the longest run.
        words: of the run.
        passage: the run as text.
        count: how often the corpus has it.
        pages: the first of these places.
    """

    task: str
    idx: Any
    field: str
    words: int
    passage: str
    count: int
    pages: tuple[PassagePage, ...]


@dataclass(frozen=True)
class Score:
    """A score of some rows.

    Attributes:
        rows: their number.
        value: in percent; None if the rows are fewer than `FEWEST_ROWS` or it is undefined.
        interval: of 95 %, over rows; None if the metric has none.
    """

    rows: int
    value: float | None
    interval: Interval | None

    def to_text(self) -> str:
        """Return the score as text."""
        if self.value is None:
            return f"no score of {self.rows} rows"
        interval = score_interval_text(self.interval)
        return f"{self.value:.1f}{f' ({interval})' if interval else ''} of {self.rows} rows"


@dataclass(frozen=True)
class TaskContamination:
    """What the corpus has of a task's evaluated rows.

    Attributes:
        task: its name.
        corpus: file of the ids.
        rows: number of its rows.
        unchecked: rows whose fields are too short.
        found: rows with a passage.
        fields: field -> number of rows that are found in it; the answer is `TARGETS`, and is found
            in addition to the row.
        metric: first metric of the task; empty if it has none.
        scores: of ``all``, ``not found`` and ``found`` rows.
    """

    task: str
    corpus: str
    rows: int
    unchecked: int
    found: list[FoundRow]
    fields: dict[str, int]
    metric: str
    scores: dict[str, Score]

    def to_lines(self) -> list[str]:
        """Return the counts and scores as lines of text."""
        share = 100 * len(self.found) / self.rows
        lines = [
            f"{self.task}: {len(self.found):,} of {self.rows:,} rows found ({share:.1f} %), "
            f"{self.unchecked:,} unchecked"
        ]
        if self.found:
            lines.append("  by field: " + ", ".join(f"{k} {n:,}" for k, n in self.fields.items()))
            scores = (f"{name} {score.to_text()}" for name, score in self.scores.items())
            lines.append(f"  {self.metric}: {'; '.join(scores)}")
        for row in self.found[:MAX_ROWS_IN_TEXT]:
            lines.append(f"  row {row.idx}, {row.field}, {row.words} words: {row.passage}")
            lines += [f"    {page.row.to_text()}" for page in row.pages]
            if row.count > len(row.pages):
                lines.append(f"    and {row.count - len(row.pages):,} more places")
        if len(self.found) > MAX_ROWS_IN_TEXT:
            lines.append(f"  and {len(self.found) - MAX_ROWS_IN_TEXT:,} more rows (--csv has all)")
        return lines


@dataclass(frozen=True)
class Contamination:
    """The answer for all tasks of a score file."""

    artifact: str
    words: int
    tasks: list[TaskContamination]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        return asdict(self)

    def to_csv(self) -> str:
        """Return every found row as a line of CSV, with its first pages."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["corpus", "task", "idx", "field", "words", "count", "passage", "urls"])
        for task in self.tasks:
            for row in task.found:
                urls = " ".join(page.row.url for page in row.pages)
                counts = (row.words, row.count)
                writer.writerow(
                    (task.corpus, row.task, row.idx, row.field, *counts, row.passage, urls)
                )
        return text.getvalue()

    def to_text(self) -> str:
        """Return the answer as human-readable text."""
        lines = [
            f"{self.artifact}: evaluated rows that share {self.words} words or a whole field with "
            "a page"
        ]
        corpora = dict.fromkeys(task.corpus for task in self.tasks)
        for corpus in corpora:
            lines.append(f"in {corpus}")
            lines += [
                line for task in self.tasks if task.corpus == corpus for line in task.to_lines()
            ]
        lines.append(
            "rows not found may be in the corpus in other words; found rows also differ in "
            "difficulty, so a difference of scores has more than one cause"
        )
        return "\n".join(lines) + "\n"


def contamination(graph: Graph, store: Store, name: str, *, words: int = WORDS) -> Contamination:
    """Compare the rows behind a score with the corpora behind it.

    Args:
        graph: lineage of the working tree.
        store: the working tree.
        name: a file of scores, or one task of it with ``#task``.
        words: length of a run from which on a row is found.

    Raises:
        LineageError: there are no scores of this name or no corpus behind them, or the store is a
            revision.
        SettingsError: `words` is less than `FEWEST_WORDS`.
    """
    if words < FEWEST_WORDS:
        raise SettingsError(
            f"--words is {words}; allowed: {FEWEST_WORDS} or more, shorter runs are common language"
        )
    root, provenance = checkout_of(store), trace(graph, store, name)
    job = next((job for job in provenance.jobs if job.rule == "evaluate_score"), None)
    if job is None:
        raise LineageError(
            f"{name} has no scores; name results/RUN/evaluate_score/NODE/scores.json"
        )
    corpora = [job for job in provenance.jobs if job.rule == TOKENS]
    if not corpora:
        raise LineageError(f"no ids of a corpus are behind {name}: the model read none")
    predictions = _predictions(job, provenance.part)
    texts = ScoreStage.model_validate(job.settings).tasks
    found = []
    for corpus in corpora:
        search = _Search(graph, root, corpus, open_index(root, corpus), words)
        for task, path in predictions.items():
            rows = read_rows(root / path, "prediction")
            found.append(_of_task(search, task_named(task, texts), rows))
    return Contamination(name, words, found)


def _predictions(job: Job, only: str | None) -> dict[str, str]:
    """Return task -> file of its last predictions, which the scores were made from."""
    paths = {
        Path(file.path).stem: file.path
        for file in job.inputs
        if Path(file.path).parts[2] == "evaluate_predict" and "/step-" not in file.path
    }
    return {only: paths[only]} if only else paths


@dataclass(frozen=True)
class _Run:
    """The longest run of a field: its row and field, its ids, and whether it makes a row found."""

    row: int
    field: str
    ids: Any
    words: int
    is_found: bool


class _Search:
    """Finds the fields of rows in the ids of a job."""

    def __init__(self, graph: Graph, root: Path, job: Job, index: TextIndex, words: int) -> None:
        self.job = job
        self._graph, self._root = graph, root
        self._index = index
        self._words = words

    def runs(self, fields: Sequence[Mapping[str, str]]) -> list[_Run]:
        """Return the longest run of each field of each row."""
        places = [(row, field) for row, of_row in enumerate(fields) for field in of_row]
        vocabulary = self._index.vocabulary
        encoded = vocabulary.encode_batch([fields[row][field] for row, field in places])
        # One text of all fields, so that they are searched together; END stands between them.
        text = np.array([number for ids in encoded for number in (*ids, END)], np.int64)
        is_end = text == END
        is_start = self._index.array.corpus.word_starts[text] & ~is_end
        is_border = is_start | is_end
        starts = np.flatnonzero(is_start)
        ends = starts + self._index.array.longest_matches(text, starts)
        first_ids = np.cumsum([0, *(len(ids) + 1 for ids in encoded)])
        runs = []
        for number, (row, field) in enumerate(places):
            low, high = np.searchsorted(starts, first_ids[number : number + 2])
            bounds = [
                (start, end_of_word(is_border, end))
                for start, end in zip(
                    starts[low:high].tolist(), ends[low:high].tolist(), strict=True
                )
            ]
            texts = {(start, end): text[start:end] for start, end in bounds if end > start}
            counts = {
                bound: len(vocabulary.decode(ids.tolist()).split()) for bound, ids in texts.items()
            }
            best = max(counts, key=counts.__getitem__, default=None)
            if best is None:
                continue
            words = counts[best]
            whole = len(fields[row][field].split())
            is_found = words >= min(self._words, max(whole, FEWEST_WORDS))
            runs.append(_Run(row, field, texts[best], words, is_found))
        return runs

    def found_rows(self, task: str, rows: Rows, runs: Sequence[_Run]) -> list[FoundRow]:
        """Return the rows of runs with the passage and its pages."""
        matches = [self._index.array.find(run.ids, most=MAX_PAGES) for run in runs]
        corpus = self._index.array.corpus
        documents = [corpus.documents_at(match.positions) for match in matches]
        needed = {document for of_run in documents for document in of_run}
        pages = {
            page.document: page for page in pages_of(self._graph, self._root, self.job, needed)
        }
        return [
            FoundRow(
                task,
                rows[run.row]["idx"],
                run.field,
                run.words,
                self._index.vocabulary.decode(run.ids.tolist()),
                match.count,
                tuple(pages[document] for document in of_run),
            )
            for run, match, of_run in zip(runs, matches, documents, strict=True)
        ]


def _of_task(search: _Search, task: Task, rows: Rows) -> TaskContamination:
    names = field_names([row["inputs"] for row in rows])
    fields = [fields_of(row["inputs"], names) for row in rows]
    answers = [{} if task.labels else {TARGETS: row["targets"]} for row in rows]
    runs = search.runs([of_row | answer for of_row, answer in zip(fields, answers, strict=True)])
    found = [run for run in runs if run.is_found]
    longest: dict[int, _Run] = {}
    for run in found:
        if run.field != TARGETS and run.words > getattr(longest.get(run.row), "words", 0):
            longest[run.row] = run
    unchecked = sum(
        all(len(text.split()) < FEWEST_WORDS for text in of_row.values()) for of_row in fields
    )
    metric = next(iter(score_names(task.metrics)), "")
    parts = {
        "all": rows,
        "not found": [row for number, row in enumerate(rows) if number not in longest],
        "found": [rows[number] for number in longest],
    }
    return TaskContamination(
        task.name,
        ids_of(search.job),
        len(rows),
        unchecked,
        search.found_rows(task.name, rows, list(longest.values())),
        {
            name: sum(run.field == name for run in found)
            for name in dict.fromkeys(run.field for run in runs)
        },
        metric,
        _scores(task, parts, metric) if longest and metric else {},
    )


def _scores(task: Task, parts: Mapping[str, Rows], metric: str) -> dict[str, Score]:
    """Return the score of each part of the rows."""
    resamples = resample({task.name: task}, {task.name: parts}, seed=0)
    scores = {}
    for name, rows in parts.items():
        if len(rows) < FEWEST_ROWS:
            scores[name] = Score(len(rows), None, None)
            continue
        value = finite(score_rows(task, rows)).get(metric)
        scores[name] = Score(len(rows), value, resamples.interval(task.name, metric, [name]))
    return scores
