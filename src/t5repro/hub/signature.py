"""Signs a published folder after the OpenSSF model signing specification, and verifies it.

The signature is a Sigstore bundle with an in-toto statement, which lists the SHA-256 of every file
of the folder but its own. The key is a local one, on a curve that Sigstore's bundles know: the
Ed25519 keys of `lineage.keys` are on none. Nothing is sent anywhere, and no key is recorded.

Source: model-signing 1.1.1, predicate ``https://model_signing/signature/v1.0``.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, SettingsError, packages_of
from t5repro.files import read_file, real_path, sha256_of
from t5repro.strict_json import parse_json

KEY_VARIABLE = "T5REPRO_MODEL_KEY"
SIGNATURE = "model.sig"
CURVES = ("secp256r1", "secp384r1", "secp521r1")
OF_THE_HUB = ".gitattributes"  # which the Hub adds to every folder that it stores
_MISMATCH = "Signature mismatch"  # of the library, which has checked the signature by then
_KIND = "a key on the curve P-256, P-384 or P-521, in PEM"
_CURE = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE makes one"


def configured_key(root: Path) -> Path:
    """Return the private key that `T5REPRO_MODEL_KEY` names, after it was read once.

    Args:
        root: the checkout, in which no private key may be.

    Raises:
        SettingsError: the variable is not set, the file is inside the checkout, is no private key
            of a curve of `CURVES`, or has a password.
        PackageError: the extra `signing` is not installed.
    """
    if not (name := os.environ.get(KEY_VARIABLE)):
        raise SettingsError(f"--sign needs {KEY_VARIABLE}, the path of {_KIND}; {_CURE}")
    path = Path(name).expanduser()
    if real_path(path).is_relative_to(real_path(root)):
        raise SettingsError(
            f"{KEY_VARIABLE} {path} is inside the checkout, where git or DVC could publish it; "
            "keep the private key elsewhere, such as ~/.config/t5repro/model.pem"
        )
    with packages_of("signing", target="signing"):
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from model_signing import signing

    _check_curve(path, load_pem_private_key, KEY_VARIABLE, "private", None)
    signing.Config().use_elliptic_key_signer(private_key=path)  # reads it as `sign` will
    return path


def sign(folder: Path, key: Path) -> None:
    """Write the signature of all other files of a folder into it.

    Args:
        folder: the folder; its name is in the signature.
        key: result of `configured_key`.
    """
    with packages_of("signing", target="signing"):
        from model_signing import hashing, signing

    files = hashing.Config().set_ignored_paths(paths=[SIGNATURE], ignore_git_paths=False)
    config = signing.Config().set_hashing_config(files)
    config.use_elliptic_key_signer(private_key=key).sign(folder, folder / SIGNATURE)


def verify(folder: Path, public_key: Path) -> list[str]:
    """Return the names of the signed files, all of which are as they were signed.

    Args:
        folder: the folder, such as a download from the Hub.
        public_key: of the signer, from a source that is trusted.

    Raises:
        ArtifactError: there is no signature of this key; a file was altered, is missing, or is not
            signed.
        PackageError: the extra `signing` is not installed.
        SettingsError: the key is not one of `CURVES`.
    """
    signature = folder / SIGNATURE
    with packages_of("signing", target="signing"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
        from model_signing import verifying

    _check_curve(public_key, load_pem_public_key, "--public-key", "public")
    signed = _signed_files(signature)
    try:
        verifying.Config().use_elliptic_key_verifier(public_key=public_key).verify(
            folder, signature
        )
    except InvalidSignature as error:
        raise ArtifactError(f"{signature}: not a signature by {public_key}") from error
    except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        text = "; ".join(_differences(folder, signed)) if _MISMATCH in str(error) else str(error)
        raise ArtifactError(f"{folder}: not as {signature.name} says: {text}") from error
    # What the signature leaves out is not vouched for, though its signer may have meant to.
    if differences := _differences(folder, signed):
        raise ArtifactError(f"{folder}: not as {signature.name} says: {'; '.join(differences)}")
    return sorted(signed)


def _signed_files(signature: Path) -> dict[str, str]:
    """Return name -> SHA-256 of the files that a signature lists, before it was verified.

    Raises:
        ArtifactError: it cannot be read, or has hashes of another kind.
    """
    try:
        envelope = parse_json(read_file(signature))["dsseEnvelope"]
        statement = parse_json(base64.b64decode(envelope["payload"], validate=True))
        predicate = statement["predicate"]
        if (kind := predicate["serialization"]["hash_type"]) != "sha256":
            raise ValueError(f"hashes are {kind}, and t5repro compares sha256")
        return {str(entry["name"]): str(entry["digest"]) for entry in predicate["resources"]}
    except FileNotFoundError as error:
        raise ArtifactError(
            f"{signature.parent}: has no {SIGNATURE}; t5repro weights publish --sign writes it"
        ) from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ArtifactError(f"{signature}: not a signature of a model ({error})") from error


def _differences(folder: Path, signed: Mapping[str, str]) -> list[str]:
    """Return a line for each file that is altered, missing or not signed."""
    present = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    lines = [f"{name} is missing" for name in sorted(signed.keys() - present.keys())]
    lines += [
        f"{name} was altered"
        for name in sorted(signed.keys() & present.keys())
        if sha256_of(present[name]) != signed[name]
    ]
    unsigned = present.keys() - signed.keys() - {SIGNATURE, OF_THE_HUB}
    return lines + [f"{name} is not signed" for name in sorted(unsigned)]


def _check_curve(path: Path, load: Any, option: str, half: str, *password: None) -> None:
    # The content of the file is not printed: it may be the private key.
    message = f"{option} {path}: not {_KIND} without a password (the {half} half); {_CURE}"
    try:
        key = load(read_file(path), *password)
    except OSError as error:
        raise SettingsError(f"{option} {path}: {error.strerror}; {_CURE}") from error
    except Exception as error:  # cryptography has many, of which some quote the file
        raise SettingsError(message) from error
    if getattr(getattr(key, "curve", None), "name", "") not in CURVES:
        raise SettingsError(message)
