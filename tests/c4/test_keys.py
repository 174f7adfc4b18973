"""URLs are normalised and keys ordered as in the released code."""

import hashlib

import numpy as np
import pytest

from t5repro.c4.keys import is_validation, key_halves, md5, normalize_url


def hex_md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("http://a.b/c", "a.b/c"),
        ("https://www.a.b/c/", "a.b/c"),
        ("http://www.www.a", "www.a"),
        ("HTTP://a.b", "HTTP://a.b"),
        ("www.a.b", "www.a.b"),
        ("http://a/?utm_source=x", "a"),
        ("http://a?ref=1#top", "a"),
        ("http://a?referrer", "a"),
        ("http://a?feed", "a"),
        ("http://a?x=1&utm_source=y", "a?x=1&utm_source=y"),
        ("http://A.b/C#top/", "A.b/C#top"),
        ("http://a/redirect?to=https://www.b/", "a/redirect?to=b"),
        ("http://a///", "a"),
        ("https://", ""),
    ],
)
def test_urls_are_normalised_as_in_the_released_code(url, normal):
    assert normalize_url(url) == normal


def test_halves_of_keys_order_as_the_hexadecimal_text_does():
    keys = [md5(str(number)) for number in range(200)]
    halves = key_halves(b"".join(keys))
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    assert [keys[index] for index in order] == sorted(keys)


@pytest.mark.parametrize("modulus", [2, 3, 40, 257, 1000])
def test_the_split_takes_the_whole_key(modulus):
    urls = [f"a.b/{number}" for number in range(300)]
    validation = [is_validation(md5(url), modulus) for url in urls]
    assert validation == [int(hex_md5(url), 16) % modulus == 0 for url in urls]
