"""Servers of the same machine: https with a certificate of its own, stores by their APIs."""

import datetime
import hashlib
import http.server
import ipaddress
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HERE = "127.0.0.1"


BUSY, CUT, STALL, LIE, ENDLESS = "busy", "cut", "stall", "lie", "endless"
Fault = Callable[[str, int], str | None]  # path and number of the request -> one of these


def no_fault(path: str, number: int) -> str | None:
    return None


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` by path, with the faults of `fault`, and counts requests and bytes.

    Attributes:
        files: path -> content.
        moved: path -> address that answers for it.
        fault: kind of a faulty answer: 503 (`BUSY`), half of the content (`CUT`), half of it and
            then silence (`STALL`), or a length that is larger than the content (`LIE`).
        busy_headers: headers of an answer 503.
        asked: path -> number of requests for content.
        sent: bytes of content.
    """

    def __init__(self) -> None:
        super().__init__((HERE, 0), Handler)
        self.files: dict[str, bytes] = {}
        self.moved: dict[str, str] = {}
        self.fault: Fault = no_fault
        self.busy_headers: dict[str, str] = {}
        self.asked: Counter[str] = Counter()
        self.sent = 0
        self.closing = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet about clients that hang up."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers HEAD and GET, also for a range of bytes of the same version."""

    server: Server

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self.server.asked[self.path] += 1
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        fault = self.server.fault(self.path, self.server.asked[self.path])
        if fault == BUSY:
            self.send_response(503)
            for name, value in self.server.busy_headers.items():
                self.send_header(name, value)
            self.end_headers()
            return
        if self.path in self.server.moved:
            self.send_response(302)
            self.send_header("Location", self.server.moved[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        version = f'"{hashlib.sha256(data).hexdigest()}"'
        begin, end = 0, len(data)
        requested_range = self.headers.get("Range", "").removeprefix("bytes=")
        if requested_range and self.headers.get("If-Range", version) == version:
            first, _, last = requested_range.partition("-")
            begin, end = int(first), int(last) + 1 if last else end
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        else:
            self.send_response(200)
        if fault != ENDLESS:
            self.send_header("Content-Length", str(end - begin + (fault == LIE)))
        self.send_header("ETag", version)
        self.send_header("Last-Modified", "Thu, 01 Oct 2026 00:00:00 GMT")
        self.end_headers()
        if with_body:
            half = begin + (end - begin) // 2
            body = data[begin : half if fault in (CUT, STALL) else end]
            self.wfile.write(body)
            self.server.sent += len(body)
        if fault == STALL:
            self.wfile.flush()
            self.server.closing.wait()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
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


def origin(server: Server, name: str) -> str:
    """Return the address of a file of a server with a certificate."""
    return f"https://{HERE}:{server.server_port}/{name}"


def with_certificate(server: Server, folder: Path) -> Path:
    """Give a server a certificate; return the file of it, which a client must trust."""
    public, secret = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, secret)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return public
