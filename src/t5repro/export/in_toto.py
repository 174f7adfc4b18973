"""in-toto attestations: one signed statement with SLSA provenance for each job.

Subjects are the output files of a job; the predicate names its inputs, settings, code and times.
Each statement is signed in a DSSE envelope, one a line.
"""

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
from t5repro.strict_json import parse_json

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = f"{NAMESPACE}snakemake-job:1"
CODE = "code"  # kinds of dependencies, in their annotations
INPUT = "input"
LOCK = "package lock"


def attest(run: Run, signer: Signer) -> str:
    """Return the signed statements of a run, one a line.

    Every file is hashed before its statement is signed.

    Raises:
        LineageError: a file differs from its manifest.
    """
    check_files(run, [artifact for job in run.jobs for artifact in job.outputs])
    lines = []
    for job in run.jobs:
        envelope = Envelope(payload_of(job), PAYLOAD_TYPE, {})
        envelope.sign(signer)
        lines.append(compact(envelope.to_dict()))
    return "\n".join(lines) + "\n"


def payload_of(job: Job) -> bytes:
    """Return the statement of a job as JSON."""
    statement = Statement(
        [
            ResourceDescriptor(name=artifact.path, digest=_digest(artifact)).pb
            for artifact in job.outputs
        ],
        PREDICATE_TYPE,
        MessageToDict(ParseDict(_provenance(job), Provenance())),
    )
    statement.validate()
    return compact(MessageToDict(statement.pb)).encode()


def _provenance(job: Job) -> dict[str, Any]:
    start_record, end_record = start_of(job), job.record.end if job.record else None
    invocation = stable_uuid(job.name, manifest_hash(job), start_record.get("at", ""))
    metadata = {
        "invocationId": f"urn:uuid:{invocation}",
        **({"startedOn": start_record["at"]} if start_record else {}),
        **({"finishedOn": end_record.at} if end_record else {}),
    }
    internal = {
        name: start_record[name]
        # Not inputs of the result by themselves, but needed to repeat it.
        for name in ("commit", "uncommitted", "seeds", "attempt", "machine")
        if start_record.get(name)
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
    by_key = {artifact.key: artifact for artifact in job.inputs}
    inputs = [
        {
            "name": artifact.path,
            "digest": _digest(artifact),
            "mediaType": media_type(artifact.path),
            "annotations": {"kind": INPUT},
        }
        for artifact in by_key.values()
    ]
    start_record = start_of(job)
    locks = machine_of(job).get("locks") or {}
    return [
        *inputs,
        *_descriptors(start_record.get("code") or {}, CODE),
        *_descriptors(locks, LOCK),
    ]


def _descriptors(hashes: Mapping[str, str], kind: str) -> Iterator[dict[str, Any]]:
    for name in sorted(hashes):
        yield {"name": name, "digest": {"sha256": hashes[name]}, "annotations": {"kind": kind}}


def _digest(artifact: Artifact) -> dict[str, str]:
    return {"sha256": artifact.sha256}


@dataclass(frozen=True)
class Verification:
    """The result of verifying a file of statements.

    Attributes:
        jobs: jobs with a valid statement: signed by the key, and of the expected kind.
        files: files that match their statement.
        unread: files named by a hash of their folder, which is outside the checkout.
        findings: faults, each with the line or the job, and the file.
    """

    jobs: tuple[str, ...]
    files: int
    unread: int
    findings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "jobs": list(self.jobs),
            "files": self.files,
            "unread": self.unread,
            "findings": list(self.findings),
        }

    def to_text(self) -> str:
        """Return the result as text."""
        lines = [f"{len(self.jobs)} statements signed by this key, {self.files} files as they say"]
        if self.unread:
            lines.append(f"{self.unread} raw files outside the checkout were not read")
        return "\n".join([*lines, *self.findings]) + "\n"


def verify(lines: Iterable[str], key: Key, root: Path, jobs: Iterable[Job]) -> Verification:
    """Verify signatures, statements and files, and that another statement attests each input.

    Args:
        lines: envelopes, one a line.
        key: public key of all signatures.
        root: the checkout with the files to check.
        jobs: jobs of the checkout; a job of an attested run without a statement is a fault.
    """
    findings: list[str] = []
    statements: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            statements.append(open_envelope(line, key))
        except LineageError as error:
            findings.append(f"line {number}: {error}")
    # `deep` reads every byte: file times do not prove that a file is unchanged.
    hasher = Hasher(root, deep=True)
    # Raw files have no job: the statement of the rule `data` attests them.
    attested = {
        _pair(descriptor)
        for statement in statements
        for descriptor in (*statement["subject"], *_raw(statement))
    }
    files = unread = 0
    for statement in statements:
        name = job_of(statement)
        for descriptor in (*statement["subject"], *_raw(statement)):
            path, sha256 = _pair(descriptor)
            # The folder is private, so its name was replaced by a hash.
            if is_hidden(path):
                unread += 1
            elif fault := fault_of(hasher, path, sha256):
                findings.append(f"{name}: {path} {fault}")
            else:
                files += 1
        findings += [
            f"{name}: no statement attests its input {path} {sha256[:12]}"
            for path, sha256 in _unattested(statement, attested)
        ]
    names = tuple(job_of(statement) for statement in statements)
    runs = {name.split("/", 1)[0] for name in names}
    findings += [
        f"{job.name}: no statement"
        for job in jobs
        # An omitted statement must not hide an altered job.
        if job.name.split("/", 1)[0] in runs and job.name not in names
    ]
    return Verification(names, files, unread, tuple(findings))


def open_envelope(line: str, key: Key) -> dict[str, Any]:
    """Return the statement in an envelope that the key signed.

    Raises:
        LineageError: it is not signed by the key, or is not a statement of this kind.
    """
    try:
        envelope = Envelope.from_dict(parse_json(line.encode()))
        # Before the payload is parsed: unsigned content is not read.
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
        values: dict[str, Any] = parse_json(envelope.payload)
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
    """Return the job of a statement."""
    return str(_definition(statement)["externalParameters"]["job"])


def _definition(statement: Mapping[str, Any]) -> Any:
    return statement["predicate"]["buildDefinition"]


def _inputs(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    dependencies = _definition(statement).get("resolvedDependencies", [])
    return [
        descriptor
        for descriptor in dependencies
        if descriptor.get("annotations", {}).get("kind") == INPUT
    ]


def _raw(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the raw files, if this is the statement of the job that records them."""
    is_raw = _definition(statement)["externalParameters"].get("rule") == DATA
    return _inputs(statement) if is_raw else []


def _unattested(
    statement: Mapping[str, Any], attested: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    return [
        pair for descriptor in _inputs(statement) if (pair := _pair(descriptor)) not in attested
    ]


def _pair(descriptor: Mapping[str, Any]) -> tuple[str, str]:
    return descriptor["name"], descriptor["digest"]["sha256"]
