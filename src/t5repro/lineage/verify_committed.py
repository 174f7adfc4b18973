"""Compares records, index and lock of a working tree with the checked-out commit."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t5repro.lineage.dvc_lock import LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE
from t5repro.lineage.findings import CONTRADICTED, MISSING, UNCOMMITTED, Finding
from t5repro.lineage.git import blob_hash, blobs_below, replaced_objects, try_git, untrusted_owner
from t5repro.lineage.record_index import ENDING
from t5repro.lineage.signatures import ENDING as SIGNATURES
from t5repro.lineage.store import RECORDS, files_below

BEHIND_RESULTS = (LOCK_FILE, RAW_DATA_FILE, PIPELINE_FILE)
MAX_NAMES_SHOWN = 3


@dataclass(frozen=True)
class Committed:
    """The files behind results, compared with the checked-out commit.

    Attributes:
        names: files that the commit has; empty without git.
        changed: files that are not as committed, sorted.
    """

    names: frozenset[str] = frozenset()
    changed: tuple[str, ...] = ()

    def attests(self, name: str, against: str) -> bool:
        """Return whether a file is as committed, or as absent, and another is not."""
        return against in self.changed and name not in self.changed


def read_committed(root: Path) -> Committed:
    """Compare records, indexes and lock of a checkout with its commit."""
    if try_git(root, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return Committed()
    committed = blobs_below(root, "HEAD", RECORDS, *BEHIND_RESULTS)
    present = {Path(path).relative_to(root).as_posix() for path in files_below(root / RECORDS)}
    changed = (
        name
        for name in committed.keys() | present
        if not _is_blob(root / name, committed.get(name, ""))
    )
    return Committed(frozenset(committed), tuple(sorted(changed)))


def _is_blob(path: Path, blob: str) -> bool:
    return bool(blob) and path.is_file() and blob_hash(path.read_bytes(), blob) == blob


def _is_lost(path: Path) -> bool:
    """Return whether a file is absent, or empty as after a loss of power."""
    return not path.exists() or path.stat().st_size == 0


def check_committed(root: Path, committed: Committed) -> Iterator[Finding]:
    """Report lost and replaced files, and warn of files that git does not attest."""
    if cure := untrusted_owner(root):
        yield Finding(UNCOMMITTED, "HEAD", "", f"compared with no commit: {cure}")
    for name in replaced_objects(root):
        message = (
            "shows other objects than those of the commits to readers with git's defaults; they "
            "are ignored here; git replace -d removes them"
        )
        yield Finding(CONTRADICTED, name, "", message)
    if not committed.changed:
        return
    for name in committed.changed:
        if (name.endswith(ENDING) or name in BEHIND_RESULTS) and _is_lost(root / name):
            message = "the commit has it; restore it with git checkout, or run t5repro seal"
            yield Finding(MISSING, name, "", message)
        if name.endswith(SIGNATURES) and _is_lost(root / name):
            index = f"{name.removesuffix(SIGNATURES)}{ENDING}"
            # A seal of other results removes signatures over the former ones.
            if not {index, *BEHIND_RESULTS} & set(committed.changed):
                message = "the commit has signatures of this state; restore it with git checkout"
                yield Finding(MISSING, name, "", message)
    more = len(committed.changed) - MAX_NAMES_SHOWN
    shown_names = [*committed.changed[:MAX_NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])]
    message = (
        f"{', '.join(shown_names)}: not as in the checked-out commit; git attests them once "
        "committed"
    )
    yield Finding(UNCOMMITTED, "HEAD", "", message)
