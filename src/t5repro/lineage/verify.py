"""Checks that every file of a working tree agrees with manifests, records and `dvc.lock`.

Each file is checked against all that recorded its hash: the manifest and the record of the job that
wrote it, the manifests of the jobs that read it, and `dvc.lock` or `data.dvc`. In this order:

1. the lock and `data.dvc` have the files' hashes (`verify_lock`);
2. of manifests that disagree, those to be distrusted (`suspects`);
3. what the jobs left behind, each part a function of `CHECKS`;
4. signatures (`signatures`), withdrawn sources (`verify_withdrawn`), and, if all hashes agree, the
   contents of reports (`report.check`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from t5repro.errors import LineageError
from t5repro.files import TEMPORARY_PREFIX
from t5repro.lineage.commits import read_commits
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.findings import (
    ALTERED,
    EXTRA,
    LINK,
    MISSING,
    UNSEALED,
    WARNINGS,
    Finding,
    Verdict,
    chain_of,
    differing,
    make_verdict,
)
from t5repro.lineage.graph import DATA, Artifact, Graph, read_jobs
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.record_index import Index, read_indexes
from t5repro.lineage.sealed_records import RecordCheck, read_checked
from t5repro.lineage.signatures import check_signatures, sealed_runs
from t5repro.lineage.store import RECORDS, RESULTS, Folder, files_below
from t5repro.lineage.suspects import Suspects, find_suspects
from t5repro.lineage.verify_code import check_code
from t5repro.lineage.verify_committed import Committed, check_committed, read_committed
from t5repro.lineage.verify_lock import TrackedFolder, check_lock, check_pipeline, tracked_folders
from t5repro.lineage.verify_other_code import check_other_code
from t5repro.lineage.verify_records import check_fields
from t5repro.lineage.verify_withdrawn import check_made_before, cure_of_raw
from t5repro.lineage.withdrawal_history import check_withdrawals

CURE = "dvc checkout or a rerun restores it"
NONE_SUSPECTED = Suspects()


@dataclass(frozen=True)
class State:
    """A working tree as it is now, each part read once.

    Attributes:
        store: its files.
        lock: its `dvc.lock`.
        graph: its jobs, with the records that are as sealed.
        hasher: hashes its files.
        unreadable: path -> fault of each manifest or index that cannot be read, which must not hide
            other findings.
        indexes: run -> the index of its records.
        committed: the records and the lock in git.
        check: the records, compared with the indexes.
        folders: the folders that the lock tracks.
        from_lock: the findings of `check_lock`.
        outputs: path -> artifact as its manifest recorded it, and the job that wrote it.
        hashes: path -> SHA-256 of each output now.
    """

    store: Folder
    lock: Lock
    graph: Graph
    hasher: Hasher
    unreadable: Mapping[str, str]
    indexes: Mapping[str, Index]
    committed: Committed
    check: RecordCheck
    folders: list[TrackedFolder]
    from_lock: list[Finding]
    outputs: Mapping[str, tuple[Artifact, str]]
    hashes: Mapping[str, str | None]

    @property
    def root(self) -> Path:
        """The checkout."""
        return self.store.root


def read_state(root: Path, *, deep: bool = False) -> State:
    """Read a working tree; see `verify_tree`."""
    store = Folder(root)
    lock, hasher, committed = store.lock(), Hasher(root, deep=deep), read_committed(root)
    faults: list[tuple[str, str]] = []
    indexes = read_indexes(store, faults)
    check = read_checked(store, indexes, committed)
    # One call of git for all commits in the records.
    check.commits = read_commits(root, check.records.values())
    # Only intact records enter: a forged one must not explain its own files.
    graph = Graph(read_jobs(store, check.intact, faults))
    folders = tracked_folders(root, lock, hasher)
    outputs = recorded_outputs(graph)
    return State(
        store=store,
        lock=lock,
        graph=graph,
        hasher=hasher,
        unreadable=dict(faults),
        indexes=indexes,
        committed=committed,
        check=check,
        folders=folders,
        from_lock=list(check_lock(root, lock, folders, hasher, graph, indexes)),
        outputs=outputs,
        hashes={path: hasher.sha256(path) for path in outputs},
    )


def verify_tree(
    root: Path,
    *,
    deep: bool = False,
    run: str = "",
    check_contents: Callable[[Path, Graph], Iterable[Finding]] | None = None,
) -> Verdict:
    """Check the working tree.

    Args:
        root: the checkout.
        deep: read every byte, without cached hashes.
        run: report nothing of other runs, such as one that `dvc.lock` has and nobody built here.
        check_contents: a further check, made if all hashes agree.

    Raises:
        LineageError: `dvc.lock` is not in DVC's format, or there is no such run.
    """
    if run and not (root / RESULTS / run).is_dir():
        raise LineageError(f"{RESULTS}/{run} is missing: --run must name a run that was built here")
    state = read_state(root, deep=deep)
    # Untrusted manifests first: else they would be evidence against intact files.
    suspects, findings = find_suspects(
        state.graph,
        state.check,
        state.from_lock,
        [folder.tracked.path for folder in state.folders if folder.as_locked],
        state.unreadable,
        state.hashes,
        state.hasher,
    )
    for check in CHECKS:
        findings += check(state, suspects)
    altered_paths = {finding.path for finding in findings if finding.kind != EXTRA}
    findings += _unless_named(state.from_lock, altered_paths)
    bad_signatures, attestations = check_signatures(
        root, sealed_runs(state.store.names(RECORDS, ""))
    )
    findings += bad_signatures
    state.hasher.save()
    # Contents of files that are known to be altered would only add noise.
    if check_contents and all(finding.kind in WARNINGS for finding in findings):
        findings += check_contents(root, state.graph)
    attested = [attestation.text for attestation in attestations]
    verdict = make_verdict(
        findings, state.graph, len(state.outputs), state.hasher.read_files, state.lock, attested
    )
    if not run:
        return verdict
    prefix = f"{RESULTS}/{run}/"
    return verdict.of_run(
        run, sealed=any(output.path.startswith(prefix) for output in state.lock.outputs)
    )


def recorded_outputs(graph: Graph) -> dict[str, tuple[Artifact, str]]:
    """Return path -> artifact as its manifest recorded it, and the job that wrote it."""
    outputs: dict[str, tuple[Artifact, str]] = {}
    for job in graph.jobs.values():
        for artifact in job.outputs:
            if artifact.path != job.manifest:
                outputs.setdefault(artifact.path, (artifact, job.name))
    # Manifests come second: a manifest that a job lists as an ordinary output was hashed by it.
    for job in graph.jobs.values():
        outputs.setdefault(job.manifest, (job.outputs[-1], job.name))
    return outputs


def _check_unreadable(state: State, suspects: Suspects) -> Iterator[Finding]:
    for path, message in state.unreadable.items():
        yield Finding(ALTERED, path, "", message)


def _check_index(state: State, suspects: Suspects) -> Iterator[Finding]:
    yield from state.check.findings


def _check_files(state: State, suspects: Suspects) -> Iterator[Finding]:
    """Check every output against the manifest of its job."""
    unlike_lock = tuple(
        f"{folder.tracked.path}/" for folder in state.folders if not folder.as_locked
    )
    raw_cure = cure_of_raw(state.root, CURE)
    for path, (artifact, job) in state.outputs.items():
        if path == state.graph.jobs[job].manifest or job in suspects.jobs:
            continue  # it cannot contain its own hash; readers, records and the lock have it
        sha256 = state.hashes[path]
        cure = CURE
        if state.graph.jobs[job].rule == DATA and path.startswith(unlike_lock):
            cure = raw_cure
        elif state.graph.jobs[job].rule == DATA:
            # Untracked, or as tracked, as after a withdrawal: DVC has nothing else to restore.
            cure = "run snakemake, which fetches and checks raw files"
        if sha256 is None:
            yield Finding(MISSING, path, job, f"{job} wrote it; {cure}")
        elif sha256 != artifact.sha256:
            actual_digits, written = differing(sha256, artifact.sha256)
            yield Finding(
                ALTERED, path, job, f"sha256 {actual_digits}, {job} wrote {written}; {cure}"
            )


def check_links(graph: Graph, suspects: Suspects = NONE_SUSPECTED) -> Iterator[Finding]:
    """Report inputs that no job wrote: a stage was rerun and a later one was not."""
    has_raw_files = any(
        job.rule == DATA and job.name not in suspects.jobs for job in graph.jobs.values()
    )
    for reader, artifact in graph.broken:
        if reader in suspects.jobs or artifact.path.rpartition("/")[0] in suspects.folders:
            continue  # one of both manifests was altered, and is named itself
        outputs = [
            output
            for output in graph.by_path.get(artifact.path, ())
            if output.key in graph.producer
        ]
        if outputs:
            writer = graph.producer[outputs[0].key]
            if writer in suspects.jobs:  # raw files are not in the folder of their manifest
                continue
            read, written = differing(artifact.sha256, outputs[0].sha256)
            yield Finding(
                LINK,
                artifact.path,
                writer,
                f"{reader} read {read}, {writer} says {written}; rerun {reader}, or one was "
                "altered",
            )
        elif has_raw_files:  # without an intact manifest of `data` raw files are unknown
            message = f"{reader} read {artifact.sha256[:12]}, which is no output and no raw file"
            yield Finding(LINK, artifact.path, reader, message)


def _check_links(state: State, suspects: Suspects) -> Iterator[Finding]:
    yield from check_links(state.graph, suspects)


def _check_record_hashes(state: State, suspects: Suspects) -> Iterator[Finding]:
    """Check files with a manifest that cannot be trusted against the record of their job."""
    check = state.check
    for name in suspects.jobs & check.records.keys() - check.altered:
        end = check.records[name].end
        for output in end.outputs if end else ():
            actual = state.hasher.sha256(output.path)
            if output.path in suspects.manifests or actual == output.sha256:
                continue
            cure = "dvc checkout or a rerun restores it"
            # The record still has the hash, although the manifest cannot be trusted.
            if actual is None:
                yield Finding(MISSING, output.path, name, f"the record of {name} has it; {cure}")
                continue
            actual_digits, recorded_digits = differing(actual, output.sha256)
            message = f"sha256 {actual_digits}, the record of {name} says {recorded_digits}; {cure}"
            yield Finding(ALTERED, output.path, name, message)


def _unless_named(from_lock: list[Finding], altered_paths: set[str]) -> Iterator[Finding]:
    """Yield the findings of the lock, without folders in which a file was named already."""
    for finding in from_lock:
        if finding.kind != ALTERED or not any(
            path.startswith(f"{finding.path}/") for path in altered_paths
        ):
            yield finding


def _check_extra(state: State, suspects: Suspects) -> Iterator[Finding]:
    """Report files among the results that no manifest lists."""
    tracked_paths = {tracked.path for tracked in state.lock.outputs}
    for path in files_below(state.root / RESULTS):
        name = Path(path).relative_to(state.root).as_posix()
        file_name = name.rsplit("/", 1)[-1]
        # Hidden files belong to tools such as Snakemake; temporary ones start with a dot as well.
        if name in state.outputs or name in tracked_paths or suspects.explain(name):
            continue
        if name in suspects.manifests:
            continue  # unreadable, and named itself
        if file_name.startswith(TEMPORARY_PREFIX):
            yield Finding(EXTRA, name, "", "temporary file of a job that was killed; delete it")
        elif not file_name.startswith("."):
            yield Finding(EXTRA, name, "", "no manifest lists it; delete it")


def _check_fields(state: State, suspects: Suspects) -> Iterator[Finding]:
    unlike_lock = {folder.tracked.path for folder in state.folders if not folder.as_locked}
    yield from check_fields(
        state.store,
        state.graph,
        state.lock,
        state.check,
        suspects.manifests,
        unlike_lock,
        state.hasher,
    )


def _check_code(state: State, suspects: Suspects) -> Iterator[Finding]:
    yield from check_code(state.root, state.graph, state.lock, state.check, state.hasher)


def _check_other_code(state: State, suspects: Suspects) -> Iterator[Finding]:
    # A record that was not sealed attests nothing, but what it admits is named.
    jobs = (replace(job, record=state.check.records.get(job.name)) for job in chain_of(state.graph))
    yield from check_other_code(state.root, jobs)


def _check_pipeline(state: State, suspects: Suspects) -> Iterator[Finding]:
    yield from check_pipeline(state.root, state.lock, state.committed)


def _check_committed(state: State, suspects: Suspects) -> Iterator[Finding]:
    yield from check_committed(state.root, state.committed)
    yield from check_withdrawals(state.root)
    yield from check_made_before(state.root, state.graph, state.lock)
    if not state.lock.stages:
        message = "absent: manifests without a record cannot be checked; seal the results"
        yield Finding(UNSEALED, LOCK_FILE, "", message)


# Of several findings about one file and of one kind the first is kept.
CHECKS: tuple[Callable[[State, Suspects], Iterator[Finding]], ...] = (
    _check_unreadable,
    _check_index,
    _check_files,
    _check_links,
    _check_record_hashes,
    _check_extra,
    _check_fields,
    _check_code,
    _check_other_code,
    _check_pipeline,
    _check_committed,
)
