"""Files of the Hub come by its own library; a token stays between the user and the Hub."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import BEARER, HubServer, in_place_of_the_hub

from t5repro.config.hub_address import HubOrigin, hub_origin
from t5repro.config.sections.data import DataStage
from t5repro.data.check import check
from t5repro.data.fetch import fetch
from t5repro.errors import RawDataError
from t5repro.jobs.corpus import DataJob, FetchJob

PATH = "/datasets/owner/texts/resolve/main/en/a%20file.txt"
ADDRESS = "hf://datasets/owner/texts/en/a file.txt"
ORIGIN = f"https://huggingface.co{PATH}"
TEXT = b"It rains.\n" * 10_000


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A server in place of the Hub, with one file of a data set."""
    with in_place_of_the_hub() as server:
        server.files[PATH] = TEXT
        yield server


def stage_of(folder: Path, origin: str) -> DataStage:
    source = {"origin": origin, "licence": "none", "files": {"a.txt": ""}}
    data = {"folder": str(folder), "source": "", "download": True, "sources": [source]}
    return DataStage.model_validate({"data": data})


def run_stages(folder: Path, origin: str) -> None:
    stage = stage_of(folder / "data", origin)
    fetch(FetchJob(stage, downloads=folder / "downloads"))
    check(DataJob(stage, manifest=folder / "manifest.json"))


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("origin", [ADDRESS, ORIGIN])
def test_a_file_arrives_and_the_token_is_in_no_file(
    hub: HubServer, tmp_path: Path, origin: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run_stages(tmp_path, origin)
    assert (tmp_path / "data/a.txt").read_bytes() == TEXT
    assert any(known for _, path, known in hub.requests if path == PATH)
    assert BEARER.encode() not in contents(tmp_path)
    assert BEARER not in "".join(capfd.readouterr())
    assert [path.name for path in (tmp_path / "downloads").rglob("*") if path.is_file()] == [
        origin.rpartition("/")[2]
    ]


def test_a_file_that_arrived_is_not_asked_for_again(hub: HubServer, tmp_path: Path) -> None:
    run_stages(tmp_path, ADDRESS)
    asked = len(hub.requests)
    (tmp_path / "data/a.txt").unlink()
    run_stages(tmp_path, ADDRESS)
    assert len(hub.requests) == asked


@pytest.mark.parametrize("token", [BEARER, "hf_ofNobody", None])
def test_a_gated_data_set_says_what_to_do_and_then_arrives(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    hub.gated = ("/datasets/owner/texts/",)
    monkeypatch.setenv("HF_TOKEN", token) if token else monkeypatch.delenv("HF_TOKEN")
    expected = (
        r"Accept the conditions on https://huggingface.co/datasets/owner/texts with .*HF_TOKEN"
    )
    with pytest.raises(RawDataError, match=expected) as refusal:
        run_stages(tmp_path, ADDRESS)
    assert not token or token not in str(refusal.value)
    assert not token or token.encode() not in contents(tmp_path)
    hub.consent = True
    monkeypatch.setenv("HF_TOKEN", BEARER)
    run_stages(tmp_path, ADDRESS)
    assert (tmp_path / "data/a.txt").read_bytes() == TEXT


def test_a_file_that_does_not_exist_is_named(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"none.txt does not exist; .* lists the files"):
        run_stages(tmp_path, "hf://datasets/owner/texts/none.txt")
    assert not (tmp_path / "data/a.txt").exists()


def test_a_refusal_is_not_quoted(hub: HubServer, tmp_path: Path) -> None:
    hub.failing = {PATH: 418}
    with pytest.raises(RawDataError, match=r"refused by the Hub \(status 418\)") as refusal:
        run_stages(tmp_path, ADDRESS)
    assert BEARER not in str(refusal.value)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (ADDRESS, HubOrigin("dataset", "owner/texts", "main", "en/a file.txt")),
        (ORIGIN, HubOrigin("dataset", "owner/texts", "main", "en/a file.txt")),
        (
            "hf://datasets/a/b@refs%2Fpr%2F1/c.txt",
            HubOrigin("dataset", "a/b", "refs/pr/1", "c.txt"),
        ),
        (
            "https://huggingface.co/google-t5/t5-small/resolve/main/model.safetensors",
            HubOrigin("model", "google-t5/t5-small", "main", "model.safetensors"),
        ),
        ("https://huggingface.co/datasets/a/b", None),
        ("https://example.org/datasets/a/b/resolve/main/c", None),
        ("https://huggingface.co.example.org/datasets/a/b/resolve/main/c", None),
    ],
)
def test_only_files_of_the_hub_are_fetched_by_its_library(
    origin: str, expected: HubOrigin | None
) -> None:
    assert hub_origin(origin) == expected
