"""A server with a certificate that clients trust."""

from collections.abc import Iterator

import pytest
from servers import Server, serving, with_certificate

from t5repro.data import transfer


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat transfers at once."""
    monkeypatch.setattr(transfer, "pause", lambda seconds: None)


@pytest.fixture
def https(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    server = Server()
    public = with_certificate(server, tmp_path_factory.mktemp("certificate"))
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    with serving(server):
        yield server
