"""Plan the removal of everything that a list of requests names, in one pass over the pages.

All requests together are one withdrawal: one journal, each file rewritten once, one receipt.
"""

import hashlib
import secrets
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from t5repro import __version__
from t5repro.audit.find import RawSource, matching_files, raw_files
from t5repro.audit.pages import CLEANED, CORPUS, CrawlPage, corpus_rows, find_pages, is_corpus
from t5repro.audit.removal import complete_unfinished
from t5repro.audit.removal_list import KINDS, Request, read_removal_list
from t5repro.audit.score_pages import pages_with_steps
from t5repro.audit.withdraw import carry_out, file_entries, plan
from t5repro.audit.withdrawal import Withdrawal
from t5repro.c4.wet.redact import is_wet, urls_of_records
from t5repro.config.withdrawn import PAGES, WithdrawnPages, read_pages
from t5repro.data.crawl_lists import names_of_part
from t5repro.errors import LineageError
from t5repro.files import sha256_of
from t5repro.lineage import impact as forward
from t5repro.lineage.graph import Artifact, Graph, Job, load_graph
from t5repro.lineage.signatures import configured_key
from t5repro.lineage.store import Folder

MAX_SHARE = 5.0  # percent of the pages that a list may name without being asked
ID_CHARS = 16


@dataclass
class Target:
    """The pages and raw files that a request is about, and steps of pre-training by job."""

    pages: set[tuple[str, int]] = field(default_factory=set)
    files: dict[str, Artifact] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)


def withdraw_list(
    root: Path,
    path: Path,
    *,
    reason: str = "",
    host: str = "",
    dry_run: bool = False,
    delete_cache: bool = False,
    delete_remote: bool = False,
    max_share: float = MAX_SHARE,
) -> Withdrawal:
    """Withdraw the sources in a list of requests; first complete a withdrawal that was stopped.

    Args:
        root: the checkout.
        path: the list, as `read_removal_list` takes it.
        reason: of requests that state none.
        host: the site of a ``robots.txt`` or ``ai.txt``.
        dry_run: change nothing.
        delete_cache: delete the objects of DVC's local cache.
        delete_remote: delete the objects of DVC's remotes.
        max_share: percent of the pages that the list may name.

    Raises:
        LineageError: the list has faults, names an unknown file or too many pages, or the key of
            the receipt cannot be used.
    """
    requests = read_removal_list(path, reason=reason, host=host)
    source_name = f"{path} {sha256_of(path)}"
    if not dry_run:
        completed = complete_unfinished(root)
        # A list that was stopped half-way is asked again with the same bytes: it is done now.
        if completed and completed.asked == source_name:
            return completed
    graph = load_graph(Folder(root))
    entries, files = _entries(graph, path, requests)
    targets = _targets(graph, root, requests, entries, files)
    _check_rows(root, path, requests, targets)
    _check_share(graph, root, path, targets.values(), max_share)
    source = _source(path, targets)
    raw_paths = {file.path for states in files.values() for file in states}
    withdrawal = plan(root, source, graph, entries, raw_paths)
    withdrawal.asked, withdrawal.reason = source_name, reason
    withdrawal.delete_cache, withdrawal.delete_remote = delete_cache, delete_remote
    # Before `carry_out`: the facts are counted in files that it deletes.
    withdrawal.receipt = _facts(root, path, graph, requests, targets, withdrawal)
    carry_out(root, withdrawal, dry_run=dry_run)
    return withdrawal


def _entries(
    graph: Graph, path: Path, requests: Sequence[Request]
) -> tuple[dict[str, dict[str, dict[str, str]]], dict[str, tuple[Artifact, ...]]]:
    """Return new entries of the lists of withdrawn sources, and entry -> raw files of its name."""
    entries: dict[str, dict[str, dict[str, str]]] = {}
    files: dict[str, tuple[Artifact, ...]] = {}
    faults = []
    for request in requests:
        # A file is known by the hash of its bytes, everything else by its name alone.
        if request.kind != "file":
            part = entries.setdefault(PAGES.as_posix(), {}).setdefault(KINDS[request.kind][0], {})
            part[request.entry] = request.reason
        elif artifacts := matching_files(graph, request.entry):
            files[request.entry] = artifacts
            for name, parts in file_entries(graph, artifacts, request.reason).items():
                for key, added in parts.items():
                    entries.setdefault(name, {}).setdefault(key, {}).update(added)
        else:
            faults.append(f"{path} line {request.line}: {request.value}: no raw file of this name")
    if faults:
        raise LineageError("\n".join([*faults, "nothing was withdrawn; correct these lines"]))
    return entries, files


