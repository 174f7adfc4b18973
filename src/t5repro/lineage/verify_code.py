"""Checks the source files of a working tree against the code that its jobs ran."""

import json
from collections.abc import Iterator
from pathlib import Path

from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.findings import ALTERED, CODE, Finding, are_lookalikes, chain_of, differing
from t5repro.lineage.graph import Graph
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.job_code import has_definitions, is_reworded, locked_code, recorded_bytes
from t5repro.lineage.sealed_records import RecordCheck
from t5repro.lineage.sources import SourceTree, closure_path, source_path, tree_of


def check_code(
    root: Path, graph: Graph, lock: Lock, check: RecordCheck, hasher: Hasher
) -> Iterator[Finding]:
    """Report code that is not the code in records, in `dvc.lock` or in the files of closures."""
    tree = tree_of(root)
    yield from _unlike_records(root, graph, check, hasher, tree)
    yield from _unlike_closures(root, graph, check, tree)
    yield from _unlike_lock(lock, hasher)


def _unlike_records(
    root: Path, graph: Graph, check: RecordCheck, hasher: Hasher, tree: SourceTree
) -> Iterator[Finding]:
    for job in chain_of(graph):
        if job.name in check.altered:
            continue
        for name, expected in sorted(recorded_bytes(job.record).items()):
            path = source_path(root, name)
            actual = hasher.sha256(path.as_posix())
            if actual != expected and not is_reworded(tree, job.rule, name, job.record):
                ran, now = _shown(expected, actual)
                message = f"{job.name} ran {ran}, it is {now} now; rerun the job"
                yield Finding(CODE, name, job.name, message)


def _unlike_closures(
    root: Path, graph: Graph, check: RecordCheck, tree: SourceTree
) -> Iterator[Finding]:
    """Compare the code of jobs without a record with the file that stands for it."""
    jobs = {
        job.rule: job.name
        for job in graph.jobs.values()
        if job.name not in check.records or job.name in check.altered
    }
    for rule, job in sorted(jobs.items()):
        path = closure_path(rule)
        if not (root / path).is_file():
            continue
        try:
            hashes = {
                str(name): str(digest)
                for name, digest in json.loads((root / path).read_bytes()).items()
            }
        except (ValueError, AttributeError) as error:
            message = f"not hashes of code ({error}); run t5repro config generate"
            yield Finding(ALTERED, path.as_posix(), job, message)
            continue
        for name, digest in hashes.items():
            if not has_definitions(tree, rule, name, digest):
                message = (
                    f"{path} has other code, and {job} has no record of its own; rerun the job"
                )
                yield Finding(CODE, name, job, message)


def _unlike_lock(lock: Lock, hasher: Hasher) -> Iterator[Finding]:
    for stage, entry in lock.stages.items():
        for name, expected in sorted(locked_code(entry).items()):
            actual = hasher.md5(name)
            if actual is not None and are_lookalikes(actual, expected):
                locked, now = _shown(expected, actual)
                message = (
                    f"says md5 {locked} of {name}, which is {now}: so few digits differ that "
                    f"{LOCK_FILE} was altered; restore it with git checkout"
                )
                yield Finding(ALTERED, LOCK_FILE, stage, message)
            elif actual != expected:
                ran, now = _shown(expected, actual)
                message = f"stage {stage} ran md5 {ran}, it is {now} now; rerun the stage"
                yield Finding(CODE, name, stage, message)


def _shown(expected: str, actual: str | None) -> tuple[str, str]:
    return differing(expected, actual) if actual else (expected[:12], "absent")
