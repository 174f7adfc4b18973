"""Which evaluated rows are in the corpus, and the scores with and without them.

The search and the methods are in `t5repro.contamination`. An audit
adds the crawl records of the pages, the steps that read them, and the scores of the parts.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from t5repro.audit.page_trace import checkout_of
from t5repro.audit.text_index import checked
from t5repro.audit.text_trace import PassagePage, ids_of, pages_of
from t5repro.audit.token_documents import TOKENS, corpus_paths, documents_of
from t5repro.config.sections.score import ScoreStage
from t5repro.contamination.find import Corpus, find
from t5repro.contamination.methods import BY_NAME, FEWEST_WORDS, Method
from t5repro.errors import LineageError, SettingsError
from t5repro.evaluate.score import read_rows
from t5repro.lineage.graph import Graph, Job
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.store import Store
from t5repro.lineage.trace import trace
from t5repro.report.subset_scores import SubsetScore, first_metric, subset_scores
from t5repro.tasks.registry import task_named

DEFAULT = "longest"
MAX_ROWS_IN_TEXT = 10
COLUMNS = (
    *("corpus", "task", "source", "idx", "field", "unit", "length", "of", "pages", "methods"),
    *("in_row", "file", "document", "name", "in_page"),
)
CORPUS = "corpus"


@dataclass(frozen=True)
class TaskContamination:
    """The overlap of a corpus with a task's evaluated rows.

    Attributes:
        task: its name.
        corpus: file of the ids.
        rows: number of its rows.
        sources: ``corpus`` and ``examples`` -> methods and found fields (`contamination.find`).
        metric: first metric of the task; empty if it has none.
        scores: method -> part of the rows -> score, for the rows in the corpus.
        pages: the pages of the first found fields in the corpus, by file and row.
    """

    task: str
    corpus: str
    rows: int
    sources: dict[str, dict[str, Any]]
    metric: str
    scores: dict[str, dict[str, SubsetScore]]
    pages: dict[str, PassagePage]

    @property
    def found(self) -> list[dict[str, Any]]:
        """The fields that the corpus has."""
        return list(self.sources[CORPUS]["found"])

    def to_lines(self) -> list[str]:
        """Return the counts and scores as lines of text."""
        lines = []
        for source, content in self.sources.items():
            where = "" if source == CORPUS else " in the training rows of other tasks"
            for name, entry in content["methods"].items():
                lines.append(f"{self.task}, {name}{where}: {_counts_text(entry, self.rows)}")
                scores = self.scores.get(name, {}) if source == CORPUS else {}
                if scores:
                    parts = "; ".join(f"{part} {score.to_text()}" for part, score in scores.items())
                    lines.append(f"  {self.metric}: {parts}")
        for overlap in self.found[:MAX_ROWS_IN_TEXT]:
            lines += self._found_lines(overlap)
        if len(self.found) > MAX_ROWS_IN_TEXT:
            lines.append(
                f"  and {len(self.found) - MAX_ROWS_IN_TEXT:,} more fields (--csv has all)"
            )
        return lines

    def _found_lines(self, overlap: Mapping[str, Any]) -> list[str]:
        methods = ", ".join(overlap["methods"])
        lines = [
            f"  row {overlap['idx']}, {overlap['field']}, {overlap['length']} of {overlap['of']} "
            f"{overlap['unit']} ({methods}): {overlap['in_row']}",
            f"    {overlap['name'] or overlap['file']} has: {overlap['in_page']}",
        ]
        page = self.pages.get(_key(overlap))
        lines += [f"    {page.to_text()}"] if page else []
        if overlap["pages"] > 1:
            lines.append(f"    and {overlap['pages'] - 1:,} more pages")
        return lines


def _counts_text(entry: Mapping[str, Any], rows: int) -> str:
    # "unchecked" rows are shorter than the method can judge: neither found nor clean.
    counts = entry["rows"]
    text = f"{counts['dirty']:,} of {rows:,} rows found ({100 * counts['dirty'] / rows:.1f} %), "
    text += f"{counts['unchecked']:,} unchecked"
    if counts["between"]:
        text += f", {counts['between']:,} neither dirty nor clean"
    fields = (
        f"{name} {field['dirty']:,}" for name, field in entry["fields"].items() if field["dirty"]
    )
    by_field = ", ".join(fields)
    return text + (f"; by field: {by_field}" if by_field else "")


@dataclass(frozen=True)
class Contamination:
    """The answer for all tasks of a score file."""

    artifact: str
    methods: list[Method]
    tasks: list[TaskContamination]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        methods = [method.name for method in self.methods]
        return {**asdict(self), "methods": methods}

    def to_csv(self) -> str:
        """Return every found field as a line of CSV, with its first page."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for task in self.tasks:
            for source, content in task.sources.items():
                for overlap in content["found"]:
                    names = {"corpus": task.corpus, "task": task.task, "source": source}
                    writer.writerow({**overlap, **names, "methods": " ".join(overlap["methods"])})
        return text.getvalue()

    def to_text(self) -> str:
        """Return the answer as human-readable text."""
        lines = [f"{self.artifact}: evaluated rows in the corpus"]
        lines += [f"  {method.name}: {method.rule} ({method.source})" for method in self.methods]
        for corpus in dict.fromkeys(task.corpus for task in self.tasks):
            lines.append(f"in {corpus}")
            lines += [
                line for task in self.tasks if task.corpus == corpus for line in task.to_lines()
            ]
        lines.append(
            "a paraphrase or a translation is not found; found rows also differ in difficulty, so "
            "a difference of scores has more than one cause"
        )
        return "\n".join(lines) + "\n"


