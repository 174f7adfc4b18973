import json
import os

import pytest
from checkout import ROOT

from t5repro.c4.keys import normalize_url
from t5repro.c4.text.bad_words import read_words
from t5repro.c4.wet import url_filter
from t5repro.c4.wet.pages import read_pages
from t5repro.errors import CrawlError, RawDataError

MINI_LISTS = ROOT / "examples/mini/raw/lists"
DOMAINS = {"bbc.co.uk": True, "news.example": ["", "sport"], "only.example": ["www2"]}


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "domains.json"
    path.write_text(json.dumps(DOMAINS))
    return url_filter.read_domains(path)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("bbc.co.uk/news", True),
        ("a.b.bbc.co.uk", True),
        ("bbc.co.uk.evil.example/x", False),
        ("notbbc.co.uk", False),
        ("co.uk/bbc.co.uk", False),
        ("news.example", True),
        ("news.example/2019/a?b=news", True),
        ("sport.news.example/x", True),
        ("a.sport.news.example/x", False),
        ("other.news.example/x", False),
        ("only.example/x", False),
        ("www2.only.example/x", True),
        ("user@news.example:8080/x", True),
        ("news.example?x", True),
        ("News.example/x", False),
        ("", False),
    ],
)
def test_a_host_is_listed_with_its_subdomain(listed, url, expected):
    assert url_filter.is_listed_domain(url, listed) == expected


@pytest.mark.parametrize(
    "address",
    [
        "HTTP://bbc.co.uk/x",
        "ftp://bbc.co.uk/x",
        "//bbc.co.uk/x",
        "https://bbc.co.uk./x",
        "https://bbc.co.uk:8443/x",
        "http://www.bbc。co．uk/x",
    ],
)
def test_an_address_of_any_scheme_port_and_dot_is_of_its_domain(listed, address):
    assert url_filter.is_listed_domain(normalize_url(address), listed)


def test_addresses_are_compared_normalised(tmp_path):
    path = tmp_path / "urls.txt"
    path.write_text("https://www.a.example/x/\nhttp://b.example/y?utm_source=z\n\n")
    fault = url_filter.url_filter(None, path)
    for url in ("http://a.example/x", "https://www.a.example/x//", "https://b.example/y"):
        assert fault(normalize_url(url)) is None
    for url in ("http://a.example/xy", "http://b.example/y?z", ""):
        assert fault(normalize_url(url)) == "url_not_listed"


def test_every_listed_address_is_found_and_no_other(tmp_path):
    path = tmp_path / "urls.txt"
    path.write_text("".join(f"http://a.example/{number}\n" for number in range(0, 4000, 2)))
    fault = url_filter.url_filter(None, path)
    found = [number for number in range(4000) if fault(f"a.example/{number}") is None]
    assert found == list(range(0, 4000, 2))


def test_without_lists_every_address_is_read():
    assert url_filter.url_filter(None, None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "contains no domains"),
        ("{}", "contains no domains"),
        ("{x", "is not JSON"),
        pytest.param("[" * 200_000, "is not JSON .*levels deep.*; correct it", id="deep"),
        ('{"a.org": ["x"], "a.org": true}', "is not JSON .*the key 'a.org' is set twice"),
        pytest.param('{"a.org": ' + "1" * 5000 + "}", "is not JSON .*digits", id="digits"),
    ],
)
def test_a_file_that_is_no_list_of_domains_is_named(tmp_path, text, message):
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(RawDataError, match=rf"d\.json: {message}"):
        url_filter.read_domains(tmp_path / "d.json")


def test_a_list_of_addresses_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "urls.txt"
    with pytest.raises(RawDataError, match=r"check c4\.select\.urls"):
        url_filter.read_urls(path)
    with pytest.raises(RawDataError, match=r"check c4\.select\.domains"):
        url_filter.read_domains(path)
    path.write_text("\n \n")
    with pytest.raises(RawDataError, match="lists no URL"):
        url_filter.read_urls(path)
    for text, message in {
        "http://a\0b\n": "line 1: has a NUL character",
        "a\n<<<<<<< HEAD\nb\n": "line 2: is the mark of a conflict of git",
        "version https://git-lfs.github.com/spec/v1\n": "is a pointer of git LFS",
    }.items():
        path.write_text(text)
        with pytest.raises(RawDataError, match=message):
            url_filter.read_urls(path)
        with pytest.raises(RawDataError, match=message):
            read_words(path, "en")
    path.write_bytes(b"http://a\xff\n")
    with pytest.raises(RawDataError, match="not UTF-8 at byte 8"):
        url_filter.read_urls(path)


def test_a_pipe_in_place_of_a_list_or_a_shard_is_named_and_not_waited_for(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(RawDataError, match="a pipe or a device and not a file.*c4.select.urls"):
        url_filter.read_urls(path)
    with pytest.raises(RawDataError, match="a pipe or a device and not a file.*c4.select.domains"):
        url_filter.read_domains(path)
    with pytest.raises(RawDataError, match="a pipe or a device and not a file.*bad_word_lists.en"):
        read_words(path, "en")
    with pytest.raises(CrawlError, match="a pipe or a device and not a file"):
        list(read_pages(path))


def test_the_bundled_lists_can_be_read():
    assert len(url_filter.read_domains(MINI_LISTS / "realnews_domains.json")) == 7
    assert len(url_filter.read_urls(MINI_LISTS / "openwebtext_urls.txt")) > 400
