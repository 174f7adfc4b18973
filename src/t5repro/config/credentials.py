"""Credentials in settings are refused: manifests, records, git and exports would publish them.

`find_credential` recognises user and password of an address, parameters such as ``token=`` or those
of a presigned address, and keys with a known form, anywhere in a text. `check_no_credentials`
refuses them when settings are validated, the one way into everything that is written.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from t5repro.errors import Keys, SettingsError

CURE = (
    "remove it: whatever a setting contains is published by manifests, records, git and exports. "
    "The credentials of a store belong in the environment (AWS_ACCESS_KEY_ID, "
    "GOOGLE_APPLICATION_CREDENTIALS), those of a DVC remote in .dvc/config.local, those of Spark "
    "in its spark-defaults.conf; download a file behind a signed address by hand into data.folder"
)

# ``//user@`` and ``//user:password@``, as in https://user:password@host; up to the first slash.
_USER = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*:)?[/\\]{2,}(?P<user>[^\s/\\?#@]*)@", re.IGNORECASE
)
# Azure's addresses have a container where others have a user: abfss://container@account/path
_CONTAINER_SCHEMES = {"abfs:", "abfss:", "wasb:", "wasbs:"}
_PARAMETER = re.compile(
    r"(?<![a-z0-9])(?P<name>[a-z0-9._-]*(?:token|secret|passw(?:or)?d|signature|credential"
    r"|api[_-]?key|access[_-]?key|private[_-]?key|accesskeyid|googleaccessid|authorization)"
    r"[a-z0-9._-]*|pwd|jwt)\s*=\s*[^\s&;]",
    re.IGNORECASE,
)
# Short names that are words elsewhere: only as a parameter of an address.
_ADDRESS_PARAMETER = re.compile(
    r"[?&;#](?P<name>sig|sas|key|auth|pass|x-(?:amz|goog)-\w+)=[^\s&;]", re.IGNORECASE
)
_HEADER = re.compile(r"\b(?P<name>bearer|basic)\s+[a-z0-9+/_.~-]{16,}", re.IGNORECASE)
_KNOWN_KEYS = re.compile(
    r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[opsur]_\w{20,}|hf_[A-Za-z0-9]{20,}|glpat-[\w-]{16,}"
    r"|AIza[\w-]{30,})|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
# Keys of settings with a credential as value, such as Spark's fs.s3a.secret.key.
_SECRET_NAME = re.compile(
    r"(?:secret|password|passwd|credentials?|(?:access|secret|api|private|account)[._-]?key"
    r"|(?:auth|access|session|security)[._-]?token)(?:[._-][a-z0-9]+)*$",
    re.IGNORECASE,
)
_MAX_DECODINGS = 3  # of percent signs: %2540 is %40 is @


@lru_cache(maxsize=1 << 14)  # a plan of Snakemake validates the same settings many times
def find_credential(text: str) -> str | None:
    """Return what kind of credential a text contains, without the credential; None if none."""
    for _ in range(_MAX_DECODINGS):
        if kind := _kind(text):
            return kind
        decoded = unquote(text)
        if decoded == text:
            return None
        text = decoded
    return _kind(text)


def _kind(text: str) -> str | None:
    for match in _USER.finditer(text):
        scheme = (match["scheme"] or "").lower()
        if match["user"] and (scheme not in _CONTAINER_SCHEMES or ":" in match["user"]):
            return "a user or password in an address"
    if parameter := _PARAMETER.search(text) or _ADDRESS_PARAMETER.search(text):
        return f"the parameter {parameter['name']!r}"
    if header := _HEADER.search(text):
        return f"a value of the header Authorization ({header['name']})"
    return "a secret key" if _KNOWN_KEYS.search(text) else None


def check_no_credentials(values: Any, *, keys: Keys = ()) -> None:
    """Refuse values with a credential.

    Args:
        values: settings as a tree of plain values.
        keys: path of `values` in the run file.

    Raises:
        SettingsError: names the setting and the kind of the credential, not the credential.
    """
    for path, kind in _credentials(values, keys):
        raise SettingsError(
            f"setting {'.'.join(map(str, path))!r} contains {kind}; {CURE}", keys=path
        )


def _credentials(values: Any, keys: Keys) -> Iterator[tuple[Keys, str]]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            if kind := find_credential(str(name)):
                yield (*keys, "…"), f"{kind} in a key"  # the key itself must not be printed
            elif isinstance(value, str) and value and _SECRET_NAME.search(str(name)):
                yield (*keys, name), "a credential by its name"
            else:
                yield from _credentials(value, (*keys, name))
    elif isinstance(values, list | tuple):
        for index, value in enumerate(values):
            yield from _credentials(value, (*keys, index))
    elif isinstance(values, str) and (kind := find_credential(values)):
        yield keys, kind
