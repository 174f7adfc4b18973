"""Signatures over what `seal` wrote: the index of a run's records, `dvc.lock` and `data.dvc`.

``records/<run>.intoto.jsonl`` has one in-toto statement per signer, each in a DSSE envelope. Its
subjects are the SHA-256 of these files, and so of every record and artifact. A key is named by its
path, outside of the checkout, and never recorded; `signers` says which signatures count.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, LineageError
from t5repro.files import read_file, write_text
from t5repro.lineage.dvc_lock import LOCK_FILE, RAW_DATA_FILE, read_lock
from t5repro.lineage.envelopes import STATEMENT_TYPE, open_signed, signed_envelope, signing_time
from t5repro.lineage.findings import SIGNATURE, UNSIGNED, Finding, differing
from t5repro.lineage.git import try_git
from t5repro.lineage.record_index import ENDING as INDEX_ENDING
from t5repro.lineage.record_index import index_path, parse_index
from t5repro.lineage.store import RECORDS
from t5repro.strict_json import parse_json

ENDING = ".intoto.jsonl"
PREDICATE_TYPE = "urn:t5repro:seal:1"
KEY_VARIABLE = "T5REPRO_SIGNING_KEY"
Reader = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Attestation:
    """A valid signature over the present state.

    Attributes:
        run: the run.
        signer: name of the owner of the key.
        fingerprint: of the key.
        at: when it was made, as the signer said.
        files: the signed files.
    """

    run: str
    signer: str
    fingerprint: str
    at: str
    files: tuple[str, ...]

    @property
    def text(self) -> str:
        """The attestation as a line of text."""
        return (
            f"{self.signer} ({self.fingerprint}) signed {', '.join(self.files)} of run {self.run} "
            f"at {self.at}"
        )


def signature_path(run: str) -> str:
    """Return the path of the signatures of a run."""
    return f"{RECORDS}/{run}{ENDING}"


def configured_key(root: Path) -> Path | None:
    """Return the path of the private key that the user configured; None without one.

    That is the environment variable `KEY_VARIABLE`, else git's ``user.signingkey`` if git signs
    with SSH.
    """
    if os.environ.get(KEY_VARIABLE):
        return Path(os.environ[KEY_VARIABLE]).expanduser()
    if _git_setting(root, "gpg.format", "--get") == "ssh" and (
        name := _git_setting(root, "user.signingkey")
    ):
        # git accepts either half of the key there; signing needs the private one.
        return Path(name.removesuffix(".pub"))
    return None


def _git_setting(root: Path, name: str, how: str = "--type=path") -> str:
    return (try_git(root, "config", how, name) or b"").decode().strip()


def sign(root: Path, run: str, key: Path) -> Attestation:
    """Sign the index of a run and the lock; former signatures of the same key are replaced.

    Raises:
        LineageError: the run is not sealed, or the key cannot be used.
    """
    # Not at the top: the library of signatures is an extra, and sealing works without it.
    from t5repro.lineage.keys import read_named_signer

    try:
        subjects = _subjects(_reader(root), run)
    except OSError as error:
        raise LineageError(f"{error.filename} cannot be signed: {error.strerror}") from error
    # The lock and the raw data exist without a seal; only the index says what this run sealed.
    if index_path(run) not in subjects:
        raise LineageError(f"run {run} is not sealed: no {index_path(run)}; run t5repro seal")
    # A signature says that its owner vouches for them, so they must be what they are called.
    try:
        parse_index(_reader(root)(index_path(run)) or b"", index_path(run))
        read_lock(root)
    except ArtifactError as error:
        raise LineageError(f"{index_path(run)}, which would be signed: {error}") from error
    signer = read_named_signer(key, root)
    signed_at = datetime.now(UTC).isoformat(timespec="seconds")
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": sha256}} for name, sha256 in subjects.items()
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"run": run, "signedAt": signed_at},
    }
    envelope = signed_envelope(json.dumps(statement, sort_keys=True).encode(), signer)
    fingerprint = signer.public_key.keyid
    # Other signers keep their lines, unless these are over a former state.
    other_lines = [line for line in _current_lines(root, run) if fingerprint not in _key_ids(line)]
    write_text(root / signature_path(run), "\n".join(sorted([*other_lines, envelope])) + "\n")
    return Attestation(run, "this key", fingerprint, signed_at, tuple(subjects))


def drop_outdated(root: Path, run: str) -> bool:
    """Remove signatures over a former state, which git keeps; return whether there were any."""
    path = root / signature_path(run)
    if not path.is_file():
        return False
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    current = _current_lines(root, run)
    # Writing the same text would change the time of a file that git tracks.
    if len(current) == len(lines):
        return False
    if current:
        write_text(path, "\n".join(current) + "\n")
    else:
        path.unlink()
    return True


def _current_lines(root: Path, run: str) -> list[str]:
    """Return the lines with statements over the present state."""
    path = root / signature_path(run)
    if not path.is_file():
        return []
    subjects = _subjects(_reader(root), run)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    # An unreadable line has no subjects, so it counts as outdated.
    return [line for line in lines if _signed_subjects(line) == subjects]


def _signed_subjects(line: str) -> dict[str, str]:
    try:
        return _subjects_of(_payload(line))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _key_ids(line: str) -> set[str]:
    try:
        return {str(signature["keyid"]) for signature in parse_json(line.encode())["signatures"]}
    except (ValueError, KeyError, TypeError):
        return set()


def _payload(line: str) -> Mapping[str, Any]:
    values = parse_json(base64.b64decode(parse_json(line.encode())["payload"]))
    if not isinstance(values, dict):
        # The caller takes any damage for a statement over nothing.
        raise TypeError("not a statement")
    return values


def _subjects_of(statement: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(subject["name"]): str(subject["digest"]["sha256"]) for subject in statement["subject"]
    }


def _reader(root: Path) -> Reader:
    return lambda name: read_file(root / name) if (root / name).exists() else None


def _subjects(read: Reader, run: str) -> dict[str, str]:
    """Return path -> SHA-256 of the files that a signature covers."""
    names = (RAW_DATA_FILE, LOCK_FILE, index_path(run))
    contents = ((name, read(name)) for name in names)
    return {
        name: hashlib.sha256(data).hexdigest()
        for name, data in sorted(contents)
        # A raw-data file or a lock may not exist yet; `_other_set` names it if it was signed.
        if data is not None
    }


def check_signatures(
    root: Path, runs: list[str], read: Reader | None = None, revision: str = "HEAD"
) -> tuple[list[Finding], list[Attestation]]:
    """Check the signatures of runs; a run without one is a warning.

    Args:
        root: the checkout.
        runs: sealed runs.
        read: returns a file of the state; by default of the working tree.
        revision: the list of signers at this revision counts.
    """
    read = read or _reader(root)
    findings: list[Finding] = []
    attestations: list[Attestation] = []
    for run in runs:
        path = signature_path(run)
        try:
            data = read(path)
            subjects = _subjects(read, run)
        except OSError as error:
            findings.append(Finding(SIGNATURE, path, "", f"cannot be read: {error.strerror}"))
            continue
        if data is None:
            message = "no signature: git and hashes alone attest the results; see t5repro sign"
            # A warning, not a fault: signing is optional.
            findings.append(Finding(UNSIGNED, index_path(run), "", message))
            continue
        for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
            try:
                attestations.append(_verified(root, run, line, subjects, revision))
            except LineageError as error:
                findings.append(Finding(SIGNATURE, path, "", f"line {number}: {error}"))
            except ModuleNotFoundError as error:
                message = f"cannot be checked without {error.name}: pip install 't5repro[export]'"
                findings.append(Finding(SIGNATURE, path, "", message))
        # An emptied file would otherwise pass: it has no line that could be wrong.
        if not data.strip():
            findings.append(Finding(SIGNATURE, path, "", "empty; delete it, or run t5repro sign"))
    return findings, attestations


def _verified(
    root: Path, run: str, line: str, subjects: Mapping[str, str], revision: str
) -> Attestation:
    """Return who signed the present state with an envelope.

    Raises:
        LineageError: the envelope does not attest it; says why.
    """
    statement = open_signed(root, line, revision)
    try:
        # Only after the signature is valid is the content worth an explanation.
        signed, predicate = _subjects_of(statement.values), statement.values["predicate"]
        signed_run = predicate["run"]
        signed_at = signing_time(statement, predicate["signedAt"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LineageError(f"signed by {statement.name}, but not a seal ({error})") from error
    # The same key may sign exports: those statements attest other things than a seal.
    if statement.kind != PREDICATE_TYPE:
        raise LineageError(f"signed by {statement.name}, but not a seal: {statement.kind}")
    for fault in _other_set(run, signed_run, signed, subjects):
        raise LineageError(f"the signature of {statement.name} is over another set: {fault}")
    return Attestation(run, statement.name, statement.fingerprint, signed_at, tuple(subjects))


def _other_set(
    run: str, signed_run: Any, signed: Mapping[str, str], subjects: Mapping[str, str]
) -> Iterator[str]:
    if signed_run != run:
        yield f"of run {signed_run}"
    # Both directions: a file that was added after signing is as wrong as a removed one.
    for name in sorted(signed.keys() | subjects.keys()):
        if name not in signed:
            yield f"{name} was not signed; run t5repro sign"
        elif name not in subjects:
            yield f"{name} was signed and is absent; restore it with git checkout"
        elif signed[name] != subjects[name]:
            digits, signed_digits = differing(subjects[name], signed[name])
            yield (
                f"{name} is {digits}, signed was {signed_digits}; restore it with git checkout, "
                "or sign again"
            )


def sealed_runs(names: Iterator[str]) -> list[str]:
    """Return the runs with an index or with signatures, from the names of files of `records`."""
    runs = set()
    for name in names:
        for ending in (INDEX_ENDING, ENDING):
            run = name.removeprefix(f"{RECORDS}/").removesuffix(ending)
            if name.endswith(ending) and "/" not in run:
                runs.add(run)
    return sorted(runs)
