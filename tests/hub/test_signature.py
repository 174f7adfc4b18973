"""A signature covers every file of a published folder, and is refused where anything differs."""

import base64
import json
import shutil
import sys
from pathlib import Path

import pytest

from t5repro.errors import ArtifactError, PackageError, SettingsError
from t5repro.hub.signature import KEY_VARIABLE, SIGNATURE, configured_key, sign, verify

pytest.importorskip("model_signing", reason="no extra signing here: make signing")
# After the skip: the library brings them.
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

FILES = ["README.md", "config.json", "model.safetensors"]
CURVES = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}


def write_key(folder: Path, key, password: bytes = b"") -> tuple[Path, Path]:
    """Write a key and its public half; return both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    private, public = folder / "model.pem", folder / "model.pub"
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    spki = PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, spki))
    return private, public


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like a published one."""
    path = tmp_path / "exports" / "demo"
    path.mkdir(parents=True)
    for name in FILES:
        (path / name).write_text(f"bytes of {name}")
    return path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return write_key(tmp_path / "keys", ec.generate_private_key(CURVES["P-256"]))


@pytest.mark.parametrize("curve", CURVES)
def test_a_key_of_each_curve_signs_all_files_but_the_signature(folder, tmp_path, curve) -> None:
    private, public = write_key(tmp_path / "keys", ec.generate_private_key(CURVES[curve]))
    sign(folder, private)
    assert verify(folder, public) == FILES
    bundle = json.loads((folder / SIGNATURE).read_text())
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    assert statement["predicateType"] == "https://model_signing/signature/v1.0"
    assert [subject["name"] for subject in statement["subject"]] == ["demo"]
    # Neither the key nor where it is.
    assert str(private.parent) not in (folder / SIGNATURE).read_text() + json.dumps(statement)
    # The Hub adds a file of its own; a copy of the folder has another name.
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs")
    copy = Path(shutil.copytree(folder, tmp_path / "download"))
    assert verify(copy, public) == FILES


def altered(folder: Path) -> None:
    (folder / "model.safetensors").write_text("other bytes")


def missing(folder: Path) -> None:
    (folder / "config.json").unlink()


def added(folder: Path) -> None:
    (folder / "modeling.py").write_text("print('run')")


def added_for_git(folder: Path) -> None:
    (folder / ".gitignore").write_text("x")


def added_below(folder: Path) -> None:
    (folder / ".git/hooks").mkdir(parents=True)
    (folder / ".git/hooks/post-checkout").write_text("x")


def linked(folder: Path) -> None:
    (folder / "config.json").rename(folder.parent / "config.json")
    (folder / "config.json").symlink_to("../config.json")


def payload_changed(folder: Path) -> None:
    change_statement(folder, lambda text: text.replace("config.json", "konfig.json"))


def change_statement(folder: Path, change) -> None:
    path = folder / SIGNATURE
    bundle = json.loads(path.read_text())
    envelope = bundle["dsseEnvelope"]
    text = change(base64.b64decode(envelope["payload"]).decode())
    envelope["payload"] = base64.b64encode(text.encode()).decode()
    path.write_text(json.dumps(bundle))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (altered, r"not as model\.sig says: model\.safetensors was altered$"),
        (missing, r"says: config\.json is missing$"),
        (added, r"says: modeling\.py is not signed$"),
        (added_for_git, r"says: \.gitignore is not signed$"),
        (added_below, r"says: \.git/hooks/post-checkout is not signed$"),
        (linked, "config.json"),
        (payload_changed, "not a signature by"),
    ],
)
def test_whatever_differs_from_the_signature_is_refused(folder, keys, change, message) -> None:
    private, public = keys
    sign(folder, private)
    change(folder)
    with pytest.raises(ArtifactError, match=message):
        verify(folder, public)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"dsseEnvelope": 1}',
        b'{"dsseEnvelope": {"payload": "%%"}}',
        b'{"dsseEnvelope": {"payload": "e30="}}',
        b'{"a": 1, "a": 2}',
        b"[" * 9000,
        b"\xff",
    ],
    ids=["empty", "object", "list", "number", "base64", "statement", "twice", "deep", "bytes"],
)
def test_what_is_no_signature_is_refused(folder, keys, data) -> None:
    (folder / SIGNATURE).write_bytes(data)
    with pytest.raises(ArtifactError, match="not a signature of a model"):
        verify(folder, keys[1])


