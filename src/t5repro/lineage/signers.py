"""Signers that count: ``configs/allowed_signers``, in OpenSSH's format.

Each line has names, options and a public key, as ``man ssh-keygen`` describes under ALLOWED
SIGNERS; git reads the same file for signed commits (``gpg.ssh.allowedSignersFile``). The committed
file counts, so a new signer is visible in the history.
"""

import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from t5repro.errors import LineageError
from t5repro.files import read_file, write_text
from t5repro.lineage.envelopes import SIGNERS_FILE
from t5repro.lineage.keys import fingerprint, public_key_of, read_ssh_text, ssh_text

NAMESPACE = "t5repro"
OPTIONS = {"namespaces", "valid-after", "valid-before"}
TIME = re.compile(r"(\d{8})(\d{4})?(\d{2})?Z?")


@dataclass(frozen=True)
class Signer:
    """One line of the file.

    Attributes:
        name: name of the owner of the key.
        key: the public key.
        valid_after: when the key became valid; None if always.
        valid_before: when it expired; None if never.
    """

    name: str
    key: Ed25519PublicKey
    valid_after: datetime | None = None
    valid_before: datetime | None = None

    def fault_at(self, time: datetime) -> str:
        """Return why the key was not valid at a time; empty if it was."""
        if self.valid_before is not None and time >= self.valid_before:
            return f"the key of {self.name} expired at {self.valid_before:%Y-%m-%d %H:%M} UTC"
        if self.valid_after is not None and time < self.valid_after:
            return f"the key of {self.name} is valid from {self.valid_after:%Y-%m-%d %H:%M} UTC on"
        return ""


def parse_signers(text: str) -> dict[str, Signer]:
    """Return fingerprint -> signer.

    Raises:
        LineageError: a line is not an Ed25519 key with its names, or has an unknown option.
    """
    signers = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            signer = _parse_line(line)
        except ValueError as error:
            raise LineageError(
                f"{SIGNERS_FILE} line {number}: {error}; expected NAME ssh-ed25519 KEY, with "
                f"options among {', '.join(sorted(OPTIONS))}"
            ) from error
        if signer is not None:
            signers[fingerprint(signer.key)] = signer
    return signers


def allow_key(path: Path, name: str, signers: Path) -> bool:
    """Add the public key of a private key to a list of signers; return whether it was new.

    Raises:
        LineageError: the name is not one word, or key or list cannot be read.
    """
    if not name or set(name) & set(" \t\n\"#,'\\"):
        raise LineageError(f"--allow {name!r}: expected one word, such as a mail address")
    line = f"{name} {ssh_text(public_key_of(path))}"
    text = _read(signers)
    parse_signers(text)  # a list that nobody can read would be committed with the key
    if line in text.splitlines():
        return False
    write_text(signers, text + ("" if not text or text.endswith("\n") else "\n") + line + "\n")
    return True


def _read(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise LineageError(
            f"{path} is not a list of signers ({error}); restore it with git checkout"
        ) from error


def _parse_line(line: str) -> Signer | None:
    """Return the signer of a line; None if its key is for another purpose."""
    name, *words = shlex.split(line)
    options = ""
    if words and not words[0].startswith(("ssh-", "sk-", "ecdsa-")):
        # Quotes of options were removed together with the blanks inside them.
        options = words.pop(0)
    if len(words) < 2:
        raise ValueError("no key")
    key = read_ssh_text(f"{words[0]} {words[1]}")
    if key is None:
        raise ValueError(f"not an Ed25519 key ({words[0]})")
    if "cert-authority" in options:
        raise ValueError("certificates are not read")
    times: dict[str, datetime] = {}
    for option in re.findall(r"[a-z-]+(?:=[^,]*(?:,(?![a-z-]+=)[^,]*)*)?", options):
        label, _, value = option.partition("=")
        if label not in OPTIONS:
            raise ValueError(f"unknown option {label!r}")
        if label == "namespaces":
            if NAMESPACE not in value.split(","):
                return None
        else:
            times[label] = _time(value)
    return Signer(name, key, times.get("valid-after"), times.get("valid-before"))


def _time(text: str) -> datetime:
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"time {text!r}; expected YYYYMMDD or YYYYMMDDHHMM[SS], in UTC")
    digits = match[1] + (match[2] or "0000") + (match[3] or "00")
    return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
