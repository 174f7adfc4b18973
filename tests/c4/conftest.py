"""Real data beside the repository, where there is some, and small builders of WET files."""

import gzip

import pytest
from checkout import SHARED_DATA

REAL_DATA = SHARED_DATA


@pytest.fixture(scope="session")
def real_data():
    if not REAL_DATA.is_dir():
        pytest.skip("no ../shared/data beside the repository")
    return REAL_DATA


@pytest.fixture(scope="session")
def english_punkt(real_data):
    return real_data / "nltk_data" / "tokenizers" / "punkt_tab" / "english"


@pytest.fixture
def wet_record():
    return record


@pytest.fixture
def write_wet(tmp_path):
    """Write records as a WET file: by gzip member, as one gzip stream, or plain."""

    def write(records, name="pages.warc.wet.gz", kind="members"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = [item if isinstance(item, bytes) else item.encode() for item in records]
        if kind == "members":
            path.write_bytes(b"".join(gzip.compress(item, mtime=0) for item in data))
        elif kind == "whole":
            path.write_bytes(gzip.compress(b"".join(data), mtime=0))
        else:
            path.write_bytes(b"".join(data))
        return path

    return write


def record(url, text, date="2019-04-18T10:00:00Z", length=None):
    """Return a WET record as a crawl writes it."""
    size = len(text.encode()) if length is None else length
    return (
        "WARC/1.0\r\nWARC-Type: conversion\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {size}\r\n\r\n{text}\r\n\r\n"
    )
