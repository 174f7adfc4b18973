"""Files come over real connections: https with a certificate, stores by S3's and Google's API."""

import datetime
import hashlib
import http.server
import io
import ipaddress
import ssl
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from t5repro.config.sections.data import DataStage
from t5repro.data import download
from t5repro.data.check import check
from t5repro.data.download import fetch_address
from t5repro.data.fetch import fetch
from t5repro.errors import RawDataError

HERE = "127.0.0.1"


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` by path; counts requests; cuts those in `cut`; has no time for `busy`."""

    def __init__(self) -> None:
        super().__init__((HERE, 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.busy: set[str] = set()
        self.asked: Counter[str] = Counter()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers HEAD and GET, also for a range of bytes."""

    server: Server

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self.server.asked[self.path] += 1
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        if self.path in self.server.busy:
            self.send_error(503)
            return
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        begin, end = 0, len(data)
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        if asked:
            first, _, last = asked.partition("-")
            begin, end = int(first), int(last) + 1 if last else end
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(data[begin:end])))
        self.send_header("Last-Modified", "Thu, 01 Oct 2026 00:00:00 GMT")
        self.end_headers()
        if with_body:
            half = begin + (end - begin) // 2
            self.wfile.write(data[begin : half if self.path in self.server.cut else end])

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for this machine that no one has signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HERE)])
    now = datetime.datetime.now(datetime.UTC)
    own = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HERE))]), False
        )
        .sign(key, hashes.SHA256())
    )
    public, secret = folder / "certificate.pem", folder / "key.pem"
    public.write_bytes(own.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return public, secret


@pytest.fixture
def https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    public, secret = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, secret)
    server = Server()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    with serving(server):
        yield server


def origin(server: Server, name: str) -> str:
    return f"https://{HERE}:{server.server_port}/{name}"


def settings(server: Server, folder: Path, files: dict[str, bytes]) -> DataStage:
    named = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    source = {"origin": origin(server, "CoLA.zip"), "licence": "none", "files": named}
    data = {"folder": str(folder), "source": "", "download": True, "sources": [source]}
    return DataStage.model_validate({"data": data})


FILES = {
    "glue/CoLA/train.tsv": b"a\t1\t\tIt rains.\n",
    "glue/CoLA/dev.tsv": b"b\t0\t*\tRains it.\n",
}


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, data in FILES.items():
            opened.writestr(name.removeprefix("glue/"), data)
    return buffer.getvalue()


def test_an_archive_is_fetched_once_over_https_and_its_members_are_checked(
    https: Server, tmp_path: Path
) -> None:
    https.files["/CoLA.zip"] = archive()
    stage = settings(https, tmp_path / "data", FILES)
    fetch(stage, downloads=tmp_path / "downloads")
    check(stage, manifest=tmp_path / "manifest.json")
    assert {name: (tmp_path / "data" / name).read_bytes() for name in FILES} == FILES
    assert https.asked == {"/CoLA.zip": 1}


def test_an_archive_that_is_not_the_named_one_stops_the_run(https: Server, tmp_path: Path) -> None:
    https.files["/CoLA.zip"] = archive()
    stage = settings(https, tmp_path / "data", FILES | {"glue/CoLA/dev.tsv": b"other rows"})
    with pytest.raises(RawDataError, match=r"CoLA/dev.tsv.* has sha256 .*, the run file expects"):
        fetch(stage, downloads=tmp_path / "downloads")


def test_a_transfer_that_breaks_off_leaves_nothing_and_is_made_good_by_the_next_run(
    https: Server, tmp_path: Path
) -> None:
    https.files["/CoLA.zip"] = archive()
    https.cut.add("/CoLA.zip")
    stage = settings(https, tmp_path / "data", FILES)
    with pytest.raises(RawDataError, match=r"CoLA.zip broke off after \d+ .*run again"):
        fetch(stage, downloads=tmp_path / "downloads")
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".zip", ".tsv")] == []
    https.cut.clear()
    fetch(stage, downloads=tmp_path / "downloads")
    assert (tmp_path / "data/glue/CoLA/train.tsv").read_bytes() == FILES["glue/CoLA/train.tsv"]


def test_a_certificate_that_nobody_vouches_for_is_refused(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(RawDataError, match="does not answer .*certificate"):
        fetch_address(origin(https, "CoLA.zip"), tmp_path / "CoLA.zip")
    assert not (tmp_path / "CoLA.zip").exists()


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


def test_an_object_of_an_s3_compatible_store_arrives_whole(store: Server, tmp_path: Path) -> None:
    page = b"WARC/1.0\r\n" * 300_000
    store.files["/commoncrawl/crawl-data/0.warc.wet.gz"] = page
    fetch_address("s3://commoncrawl/crawl-data/0.warc.wet.gz", tmp_path / "0.warc.wet.gz")
    assert (tmp_path / "0.warc.wet.gz").read_bytes() == page


def test_an_object_that_the_store_does_not_have_is_named(store: Server, tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"s3://commoncrawl/none cannot be fetched"):
        fetch_address("s3://commoncrawl/none", tmp_path / "none")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def google() -> Iterator[Server]:
    """What speaks as much of Google's JSON API as reading an object needs."""
    with serving(Server()) as server:
        yield server


def object_path(name: str) -> str:
    return f"/storage/v1/b/bucket/o/{name.replace('/', '%2F')}?alt=media"


def google_address(server: Server, name: str) -> str:
    options = f"scheme=http&endpoint_override={HERE}:{server.server_port}"
    return f"gs://anonymous@bucket/{name}?{options}"


def test_an_object_of_google_cloud_storage_arrives_whole(google: Server, tmp_path: Path) -> None:
    page = b"WARC/1.0\r\n" * 300_000
    google.files[object_path("crawl-data/0.warc.wet.gz")] = page
    fetch_address(google_address(google, "crawl-data/0.warc.wet.gz"), tmp_path / "0.warc.wet.gz")
    assert (tmp_path / "0.warc.wet.gz").read_bytes() == page


def test_an_object_that_google_cloud_storage_does_not_have_is_named(
    google: Server, tmp_path: Path
) -> None:
    with pytest.raises(RawDataError, match=r"gs://.*bucket/none.* cannot be fetched"):
        fetch_address(google_address(google, "none"), tmp_path / "none")
    assert not list(tmp_path.iterdir())


def test_a_store_of_google_that_stays_busy_is_asked_again_and_then_given_up(
    google: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 2)
    google.busy.add(object_path("0.gz"))
    with pytest.raises(RawDataError, match=r"0.gz.* cannot be fetched .*Retry policy exhausted"):
        fetch_address(google_address(google, "0.gz"), tmp_path / "0.gz")
    assert google.asked[object_path("0.gz")] > 1
    assert not list(tmp_path.iterdir())
