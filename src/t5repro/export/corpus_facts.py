"""Facts about the text of a corpus, for documents of data: origins, counts, period, domains.

Counts are from the manifests; period and domains are read from the rows of the corpus, after
the files were compared with their hashes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from t5repro.config.corpus_files import corpus_file
from t5repro.config.hosts import domain_of
from t5repro.errors import LineageError
from t5repro.export.facts import Run, check_files
from t5repro.lineage.graph import DATA, Artifact, Job

RULE = "c4"
CLEANED = ("c4_clean", "corpus")
WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Origin:
    """Raw files of one origin that a run read, with their licence as the run file states it."""

    origin: str
    licence: str
    files: tuple[Artifact, ...]


@dataclass(frozen=True)
class Contents:
    """Facts from the rows of the training split.

    Attributes:
        first: earliest time of a page; empty if no row has one.
        last: latest time of a page.
        domains: domain -> pages and bytes of UTF-8, largest first.
    """

    first: str
    last: str
    domains: Mapping[str, tuple[int, int]]


def corpus_of(run: Run, document: str) -> Job:
    """Return the job that wrote the corpus of a run, which a document is about.

    Raises:
        LineageError: the run has no corpus, or several.
    """
    jobs = run.of_rule(RULE)
    if not jobs:
        raise LineageError(
            f"{run.name}: no corpus; {document} describes the output of the rule {RULE}"
        )
    if len(jobs) > 1:
        names = ", ".join(job.manifest for job in jobs)
        raise LineageError(f"{run.name}: {len(jobs)} corpora; name one as ARTIFACT, of {names}")
    return jobs[0]


def shards_of(job: Job) -> list[Artifact]:
    """Return the files of a corpus."""
    return [artifact for artifact in job.outputs if artifact.path.endswith(".parquet")]


def origins_of(run: Run, rules: Iterable[str]) -> list[Origin]:
    """Return the raw files that jobs of some rules read, by origin."""
    read = {file.path: file for job in run.of_rule(*rules) for file in job.inputs}
    origins = []
    for data in run.of_rule(DATA):
        folder = Path(data.settings["data"].get("folder", ""))
        for entry in data.settings["data"].get("sources", []):
            paths = ((folder / name).as_posix() for name in sorted(entry["files"]))
            files = tuple(read[path] for path in paths if path in read)
            if files:
                origins.append(Origin(entry["origin"], entry["licence"], files))
    return origins


def rule_counts(job: Job) -> list[Mapping[str, Any]]:
    """Return input, drops and output of each rule that made a corpus; none if not counted."""
    return list(job.counters.get("rules", ()))


def language_counts(job: Job) -> dict[str, Mapping[str, Any]]:
    """Return language -> its counts in a corpus."""
    return dict(sorted(job.counters.get("languages", {}).items()))


def dropped(job: Job, rule: str) -> int | None:
    """Return how many pages a rule dropped; None if the corpus has no counts of rules."""
    rules = rule_counts(job)
    if not rules:
        return None
    return sum(sum(counts["dropped"].values()) for counts in rules if counts["rule"] == rule)


def signal_counts(job: Job) -> Mapping[str, int]:
    """Return read pages by signal (D-060); empty if signals were not read."""
    return dict(sorted(job.counters.get("signals", {}).items()))


def train_tokens(run: Run) -> int | None:
    """Return the number of ids of the training split; None without them, or with several."""
    counts = {
        job.counters["train"]["tokens"]
        for job in run.of_rule("tokens")
        if "tokens" in job.counters.get("train", {})
    }
    return counts.pop() if len(counts) == 1 else None


def contents_of(run: Run, job: Job) -> Contents:
    """Read period and domains of the training split.

    Raises:
        LineageError: a file is missing or was altered.
    """
    shards = [file for file in shards_of(job) if _is_train(file.path)]
    check_files(run, shards)
    times: list[str] = []
    domains: dict[str, tuple[int, int]] = {}
    for shard in shards:
        for urls, sizes, period in _columns(run.root / shard.path):
            times += period
            for url, size in zip(urls, sizes, strict=True):
                pages, length = domains.get(name := domain_of(url), (0, 0))
                domains[name] = (pages + 1, length + size)
    ordered = dict(sorted(domains.items(), key=lambda entry: (-entry[1][1], entry[0])))
    return Contents(min(times, default=""), max(times, default=""), ordered)


def _is_train(path: str) -> bool:
    file = corpus_file(path)
    return file is None or file.split == "train"


def _columns(path: Path) -> Iterable[tuple[list[str], list[int], list[str]]]:
    """Yield addresses, bytes of the texts, and first and last time, a row group at a time."""
    with pq.ParquetFile(path) as file:
        names = [name for name in ("url", "text", "timestamp") if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=names)
            if "url" not in names or not table.num_rows:
                continue
            sizes = _sizes(table)
            times = table.column("timestamp") if "timestamp" in names else pa.array([], pa.string())
            period = [time for time in pc.min_max(times).as_py().values() if time]
            yield table.column("url").to_pylist(), sizes, period


def _sizes(table: pa.Table) -> list[int]:
    if "text" not in table.column_names:
        return [0] * table.num_rows
    sizes: list[int] = pc.binary_length(table.column("text")).to_pylist()
    return sizes
