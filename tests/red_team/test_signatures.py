"""A signature says who attests a state; wrong, unknown, expired and removed keys are named."""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_graphs import WEIGHTS, write
from made_records import commit, write_index

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.files import write_json
from t5repro.lineage.findings import Verdict
from t5repro.lineage.keys import fingerprint, new_key, public_key_of, ssh_text
from t5repro.lineage.signatures import KEY_VARIABLE, configured_key, drop_outdated, sign
from t5repro.lineage.signers import parse_signers
from t5repro.lineage.verify import verify_tree
from t5repro.versions.seal_records import sign_records

SIGNERS = "configs/allowed_signers"
SIGNATURES = "records/r.intoto.jsonl"
RECORD = "records/r/finetune/a.json"
NAME = "alice@example.org"


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for level in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(level, str(tmp_path / "no_configuration"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    new_key(tmp_path / "keys/alice", tmp_path / "checkout")
    return tmp_path / "keys/alice"


@pytest.fixture
def signed(sealed: Path, key: Path) -> Path:
    """A sealed run, signed by a committed signer."""
    write(sealed, SIGNERS, f"{NAME} {ssh_text(public_key_of(key))}\n")
    sign(sealed, "r", key)
    commit(sealed, "signed")
    return sealed


def fault(run: Path) -> str:
    """Return the message of the only finding, which is about the signatures."""
    verdict = verify_tree(run)
    (finding,) = verdict.findings
    assert (finding.kind, finding.path) == ("bad signature", SIGNATURES)
    assert verdict.attested == ()
    return finding.message


def is_unsigned(verdict: Verdict) -> bool:
    return "not signed" in {warning.kind for warning in verdict.warnings}


def test_a_valid_signature_says_who_attests_what(signed: Path, key: Path) -> None:
    verdict = verify_tree(signed)
    assert (verdict.findings, verdict.warnings) == ((), ())
    (text,) = verdict.attested
    assert text.startswith(
        f"{NAME} ({fingerprint(public_key_of(key))}) signed data.dvc, dvc.lock, "
    )
    assert f"attested: {text}" in verdict.to_text()
    assert verdict.to_json()["attested"] == [text]


def test_without_a_key_nothing_is_signed_and_verify_says_so(sealed: Path, key: Path) -> None:
    verdict = verify_tree(sealed)
    assert verdict.findings == ()
    assert is_unsigned(verdict)
    assert "not signed    records/r.index.json: no signature" in verdict.to_text()
    assert configured_key(sealed) is None


def test_the_signature_verifies_without_the_library_that_made_it(signed: Path, key: Path) -> None:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    envelope = json.loads((signed / SIGNATURES).read_text())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    text = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    public: Any = load_pem_public_key(key.with_name("alice.pub").read_bytes())
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), text)
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    names = [item["name"] for item in statement["subject"]]
    assert names == ["data.dvc", "dvc.lock", "records/r.index.json"]
    assert str(key) not in (signed / SIGNATURES).read_text() + payload.decode()


def test_a_consistent_forgery_does_not_have_the_signature(signed: Path) -> None:
    values = json.loads((signed / RECORD).read_text())
    values["start"]["machine"]["processor"] = "another"
    write_json(signed / RECORD, values)
    write_index(signed)
    assert "is over another set: records/r.index.json is" in fault(signed)


def test_a_forged_lock_does_not_have_the_signature(signed: Path) -> None:
    (signed / "dvc.lock").write_text((signed / "dvc.lock").read_text() + "\n")
    assert f"the signature of {NAME} is over another set: dvc.lock is" in fault(signed)


def test_a_file_that_was_not_signed_is_named(signed: Path, key: Path) -> None:
    raw = (signed / "data.dvc").read_text()
    (signed / "data.dvc").unlink()
    lost, unsigned = verify_tree(signed).findings
    assert (lost.kind, lost.path) == ("missing", "data.dvc")
    assert "data.dvc was signed and is absent" in unsigned.message
    sign(signed, "r", key)
    write(signed, "data.dvc", raw)
    assert "data.dvc was not signed" in fault(signed)


