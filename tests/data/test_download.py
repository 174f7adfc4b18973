"""Downloads are complete or absent."""

import email.message
import io
from pathlib import Path

import pytest

from t5repro.data.download import blocks_of, download, download_once, fetch_address
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


def test_an_object_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="s3:// cannot be fetched .*check the address"):
        fetch_address("s3://", tmp_path / "pages.wet.gz")
    assert list(tmp_path.iterdir()) == []