def test_a_signature_without_its_parts_is_refused(folder, keys) -> None:
    private, public = keys
    sign(folder, private)
    whole = json.loads((folder / SIGNATURE).read_text())
    for part in ("verificationMaterial", "mediaType"):
        (folder / SIGNATURE).write_text(json.dumps({k: v for k, v in whole.items() if k != part}))
        with pytest.raises(ArtifactError):
            verify(folder, public)
    envelope = {**whole["dsseEnvelope"], "signatures": []}
    (folder / SIGNATURE).write_text(json.dumps({**whole, "dsseEnvelope": envelope}))
    with pytest.raises(ArtifactError):
        verify(folder, public)
    (folder / SIGNATURE).unlink()
    with pytest.raises(ArtifactError, match="has no model.sig"):
        verify(folder, public)


def test_a_file_that_the_signature_leaves_out_is_not_vouched_for(folder, keys) -> None:
    from model_signing import hashing, signing

    private, public = keys
    ignoring = hashing.Config().set_ignored_paths(paths=["model.safetensors", SIGNATURE])
    config = signing.Config().set_hashing_config(ignoring)
    config.use_elliptic_key_signer(private_key=private).sign(folder, folder / SIGNATURE)
    with pytest.raises(ArtifactError, match=r"says: model\.safetensors is not signed$"):
        verify(folder, public)


def test_the_signature_of_another_key_is_refused(folder, keys, tmp_path) -> None:
    sign(folder, keys[0])
    _, other = write_key(tmp_path / "other", ec.generate_private_key(CURVES["P-256"]))
    with pytest.raises(ArtifactError, match="Key mismatch"):
        verify(folder, other)


WRONG_KEYS = {
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA": rsa.generate_private_key(65537, 2048),
    "P-224": ec.generate_private_key(ec.SECP224R1()),
    "secp256k1": ec.generate_private_key(ec.SECP256K1()),
}


@pytest.mark.parametrize("kind", WRONG_KEYS)
def test_a_key_of_another_type_is_refused_before_the_work(
    folder, tmp_path, monkeypatch, kind
) -> None:
    private, public = write_key(tmp_path / "keys", WRONG_KEYS[kind])
    monkeypatch.setenv(KEY_VARIABLE, str(private))
    expected = "not a key on the curve P-256, P-384 or P-521, in PEM without a password"
    with pytest.raises(SettingsError, match=expected) as refused:
        configured_key(tmp_path / "checkout")
    secret = private.read_text().splitlines()[1]
    assert secret not in str(refused.value)
    sign(folder, write_key(tmp_path / "good", ec.generate_private_key(CURVES["P-256"]))[0])
    with pytest.raises(SettingsError, match=expected):
        verify(folder, public)


def test_an_unusable_key_is_named_with_its_cure(tmp_path, monkeypatch) -> None:
    root = tmp_path / "checkout"
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(SettingsError, match=f"--sign needs {KEY_VARIABLE}.*openssl genpkey"):
        configured_key(root)
    key = ec.generate_private_key(CURVES["P-256"])
    locked, public = write_key(tmp_path / "locked", key, b"word")
    inside, _ = write_key(root, key)
    text = tmp_path / "text.pem"
    text.write_text("no key")
    for path, message in (
        (locked, "without a password"),
        (public, "the private half"),
        (text, "not a key on the curve"),
        (tmp_path / "absent.pem", "No such file or directory"),
        (tmp_path, "it is a folder"),
        (inside, "inside the checkout"),
    ):
        monkeypatch.setenv(KEY_VARIABLE, str(path))
        with pytest.raises(SettingsError, match=message):
            configured_key(root)


def test_without_the_extra_the_error_says_what_to_install(folder, keys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "model_signing", None)
    monkeypatch.setenv(KEY_VARIABLE, str(keys[0]))
    message = r"pip install 't5repro\[signing\]', or make signing in a checkout"
    with pytest.raises(PackageError, match=message):
        configured_key(folder)
    with pytest.raises(PackageError, match=message):
        verify(folder, keys[1])