def altered(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    envelope = json.loads((run / SIGNATURES).read_text())
    change(envelope)
    (run / SIGNATURES).write_text(json.dumps(envelope) + "\n")


def test_an_altered_statement_is_not_signed(signed: Path) -> None:
    def other_time(envelope: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(envelope["payload"]))
        statement["predicate"]["signedAt"] = "2000-01-01T00:00:00+00:00"
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    altered(signed, other_time)
    assert f"not signed by the key of {NAME}, or altered since" in fault(signed)


def test_another_key_cannot_use_a_known_name(signed: Path, tmp_path: Path) -> None:
    known = json.loads((signed / SIGNATURES).read_text())["signatures"][0]["keyid"]
    new_key(tmp_path / "keys/mallory", signed)
    sign(signed, "r", tmp_path / "keys/mallory")
    lines = (signed / SIGNATURES).read_text().splitlines()
    assert len(lines) == 2
    forged = next(json.loads(line) for line in lines if known not in line)
    forged["signatures"][0]["keyid"] = known
    (signed / SIGNATURES).write_text(json.dumps(forged) + "\n")
    assert f"not signed by the key of {NAME}" in fault(signed)


def test_an_unknown_signer_is_named_and_others_still_attest(signed: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "keys/bob", signed)
    sign(signed, "r", tmp_path / "keys/bob")
    verdict = verify_tree(signed)
    (finding,) = verdict.findings
    assert f"unknown signer {fingerprint(public_key_of(tmp_path / 'keys/bob'))}" in finding.message
    assert len(verdict.attested) == 1


def test_an_uncommitted_signer_does_not_count(signed: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "keys/bob", signed)
    (signed / SIGNATURES).unlink()
    sign(signed, "r", tmp_path / "keys/bob")
    write(signed, SIGNERS, f"bob {ssh_text(public_key_of(tmp_path / 'keys/bob'))}\n")
    assert fault(signed).endswith("does not have the key; commit the file")
    commit(signed, "bob")
    assert len(verify_tree(signed).attested) == 1


def test_a_removed_key_is_named_with_the_last_commit_that_had_it(signed: Path) -> None:
    then = last_commit_of(signed)
    write(signed, SIGNERS, "# nobody\n")
    commit(signed, "removed")
    assert f"that of {NAME} was removed after commit {then[:12]}" in fault(signed)


def last_commit_of(run: Path) -> str:
    words = ["git", "log", "-1", "--format=%H", "--", SIGNERS]
    return subprocess.run(words, cwd=run, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ('valid-before="20200102"', f"the key of {NAME} expired at 2020-01-02 00:00 UTC"),
        ('valid-after="29990101Z"', f"the key of {NAME} is valid from 2999-01-01 00:00 UTC on"),
        ('namespaces="git,file"', "unknown signer"),
        ('valid-before="soon"', "line 1: time 'soon'; expected YYYYMMDD"),
        ("cert-authority", "line 1: certificates are not read"),
        ("no-touch-required", "line 1: unknown option 'no-touch-required'"),
    ],
)
def test_a_key_that_is_not_valid_at_that_time_is_named(
    signed: Path, key: Path, option: str, message: str
) -> None:
    write(signed, SIGNERS, f"{NAME} {option} {ssh_text(public_key_of(key))}\n")
    commit(signed, "other options")
    assert message in fault(signed)


def test_options_that_allow_the_key_are_read(key: Path) -> None:
    text = ssh_text(public_key_of(key))
    line = f'a,b namespaces="git,t5repro",valid-after="202001020304",valid-before="29991231" {text}'
    (signer,) = parse_signers(f"# comment\n\n{line} comment\n").values()
    assert signer.name == "a,b"
    assert (signer.valid_after.hour, signer.valid_before.year) == (3, 2999)  # type: ignore[union-attr]
    with pytest.raises(LineageError, match="line 1: not an Ed25519 key"):
        parse_signers("a ssh-rsa AAAA")
    with pytest.raises(LineageError, match="line 1: no key"):
        parse_signers("a")


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"payload": 1}', "\x00"])
def test_what_is_no_envelope_is_named(signed: Path, text: str) -> None:
    (signed / SIGNATURES).write_text(text + "\n")
    assert "not a signed envelope" in (message := fault(signed)) or "empty" in message


def test_another_kind_of_statement_by_the_same_key_is_no_seal(signed: Path, key: Path) -> None:
    from t5repro.lineage.envelopes import signed_envelope
    from t5repro.lineage.keys import read_named_signer

    for payload in (b"{}", b"[]", b"text"):
        envelope = signed_envelope(payload, read_named_signer(key, signed))
        (signed / SIGNATURES).write_text(envelope + "\n")
        assert f"signed by {NAME}, but not a seal" in fault(signed)


def test_a_signature_of_another_run_is_over_another_set(signed: Path, key: Path) -> None:
    write(signed, "records/s.index.json", (signed / "records/r.index.json").read_text())
    sign(signed, "s", key)
    shutil.move(signed / "records/s.intoto.jsonl", signed / SIGNATURES)
    (signed / "records/s.index.json").unlink()
    assert "over another set: of run s" in fault(signed)


