"""Keeps the committed record of a job that repeated its committed result.

Every job writes a new record, because time and machine differ. If it read and wrote the committed
bytes with the committed code and settings, the sealed record still describes the result, so it is
restored: a run that reproduces everything leaves the checkout clean. The record of the repetition
moves to ``work/records/``.
"""

import hashlib
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import write_bytes, write_json
from t5repro.lineage.evidence import repetition_path
from t5repro.lineage.facts import differences, facts_of_record, unknown_facts
from t5repro.lineage.git import file_at, try_git
from t5repro.lineage.record import Record, read_record, record_in, run_of_record
from t5repro.lineage.record_index import index_path, parse_index, records_in
from t5repro.lineage.shared_facts import hashes_in, is_shared, shared_path
from t5repro.lineage.store import RECORDS, Revision
from t5repro.strict_json import parse_json

REVISION = "HEAD"
SAME = ("settings", "definitions", "rule_files", "inputs", "outputs")


def restore_committed_records(run: str) -> list[str]:
    """Restore the sealed records of repeated jobs of a run; return their paths.

    Nothing is restored without git, or from an index that is damaged.
    """
    listing = try_git(Path(), "diff", "--name-only", "-z", REVISION, "--", f"{RECORDS}/{run}/")
    changed = [path for path in (listing or b"").decode().split("\0") if Path(path).is_file()]
    index = file_at(Path(), REVISION, index_path(run)) if changed else None
    if index is None:
        return []
    try:
        sealed = records_in(parse_index(index, index_path(run)))
    except ArtifactError:
        return []
    committed = Revision(Path(), REVISION)
    names = set(committed.names(RECORDS, ".json")).intersection(changed)
    return [
        path
        for path in sorted(names)
        # A committed record that was altered since its seal must not be sealed again.
        if hashlib.sha256(committed.read(path)).hexdigest() == sealed.get(path)
        and not is_shared(path)
        and _restore(Path(path), committed)
    ]


def _restore(path: Path, revision: Revision) -> bool:
    """Restore a record if its job was repeated; return whether it was."""
    name = path.as_posix()
    try:
        repetition, committed = read_record(path), record_in(revision, name)
    except ArtifactError:
        return False
    if not is_repetition(repetition, committed):
        return False
    write_json(repetition_path(name), repetition.to_json())
    data = revision.read(name)
    for sha256 in hashes_in(parse_json(data)):
        shared = shared_path(run_of_record(name), sha256)
        write_bytes(Path(shared), revision.read(shared))
    write_bytes(path, data)
    return True


def is_repetition(record: Record, committed: Record) -> bool:
    """Return whether two records tell of the same bytes, made by the same code from the same bytes.

    They may differ in time, attempt, commit, machine, in the run file that gave the settings, and
    in code that the job does not reach. With altered packages a job does not count as repeated: its
    record has to be seen.
    """
    facts, committed_facts = facts_of_record(record), facts_of_record(committed)
    return (
        record.sealable
        and committed.sealable
        and not record.start.machine.altered
        and not unknown_facts(facts, committed_facts, *SAME)
        and not differences(facts, committed_facts, *SAME)
        and _code_besides(record) == _code_besides(committed)
    )


def _code_besides(record: Record) -> tuple[Any, Any]:
    """Return what a job ran that no package has; unlike other facts it must be known."""
    return (record.end.foreign, record.end.forged_byte_code) if record.end else (None, None)
