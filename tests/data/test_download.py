"""Downloads are whole or not there; archives give exactly one member."""

import email.message
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from t5repro.data.download import blocks_of, download, download_once, extract, fetch_address
from t5repro.errors import RawDataError


class Answer(io.BytesIO):
    """The body of an answer of an http server, and its promised length."""

    def __init__(self, body: bytes, promised: int) -> None:
        super().__init__(body)
        self.headers = email.message.Message()
        self.headers["Content-Length"] = str(promised)


def test_a_body_shorter_than_promised_is_refused() -> None:
    assert b"".join(blocks_of(Answer(b"page", 4), "https://example.org/a")) == b"page"
    with pytest.raises(RawDataError, match="https://example.org/a broke off after 4 of 9 bytes"):
        list(blocks_of(Answer(b"page", 9), "https://example.org/a"))


def test_a_connection_that_resets_is_said_with_its_address() -> None:
    class Reset(Answer):
        def read(self, count: int | None = -1) -> bytes:
            raise ConnectionResetError("reset by peer")

    with pytest.raises(RawDataError, match="broke off after 0 bytes .reset by peer.; run again"):
        list(blocks_of(Reset(b"", 4), "https://example.org/a"))


def test_only_https_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="only https addresses can"):
        download("http://example.org/a", tmp_path / "a")


def test_a_port_that_nobody_listens_on_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="does not answer"):
        download("https://127.0.0.1:9/a", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_was_fetched_before_is_not_fetched_again(tmp_path: Path) -> None:
    origin = "https://127.0.0.1:9/CoLA.zip"
    with pytest.raises(RawDataError):
        download_once(origin, tmp_path)
    kept = tmp_path / "b4461858da45-CoLA.zip"
    kept.write_bytes(b"x")
    assert download_once(origin, tmp_path) == kept


def zipped(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"text of {name}")
    return path


def test_a_member_is_found_by_the_end_of_its_path(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", "CoLA/train.tsv", "CoLA/original/raw/train.tsv")
    extract(archive, "tasks/glue/CoLA/train.tsv", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "text of CoLA/train.tsv"
    with pytest.raises(RawDataError, match="contains 0 files that end in 'CoLA/dev.tsv'"):
        extract(archive, "tasks/glue/CoLA/dev.tsv", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_tar_archive_works_as_a_zip_archive_does(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("rows")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "train.csv", "cnn/train.csv")
    extract(tmp_path / "a.tar.gz", "cnn/train.csv", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "rows"


def test_a_damaged_archive_is_deleted_so_that_the_next_run_fetches_it(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"no archive")
    with pytest.raises(RawDataError, match="is damaged"):
        extract(archive, "a/b", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="s3:// cannot be fetched .*check the address"):
        fetch_address("s3://", tmp_path / "pages.wet.gz")
    assert list(tmp_path.iterdir()) == []