def test_a_seal_signs_with_the_configured_key_and_drops_what_is_outdated(
    signed: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(signed)
    values = json.loads((signed / RECORD).read_text())
    values["end"]["seconds"] = 1.0
    write_json(signed / RECORD, values)
    write_index(signed)
    assert sign_records("r") == "no longer signed: no key is configured; see t5repro sign"
    assert not (signed / SIGNATURES).exists()
    assert verify_tree(signed).findings == ()
    assert sign_records("r") == ""
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    assert sign_records("r").startswith(SIGNATURES)
    assert len(verify_tree(signed).attested) == 1
    assert drop_outdated(signed, "r") is False
    monkeypatch.setenv(KEY_VARIABLE, str(key.parent / "none"))
    assert sign_records("r").startswith("not signed: ")


def test_gits_ssh_key_is_used(signed: Path, tmp_path: Path, key: Path) -> None:
    generated = tmp_path / "keys/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", generated], check=True)
    for name, value in {"gpg.format": "ssh", "user.signingkey": f"{generated}.pub"}.items():
        subprocess.run(["git", "config", name, value], cwd=signed, check=True)
    assert configured_key(signed) == generated
    assert sign(signed, "r", generated).fingerprint == fingerprint(public_key_of(generated))
    words = ["ssh-keygen", "-l", "-f", f"{generated}.pub"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert fingerprint(public_key_of(generated)) in printed


def test_the_command_signs_allows_and_refuses(
    sealed: Path, key: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sealed)
    assert main(["sign", "--run", "r"]) == 2
    assert "no key: add --key FILE, or set T5REPRO_SIGNING_KEY" in capsys.readouterr().err
    assert main(["sign", "--run", "r", "--key", str(key), "--allow", NAME]) == 0
    assert f"{SIGNERS}: added the key of {NAME}; commit it" in capsys.readouterr().out
    assert main(["sign", "--run", "r", "--key", str(key), "--allow", NAME]) == 0
    assert (sealed / SIGNERS).read_text() == f"{NAME} {ssh_text(public_key_of(key))}\n"
    commit(sealed, "signed")
    assert len(verify_tree(sealed).attested) == 1
    assert main(["sign", "--run", "none", "--key", str(key)]) == 2
    assert "run none is not sealed: no records/none.index.json" in capsys.readouterr().err
    assert main(["sign", "--run", "r", "--key", str(key), "--allow", "two words"]) == 2
    assert "expected one word" in capsys.readouterr().err
    write(sealed, SIGNERS, "<<<<<<< HEAD\n")
    assert main(["sign", "--run", "r", "--key", str(key), "--allow", "bob"]) == 2
    assert f"{SIGNERS} line 1: no key; expected NAME" in capsys.readouterr().err
    shutil.copy(key, "key.pem")
    assert main(["sign", "--run", "r", "--key", "key.pem"]) == 2
    assert "is inside the checkout" in capsys.readouterr().err
    assert (sealed / WEIGHTS).is_file()


def traced(run: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    """Return the lines of the job that wrote the weights."""
    capsys.readouterr()
    assert main(["trace", WEIGHTS]) == code
    return capsys.readouterr().out.partition("└─ r/finetune/a")[2].partition("└─")[0]


def test_a_trace_says_what_attests_each_job_and_what_is_only_stated(
    signed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(signed)
    head = commit(signed, "head")[:12]
    code = json.loads((signed / RECORD).read_text())["start"]["commit"][:12]
    kept = f"records/r.index.json, dvc.lock, commit {head}; code by commit {code}\n"
    text = traced(signed, capsys)
    assert f"attested  record by signature of {NAME}, {kept}" in text
    assert "stated" not in text
    (signed / SIGNATURES).unlink()
    text = traced(signed, capsys)
    assert f"attested  record by {kept}" in text
    assert "stated    processor, devices, environment and times: an unsigned record" in text
    (signed / "records/r.index.json").unlink()
    assert f"attested  record by commit {head}; code by commit {code}\n" in traced(signed, capsys)
    (signed / RECORD).unlink()
    assert "attested  by its manifest alone" in traced(signed, capsys)


def test_a_trace_names_a_forged_commit(
    signed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(signed)
    values = json.loads((signed / RECORD).read_text())
    values["start"]["commit"] = "deadbeef" * 5
    write_json(signed / RECORD, values)
    text = traced(signed, capsys, code=1)
    assert "refuted   sha256 " in text
    assert "refuted   commit deadbeefdead is not in this repository: forged, or never" in text
    assert "attested  by its manifest alone" in text
    assert main(["trace", WEIGHTS, "--json"]) == 1
    evidence = json.loads(capsys.readouterr().out)["evidence"]["r/finetune/a"]
    assert (len(evidence["refuted"]), evidence["attested"]) == (2, [])
    commit(signed, "forged")
    assert main(["trace", WEIGHTS, "--rev", "HEAD"]) == 1
    assert "refuted   commit deadbeefdead" in capsys.readouterr().out
