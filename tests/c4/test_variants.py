"""Presets of the group c4: each corpus made of the bundled crawl; the rule for paragraphs."""

import pyarrow.parquet as pq
import pytest
from c4_rules import build_corpus
from checkout import ROOT

from t5repro.c4.keys import normalize_url
from t5repro.c4.text import bad_words as word_lists
from t5repro.c4.text import rules as page_rules
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet import pages as wet_pages
from t5repro.c4.wet import url_filter
from t5repro.config.load import load_settings
from t5repro.config.presets.corpora import PRESETS
from t5repro.config.sections.c4 import CleanSettings

LONG = "x" * 200


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([LONG] * 3, True),
        ([LONG, LONG, LONG[:199]], False),
        ([LONG, LONG], False),
        ([LONG, "short", LONG, "short", LONG + "x"], True),
    ],
)
def test_the_third_longest_line_must_have_200_characters(lines, kept):
    rules = page_rules.CleanRules(
        CleanSettings(enabled=False, min_paragraphs=3), SentenceSplitter()
    )
    cleaned = page_rules.clean_page("\n".join(lines), rules)
    assert cleaned.reason == (None if kept else "few_paragraphs")


BUNDLED = ROOT / "examples/mini/raw"
WORDS = {name: BUNDLED / "lists" / f"badwords.{name}.txt" for name in ("en", "de", "fr")}
SELECT = {
    "domains": BUNDLED / "lists" / "realnews_domains.json",
    "urls": BUNDLED / "lists" / "openwebtext_urls.txt",
}


def corpus_of(variant, folder):
    """Run the three steps on the bundled crawl; return language -> address -> text."""
    language = variant if len(variant) == 2 else "en"
    run = {
        "use": [f"c4/{variant}"],
        "c4": {"crawl": ["crawl/*"], "validation_modulus": 40},
        "vocab": {"language_parts": {language: 1}},
        "tokens": {"languages": [language]},
    }
    settings = load_settings(run)
    selected = settings.c4.select.model_dump()
    corpus = build_corpus(
        folder,
        settings,
        sorted((BUNDLED / "crawl").iterdir()),
        bad_words={name: path for name, path in WORDS.items() if name in settings.c4.languages},
        select={name: path for name, path in SELECT.items() if selected[name]},
    )
    pages = {}
    for path in sorted(corpus.glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            pages.setdefault(row["language"], {})[row["url"]] = row["text"]
    return pages


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Every variant, made of the bundled crawl."""
    return {name: corpus_of(name, tmp_path_factory.mktemp("variant")) for name in PRESETS}


@pytest.mark.parametrize("name", ["en", "de", "fr", "ro"])
def test_a_variant_of_one_language_holds_that_language_alone(corpora, name):
    assert list(corpora[name]) == [name]
    assert len(corpora[name][name]) > 100


def test_without_the_list_pages_with_listed_words_stay_and_no_other_page_comes(corpora):
    holds = word_lists.page_matcher(word_lists.read_words(WORDS["en"], "en"), "en")
    plain, all_words = corpora["en"]["en"], corpora["en.noblocklist"]["en"]
    assert not any(map(holds, plain.values()))
    extra = {url: text for url, text in all_words.items() if url not in plain}
    assert extra
    assert all(map(holds, extra.values()))
    assert plain.items() <= all_words.items()


def test_unfiltered_pages_keep_every_line_of_the_crawl(corpora):
    raw = {
        (page.url, page.text)
        for path in (BUNDLED / "crawl").iterdir()
        for page in wet_pages.read_pages(path, on_fault=lambda _: None)
        if page.fault is None
    }
    unfiltered = corpora["en.noclean"]["en"]
    assert unfiltered.items() <= raw
    assert len(unfiltered) > len(corpora["en.noblocklist"]["en"])


def test_news_come_from_listed_domains_alone(corpora):
    domains = url_filter.read_domains(SELECT["domains"])
    urls = corpora["realnewslike"]["en"]
    assert urls
    assert all(url_filter.is_listed_domain(normalize_url(url), domains) for url in urls)
    others = corpora["en"]["en"].keys() - urls.keys()
    assert any(not url_filter.is_listed_domain(normalize_url(url), domains) for url in others)


def test_web_text_has_listed_addresses_alone(corpora):
    lines = SELECT["urls"].read_text(encoding="utf-8").split("\n")
    addresses = {normalize_url(line.strip()) for line in lines}
    urls = corpora["webtextlike"]["en"]
    assert urls
    assert all(normalize_url(url) in addresses for url in urls)


def test_the_multilingual_corpus_has_long_paragraphs_in_several_languages(corpora):
    corpus = corpora["multilingual"]
    assert {"en", "de", "fr", "ro"} <= corpus.keys()
    texts = [text for pages in corpus.values() for text in pages.values()]
    assert max(map(len, texts)) > 3 * 200
