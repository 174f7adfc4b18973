"""in-toto attestations: per job one signed statement with SLSA provenance.

Subjects are the files that a job wrote; the predicate names what it read, its settings, its code
and when it ran. Each statement is signed in a DSSE envelope; a file of them has one a line.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import Error as SigningError
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import Key, Signer

from t5repro import __version__
from t5repro.errors import LineageError
from t5repro.export.facts import (
    NAMESPACE,
    Run,
    check_files,
    compact,
    fault_of,
    is_hidden,
    machine_of,
    manifest_hash,
    media_type,
    stable_uuid,
    start_of,
)
from t5repro.lineage.graph import DATA, Artifact, Job
from t5repro.lineage.hashes import Hasher

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = f"{NAMESPACE}snakemake-job:1"
CODE = "code"  # what a dependency is, in its annotations
INPUT = "input"
LOCK = "package lock"


def attest(run: Run, signer: Signer) -> str:
    """Return the signed statements of a run, one a line.

    Every file is hashed before it is vouched for.

    Raises:
        LineageError: a file is not as its manifest says.
    """
    check_files(run, [item for job in run.jobs for item in job.outputs])
    lines = []
    for job in run.jobs:
        envelope = Envelope(payload_of(job), PAYLOAD_TYPE, {})
        envelope.sign(signer)
        lines.append(compact(envelope.to_dict()))
    return "\n".join(lines) + "\n"


def payload_of(job: Job) -> bytes:
    """Return the statement of a job as JSON."""
    statement = Statement(
        [ResourceDescriptor(name=item.path, digest=_digest(item)).pb for item in job.outputs],
        PREDICATE_TYPE,
        MessageToDict(ParseDict(_provenance(job), Provenance())),
    )
    statement.validate()
    return compact(MessageToDict(statement.pb)).encode()


def _provenance(job: Job) -> dict[str, Any]:
    start, end = start_of(job), job.record.get("end") or {}
    ran = stable_uuid(job.name, manifest_hash(job), start.get("at", ""))
    metadata = {
        "invocationId": f"urn:uuid:{ran}",
        **({"startedOn": start["at"]} if start else {}),
        **({"finishedOn": end["at"]} if end else {}),
    }
    internal = {
        name: start[name]
        for name in ("commit", "uncommitted", "seeds", "attempt", "machine")
        if start.get(name)
    }
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"job": job.name, "rule": job.rule, "settings": job.settings},
            "internalParameters": internal,
            "resolvedDependencies": _dependencies(job),
        },
        "runDetails": {
            "builder": {"id": f"{NAMESPACE}builder", "version": {"t5repro": __version__}},
            "metadata": metadata,
        },
    }


def _dependencies(job: Job) -> list[dict[str, Any]]:
    found = {item.key: item for item in job.inputs}
    inputs = [
        {
            "name": item.path,
            "digest": _digest(item),
            "mediaType": media_type(item.path),
            "annotations": {"kind": INPUT},
        }
        for item in found.values()
    ]
    start = start_of(job)
    locks = machine_of(job).get("locks") or {}
    return [*inputs, *_named(start.get("code") or {}, CODE), *_named(locks, LOCK)]


def _named(hashes: Mapping[str, str], kind: str) -> Iterator[dict[str, Any]]:
    for name in sorted(hashes):
        yield {"name": name, "digest": {"sha256": hashes[name]}, "annotations": {"kind": kind}}


def _digest(item: Artifact) -> dict[str, str]:
    return {"sha256": item.sha256}


@dataclass(frozen=True)
class Attested:
    """What a file of statements says, and what is wrong with it.

    Attributes:
        jobs: jobs whose statement holds in itself: signed by the key, and of the expected kind.
        files: files that were found as a statement says.
        unread: files named by a hash of their folder, which lies outside the checkout.
        findings: what does not hold, each naming the line, or the job, and the file.
    """

    jobs: tuple[str, ...]
    files: int
    unread: int
    findings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "jobs": list(self.jobs),
            "files": self.files,
            "unread": self.unread,
            "findings": list(self.findings),
        }

    def to_text(self) -> str:
        """Return it in words."""
        lines = [f"{len(self.jobs)} statements signed by this key, {self.files} files as they say"]
        if self.unread:
            lines.append(f"{self.unread} raw files outside the checkout were not read")
        return "\n".join([*lines, *self.findings]) + "\n"


def verify(lines: Iterable[str], key: Key, root: Path, wanted: Iterable[Job]) -> Attested:
    """Check signatures, statements, files, and that each input is what another statement vouches.

    Args:
        lines: envelopes, one a line.
        key: public half of the key that all must be signed with.
        root: the checkout whose files are checked.
        wanted: jobs of the checkout; those of an attested run that have no statement are named.
    """
    findings: list[str] = []
    statements: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            statements.append(open_envelope(line, key))
        except LineageError as error:
            findings.append(f"line {number}: {error}")
    hasher = Hasher(root, deep=True)
    vouched = {
        _pair(item)
        for statement in statements
        for item in (*statement["subject"], *_raw(statement))
    }
    files = unread = 0
    for statement in statements:
        name = job_of(statement)
        found = [*statement["subject"], *(_raw(statement))]
        for item in found:
            path, sha256 = _pair(item)
            if is_hidden(path):
                unread += 1
            elif fault := fault_of(hasher, path, sha256):
                findings.append(f"{name}: {path} {fault}")
            else:
                files += 1
        findings += [
            f"{name}: no statement vouches for its input {path} {sha256[:12]}"
            for path, sha256 in _unvouched(statement, vouched)
        ]
    names = tuple(job_of(statement) for statement in statements)
    runs = {name.split("/", 1)[0] for name in names}
    findings += [
        f"{job.name}: no statement"
        for job in wanted
        if job.name.split("/", 1)[0] in runs and job.name not in names
    ]
    return Attested(names, files, unread, tuple(findings))


def open_envelope(line: str, key: Key) -> dict[str, Any]:
    """Return the statement in an envelope that the key signed.

    Raises:
        LineageError: it is not signed by the key, or is not a statement of this kind.
    """
    try:
        envelope = Envelope.from_dict(json.loads(line))
        envelope.verify([key], 1)
    except VerificationError as error:
        raise LineageError(
            "not signed by this key, or altered since; its content is not to be trusted"
        ) from error
    except (SigningError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LineageError(f"not a signed envelope ({type(error).__name__}: {error})") from error
    if envelope.payload_type != PAYLOAD_TYPE:
        raise LineageError(f"payload type {envelope.payload_type!r}; expected {PAYLOAD_TYPE!r}")
    try:
        values: dict[str, Any] = json.loads(envelope.payload)
        Statement.copy_from_pb(ParseDict(values, StatementMessage())).validate()
        ParseDict(values["predicate"], Provenance())
        job_of(values)
    except (ValueError, KeyError, TypeError, ParseError) as error:
        raise LineageError(f"signed, but not a statement of in-toto ({error})") from error
    if values["predicateType"] != PREDICATE_TYPE:
        raise LineageError(
            f"predicate type {values['predicateType']!r}; expected {PREDICATE_TYPE!r}"
        )
    return values


def job_of(statement: Mapping[str, Any]) -> str:
    """Return the job that a statement is about."""
    return str(_definition(statement)["externalParameters"]["job"])


def _definition(statement: Mapping[str, Any]) -> Any:
    return statement["predicate"]["buildDefinition"]


def _inputs(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = _definition(statement).get("resolvedDependencies", [])
    return [item for item in listed if item.get("annotations", {}).get("kind") == INPUT]


def _raw(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files where the chain begins, if this is the statement of their record."""
    is_raw = _definition(statement)["externalParameters"].get("rule") == DATA
    return _inputs(statement) if is_raw else []


def _unvouched(
    statement: Mapping[str, Any], vouched: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    return [pair for item in _inputs(statement) if (pair := _pair(item)) not in vouched]


def _pair(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["name"], item["digest"]["sha256"]
