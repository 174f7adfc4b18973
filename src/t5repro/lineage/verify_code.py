"""Checks the source files of a working tree against the code that its jobs ran."""

from collections.abc import Iterator
from pathlib import Path

from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.facts import JobFacts, differences, facts_of_lock, facts_of_record
from t5repro.lineage.findings import ALTERED, CODE, Finding, are_lookalikes, chain_of
from t5repro.lineage.graph import Graph
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.sealed_records import RecordCheck
from t5repro.lineage.sources import SourceTree, closure_path, source_path, tree_of
from t5repro.strict_json import parse_json


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
        if job.record is None:
            continue
        recorded = facts_of_record(job.record)
        current_hashes = {
            name: hasher.sha256(source_path(root, name).as_posix())
            for name in recorded.sources or ()
        }
        for difference in differences(recorded, JobFacts(sources=current_hashes), "sources"):
            definitions = recorded.definitions or {}
            if definitions and has_definitions(
                tree, job.rule, difference.name, definitions.get(difference.name)
            ):
                continue  # a comment was reworded, or a definition edited that the job never used
            value, value_now = difference.shown
            message = f"{job.name} ran {value}, it is {value_now} now; rerun the job"
            yield Finding(CODE, difference.name, job.name, message)


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
                for name, digest in parse_json((root / path).read_bytes()).items()
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
        locked = facts_of_lock(entry, stage)
        current = JobFacts(
            locked_code={name: hasher.md5(name) for name in locked.locked_code or ()}
        )
        for difference in differences(locked, current, "locked_code"):
            name, (locked_md5, md5) = difference.name, difference.shown
            if difference.second and are_lookalikes(difference.second, difference.first):
                message = (
                    f"says md5 {locked_md5} of {name}, which is {md5}: so few digits differ that "
                    f"{LOCK_FILE} was altered; restore it with git checkout"
                )
                yield Finding(ALTERED, LOCK_FILE, stage, message)
            else:
                message = f"stage {stage} ran md5 {locked_md5}, it is {md5} now; rerun the stage"
                yield Finding(CODE, name, stage, message)


def has_definitions(tree: SourceTree, rule: str, name: str, digest: str | None) -> bool:
    """Return whether a source file has these definitions for a rule, as the tree is now.

    Args:
        tree: the sources.
        rule: the rule.
        name: path of the file, as records have it.
        digest: hash of the definitions; None if the rule reached none in the file.
    """
    try:
        return tree.closure(rule).get(name) == digest
    except (SyntaxError, ValueError):  # an edit that is not Python, or not UTF-8
        return False
