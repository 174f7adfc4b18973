"""Signed statements: what holds is accepted, and whatever was altered is refused and named."""

import base64
import json
import shutil
from pathlib import Path

import pytest
from made_exports import MODEL, RUN, exported_run
from made_graphs import write

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.export import commands
from t5repro.files import sha256_of

JOBS = 8


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key, another key and the statements of the run in the current folder."""
    monkeypatch.chdir(exported_run(tmp_path / "checkout"))
    for name in ("key", "other"):
        assert main(["export", "--new-key", str(tmp_path / name)]) == 0
    command = ["export", "--format", "in-toto", "--key", str(tmp_path / "key")]
    assert main([*command, "--output", str(tmp_path / "run.intoto.jsonl")]) == 0
    return tmp_path


def checked(folder: Path, key: str = "key.pub") -> int:
    statements = str(folder / "run.intoto.jsonl")
    return main(["export", "--verify", statements, "--public-key", str(folder / key)])


def altered(folder: Path, line: int, change: object) -> None:
    path = folder / "run.intoto.jsonl"
    lines = path.read_text().splitlines()
    envelope = json.loads(lines[line])
    change(envelope)  # type: ignore[operator]
    lines[line] = json.dumps(envelope)
    path.write_text("\n".join(lines) + "\n")


def test_statements_of_a_run_hold(signed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(signed) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith(f"{JOBS} statements signed by this key")


def test_a_statement_is_slsa_provenance_with_the_digest_of_every_output(signed: Path) -> None:
    from google.protobuf.json_format import ParseDict
    from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    by_job = {}
    for line in (signed / "run.intoto.jsonl").read_text().splitlines():
        values = json.loads(base64.b64decode(json.loads(line)["payload"]))
        Statement.copy_from_pb(ParseDict(values, Message())).validate()
        ParseDict(values["predicate"], Provenance())
        by_job[values["predicate"]["buildDefinition"]["externalParameters"]["job"]] = values
    finetune = by_job["r/finetune/a"]
    assert finetune["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {item["name"]: item["digest"]["sha256"] for item in finetune["subject"]}
    assert subjects[MODEL] == sha256_of(Path(MODEL))
    definition = finetune["predicate"]["buildDefinition"]
    kinds = {
        item["name"]: item["annotations"]["kind"] for item in definition["resolvedDependencies"]
    }
    assert kinds == {
        f"{RUN}/pretrain/a/weights.safetensors": "input",
        f"{RUN}/tasks/one/train.jsonl": "input",
        "src/t5repro/finetune.py": "code",
        "requirements/cpu-gpu.txt": "package lock",
    }
    assert definition["externalParameters"]["settings"]["finetune"] == {"rate": 0.1, "steps": 8}
    assert finetune["predicate"]["runDetails"]["metadata"]["startedOn"] == "2026-01-02T04:00:00Z"


def test_equal_runs_signed_by_one_key_have_equal_bytes(signed: Path) -> None:
    again = signed / "again"
    command = ["export", "--format", "in-toto", "--key", str(signed / "key")]
    assert main([*command, "--output", str(again)]) == 0
    assert again.read_bytes() == (signed / "run.intoto.jsonl").read_bytes()
    assert b"PRIVATE" not in again.read_bytes()


def test_another_key_is_refused(signed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(signed, "other.pub") == 1
    said = capsys.readouterr().out
    assert said.count("not signed by this key, or altered since") == JOBS


def test_the_key_id_of_a_statement_is_not_believed(
    signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from t5repro.lineage.keys import read_public

    forged = read_public(signed / "other.pub").keyid

    def claim(envelope: dict[str, list[dict[str, str]]]) -> None:
        envelope["signatures"][0]["keyid"] = forged

    altered(signed, 0, claim)
    assert checked(signed, "other.pub") == 1
    assert "line 1: not signed by this key" in capsys.readouterr().out


def test_an_altered_statement_is_refused(signed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def better(envelope: dict[str, str]) -> None:
        text = base64.b64decode(envelope["payload"]).replace(b"0.1", b"0.2")
        envelope["payload"] = base64.b64encode(text).decode()

    lines = (signed / "run.intoto.jsonl").read_text().splitlines()
    line = next(
        at
        for at, text in enumerate(lines)
        if b'"job":"r/finetune/a"' in base64.b64decode(json.loads(text)["payload"])
    )
    altered(signed, line, better)
    assert checked(signed) == 1
    said = capsys.readouterr().out
    assert f"line {line + 1}: not signed by this key, or altered since" in said
    assert f"no statement attests its input {MODEL}" in said
    assert "r/finetune/a: no statement" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda envelope: envelope.update(payloadType="text/plain"), "not signed by this key"),
        (lambda envelope: envelope.pop("signatures"), "not a signed envelope"),
        (lambda envelope: envelope.update(signatures=[]), "not signed by this key"),
    ],
)
def test_a_damaged_envelope_is_refused(
    change: object, said: str, signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    altered(signed, 2, change)
    assert checked(signed) == 1
    assert f"line 3: {said}" in capsys.readouterr().out


@pytest.mark.parametrize("name", [MODEL, "data/tasks/one.tsv"])
def test_an_altered_file_is_named(
    name: str, signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(name).read_text()
    write(Path(), name, text[:-1] + "~")
    assert checked(signed) == 1
    assert f"{name} was altered: its SHA-256 is" in capsys.readouterr().out


def test_a_missing_file_and_a_missing_statement_are_named(
    signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(MODEL).unlink()
    path = signed / "run.intoto.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert checked(signed) == 1
    said = capsys.readouterr().out
    assert f"r/finetune/a: {MODEL} is missing" in said
    assert "r/evaluate_score/a: no statement" in said


def test_a_signed_text_that_is_no_statement_is_refused(signed: Path) -> None:
    from securesystemslib.dsse import Envelope

    from t5repro.export.in_toto import PAYLOAD_TYPE, open_envelope
    from t5repro.lineage.keys import read_public, read_signer

    key = read_public(signed / "key.pub")
    for payload, kind, said in (
        (b"{}", PAYLOAD_TYPE, "signed, but not a statement of in-toto"),
        (b"{}", "text/plain", "payload type 'text/plain'"),
    ):
        envelope = Envelope(payload, kind, {})
        envelope.sign(read_signer(signed / "key"))
        with pytest.raises(LineageError, match=said):
            open_envelope(json.dumps(envelope.to_dict()), key)


def test_a_statement_cannot_lead_out_of_the_checkout(
    signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from securesystemslib.dsse import Envelope

    from t5repro.lineage.keys import read_signer

    write(signed, "outside", "x")
    path = signed / "run.intoto.jsonl"
    lines = path.read_text().splitlines()
    values = json.loads(base64.b64decode(json.loads(lines[-1])["payload"]))
    digest = {"sha256": sha256_of(signed / "outside")}
    values["subject"].append({"name": "../outside", "digest": digest})
    envelope = Envelope(json.dumps(values).encode(), "application/vnd.in-toto+json", {})
    envelope.sign(read_signer(signed / "key"))
    path.write_text("\n".join([*lines[:-1], json.dumps(envelope.to_dict())]))
    assert checked(signed) == 1
    assert "../outside is outside the checkout" in capsys.readouterr().out


# keys


def test_a_private_key_is_its_owners_alone_and_never_replaced(signed: Path) -> None:
    assert (signed / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(LineageError, match="key exists, and its statements need it"):
        commands.new_key(signed / "key")


def test_no_key_is_made_where_git_could_publish_it(signed: Path) -> None:
    with pytest.raises(LineageError, match="inside the checkout, where git or DVC could publish"):
        commands.new_key(Path("results/key"))


def test_a_file_that_is_no_key_is_refused_without_showing_it(signed: Path) -> None:
    write(signed, "letter", "my secret")
    with pytest.raises(LineageError, match="letter: not a private Ed25519 key") as shown:
        commands.export("in-toto", key=signed / "letter")
    assert "my secret" not in str(shown.value)
    with pytest.raises(LineageError, match="key: not a public Ed25519 key"):
        commands.verify(signed / "run.intoto.jsonl", signed / "key")
    with pytest.raises(LineageError, match="none: No such file or directory; .*--new-key"):
        commands.verify(signed / "run.intoto.jsonl", signed / "none")


def test_what_is_missing_on_the_command_line_is_said(
    signed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--format", "in-toto"]) == 2
    assert "add --key FILE; --new-key FILE makes one" in capfd.readouterr().err
    assert main(["export", "--verify", "x"]) == 2
    assert "--verify needs --public-key FILE" in capfd.readouterr().err
    key = str(signed / "key.pub")
    assert main(["export", "--verify", "absent", "--public-key", key]) == 2
    assert "name a file that export --format in-toto wrote" in capfd.readouterr().err
    write(signed, "empty", "")
    assert main(["export", "--verify", str(signed / "empty"), "--public-key", key]) == 2
    assert "contains no statement" in capfd.readouterr().err


def test_the_answer_as_json(signed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree("results/r/evaluate_score")
    capsys.readouterr()
    statements, key = str(signed / "run.intoto.jsonl"), str(signed / "key.pub")
    assert main(["export", "--verify", statements, "--public-key", key, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["jobs"]) == JOBS
    assert len(answer["findings"]) == 2  # scores and their manifest
