"""The pages behind a score: all corpus rows that its trainings could read, by domain and step.

A page that was withdrawn later is still among them: `withdraw` lists the scores that a withdrawal
removes, and `lineage.verify_withdrawn` those that were made before one.
"""

import csv
import io
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.audit.page_trace import checkout_of
from t5repro.audit.pages import CorpusRow, corpus_rows, is_corpus
from t5repro.audit.steps import steps_of
from t5repro.audit.token_documents import Documents, documents_of, split_of
from t5repro.config.hosts import domain_of
from t5repro.errors import LineageError
from t5repro.lineage.graph import Artifact, Graph, Job
from t5repro.lineage.store import Store
from t5repro.lineage.trace import trace

MAX_DOMAINS_IN_TEXT = 20
COLUMNS = ("domain", "url", "timestamp", "split", "corpus", "row", "crawl_file", "record")


@dataclass(frozen=True)
class BehindScore:
    """A page behind a score.

    Attributes:
        domain: host of its URL; of own text, the file.
        corpus: file of the corpus.
        split: ``train`` or ``validation``; on the latter only losses are measured.
        row: its row there, with its crawl record.
        steps: pre-training job -> the steps that read it; None if they cannot be derived.
    """

    domain: str
    corpus: str
    split: str
    row: CorpusRow
    steps: dict[str, list[int] | None]


@dataclass(frozen=True)
class ScorePages:
    """The pages behind a score or another artifact.

    Attributes:
        name: of the artifact.
        pages: in the order of the corpus.
        trainings: the pre-training jobs behind it -> their number of steps.
    """

    name: str
    pages: list[BehindScore]
    trainings: dict[str, int]

    @property
    def is_complete(self) -> bool:
        """Whether every page has a crawl record."""
        return all(page.row.record for page in self.pages)

    @property
    def domains(self) -> list[tuple[str, int]]:
        """Domain and number of its pages, most pages first."""
        counts = Counter(page.domain for page in self.pages)
        return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))

    def to_json(self) -> dict[str, Any]:
        """Return the pages as plain JSON values."""
        return {
            "artifact": self.name,
            "domains": dict(self.domains),
            "trainings": self.trainings,
            "pages": [asdict(page) for page in self.pages],
        }

    def to_csv(self) -> str:
        """Return the pages as CSV; a column for each training has the steps that read the page."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*COLUMNS, *(f"steps of {job}" for job in self.trainings)])
        for page in self.pages:
            row, record = page.row, page.row.record
            crawl = (record.file, record.number) if record else ("", "")
            steps = (page.steps.get(job) or [] for job in self.trainings)
            writer.writerow(
                [page.domain, row.url, row.timestamp, page.split, page.corpus, row.row, *crawl]
                + [" ".join(map(str, numbers)) for numbers in steps]
            )
        return text.getvalue()

    def to_text(self) -> str:
        """Return the counts as text."""
        domains = self.domains
        lines = [f"{self.name}: {len(self.pages):,} pages of {len(domains):,} domains"]
        corpora = Counter((page.corpus, page.split) for page in self.pages)
        for (corpus, split), count in corpora.items():
            use = "" if split == "train" else "  (only to measure losses)"
            lines.append(f"  {count:>7,}  {corpus}{use}")
        for job, steps in self.trainings.items():
            read = sum(bool(page.steps.get(job)) for page in self.pages)
            lines.append(f"{job} read {read:,} of them in {steps:,} steps")
        unread = sum(not any(page.steps.values()) for page in self.pages if page.split == "train")
        if unread:
            lines.append(f"{unread:,} others are behind it through the vocabulary at most")
        unknown = sum(None in page.steps.values() for page in self.pages)
        if unknown:
            lines.append(
                f"steps of {unknown:,} pages are unknown: the ids do not say which texts are empty"
            )
        lines += [f"  {count:>7,}  {domain}" for domain, count in domains[:MAX_DOMAINS_IN_TEXT]]
        if len(domains) > MAX_DOMAINS_IN_TEXT:
            lines.append(f"  and {len(domains) - MAX_DOMAINS_IN_TEXT:,} more domains")
        return "\n".join([*lines, "--csv FILE lists every page with its steps"]) + "\n"


def score_pages(graph: Graph, store: Store, name: str) -> ScorePages:
    """Return the pages behind a score or another artifact.

    Args:
        graph: lineage of the working tree.
        store: the working tree.
        name: of the artifact, as `lineage.trace.trace` takes it.

    Raises:
        LineageError: the artifact is unknown or without a corpus, or the store is a revision.
    """
    root, provenance = checkout_of(store), trace(graph, store, name)
    shards = {
        file.path: file
        for file in (provenance.artifact, *(f for fs in provenance.inputs.values() for f in fs))
        if is_corpus(graph, file)
    }
    if not shards:
        raise LineageError(
            f"{name}: no corpus is behind it, so no page; t5repro trace {name} shows what is"
        )
    trainings = [job for job in provenance.jobs if job.rule == "pretrain"]
    pages = [
        page
        for shard, rows in corpus_rows(graph, root, (shards[path] for path in sorted(shards)))
        for page in pages_with_steps(graph, root, shard, rows, trainings)
    ]
    steps = {job.name: int(job.settings["pretrain"]["steps"]) for job in trainings}
    return ScorePages(name, pages, steps)


def pages_with_steps(
    graph: Graph, root: Path, shard: Artifact, rows: list[CorpusRow], trainings: list[Job]
) -> list[BehindScore]:
    """Return pages of a corpus file with the steps of some trainings that read them."""
    split = split_of(shard.path)
    documents = documents_of(graph, root, shard, [row.row for row in rows])
    steps: dict[int, dict[str, list[int] | None]] = {row.row: {} for row in rows}
    for job in trainings if split == "train" else ():
        for row, numbers in _steps_of_rows(root, job, documents).items():
            steps[row][job.name] = numbers
    return [BehindScore(domain_of(row.url), shard.path, split, row, steps[row.row]) for row in rows]


def _steps_of_rows(root: Path, job: Job, documents: Documents) -> dict[int, list[int] | None]:
    """Return row -> the steps of a training that read it; empty if it read other ids."""
    read = {file.path for file in job.inputs}
    numbers = {
        row: document
        for row, of_row in documents.items()
        for document in of_row
        if document.ids in read
    }
    document_of = {row: doc.document for row, doc in numbers.items() if doc.document is not None}
    if not document_of:
        return dict.fromkeys(numbers)
    (ids,) = {document.ids for document in numbers.values()}
    steps = steps_of(root, job, ids, list(document_of.values()))
    return {row: steps[document] for row, document in document_of.items()}
