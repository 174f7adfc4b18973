"""Pages of the crawl: their WET record, their row in the corpus, their document among the ids.

A row of the user's own text is a page too: its file is one of `corpus.files`, its record the number
of the row, its URL the id.

A cleaned shard stores file, record number, URL, time and drop reason of every page, a corpus row
stores URL and time. Deduplication keeps the newest page of a URL, so (URL, time) joins the two.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.audit.token_documents import TokenDocument, documents_of
from t5repro.data.crawl_lists import names_of_part
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.graph import Artifact, Graph, Job

CLEANED = ("c4_clean", "corpus")
CORPUS = "c4"
COLUMNS = ["file", "record", "url", "timestamp", "reason"]
REMOVALS = "c4_dedup"


@dataclass(frozen=True)
class CrawlPage:
    """A page that cleaning read.

    Attributes:
        file: name of the WET file; of own text, its path below `data.folder`.
        record: number of the record in it.
        url: address of the page.
        timestamp: time of the crawl.
        reason: rule that dropped the page in cleaning; None if it was kept.
    """

    file: str
    record: int
    url: str
    timestamp: str
    reason: str | None

    @property
    def outcome(self) -> str:
        """The rule that dropped the page, or that cleaning kept it."""
        return self.reason or "kept by cleaning"

    def to_json(self) -> dict[str, Any]:
        """Return the page as plain JSON values."""
        values = asdict(self)
        del values["reason"]
        return {**values, "fate": self.outcome}


@dataclass(frozen=True)
class CrawlRecord:
    """The WET record behind a corpus row.

    Attributes:
        file: path of the WET file, or its name if no manifest lists it.
        sha256: hash of that file, if a manifest lists it.
        number: number of the record in the file.
        cleaned: path of the cleaned shard.
    """

    file: str
    sha256: str | None
    number: int
    cleaned: str

    def to_text(self) -> str:
        """Return the record as human-readable text."""
        return f"record {self.number} of {self.file}"


@dataclass(frozen=True)
class CorpusRow:
    """A row of a corpus file; `record` is None if no cleaned shard has its page."""

    row: int
    url: str
    timestamp: str
    record: CrawlRecord | None

    def to_text(self) -> str:
        """Return the row as one line of text."""
        return f"{self.row}  {self.url}  {_record_text(self.record)}"


@dataclass(frozen=True)
class CorpusLocation:
    """A corpus row of a URL, with its crawl record and its documents of the ids."""

    corpus: str
    row: int
    record: CrawlRecord | None
    documents: tuple[TokenDocument, ...]

    def to_text(self) -> str:
        """Return the location as human-readable text, one line per document after the first."""
        lines = [f"row {self.row} of {self.corpus}, from {_record_text(self.record)}"]
        lines += [f"  document {doc.document} of {doc.ids}" for doc in self.documents]
        return "\n".join(lines)


def _record_text(record: CrawlRecord | None) -> str:
    return "no record of the cleaned shards" if record is None else record.to_text()


def find_pages(
    graph: Graph, root: Path, is_match: Callable[[str], bool]
) -> tuple[tuple[CrawlPage, ...], tuple[Artifact, ...]]:
    """Return the pages with a matching URL, and the raw files that contain them.

    Args:
        graph: lineage of the working tree.
        root: the checkout.
        is_match: predicate on the URL.
    """
    raw_files: dict[str, Artifact] = {}
    pages: list[CrawlPage] = []
    for job in (job for rule in CLEANED for job in _jobs_of(graph, rule)):
        matches = [
            page for shard in _parquet(job) for page in _read_pages(root / shard.path, is_match)
        ]
        # A dictionary in place of a set: the order of the files stays.
        for name in {page.file: None for page in matches}:
            # The cleaned file has the name of the WET file, the manifest its path and hash. A WAT
            # file has title, headers and links of the page.
            files = (_input_named(job, part) for part in names_of_part(name))
            raw_files.update((file.path, file) for file in files if file is not None)
        pages += matches
    return tuple(pages), tuple(raw_files.values())


def corpus_rows(
    graph: Graph, root: Path, shards: Iterable[Artifact]
) -> Iterator[tuple[Artifact, list[CorpusRow]]]:
    """Yield files of the corpus with their rows, each with the crawl record behind it.

    Args:
        graph: lineage of the working tree.
        root: the checkout.
        shards: Parquet files that the rule `c4` wrote.

    Raises:
        LineageError: an artifact is not such a file.
    """
    # Joined once for all files of a job: every row needs all cleaned files of the job.
    records: dict[str, Mapping[tuple[str, str], CrawlRecord]] = {}
    for shard in shards:
        job = graph.job_of(shard)
        if job is None or not is_corpus(graph, shard):
            raise LineageError(
                f"{shard.path} is not a corpus file; --pages takes a Parquet file of the rule c4, "
                f"and t5repro pages {shard.path} lists the pages behind any other file"
            )
        if job.name not in records:
            records[job.name] = _crawl_records(graph, root, job)
        of_job = records[job.name]
        rows = _columns(root / shard.path, ["url", "timestamp"]).to_pylist()
        yield (
            shard,
            [
                CorpusRow(number, url, time, of_job.get((url, time)))
                for number, (url, time) in enumerate((row["url"], row["timestamp"]) for row in rows)
            ],
        )


def is_corpus(graph: Graph, artifact: Artifact) -> bool:
    """Return whether an artifact is a corpus file."""
    job = graph.job_of(artifact)
    return job is not None and job.rule == CORPUS and artifact.path.endswith(".parquet")


def locate_url(graph: Graph, root: Path, url: str) -> list[CorpusLocation]:
    """Return every corpus row of a URL with its documents of the ids.

    Args:
        graph: lineage of the working tree.
        root: the checkout.
        url: address of the page, compared exactly.
    """
    shards = (
        shard
        for job in _jobs_of(graph, CORPUS)
        for shard in _parquet(job)
        # One column is enough to skip the shards without the URL; the join reads all of cleaning.
        if url in _columns(root / shard.path, ["url"]).column("url").to_pylist()
    )
    return [
        CorpusLocation(
            shard.path,
            row.row,
            row.record,
            tuple(documents_of(graph, root, shard, [row.row])[row.row]),
        )
        for shard, rows in corpus_rows(graph, root, shards)
        for row in rows
        if row.url == url
    ]


def _crawl_records(graph: Graph, root: Path, job: Job) -> dict[tuple[str, str], CrawlRecord]:
    """Return (URL, time) -> crawl record of the pages that cleaning and deduplication kept."""
    inputs = {file.path: file for file in job.inputs if file.path.endswith(".parquet")}
    # A job reads cleaned files and decisions about them: their writers tell which is which.
    producers = {path: graph.job_of(file) for path, file in inputs.items()}
    removals = [path for path, writer in producers.items() if writer and writer.rule == REMOVALS]
    # The decisions about a cleaned file have its name.
    superseded = {
        (_name(path), row["row"])
        for path in removals
        for row in _columns(root / path, ["row", "duplicate_url"]).to_pylist()
        if row["duplicate_url"]
    }
    # A page of the corpus has no record number: URL and time identify it, as deduplication kept one
    # page per URL.
    records: dict[tuple[str, str], CrawlRecord] = {}
    for path in sorted(inputs.keys() - set(removals), key=lambda path: (_name(path), path)):
        producer = producers[path]
        raw_files: dict[str, Artifact | None] = {}
        for row, page in enumerate(_read_pages(root / path)):
            # As the rule `c4` reads them: dropped pages and older copies are not in the corpus.
            if page.reason is None and (_name(path), row) not in superseded:
                if page.file not in raw_files:
                    raw_files[page.file] = _input_named(producer, page.file) if producer else None
                raw = raw_files[page.file]
                records[page.url, page.timestamp] = CrawlRecord(
                    file=raw.path if raw else page.file,
                    sha256=raw.sha256 if raw else None,
                    number=page.record,
                    cleaned=path,
                )
    return records


def _read_pages(path: Path, is_match: Callable[[str], bool] | None = None) -> Iterator[CrawlPage]:
    """Yield the pages of a cleaned shard, all of them without `is_match`."""
    try:
        if is_match is not None:
            # The URL column alone decides whether the others have to be read.
            urls = _columns(path, ["url"]).column("url").to_pylist()
            # Most files do not have the page: their texts are never read.
            if not any(map(is_match, urls)):
                return
        rows = _columns(path, COLUMNS).to_pylist()
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} cannot be read ({error}); dvc checkout restores it") from error
    yield from (CrawlPage(**row) for row in rows if is_match is None or is_match(row["url"]))


def _columns(path: Path, names: list[str]) -> pa.Table:
    """Return columns of a Parquet file.

    `pq.read_table` would import pandas, which takes longer than most of the answers.
    """
    with pq.ParquetFile(path) as file:
        return file.read(names)


def _jobs_of(graph: Graph, rule: str) -> list[Job]:
    return [job for job in graph.jobs.values() if job.rule == rule]


def _input_named(job: Job, name: str) -> Artifact | None:
    """Return the raw file of a job with this name, or with this path below `data.folder`."""
    # Cleaned rows store names, because a folder differs between machines.
    matching = [file for file in job.inputs if file.path == name or file.path.endswith(f"/{name}")]
    # All are below one folder, so the shortest path is the one that has no other folder before it.
    return min(matching, key=lambda file: len(file.path), default=None)


def _parquet(job: Job) -> list[Artifact]:
    return [output for output in job.outputs if output.path.endswith(".parquet")]


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
