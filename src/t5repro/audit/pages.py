"""Pages of the crawl: which record became which row of the corpus, and which document of the ids.

Cleaned shards keep file, record number, URL and fate of every page; rows of the corpus keep URL
and time. The newest page of an address is the one that stays, so address and time join the two.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from t5repro.audit.raw import Kind, Raw
from t5repro.config.withdrawn import in_domain
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.graph import Artifact, Graph, Job

CLEANED = "c4_clean"
CORPUS = "c4"
COLUMNS = ("file", "record", "url", "timestamp", "reason")


def find_pages(graph: Graph, root: Path, wanted: str, kind: Kind) -> Raw:
    """Return the pages of a URL or a domain that the crawl has.

    Raises:
        LineageError: it has none.
    """
    starts: dict[str, Artifact] = {}
    pages: list[dict[str, Any]] = []
    for job in graph.jobs.values():
        if job.rule != CLEANED:
            continue
        found = [
            page
            for item in _parquet(job)
            for page in _pages(root / item.path, lambda url: is_of(url, wanted, kind))
        ]
        names = {page["file"] for page in found}
        starts.update((i.path, i) for i in job.inputs if i.path.rsplit("/", 1)[-1] in names)
        pages += found
    if not pages:
        raise LineageError(
            f"{wanted}: no page of this {kind} was read from the crawl (cleaned shards were "
            "searched); a domain is written without http:// and with nothing behind it"
        )
    shown = [{**page, "fate": page.pop("reason") or "kept by cleaning"} for page in pages]
    return Raw(kind, wanted, tuple(starts.values()), tuple(starts), tuple(shown))


def is_of(url: str, wanted: str, kind: Kind) -> bool:
    """Whether a page's URL is the URL that was named, or lies in the domain."""
    if kind == "url":
        return url == wanted
    return in_domain(url, wanted)


def _parquet(job: Job) -> list[Artifact]:
    return [item for item in job.outputs if item.path.endswith(".parquet")]


def _pages(path: Path, chosen: Callable[[str], bool] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the pages of a cleaned shard; `chosen` tells by the URL which ones, at less cost."""
    try:
        if chosen is not None:
            urls = pq.read_table(path, columns=["url"]).column("url").to_pylist()
            if not any(map(chosen, urls)):
                return
        pages = pq.read_table(path, columns=list(COLUMNS)).to_pylist()
        yield from pages if chosen is None else (p for p in pages if chosen(p["url"]))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} cannot be read ({error}); dvc checkout restores it") from error


# Rows of the corpus


def records_of_shard(graph: Graph, root: Path, shard: Artifact) -> list[dict[str, Any]]:
    """Return, for every row of a corpus file, the crawl record that it came from.

    Args:
        graph: of the working tree.
        root: the checkout.
        shard: a Parquet file that the rule `c4` wrote.

    Raises:
        LineageError: it is not one.
    """
    job = graph.job_of(shard)
    if job is None or job.rule != CORPUS or not shard.path.endswith(".parquet"):
        raise LineageError(
            f"{shard.path} is no file of the corpus; --pages wants a Parquet file of the rule c4"
        )
    places = _places(graph, root, job)
    rows = pq.read_table(root / shard.path, columns=["url", "timestamp"]).to_pylist()
    return [
        {"row": number, **page, "record": places.get((page["url"], page["timestamp"]))}
        for number, page in enumerate(rows)
    ]


def _places(graph: Graph, root: Path, corpus: Job) -> dict[tuple[str, str], dict[str, Any]]:
    """Return (URL, time) -> crawl file, record and cleaned shard, for pages not lost as repeats."""
    paths = {item.path: item for item in corpus.inputs if item.path.endswith(".parquet")}
    decided = [path for path in paths if path.endswith("/decisions.parquet")]
    shards = sorted(paths.keys() - set(decided), key=lambda path: (path.rsplit("/", 1)[-1], path))
    lost = {
        (row["shard"], row["row"])
        for path in decided
        for row in pq.read_table(root / path, columns=["shard", "row", "duplicate_url"]).to_pylist()
        if row["duplicate_url"]
    }
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for number, path in enumerate(shards):
        maker = graph.job_of(paths[path])
        crawl = {i.path.rsplit("/", 1)[-1]: i for i in (maker.inputs if maker else ())}
        for row, page in enumerate(_pages(root / path)):
            if page["reason"] is None and (number, row) not in lost:
                raw = crawl.get(page["file"])
                found[page["url"], page["timestamp"]] = {
                    "file": raw.path if raw else page["file"],
                    "sha256": raw.sha256 if raw else None,
                    "number": page["record"],
                    "cleaned": path,
                }
    return found


# Documents of the ids, and the steps that saw them


def documents_of_url(graph: Graph, root: Path, url: str) -> list[dict[str, Any]]:
    """Return every place of a page in the corpora and in the ids made of them.

    Raises:
        LineageError: no corpus has it.
    """
    found: list[dict[str, Any]] = []
    for job in graph.jobs.values():
        if job.rule != CORPUS:
            continue
        for item in _parquet(job):
            urls = pq.read_table(root / item.path, columns=["url"]).column("url").to_pylist()
            found += [
                {
                    "corpus": item.path,
                    "row": row,
                    "record": next(
                        page["record"]
                        for page in records_of_shard(graph, root, item)
                        if page["row"] == row
                    ),
                    "documents": _documents(graph, root, item, row),
                }
                for row in [number for number, name in enumerate(urls) if name == url]
            ]
    return found


def _documents(graph: Graph, root: Path, shard: Artifact, row: int) -> list[dict[str, Any]]:
    """Return the number of a corpus row as a document of each file of ids."""
    found = []
    for name in graph.consumers.get(shard.key, ()):
        job = graph.jobs[name]
        if job.rule != "tokens":
            continue
        split = shard.path.rsplit("/", 1)[-1].split("-")[1]
        before, empty = _rows_before(root, job, shard, split)
        number = None if empty else before + row
        ids = f"{job.manifest.rsplit('/', 1)[0]}/{split}.ids"
        found.append({"ids": ids, "document": number, "split": split, "job": job.name})
    return found


def _rows_before(root: Path, job: Job, shard: Artifact, split: str) -> tuple[int, int]:
    """Return the rows that come before a file's first, and how many documents were left out.

    Documents without a token are left out of the ids, so numbers are exact only where there are
    none.
    """
    languages = job.settings["tokens"]["languages"]
    files = {item.path.rsplit("/", 1)[-1]: item.path for item in job.inputs}
    ordered = [
        files[name]
        for language in languages
        for name in sorted(files)
        if name.startswith(f"{language}-{split}-")
    ]
    before = ordered[: ordered.index(shard.path)]
    rows = sum(pq.ParquetFile(root / path).metadata.num_rows for path in before)
    return rows, int(job.counters[split]["empty_documents"])
