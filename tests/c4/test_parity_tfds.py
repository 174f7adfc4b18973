"""Recipe `tfds` against the released code itself, on every page of the real WET files.

`make parity` installs `tensorflow_datasets` without what it depends on. Its functions run
unchanged; what is stood in for is its framework: TensorFlow's text helpers, Beam's grouping and
counters.
"""

import gzip
import importlib.util
import json
import random
import sys
import types
from collections import Counter, defaultdict
from pathlib import Path

import langdetect
import pyarrow.parquet as pq
import pytest
from c4_rules import build_corpus
from nltk.data import FileSystemPathPointer
from nltk.tokenize.punkt import PunktSentenceTokenizer, load_punkt_params

from t5repro.c4.keys import normalize_url
from t5repro.c4.text import bad_words
from t5repro.c4.wet import url_filter
from t5repro.config.schema import Settings

pytestmark = [pytest.mark.slow, pytest.mark.parity]

PACKAGE = "tensorflow_datasets"


def offline_tldextract():
    """tldextract with the list of suffixes that it ships; None where it is not installed."""
    if importlib.util.find_spec("tldextract") is None:
        return None
    tldextract = importlib.import_module("tldextract")
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    return types.SimpleNamespace(extract=extract)


@pytest.fixture(scope="module")
def released(english_punkt):
    """TFDS's c4_utils, with counters in `released.counters`."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None:
        pytest.skip("tensorflow_datasets is not installed; make parity installs it")
    counters = defaultdict(Counter)

    def counter(namespace, name):
        return types.SimpleNamespace(
            inc=lambda amount=1: counters[namespace].update({name: amount})
        )

    beam = types.SimpleNamespace(
        metrics=types.SimpleNamespace(Metrics=types.SimpleNamespace(counter=counter))
    )
    tensorflow = types.SimpleNamespace(
        compat=types.SimpleNamespace(as_text=str),
        io=types.SimpleNamespace(gfile=types.SimpleNamespace(GFile=open)),
    )
    public = types.ModuleType(f"{PACKAGE}.public_api")
    public.core = types.SimpleNamespace(
        lazy_imports=types.SimpleNamespace(
            apache_beam=beam, langdetect=langdetect, tldextract=offline_tldextract()
        )
    )
    lazy = types.ModuleType(f"{PACKAGE}.core.utils.lazy_imports_utils")
    lazy.tensorflow = tensorflow
    stand_ins = {
        name: types.ModuleType(name)
        for name in (PACKAGE, f"{PACKAGE}.core", f"{PACKAGE}.core.utils")
    }
    stand_ins |= {public.__name__: public, lazy.__name__: lazy}
    stand_ins[PACKAGE].public_api = public
    kept = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        path = Path(found.submodule_search_locations[0]) / "text" / "c4_utils.py"
        spec = importlib.util.spec_from_file_location("released_c4_utils", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        for name, value in kept.items():
            if value is None:
                del sys.modules[name]
            else:
                sys.modules[name] = value
    tokenizer = PunktSentenceTokenizer()
    tokenizer._params = load_punkt_params(FileSystemPathPointer(str(english_punkt)))
    module._SENTENCE_TOKENIZER = tokenizer
    module.counters = counters
    return module


@pytest.fixture(scope="module")
def wet_files(real_data, tmp_path_factory):
    """The real WET files, all gzip, since the released code reads nothing else."""
    folder = tmp_path_factory.mktemp("wet")
    paths = []
    for path in sorted((real_data / "wet").glob("*.warc.wet*")):
        data = path.read_bytes()
        gzipped = data[:2] == b"\x1f\x8b"
        copy = folder / (path.name if gzipped else path.name + ".gz")
        copy.write_bytes(data if gzipped else gzip.compress(data))
        paths.append(copy)
    return paths


@pytest.fixture(scope="module")
def theirs(released, wet_files, real_data):
    """Pages after each step of the released code: cleaned, deduplicated, final; by raw URL."""
    released.counters.clear()
    groups = defaultdict(list)
    for path in wet_files:
        for page in released.split_wet_file(str(path)):
            if released.is_valid_length(page):
                groups[page.normalized_url].append(page)
    newest = [released.select_newest_page(pages) for pages in groups.values()]
    clean = released.get_clean_page_fn()
    cleaned = [result for page in newest for result in clean(page)]
    holders = defaultdict(set)
    for page in cleaned:
        for line, url in released._emit_url_to_lines(page):
            holders[line].add(url)
    lines = defaultdict(list)
    for line, urls in holders.items():
        lines[min(urls, key=released._hash_text)].append(line)
    deduplicated = [
        result
        for page in cleaned
        for result in released._remove_lines_from_text(
            (page.url, {"pages": [page], "lines": lines[page.url]}),
            counter_inc_fn=released.get_counter_inc_fn("dedupe-lines"),
            min_num_sentences=3,
        )
    ]
    english = [result for page in deduplicated for result in released.detect_english(page)]
    words = (real_data / "badwords" / "en.25e679f").read_text().splitlines()
    is_good = released.get_badwords_filter_fn({"en": [word.strip() for word in words]})
    final = [page for page in english if is_good(page)]
    return types.SimpleNamespace(
        cleaned={page.url: page.text for page in cleaned},
        deduplicated={page.url: page.text for page in deduplicated},
        final={page.url: page for page in final},
        counters={name: dict(counts) for name, counts in released.counters.items()},
    )


@pytest.fixture(scope="module")
def ours(wet_files, real_data, english_punkt, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    settings = Settings(
        c4={
            "punkt_language": "en",
            "languages": ["en"],
            "clean": {"min_sentences": 3, "min_words_per_line": 5, "bad_words": "page"},
            "dedup": {"unit": "line", "min_sentences": 3},
        },
        vocab={"language_parts": {"en": 1}},
        tokens={"languages": ["en"]},
    )

    build_corpus(
        folder,
        settings,
        wet_files,
        shards=2,
        punkt={"en": english_punkt},
        bad_words={"en": real_data / "badwords" / "en.25e679f"},
    )
    cleaned = sorted(folder.glob("0*.parquet"))
    pages = {}
    for split in ("train", "validation"):
        for row in pq.read_table(folder / "c4" / f"en-{split}-00000-of-00001.parquet").to_pylist():
            pages[row["url"]] = (row["text"], row["timestamp"], split)
    rows = [row for path in cleaned for row in pq.read_table(path).to_pylist()]
    manifest = json.loads((folder / "c4" / "manifest.json").read_text())
    return types.SimpleNamespace(
        cleaned={row["url"]: row["text"] for row in rows if row["reason"] is None},
        final=pages,
        rules={item["rule"]: item for item in manifest["counters"]["rules"]},
    )


def test_the_same_pages_are_kept_with_the_same_text_after_cleaning(theirs, ours):
    assert len(theirs.cleaned) > 6000
    assert ours.cleaned == theirs.cleaned


def test_the_same_english_pages_are_kept_with_the_same_text_in_the_end(theirs, ours):
    assert len(theirs.final) > 900
    assert {url: page[:2] for url, page in ours.final.items()} == {
        url: (page.text, page.timestamp) for url, page in theirs.final.items()
    }


def test_the_split_is_that_of_the_released_code(theirs, ours, released):
    held_out = released.get_hashed_url_filter_fn(lambda value: value % 1000 == 0)
    assert {url: page[2] for url, page in ours.final.items()} == {
        url: "validation" if held_out(page) else "train" for url, page in theirs.final.items()
    }


def test_every_counter_is_that_of_the_released_code(theirs, ours):
    read, rules = theirs.counters["split-wet-file"], ours.rules
    assert rules["read"]["dropped"]["no_url"] == read.get("filtered:no_url", 0)
    assert rules["read"]["kept"] == theirs.counters["too-long-filter"]["passed"]
    lines = theirs.counters["clean-page"]
    assert rules["clean_lines"]["dropped"] == {
        ours_name: lines.get(f"line-filtered:{their_name}", 0)
        for ours_name, their_name in (
            ("long_word", "too_long_word"),
            ("no_terminal_punctuation", "no_endmark"),
            ("few_words", "too_short"),
            ("javascript", "javascript"),
            ("policy", "policy"),
        )
    }
    assert rules["clean_lines"]["kept"] == lines["line-passed"]
    assert rules["clean_pages"]["dropped"] == {
        "lorem_ipsum": lines.get("filtered:loremipsum", 0),
        "curly_bracket": lines.get("filtered:squigglybracket", 0),
        "few_sentences": lines.get("filtered:too_few_sentences", 0),
        "bad_word_in_line": 0,
        "few_paragraphs": 0,
    }
    repeats = theirs.counters["dedupe-lines"]
    assert rules["dedup_text"]["dropped"]["repeated_text"] == (
        repeats["line-filtered:global_duplicate"] + repeats["line-filtered:local_duplicate"]
    )
    assert rules["dedup_text"]["kept"] == repeats["line-passed"]
    assert rules["dedup_pages"]["dropped"] == {
        "nothing_left": repeats.get("filtered:empty", 0),
        "few_sentences_left": repeats.get("filtered:too_few_sentences", 0),
    }
    assert rules["language"]["kept"] == theirs.counters["english-filter"]["passed"]
    assert (
        rules["bad_words"]["dropped"]["bad_word"]
        == (theirs.counters["badwords-filter"]["filtered"])
    )


@pytest.mark.parametrize("language", ["en.25e679f", "de", "fr", "ja", "zh"])
def test_listed_words_are_found_in_the_same_pages(released, theirs, real_data, language):
    name = language.partition(".")[0]
    path = real_data / "badwords" / language
    words = bad_words.read_words(path, name)
    is_good = released.get_badwords_filter_fn({name: sorted(words)})
    matches = bad_words.page_matcher(words, name)
    pages = list(theirs.deduplicated.items())[::7]
    expected = [
        not is_good(released.PageFeatures(url=url, text=text, language=name)) for url, text in pages
    ]
    assert [matches(text) for _, text in pages] == expected
    assert len(pages) > 900


def test_urls_are_normalised_alike(released, theirs):
    odd = ["https://www.a.b/?ref=1", "http://a/http://www.c?utm_x#y//", "HTTPS://A/", "a?x&utm_=1"]
    for url in [*theirs.cleaned, *odd]:
        assert normalize_url(url) == released.normalize_url(url)


NEWS = {
    "bbc.co.uk": ["", "news", "www.news"],
    "cnn.com": ["", "edition", "edition.i"],
    "spiegel.de": True,
    "lemonde.fr": ["", "abonnes"],
    "abc.net.au": ["", "mobile"],
    "evz.ro": [""],
}


PARTS = {  # of an address, in this order
    "scheme": [
        "", "http://", "https://www.", "https://WWW.", "HTTP://", "Https://", "ftp://", "//",
        "x-1.y+z:", "x-1.y+z://", "a b://", "://", "///", "http:/", "é://", "ht//tp://",
    ],
    "user": ["", "user@", "a:b@", "a@b@", "@"],
    "part": [
        "", "news", "www.news", "edition", "edition.i", "m", "abonnes", "mobile", "a.b", "News",
        ".",
    ],
    "domain": [
        *NEWS, "example.com", "co.uk", "notcnn.com", "com", "CNN.com", "bbc.co.UK", "cnn.com ",
        " cnn.com", "evz\u3002ro", "bbc\uff0eco.uk", "spiegel\uff61de", "cnn..com", "[::1]",
        "10.0.0.1", "",
    ],
    "end": ["", ".", "..", "\u3002", ". ", " ."],
    "path": [
        "", "/", "/2019/04/18/a.html", "?page=2", "#top", ":8080/x", ":", "/cnn.com/bbc.co.uk",
        "//cnn.com", "?u=http://cnn.com", "/http://www.cnn.com/", "#@cnn.com", "\\@cnn.com",
    ],
}  # fmt: skip


def test_20000_addresses_are_of_the_news_domains_that_tldextract_finds(released):
    if released.tfds.core.lazy_imports.tldextract is None:
        pytest.skip("tldextract is not installed; make parity installs it")
    listed = {
        name: frozenset(allowed) if isinstance(allowed, list) else None
        for name, allowed in NEWS.items()
    }
    draw = random.Random(7)
    differing, found = [], 0
    for _ in range(20_000):
        scheme, user, part, domain, end, path = map(draw.choice, PARTS.values())
        url = f"{scheme}{user}{part}{'.' if part else ''}{domain}{end}{path}"
        page = released.PageFeatures(url=url, text="")
        page.normalized_url = released.normalize_url(url)
        expected = released.is_realnews_domain(page, NEWS)
        found += expected
        if url_filter.is_listed_domain(normalize_url(url), listed) != expected:
            differing.append(url)
    assert differing == []
    assert found > 1000
