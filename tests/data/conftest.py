"""Servers of this machine: https with a certificate that clients trust, and an S3-like store."""

from collections.abc import Iterator

import pytest
from servers import HERE, Server, serving, with_certificate

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


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """What speaks as much of S3's protocol as reading an object needs."""
    with serving(Server()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HERE}:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield server
