"""Keeps the committed record of a job that repeated its committed result.

Every job writes a new record, because time and machine differ. If it read and wrote the committed
bytes with the committed code and settings, the sealed record still describes the result, so it is
restored: a run that reproduces everything leaves the checkout clean. The record of the repetition
moves to ``work/records/``.
"""

import hashlib
from pathlib import Path

from t5repro.errors import ArtifactError
from t5repro.files import write_bytes
from t5repro.lineage.facts import differences, facts_of_record, unknown_facts
from t5repro.lineage.git import file_at, files_at, try_git
from t5repro.lineage.record import Record, parse_record, read_record
from t5repro.lineage.record_index import index_path, parse_index, records_in
from t5repro.lineage.store import RECORDS

REPETITIONS = Path("work")
REVISION = "HEAD"
SAME = ("settings", "definitions", "rule_files", "inputs", "outputs")
SAME_ENVIRONMENT = ("foreign", "forged_byte_code")


def restore_committed_records(run: str) -> list[str]:
    """Restore the sealed records of a run whose jobs were repeated; return their paths.

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
    committed = files_at(Path(), REVISION, changed)
    return [
        path
        for path in changed
        # A committed record that was altered since its seal must not be sealed again.
        if path in committed
        and hashlib.sha256(committed[path]).hexdigest() == sealed.get(path)
        and _restore(Path(path), committed[path])
    ]


def _restore(path: Path, data: bytes) -> bool:
    """Restore a record if its job was repeated; return whether it was."""
    try:
        repetition, committed = read_record(path), parse_record(data, str(path))
    except ArtifactError:
        return False
    if not is_repetition(repetition, committed):
        return False
    write_bytes(REPETITIONS / path, path.read_bytes())
    write_bytes(path, data)
    return True


def is_repetition(record: Record, committed: Record) -> bool:
    """Return whether two records tell of the same bytes, made by the same code from the same bytes.

    They may differ in time, attempt, commit, machine, in the run file that gave the settings, and
    in code that the job does not reach. A job with altered packages is no repetition: its record
    has to be seen.
    """
    facts, committed_facts = facts_of_record(record), facts_of_record(committed)
    return (
        record.sealable
        and committed.sealable
        and not record.start.machine.altered
        and not unknown_facts(facts, committed_facts, *SAME)
        and not differences(facts, committed_facts, *SAME)
        and not any(
            difference.name.startswith(SAME_ENVIRONMENT)
            for difference in differences(facts, committed_facts, "environment")
        )
    )
