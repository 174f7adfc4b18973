"""A server that speaks the Hub's protocol, as far as uploads of models and files need it."""

import base64
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from huggingface_hub import constants, file_download
from servers import HERE

BEARER = "hf_SecretOfTheTestsThatMustNotAppear"
COMMIT = "c0ffee" * 6 + "c0de"
LARGE = (".safetensors", ".model")  # what `.gitattributes` of a new repository sends to LFS


class HubServer(http.server.ThreadingHTTPServer):
    """Holds repositories in memory and knows one user with one token.

    Attributes:
        models: name -> file -> content of what was committed.
        private: name -> whether it was made private.
        objects: SHA-256 -> content, uploaded by LFS.
        files: path with `resolve` -> content that is served.
        gated: prefixes of paths that only users with consent may read.
        consent: whether the user of the token has consented.
        failing: path -> status that it is answered with.
        requests: method and path of each request, with whether it had the token.
    """

    def __init__(self) -> None:
        super().__init__((HERE, 0), HubHandler)
        self.models: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.objects: dict[str, bytes] = {}
        self.files: dict[str, bytes] = {}
        self.gated: tuple[str, ...] = ()
        self.consent = False
        self.failing: dict[str, int] = {}
        self.requests: list[tuple[str, str, bool]] = []

    @property
    def address(self) -> str:
        """The value of `HF_ENDPOINT`."""
        return f"http://{HERE}:{self.server_port}"


class HubHandler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of the library `huggingface_hub`."""

    server: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._file(with_body=False)

    def do_GET(self) -> None:
        if self.path == "/api/whoami-v2":
            if self._begin():
                self._json({"type": "user", "name": "user", "auth": {"type": "access_token"}})
            return
        self._file(with_body=True)

    def do_PUT(self) -> None:
        content = self._body()
        if self._begin(with_token=False):  # the address is signed in place of a token
            name = self.path.rpartition("/")[2]
            assert hashlib.sha256(content).hexdigest() == name
            self.server.objects[name] = content
            self._answer(200, b"")

    def do_POST(self) -> None:
        content = self._body()
        if not self._begin():
            return
        path = self.path.partition("?")[0]
        if path == "/api/repos/create":
            self._create(json.loads(content))
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif path.endswith("/preupload/main"):
            self._json({"files": [_mode(file) for file in json.loads(content)["files"]]})
        elif path.endswith(".git/info/lfs/objects/batch"):
            self._batch(json.loads(content))
        elif path == "/verify":
            assert json.loads(content)["oid"] in self.server.objects
            self._json({})
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", path):
            self._commit(match[1], [json.loads(line) for line in content.splitlines()])
        else:
            self._answer(404, b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _begin(self, *, with_token: bool = True) -> bool:
        """Note a request; answer it if it lacks the token, or is to fail."""
        known = self.headers.get("Authorization") == f"Bearer {BEARER}"
        path = self.path.partition("?")[0]
        self.server.requests.append((self.command, path, known))
        status = self.server.failing.get(path)
        if status is None and (known or not with_token):
            return True
        # A server may repeat what it was sent; the client must not print it.
        sent = self.headers.get("Authorization", "")
        self._answer(status or 401, json.dumps({"error": f"refused: {sent}"}).encode())
        return False

    def _create(self, request: Any) -> None:
        name = f"{request.get('organization') or 'user'}/{request['name']}"
        private = bool(request.get("private") or request.get("visibility") == "private")
        address = f"{self.server.address}/{name}"
        if name in self.server.models:
            self._json({"error": "You already created this model repo", "url": address}, 409)
            return
        self.server.models[name], self.server.private[name] = {}, private
        self._json({"url": address, "id": name})

    def _batch(self, request: Any) -> None:
        objects = []
        for entry in request["objects"]:
            upload = {"href": f"{self.server.address}/objects/{entry['oid']}"}
            actions = {"upload": upload, "verify": {"href": f"{self.server.address}/verify"}}
            objects.append({"oid": entry["oid"], "size": entry["size"], "actions": actions})
        self._json({"transfer": "basic", "objects": objects})

    def _commit(self, name: str, lines: list[Any]) -> None:
        files = {}
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
        self.server.models[name] |= files
        url = f"{self.server.address}/{name}/commit/{COMMIT}"
        self._json({"success": True, "commitUrl": url, "commitOid": COMMIT, "hookOutput": ""})

    def _file(self, *, with_body: bool) -> None:
        if not self._begin(with_token=False):
            return
        if self.path.startswith(self.server.gated) and not (
            self.server.consent and self.server.requests[-1][2]
        ):
            headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
            self._answer(403 if self.server.requests[-1][2] else 401, b"", headers)
            return
        content = self.server.files.get(self.path)
        if content is None:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        self._answer(200, content, {"ETag": etag, "X-Repo-Commit": COMMIT}, with_body=with_body)

    def _json(self, value: object, status: int = 200) -> None:
        self._answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        *,
        with_body: bool = True,
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body and self.command != "HEAD":
            self.wfile.write(content)


def _mode(file: Any) -> dict[str, object]:
    mode = "lfs" if file["path"].endswith(LARGE) else "regular"
    return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}


@contextmanager
def in_place_of_the_hub() -> Iterator[HubServer]:
    """Serve while the block runs, to the library in this process, with a token that is known."""
    server = HubServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    template = f"{server.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    with pytest.MonkeyPatch.context() as patch:
        for module in (constants, file_download):  # either may have copied the address
            patch.setattr(module, "ENDPOINT", server.address, raising=False)
            patch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(constants, "HF_TOKEN_PATH", "/nonexistent")
        patch.setenv("HF_TOKEN", BEARER)
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
