"""Keep what is a person's own out of records: folders of the machine, names, credentials.

A value that could name them is replaced by a hash, so that equal values still compare equal.
"""

import getpass
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

HASH_CHARS = 16


def public(value: Any) -> Any:
    """Return JSON values without absolute paths, home, user name or credentials in addresses."""
    if isinstance(value, dict):
        return {public(key): public(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [public(item) for item in value]
    return _public_text(value) if isinstance(value, str) else value


def public_path(path: Path) -> str:
    """Return a path relative to the current folder; a hash for what lies elsewhere."""
    absolute = path if path.is_absolute() else Path.cwd() / path
    try:
        return absolute.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return f"{_hidden(absolute.as_posix())}/{path.name}"


def _public_text(text: str) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*://", text):
        return _without_credentials(text)
    return _hidden(text) if text.startswith(("/", "~")) or _personal(text) else text


def _without_credentials(address: str) -> str:
    """Return an address without user, password and query, where tokens travel."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return _hidden(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _personal(text: str) -> bool:
    """Tell whether a text names this account's home, this folder, or the user in a path or mail."""
    try:
        home, user = Path.home().as_posix(), getpass.getuser()
    except (RuntimeError, KeyError, OSError):  # an account without an entry has no name to hide
        return Path.cwd().as_posix() in text
    if Path.cwd().as_posix() in text or (home != "/" and home in text):
        return True
    looks_like_a_place = any(sign in text for sign in "/@\\")
    return looks_like_a_place and bool(re.search(rf"\b{re.escape(user)}\b", text))


def _hidden(text: str) -> str:
    return f"hidden:{hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]}"
