"""The Hub's own library uploads the folder to a server that speaks the Hub's protocol."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from finished_run import RUN
from hub_server import BEARER, COMMIT, HubServer, in_place_of_the_hub
from huggingface_hub import constants
from published_run import write_published_run

from t5repro.cli.main import main
from t5repro.data.transfer import TransferError
from t5repro.errors import SettingsError
from t5repro.hub.upload import check_upload, upload

pytestmark = [pytest.mark.keras, pytest.mark.filterwarnings("ignore:TensorFlow already runs with")]
MODEL = "user/t5_demo"
LARGE = {"model.safetensors", "spiece.model"}


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A server in place of the Hub, and a token that it knows."""
    with in_place_of_the_hub() as server:
        yield server


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")
    write_published_run(Path.cwd())
    return Path.cwd()


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_command_writes_a_folder_and_its_bytes_arrive_as_one_commit(
    checkout: Path, hub: HubServer
) -> None:
    """In a process of its own, which knows the server by `HF_ENDPOINT` only."""
    words = ["weights", "publish", str(RUN), "--folder", "out", "--upload", MODEL, "--private"]
    process = subprocess.run(
        [sys.executable, "-m", "t5repro", *words],
        env={**os.environ, "HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == f"{hub.address}/{MODEL}/commit/{COMMIT}"
    written = files_below(checkout / "out")
    assert hub.models[MODEL] == written
    assert written.keys() > LARGE
    assert hub.private[MODEL]
    assert set(hub.objects.values()) == {written[name] for name in LARGE}
    commits = [path for _, path, _ in hub.requests if path.endswith("/commit/main")]
    assert len(commits) == 1
    # The token went to the server, and nowhere else.
    assert {known for method, _, known in hub.requests if method == "POST"} == {True}
    assert BEARER not in process.stdout + process.stderr
    for path in checkout.rglob("*"):
        assert not path.is_file() or BEARER.encode() not in path.read_bytes(), path


def test_a_second_upload_is_a_second_commit_to_the_same_model(
    tmp_path: Path, hub: HubServer
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/README.md").write_text("---\nlicense: mit\n---\nfirst\n")
    upload(tmp_path / "out", MODEL)
    (tmp_path / "out/README.md").write_text("---\nlicense: mit\n---\nsecond\n")
    upload(tmp_path / "out", MODEL)
    assert b"second" in hub.models[MODEL]["README.md"]
    assert not hub.private[MODEL]


@pytest.mark.parametrize(
    "name", ["demo", "a/b/c", "user/", "/demo", "user/a b", "user/.x", "u/a--b"]
)
def test_a_name_that_no_model_can_have_is_refused_before_the_work(
    name: str, hub: HubServer
) -> None:
    with pytest.raises(SettingsError, match=r"--upload is .*; it must be OWNER/NAME"):
        check_upload(name)
    assert hub.requests == []


def test_without_a_token_nothing_is_written(
    checkout: Path,
    hub: HubServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert main(["weights", "publish", str(RUN), "--folder=out", f"--upload={MODEL}"]) != 0
    assert "needs a token of the Hub: set HF_TOKEN to a token" in capsys.readouterr().err
    assert not Path("out").exists()
    assert hub.requests == []


def test_a_token_that_the_hub_does_not_know_is_named_before_the_work_and_not_quoted(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(SettingsError, match=r"refused \(status 401\): the token is") as refusal:
        check_upload(MODEL)
    assert "hf_another" not in str(refusal.value)


def test_a_token_that_may_not_write_is_named_and_the_folder_stays(
    tmp_path: Path, hub: HubServer
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/config.json").write_text("{}")
    hub.failing = {f"/api/models/{MODEL}/commit/main": 403}
    with pytest.raises(SettingsError, match=r"out, which is complete, to .*status 403") as refusal:
        upload(tmp_path / "out", MODEL)
    assert BEARER not in str(refusal.value)
    assert files_below(tmp_path / "out") == {"config.json": b"{}"}


def test_without_a_connection_the_message_says_to_run_again(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(TransferError, match=r"the Hub does not answer .*; run again"):
        check_upload(MODEL)
