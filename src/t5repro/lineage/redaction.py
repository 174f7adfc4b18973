"""Redaction of records: folders of the machine, user names and credentials.

A redacted value is replaced by a hash, so that equal values still compare equal. Settings with
credentials are refused when they are loaded (`config.credentials`); records of other code and
what is recorded in addition to settings pass through here.
"""

import getpass
import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.config.credentials import find_credential

HIDDEN_PREFIX = "hidden:"  # precedes the hash of a redacted value
HASH_CHARS = 16
# Anywhere in a text, such as "by hand: https://…"; an address ends at white space or a quote.
ADDRESS = re.compile(r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>[^\s"'<>]*)""")


class _PersonalNames(NamedTuple):
    """What tells of a person or a machine; the same in every text of a record."""

    folders: tuple[str, ...]
    user: re.Pattern[str] | None

    def are_in(self, text: str) -> bool:
        """Return whether a text contains a folder, or the user name in a path or mail address."""
        if any(folder in text for folder in self.folders):
            return True
        # A user name may be an ordinary word; in a path or mail address it names the user.
        is_path_or_mail = any(sign in text for sign in "/@\\")
        return is_path_or_mail and self.user is not None and bool(self.user.search(text))


def redact(value: Any) -> Any:
    """Return JSON values without absolute paths, home, user name or credentials in addresses."""
    return _redact(value, _personal_names())


def _redact(value: Any, names: _PersonalNames) -> Any:
    if isinstance(value, dict):
        return {_redact(name, names): _redact(inner, names) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redact(element, names) for element in value]
    return _redact_text(value, names) if isinstance(value, str) else value


def _personal_names() -> _PersonalNames:
    folder = Path.cwd().as_posix()
    try:
        home, user = Path.home().as_posix(), getpass.getuser()
    except (RuntimeError, KeyError, OSError):  # an account without an entry has no name to redact
        return _PersonalNames((folder,), None)
    folders = (folder,) if home == "/" else (folder, home)
    return _PersonalNames(folders, re.compile(rf"\b{re.escape(user)}\b"))


def redact_path(path: Path) -> str:
    """Return a path relative to the current folder; a hash for paths outside of it."""
    absolute = path if path.is_absolute() else Path.cwd() / path
    try:
        return absolute.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return f"{hidden(absolute.as_posix())}/{path.name}"


def _redact_text(text: str, names: _PersonalNames) -> str:
    text = ADDRESS.sub(_without_credentials, text)
    if find_credential(text) or text.startswith(("/", "~")) or names.are_in(text):
        return hidden(text)
    return text


def _without_credentials(address: re.Match[str]) -> str:
    """Return an address without user, password, query and fragment, which may contain tokens."""
    scheme, address_path = address["scheme"], address["rest"]
    if scheme.lower() == "file":
        return hidden(address[0])
    location, _, path = re.split("[?#]", address_path, maxsplit=1)[0].partition("/")
    host = location.rpartition("@")[2]
    return f"{scheme}://{host}/{path}" if "/" in address_path else f"{scheme}://{host}"


def hidden(text: str) -> str:
    """Return the hash that replaces a redacted text."""
    return f"{HIDDEN_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]}"


def same_value(recorded: Any, value: Any) -> bool:
    """Return whether a value of a record stands for a value, redacted on whatever machine it was.

    Another machine has another home folder and another user, so it may redact other texts.
    """
    if isinstance(recorded, dict) and isinstance(value, dict):
        return recorded.keys() == value.keys() and all(
            same_value(recorded[name], value[name]) for name in recorded
        )
    if isinstance(recorded, list) and isinstance(value, list | tuple):
        return len(recorded) == len(value) and all(map(same_value, recorded, value))
    if isinstance(recorded, str) and isinstance(value, str):
        return recorded == value or recorded in (redact(value), hidden(value))
    # True == 1, which a forger could use
    return bool(recorded == value) and isinstance(recorded, bool) == isinstance(value, bool)
