"""Local keys that sign statements: Ed25519, as files in PEM or in the format of OpenSSH.

The private key is written once, readable only by its owner, and never inside the checkout, where
git could add it. Ed25519 signatures are a function of key and text, so equal statements have equal
signatures.
"""

import base64
import hashlib
import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from securesystemslib.signer import CryptoSigner, SSlibKey

from t5repro.errors import LineageError, storage_error
from t5repro.files import read_file, real_path

PUBLIC_ENDING = ".pub"
OPENSSH_HEAD = b"-----BEGIN OPENSSH PRIVATE KEY-----"
OWNER_ONLY = 0o600
READABLE = 0o644


def new_key(path: Path, root: Path) -> Path:
    """Write a new key and, in the same folder, its public key; return the path of the latter.

    Raises:
        LineageError: a key exists already, or the path is inside the checkout.
        StorageError: the files cannot be written.
    """
    public = path.with_name(path.name + PUBLIC_ENDING)
    for file in (path, public):
        if file.exists():
            raise LineageError(
                f"{file} exists, and its statements need it; name another file for the new key"
            )
    if real_path(path).is_relative_to(real_path(root)):
        raise LineageError(
            f"{path} is inside the checkout, where git or DVC could publish it; "
            "keep the private key elsewhere, such as ~/.config/t5repro/key.pem"
        )
    signer = CryptoSigner(Ed25519PrivateKey.generate())
    _write_new(path, signer.private_bytes, OWNER_ONLY)
    _write_new(public, _public_pem(path), READABLE)
    return public


def _public_pem(path: Path) -> bytes:
    key = _private(path)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that must not exist; its mode is set at creation, so it is never readable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except OSError as error:
        raise storage_error(path, error) from error


def read_signer(path: Path) -> CryptoSigner:
    """Return the signer of a private key.

    Raises:
        LineageError: the file is missing, or is not an unencrypted Ed25519 private key.
    """
    return CryptoSigner(_private(path))


def read_named_signer(path: Path, root: Path) -> CryptoSigner:
    """Return the signer of a private key whose signatures name it by OpenSSH's fingerprint.

    Raises:
        LineageError: as `read_signer`, or the key is inside the checkout.
    """
    if real_path(path).is_relative_to(real_path(root)):
        raise LineageError(
            f"{path} is inside the checkout, where git or DVC could publish it; keep the private "
            "key elsewhere, such as ~/.config/t5repro/key.pem"
        )
    key = _private(path)
    return CryptoSigner(key, named_key(key.public_key()))


def named_key(key: Ed25519PublicKey) -> SSlibKey:
    """Return a public key that signatures name by OpenSSH's fingerprint."""
    plain = SSlibKey.from_crypto(key)
    return SSlibKey(fingerprint(key), plain.keytype, plain.scheme, plain.keyval)


def ssh_text(key: Ed25519PublicKey) -> str:
    """Return a public key as OpenSSH writes it: type and base64."""
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def public_key_of(path: Path) -> Ed25519PublicKey:
    """Return the public key of a private key; raises as `read_signer`."""
    return _private(path).public_key()


def read_ssh_text(text: str) -> Ed25519PublicKey | None:
    """Return the key in a text of OpenSSH; None for any other than an Ed25519 public key."""
    try:
        key = load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the fingerprint that ``ssh-keygen -l`` prints, such as ``SHA256:…``."""
    digest = hashlib.sha256(base64.b64decode(ssh_text(key).split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _private(path: Path) -> Ed25519PrivateKey:
    data = _read(path)
    load = load_ssh_private_key if data.startswith(OPENSSH_HEAD) else load_pem_private_key
    try:
        key = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise LineageError(_no_key(path, "private", "--key")) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise LineageError(_no_key(path, "private", "--key"))
    return key


def read_public(path: Path) -> SSlibKey:
    """Return a public key.

    Raises:
        LineageError: the file is missing, or is not an Ed25519 public key in PEM.
    """
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise LineageError(_no_key(path, "public", "--public-key")) from error
    if not isinstance(key, Ed25519PublicKey):
        raise LineageError(_no_key(path, "public", "--public-key"))
    return SSlibKey.from_crypto(key)


def _no_key(path: Path, half: str, option: str) -> str:
    # The content of the file is not printed: it may be the private key.
    return (
        f"{option} {path}: not a {half} Ed25519 key in PEM without a password; "
        "t5repro export --new-key makes one"
    )


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise LineageError(
            f"{path}: {error.strerror}; t5repro export --new-key makes a key"
        ) from error
