"""Addresses of files of data sets on the Hugging Face Hub.

They have the form that `huggingface_hub.HfFileSystem`, pandas, Polars and DuckDB read:
``hf://datasets/OWNER/NAME/FILE``, with ``NAME@REVISION`` for another revision than ``main``; a `/`
in a revision is written ``%2F``.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

ADDRESS = re.compile(
    r"hf://datasets/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(@(?P<revision>[\w.%-]+))?/(?P<file>.+)"
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
