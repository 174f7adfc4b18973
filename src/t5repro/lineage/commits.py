"""What git knows about the commits that records name: whether they exist, and their files."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from t5repro.lineage.facts import JobFacts, differences
from t5repro.lineage.git import contents, is_shallow, project_prefix, try_git
from t5repro.lineage.record import Record
from t5repro.lineage.sources import SOURCES, is_source

PACKAGE_FILE = f"{SOURCES}/__init__.py"  # a commit with the package has it
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
PIN = re.compile(rb"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
CLOCKS_APART_SECONDS = 86_400.0  # clocks of two machines, or a wrong time zone


@dataclass(frozen=True)
class Commits:
    """The commits and files that the records of a state name.

    Attributes:
        times: commit -> time at which it was made; None for those that git does not have.
        files: (commit, path) -> SHA-256; None for files that the commit does not have.
        pins: (commit, path of a package lock) -> library -> its versions, by Python's version.
        outside: commits that git has and that are not in the history of the state, as after a
            rewritten history. A shallow clone cannot tell.
        shallow: whether this clone has only a part of the history.
        has_package: whether the checkout or the state has the package. A project of `t5repro init`
            does not: its jobs run the installed one, and no commit has its files.
    """

    times: Mapping[str, datetime | None]
    files: Mapping[tuple[str, str], str | None]
    pins: Mapping[tuple[str, str], Mapping[str, set[str]]]
    outside: frozenset[str]
    shallow: bool
    has_package: bool

    def is_known(self, record: Record) -> bool:
        """Return whether git has the commit of a record."""
        return self.times.get(record.start.commit or "") is not None

    def is_missing(self, record: Record) -> bool:
        """Return whether git should have the commit of a record and does not."""
        commit = record.start.commit
        if commit is None:  # the job ran outside a repository; a question of attestation
            return False
        return not self.is_known(record) and not (self.shallow and COMMIT.fullmatch(commit))

    def attests_code(self, record: Record) -> bool:
        """Return whether the commit has every source file of a record, as the job ran it."""
        commit = record.start.commit or ""
        return bool(record.start.code) and all(
            self.files.get((commit, path)) == sha256 for path, sha256 in record.start.code.items()
        )

    def shown(self, commit: str) -> str:
        """Return a commit for an answer, which says if a clone of the state would lack it."""
        note = ", outside the history of HEAD" if commit in self.outside else ""
        return f"{commit[:12]}{note}"

    def faults(self, record: Record) -> Iterator[str]:
        """Yield how a record contradicts git."""
        commit = record.start.commit or ""
        committed_at = self.times.get(commit)
        if committed_at is None:
            if self.is_missing(record):
                yield (
                    f"commit {commit[:12]} is not in this repository: forged, or never pushed "
                    "(git fetch --all)"
                )
            return
        if (committed_at - _start(record)).total_seconds() > CLOCKS_APART_SECONDS:
            yield (
                f"starts at {record.start.at}, before its commit {commit[:12]} was made "
                f"({committed_at})"
            )
        if record.start.uncommitted is not None:
            return
        has_package = self.has_package or self.files.get((commit, PACKAGE_FILE)) is not None
        recorded = JobFacts(sources=record.start.code | record.start.machine.locks)
        committed = JobFacts(
            sources={path: self.files.get((commit, path)) for path in recorded.sources or ()}
        )
        for difference in differences(recorded, committed, "sources"):
            if has_package or not is_source(difference.name):
                yield difference.text("here, without changes", f"in commit {commit[:12]}")

    def unlocked(self, record: Record) -> Iterator[tuple[str, str, str]]:
        """Yield library, version and package lock, if no lock at the commit has the version."""
        commit = record.start.commit or ""
        locks = [self.pins.get((commit, path), {}) for path in record.start.machine.locks]
        for name, version in record.start.machine.libraries.items():
            versions = set().union(*(lock.get(_normal(name), set()) for lock in locks))
            if versions and version not in versions:
                yield name, version, ", ".join(sorted(versions))


def _start(record: Record) -> datetime:
    try:
        start = datetime.fromisoformat(record.start.at)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)  # reported as no time
    return start if start.tzinfo else start.replace(tzinfo=UTC)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_commits(root: Path, records: Iterable[Record], revision: str = "HEAD") -> Commits | None:
    """Ask git about everything that records name; None outside a repository.

    All is asked in two processes, whatever the number of records.
    """
    records = list(records)
    if try_git(root, "rev-parse", "--verify", "--quiet", revision) is None:
        return None
    revisions = {record.start.commit or "" for record in records}
    valid = sorted(commit for commit in revisions if COMMIT.fullmatch(commit))
    texts = contents(root, [f"{commit}^{{commit}}" for commit in valid])
    times = {commit: _commit_time(texts[f"{commit}^{{commit}}"]) for commit in valid}
    sources, locks = set(), set()
    for record in records:
        commit = record.start.commit or ""
        if times.get(commit) is not None:
            sources |= {(commit, path) for path in (*record.start.code, PACKAGE_FILE)}
            locks |= {(commit, path) for path in record.start.machine.locks}
    prefix = project_prefix(root)
    package = f"{revision}:{prefix}{PACKAGE_FILE}"
    names = [f"{commit}:{prefix}{path}" for commit, path in sorted(sources | locks)]
    data_of = contents(root, [*names, package])
    files: dict[tuple[str, str], str | None] = {}
    pins: dict[tuple[str, str], dict[str, set[str]]] = {}
    for commit, path in sources | locks:
        data = data_of[f"{commit}:{prefix}{path}"]
        files[commit, path] = None if data is None else hashlib.sha256(data).hexdigest()
        if data is not None and (commit, path) in locks:
            pins[commit, path] = {}
            for name, version in PIN.findall(data):
                pins[commit, path].setdefault(_normal(name.decode()), set()).add(version.decode())
    shallow = is_shallow(root)
    dated = [commit for commit, time in times.items() if time is not None]
    outside = frozenset() if shallow else _outside(root, dated, revision)
    has_package = data_of[package] is not None or (root / SOURCES).is_dir()
    return Commits(times, files, pins, outside, shallow, has_package)


def _commit_time(commit: bytes | None) -> datetime | None:
    match = re.search(rb"^committer .*> (\d+) [+-]\d{4}$", commit or b"", re.MULTILINE)
    return datetime.fromtimestamp(int(match[1]), UTC) if match else None


def _outside(root: Path, commits: Iterable[str], revision: str) -> frozenset[str]:
    # What can be reached from the commits and not from the revision: not they, if it has them.
    output = try_git(root, "rev-list", *commits, "--not", revision) or b""
    return frozenset(output.decode().split()).intersection(commits)