def _targets(
    graph: Graph,
    root: Path,
    requests: Sequence[Request],
    entries: Mapping[str, Any],
    files: Mapping[str, Sequence[Artifact]],
) -> dict[tuple[str, str], Target]:
    """Return (part of a list, entry) -> pages and files that it names, for every request."""
    # Requests without a page stay: the receipt says 0 of them.
    targets = {(KINDS[request.kind][0], request.entry): Target() for request in requests}
    for entry, states in files.items():
        targets["files", entry].files.update((state.path, state) for state in states)
    withdrawn = WithdrawnPages.model_validate(entries.get(PAGES.as_posix(), {}))
    if not withdrawn:
        return targets
    pages, with_pages = find_pages(graph, root, withdrawn.holds)
    # A page has the name of its raw file, an artifact its path.
    by_name: dict[str, list[Artifact]] = defaultdict(list)
    for file in with_pages:
        parts = file.path.split("/")
        for start in range(len(parts)):
            # every ending: the name may have been written relative to a folder
            by_name["/".join(parts[start:])].append(file)
    for page in pages:
        for key in withdrawn.entries_of(page.url):
            targets[key].pages.add((page.file, page.record))
            files_of_page = (file for name in names_of_part(page.file) for file in by_name[name])
            targets[key].files.update((file.path, file) for file in files_of_page)
    _add_uncleaned(graph, root, withdrawn, targets)
    _add_steps(graph, root, withdrawn, targets)
    return targets


def _add_uncleaned(
    graph: Graph, root: Path, withdrawn: WithdrawnPages, targets: Mapping[tuple[str, str], Target]
) -> None:
    """Add pages of WET files that no cleaned shard is of, as after an earlier withdrawal."""
    cleaned = {file.path for job in _jobs(graph, CLEANED) for file in job.inputs}
    for file in raw_files(graph):
        path = root / file.path
        if file.path in cleaned or not is_wet(path) or not path.is_file():
            continue
        # A record behind a lost line end has the address of the next one too.
        for record, urls in enumerate(urls_of_records(path)):
            for key in {key for url in urls for key in withdrawn.entries_of(url)}:
                targets[key].pages.add((path.name, record))
                targets[key].files[file.path] = file


def _add_steps(
    graph: Graph, root: Path, withdrawn: WithdrawnPages, targets: Mapping[tuple[str, str], Target]
) -> None:
    """Count the steps of pre-training that read the pages of each request."""
    trainings = [job for job in graph.jobs.values() if job.rule == "pretrain"]
    shards = [
        file for job in _jobs(graph, (CORPUS,)) for file in job.outputs if is_corpus(graph, file)
    ]
    steps_by_job: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    # Reading every shard takes minutes on a crawl, and without a training answers nothing.
    for shard, rows in corpus_rows(graph, root, shards) if trainings else ():
        withdrawn_rows = [row for row in rows if withdrawn.holds(row.url)]
        for page in pages_with_steps(graph, root, shard, withdrawn_rows, trainings):
            for key in withdrawn.entries_of(page.row.url):
                for job, steps in page.steps.items():
                    steps_by_job[key][job].update(steps or ())
    for key, jobs in steps_by_job.items():
        targets[key].steps.update({job: len(steps) for job, steps in jobs.items()})


def _jobs(graph: Graph, rules: tuple[str, ...]) -> list[Job]:
    return [job for job in graph.jobs.values() if job.rule in rules]


def _check_rows(
    root: Path, path: Path, requests: Sequence[Request], targets: Mapping[tuple[str, str], Target]
) -> None:
    """Refuse rows that were not read: without the job that read it no file of rows is redacted.

    Raises:
        LineageError: a row is in no corpus and not withdrawn.
    """
    withdrawn = read_pages(root / PAGES)
    faults = [
        f"{path} line {request.line}: {request.value}: no row of this id was read"
        for request in requests
        if request.kind == "row"
        and not targets["urls", request.entry].files
        and not withdrawn.holds(request.entry)
    ]
    if faults:
        raise LineageError("\n".join([*faults, "nothing was withdrawn; build the run first"]))


