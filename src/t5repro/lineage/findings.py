"""What verification reports: findings, and the verdict about a state."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from t5repro.errors import LineageError
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.graph import Graph, Job
from t5repro.lineage.store import RECORDS, RESULTS

ALTERED = "altered"
MISSING = "missing"
EXTRA = "extra"
LINK = "broken link"
CODE = "code changed"
DRIFTED = "drifted"
FOREIGN = "foreign code"
SETTINGS = "settings"
SINCE = "since changed"
CONTRADICTED = "contradicted"  # a statement that something else refutes
SIGNATURE = "bad signature"
UNCOMMITTED = "not committed"
UNSIGNED = "not signed"
UNLOCKED = "not locked"
UNSEALED = "not sealed"
NOT_ARCHIVED = "not archived"
NOT_COMPARED = "not compared"
# Reported, but no failure.
WARNINGS = {SINCE, UNSEALED, UNCOMMITTED, UNSIGNED, UNLOCKED, NOT_ARCHIVED, NOT_COMPARED}
SHOWN_DIGITS = 12  # of a hash
LOOKALIKE_DIGITS = 8  # two hashes that differ in so few digits are one, with altered digits


@dataclass(frozen=True)
class Finding:
    """One file or link that verification rejects.

    Attributes:
        kind: one of the constants above.
        path: the file.
        job: the job that the file belongs to; empty if unknown.
        message: the actual and the expected state, and the cure.
    """

    kind: str
    path: str
    job: str
    message: str

    def concerns(self, run: str) -> bool:
        """Return whether this is about a run, or about what all runs share."""
        folder, *names = self.path.split("/")
        return folder not in (RESULTS, RECORDS) or names[:1] in ([run], [f"{run}.index.json"])

    @property
    def line(self) -> str:
        """The finding as a line of text."""
        return f"{self.kind:<12}  {self.path}: {self.message}"


@dataclass(frozen=True)
class Verdict:
    """The result of verification.

    Attributes:
        findings: in the order of the chain.
        warnings: findings that fail nothing.
        files: number of files checked.
        hashed: number of files of which the bytes were read.
        sealed: whether there is a `dvc.lock` to check the results against.
        attested: who signed what, a line each.
    """

    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    files: int
    hashed: int
    sealed: bool
    attested: tuple[str, ...] = ()

    def of_run(self, run: str, *, sealed: bool) -> "Verdict":
        """Return the verdict without what was found of other runs.

        Args:
            run: name of the run.
            sealed: whether `dvc.lock` has its results.
        """
        return replace(
            self,
            findings=tuple(finding for finding in self.findings if finding.concerns(run)),
            warnings=tuple(finding for finding in self.warnings if finding.concerns(run)),
            sealed=sealed,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values."""
        return {
            "holds": not self.findings,
            "first": asdict(self.findings[0]) if self.findings else None,
            "findings": [asdict(finding) for finding in self.findings],
            "warnings": [asdict(finding) for finding in self.warnings],
            "files": self.files,
            "hashed": self.hashed,
            "sealed": self.sealed,
            "attested": list(self.attested),
        }

    def to_text(self) -> str:
        """Return the verdict as human-readable text."""
        lines = [finding.line for finding in (*self.findings, *self.warnings)]
        lines += [f"attested: {text}" for text in self.attested]
        if self.findings:
            first = self.findings[0]
            lines.append(f"first broken link: {first.path} ({first.job or 'no job'}), {first.kind}")
        else:
            sources = f"manifests and {LOCK_FILE}" if self.sealed else "manifests"
            lines.append(f"{self.files} files agree with {sources}; {self.hashed} were read")
        # A name with a line break would print a line of its own, such as a signature.
        return "\n".join(line.replace("\n", "\n" + " " * 14) for line in lines) + "\n"


def make_verdict(
    findings: Iterable[Finding],
    graph: Graph,
    files: int,
    hashed: int,
    lock: Lock,
    attested: Iterable[str] = (),
) -> Verdict:
    """Order findings as the chain runs, so that the first one is the first broken link.

    Args:
        findings: in any order. Of several about one path and of one kind the first is kept.
        graph: the jobs.
        files: number of files checked.
        hashed: number of files of which the bytes were read.
        lock: of the state.
        attested: who signed what.

    Raises:
        LineageError: there was nothing to check.
    """
    findings = list(findings)
    if not (files or lock.stages or graph.jobs or any(f.kind not in WARNINGS for f in findings)):
        raise LineageError(
            f"there is nothing to verify here: no manifest below results/ and no {LOCK_FILE}; run "
            "it in the folder of a run, as the one of README.md"
        )
    position = {job.name: number for number, job in enumerate(chain_of(graph))}
    unique = {(finding.kind, finding.path): finding for finding in reversed(findings)}
    # Findings without a job come first: an unreadable manifest explains all that follow.
    ordered = sorted(
        unique.values(),
        key=lambda finding: (position.get(finding.job, -1), finding.path, finding.kind),
    )
    return Verdict(
        tuple(finding for finding in ordered if finding.kind not in WARNINGS),
        tuple(finding for finding in ordered if finding.kind in WARNINGS),
        files,
        hashed,
        bool(lock.stages),
        tuple(attested),
    )


def chain_of(graph: Graph) -> list[Job]:
    """Return the jobs in the order of the chain; by name if altered manifests make a circle."""
    try:
        return graph.ordered()
    except LineageError:
        return list(graph.jobs.values())


def differing(first: str, second: str) -> tuple[str, str]:
    """Return two unequal hashes, each shortened, but so that the difference can be seen."""
    equal = next(
        (number for number, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        len(second),
    )
    digits = max(SHOWN_DIGITS, equal + 1)
    return first[:digits], second[:digits]


def are_lookalikes(first: str, second: str) -> bool:
    """Return whether two unequal hashes differ in so few digits that one is an altered other."""
    if first == second:
        return False
    different = sum(a != b for a, b in zip(first, second, strict=False))
    return different + abs(len(first) - len(second)) <= LOOKALIKE_DIGITS
