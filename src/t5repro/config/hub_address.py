"""Addresses of files on the Hugging Face Hub.

Addresses of data sets have the form that `huggingface_hub`, pandas, Polars and DuckDB read:
``hf://datasets/OWNER/NAME/FILE``, with ``NAME@REVISION`` for another revision than ``main``; a `/`
in a revision is written ``%2F``.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

ADDRESS = re.compile(
    r"hf://datasets/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(@(?P<revision>[\w.%-]+))?/(?P<file>.+)"
)
ORIGIN = re.compile(
    r"https://huggingface\.co/(?P<kind>datasets/)?(?P<repository>[\w.-]+/[\w.-]+)/resolve/"
    r"(?P<revision>[\w.%-]+)/(?P<file>[^?#]+)"
)
FORM = "hf://datasets/OWNER/NAME/FILE or hf://datasets/OWNER/NAME@REVISION/FILE"


class HubFile(NamedTuple):
    """A file of a data set on the Hub.

    Attributes:
        path: its path below `data.folder`.
        origin: its address over https.
    """

    path: str
    origin: str


class HubOrigin(NamedTuple):
    """The parts of a file's address on the Hub.

    Attributes:
        kind: ``dataset`` or ``model``, as the Hub's library has them.
        repository: ``OWNER/NAME``.
        revision: branch, tag or commit.
        file: path in the repository.
    """

    kind: str
    repository: str
    revision: str
    file: str

    @property
    def page(self) -> str:
        """Address of the data set or model for people."""
        folder = "datasets/" if self.kind == "dataset" else ""
        return f"https://huggingface.co/{folder}{self.repository}"


def hub_origin(origin: str) -> HubOrigin | None:
    """Return the parts of an origin, ``hf://…`` or https; None if it is elsewhere."""
    file = hub_file(origin)
    match = ORIGIN.fullmatch(file.origin if file else origin)
    if match is None:
        return None
    kind = "dataset" if match["kind"] else "model"
    return HubOrigin(kind, match["repository"], unquote(match["revision"]), unquote(match["file"]))


def hub_file(address: str) -> HubFile | None:
    """Return the file of an address; None if it has another form or another path."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        return None
    file, revision = match["file"], match["revision"] or "main"
    parts = [match["owner"], match["name"], unquote(revision), *file.split("/")]
    if any(part in ("", ".", "..") or set(part) & set("*?[\0\\") for part in parts):
        return None
    data_set = f"{match['owner']}/{match['name']}"
    return HubFile(
        f"hub/{data_set}/{revision}/{file}",
        f"https://huggingface.co/datasets/{data_set}/resolve/{revision}/{quote(file)}",
    )