def _check_share(graph: Graph, root: Path, path: Path, targets: Any, max_share: float) -> None:
    """Refuse a list that names more of the pages than its user may think.

    Raises:
        LineageError: more than `max_share` percent.
    """
    # Without its cleaned shards the crawl has no number of pages to compare with.
    shards = {
        file.path
        for job in _jobs(graph, CLEANED)
        for file in job.outputs
        if file.path.endswith(".parquet") and (root / file.path).is_file()
    }
    total = sum(pq.read_metadata(root / shard).num_rows for shard in sorted(shards))
    # a page that several requests name counts once
    pages = len(set().union(*(target.pages for target in targets)))
    if total and 100 * pages / total > max_share:
        raise LineageError(
            f"--list {path} names {pages} of {total} pages ({100 * pages / total:.1f} %), over "
            f"--max-share {max_share:g}; look at --dry-run --max-share 100, then state the share"
        )


def _source(path: Path, targets: Mapping[tuple[str, str], Target]) -> RawSource:
    starts = {file.key: file for target in targets.values() for file in target.files.values()}
    pages = tuple(
        CrawlPage(file, record, "", "", None)
        for file, record in sorted(set().union(*(target.pages for target in targets.values())))
    )
    paths = tuple(dict.fromkeys(file.path for file in starts.values()))
    return RawSource("list", str(path), tuple(starts.values()), paths, pages)


def _facts(
    root: Path,
    path: Path,
    graph: Graph,
    requests: Sequence[Request],
    targets: Mapping[tuple[str, str], Target],
    withdrawal: Withdrawal,
) -> dict[str, Any]:
    """Return the statements of the receipt that are known before anything is deleted."""
    signed_at = now()
    pruned = set(withdrawal.pruned)
    list_sha256 = sha256_of(path)
    impacts: dict[tuple[str, ...], dict[str, Any]] = {}
    items, salts = [], []
    for request in requests:
        target = targets[KINDS[request.kind][0], request.entry]
        files = tuple(sorted(target.files))
        # 2,000 requests name few different sets of files, and each impact is a walk of the graph.
        if files not in impacts:
            impacts[files] = _impact(graph, list(target.files.values()))
        salt = new_salt()
        items.append(
            {
                "request": request.request,
                "date": request.date,
                "kind": request.kind,
                # the receipt is public; only the requester has the salt and finds the item in it
                "item": item_hash(salt, request.kind, request.entry),
                "pages": len(target.pages),
                "files": list(files),
                "steps": dict(sorted(target.steps.items())),
                **impacts[files],
            }
        )
        salts.append([request.line, request.request, request.kind, request.value, salt])
    return {
        "id": hashlib.sha256(f"{signed_at} {list_sha256}".encode()).hexdigest()[:ID_CHARS],
        "signedAt": signed_at,
        "version": __version__,
        "list": list_sha256,
        "signer": _fingerprint(root),
        "requests": items,
        "artifacts": [
            [output["path"], output["sha256"]]
            for outputs in withdrawal.touched["outputs"].values()
            for output in outputs
            if output["path"] in pruned
        ],
        "salts": salts,
    }


def now() -> str:
    """Return the time with its zone."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_salt() -> str:
    """Return a salt that nobody can guess."""
    return secrets.token_hex(ID_CHARS)


def item_hash(salt: str, kind: str, entry: str) -> str:
    """Return the hash that stands for the item of a request in a receipt."""
    return hashlib.sha256(f"{salt}:{kind}:{entry}".encode()).hexdigest()


def _impact(graph: Graph, files: Sequence[Artifact]) -> dict[str, Any]:
    """Return the number of artifacts by kind, and the scores, that depend on raw files."""
    outputs = forward.impact(graph, files, state="the working tree").outputs
    return {
        "artifacts": {kind: len(artifacts) for kind, artifacts in outputs.items()},
        "scores": forward.scores_of(outputs),
    }


def _fingerprint(root: Path) -> str:
    """Return the fingerprint of the key that will sign the receipt; empty without a key.

    Raises:
        LineageError: the key cannot be used.
    """
    key = configured_key(root)
    if key is None:
        return ""
    from t5repro.lineage.keys import read_named_signer  # an extra

    return str(read_named_signer(key, root).public_key.keyid)
