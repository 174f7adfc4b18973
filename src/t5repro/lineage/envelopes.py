"""Signed in-toto statements in DSSE envelopes, and whose signatures count.

A key is named by its fingerprint; the committed list of signers has the key, never the envelope.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.errors import LineageError
from t5repro.files import read_file
from t5repro.lineage.git import file_at, try_git
from t5repro.strict_json import parse_json

if TYPE_CHECKING:
    from t5repro.lineage.signers import Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
SIGNERS_FILE = "configs/allowed_signers"


@dataclass(frozen=True)
class SignedStatement:
    """A statement signed by a listed signer.

    Attributes:
        values: the statement.
        kind: its predicate type; empty if the payload is not an in-toto statement.
        signer: the signer.
        fingerprint: of the key.
    """

    values: Mapping[str, Any]
    kind: str
    signer: "Signer"
    fingerprint: str

    @property
    def name(self) -> str:
        """The name of the signer."""
        return self.signer.name


def signed_envelope(payload: bytes, signer: Any) -> str:
    """Return a DSSE envelope over a payload as a line of JSON; without a signer it is unsigned."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    if signer is not None:
        envelope.sign(signer)
    return json.dumps(envelope.to_dict(), sort_keys=True)


def open_signed(root: Path, line: str, revision: str) -> SignedStatement:
    """Return the statement in an envelope that a signer of a revision has signed.

    Args:
        root: the checkout.
        line: the envelope.
        revision: the list of signers at this revision counts.

    Raises:
        LineageError: there is no valid signature of a listed signer; says why.
    """
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import Error, VerificationError

    from t5repro.lineage.keys import named_key
    from t5repro.lineage.signers import parse_signers

    try:
        envelope = Envelope.from_dict(parse_json(line.encode()))
        (fingerprint,) = envelope.signatures
    except (Error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LineageError(f"not a signed envelope ({type(error).__name__}: {error})") from error
    # The committed list decides: whoever edits results could edit the list of the checkout, too.
    committed = _signers_text(root, revision)
    signer = parse_signers(committed).get(fingerprint)
    if signer is None:
        raise LineageError(_unknown_signer(root, fingerprint, revision))
    try:
        # The key comes from the list of signers, never from the envelope.
        envelope.verify([named_key(signer.key)], 1)
    except VerificationError as error:
        raise LineageError(
            f"not signed by the key of {signer.name}, or altered since; run t5repro sign"
        ) from error
    try:
        values = dict(parse_json(envelope.payload))
    except (ValueError, TypeError):
        values = {}  # the same key may sign anything
    is_statement = envelope.payload_type == PAYLOAD_TYPE
    kind = str(values.get("predicateType")) if is_statement else envelope.payload_type
    return SignedStatement(values, kind, signer, fingerprint)


def signing_time(statement: SignedStatement, text: Any) -> str:
    """Return the time of a signature, as the signer says, after checking that its key was valid.

    Raises:
        LineageError: the key was not valid then, or the time has no zone.
        ValueError: the text is not a time.
    """
    signed_at = str(text)
    time = datetime.fromisoformat(signed_at)
    # Without a zone the time cannot be compared with the validity of the key.
    if time.tzinfo is None:
        raise LineageError(f"signed by {statement.name} at {signed_at!r}, which has no time zone")
    if fault := statement.signer.fault_at(time):
        raise LineageError(f"{fault}; the signature is of {signed_at}")
    return signed_at


def _signers_text(root: Path, revision: str) -> str:
    """Return the committed list of signers; without git the list of the checkout."""
    if try_git(root, "rev-parse", "--verify", "--quiet", revision) is None:
        return _present(root)
    return (file_at(root, revision, SIGNERS_FILE) or b"").decode(errors="replace")


def _unknown_signer(root: Path, fingerprint: str, revision: str) -> str:
    """Return an error message about a key that the committed list does not have."""
    from t5repro.lineage.signers import parse_signers

    text = f"unknown signer {fingerprint}: the committed {SIGNERS_FILE} does not have the key"
    commits = try_git(root, "log", "--format=%H", revision, "--", SIGNERS_FILE) or b""
    for commit in commits.decode().split():
        try:
            # Newest commit first, so the first list with the key is the last one that had it.
            signer = parse_signers(_signers_text(root, commit)).get(fingerprint)
        except LineageError:
            continue
        if signer is not None:
            return f"{text}; that of {signer.name} was removed after commit {commit[:12]}"
    try:
        present = parse_signers(_present(root))
    except LineageError:
        present = {}
    return f"{text}; commit the file" if fingerprint in present else text


def _present(root: Path) -> str:
    path = root / SIGNERS_FILE
    return read_file(path).decode(errors="replace") if path.exists() else ""