def contamination(
    graph: Graph,
    store: Store,
    name: str,
    *,
    methods: Sequence[str] = (DEFAULT,),
    words: int | None = None,
) -> Contamination:
    """Compare the rows behind a score with the corpora behind it.

    Args:
        graph: lineage of the working tree.
        store: the working tree.
        name: a file of scores, or one task of it with ``#task``.
        methods: names of methods.
        words: length of a run from which on `DEFAULT` finds a row, in place of its own.

    Raises:
        LineageError: there are no scores of this name or no corpus behind them, the store is a
            revision, or a file is not as its manifest says.
        SettingsError: `words` is less than `FEWEST_WORDS`, or there is no such method.
    """
    selected_methods = _methods(methods, words)
    root, provenance = checkout_of(store), trace(graph, store, name)
    job = next((job for job in provenance.jobs if job.rule == "evaluate_score"), None)
    if job is None:
        raise LineageError(
            f"{name} has no scores; name results/RUN/evaluate_score/NODE/scores.json"
        )
    # A phase may continue on another corpus (`pretrain.from_experiment`): each is searched.
    corpora = [job for job in provenance.jobs if job.rule == TOKENS]
    if not corpora:
        raise LineageError(f"no ids of a corpus are behind {name}: the model read none")
    predictions = _predictions(job, provenance.part)
    texts = ScoreStage.model_validate(job.settings).tasks
    tasks = {task: task_named(task, texts) for task in predictions}
    rows = {task: read_rows(root / path, "prediction") for task, path in predictions.items()}
    train = _training_rows(provenance.jobs, root)
    answers = []
    for read in corpora:
        content = find(tasks, rows, selected_methods, _corpus(root, read, train))
        # All tasks at once: a corpus is read once, whatever their number.
        for task, sources in content["tasks"].items():
            entries = sources[CORPUS]["methods"].items()
            scores = {
                method: subset_scores(tasks[task], rows[task], entry["dirty"], entry["unchecked"])
                for method, entry in entries
            }
            # Only the pages that are printed: finding a page reads its WET file.
            pages = _pages(graph, root, read, sources[CORPUS]["found"][:MAX_ROWS_IN_TEXT])
            metric = first_metric(tasks[task])
            answers.append(
                TaskContamination(
                    task, ids_of(read), len(rows[task]), sources, metric, scores, pages
                )
            )
    return Contamination(name, selected_methods, answers)


def _methods(names: Sequence[str], run_words: int | None) -> list[Method]:
    if unknown := sorted(set(names) - set(BY_NAME)):
        raise SettingsError(f"no method is called {unknown[0]!r}; allowed: {', '.join(BY_NAME)}")
    # each once, in the order asked for
    methods = [BY_NAME[name] for name in dict.fromkeys(names)]
    if run_words is None:
        return methods
    if run_words < FEWEST_WORDS:
        raise SettingsError(
            f"--words is {run_words}; allowed: {FEWEST_WORDS} or more, shorter runs are common "
            "language"
        )
    if DEFAULT not in names:
        raise SettingsError(f"--words is the length of a run of the method {DEFAULT}: add it")
    field_rule = f"all words of a field of {FEWEST_WORDS} or more"
    rule = f"a run of {run_words} words, or {field_rule}, in one page"
    return [
        # The seed is an n-gram that every run has, so it cannot be longer than the run.
        replace(method, dirty=run_words, seed=min(run_words, method.seed), rule=rule)
        if method.name == DEFAULT
        else method
        for method in methods
    ]


def _predictions(job: Job, only: str | None) -> dict[str, str]:
    """Return task -> file of its last predictions, which the scores were made from."""
    paths = {
        Path(file.path).stem: file.path
        for file in job.inputs
        # Predictions at earlier steps (`step-N`) are of other weights than the scores.
        if Path(file.path).parts[2] == "evaluate_predict" and "/step-" not in file.path
    }
    return {only: paths[only]} if only else paths


def _training_rows(jobs: Sequence[Job], root: Path) -> dict[str, Path]:
    """Return task -> its training examples, of the tasks behind a score."""
    files = (file.path for job in jobs if job.rule == "tasks" for file in job.outputs)
    return {Path(file).parent.name: root / file for file in files if file.endswith("/train.jsonl")}


def _corpus(root: Path, job: Job, train: Mapping[str, Path]) -> Corpus:
    """Return the corpus of a job of `tokens`; its files are as the manifest says."""
    hasher = Hasher(root)
    pages, ids = corpus_paths(job, "train"), ids_of(job)
    # For the text of ids that rows and corpus share.
    vocabulary = next(file.path for file in job.inputs if file.path.endswith(".model"))
    for path in (*pages, ids, vocabulary):
        checked(hasher, job, path)
    hasher.save()
    return Corpus([root / path for path in pages], root / ids, root / vocabulary, train)


def _key(overlap: Mapping[str, Any]) -> str:
    return f"{overlap['file']}#{overlap['document']}"


def _pages(
    graph: Graph, root: Path, job: Job, overlaps: Sequence[Mapping[str, Any]]
) -> dict[str, PassagePage]:
    """Return file and row, or file of ids and document -> the page, with the steps that saw it."""
    documents: dict[int, str] = {}
    for entry in overlaps:
        path = Path(entry["file"]).relative_to(root).as_posix()
        # Ids are numbered as the corpus of ids is; words by the row of their shard.
        if entry["unit"] == "ids":
            documents[entry["document"]] = _key(entry)
            continue
        row = entry["document"]
        for document in documents_of(graph, root, graph.find(path), [row])[row]:
            if document.job == job.name and document.document is not None:
                documents[document.document] = _key(entry)
    pages = pages_of(graph, root, job, documents)
    return {documents[page.document]: page for page in pages}
