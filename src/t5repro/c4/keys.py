"""16-byte keys of texts and URLs, by which pages and text are compared and ordered."""

import hashlib
import re

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 16

_SCHEME = re.compile(r"https?://(www\.)?")
_CAMPAIGN = re.compile(r"\?(utm_|ref|feed).*")


def md5(text: str) -> bytes:
    """Return the MD5 of a text, `KEY_BYTES` bytes."""
    return hashlib.md5(text.encode("utf-8"), usedforsecurity=False).digest()


def normalize_url(url: str) -> str:
    """Return the form of a URL that is equal for all addresses of one page.

    Source: released code, ``c4_utils.normalize_url``: the scheme is removed wherever it occurs,
    the query only if it starts with a listed name.
    """
    return _CAMPAIGN.sub("", _SCHEME.sub("", url)).rstrip("/")


def is_validation(normalized_url_md5: bytes, modulus: int) -> bool:
    """Return whether the page with this URL belongs to the validation split."""
    return int.from_bytes(normalized_url_md5, "big") % modulus == 0


def key_halves(keys: bytes) -> NDArray[np.uint64]:
    """Return concatenated keys as integers in the order of the bytes, shape ``(keys, 2)``."""
    return np.frombuffer(keys, dtype=">u8").reshape(-1, 2).astype(np.uint64)
