"""The presets of C4 against the released code itself, on real WET files and on mutated pages.

`make parity` installs `tensorflow_datasets` without what it depends on. Its functions run
unchanged; `support/released_c4.py` says what is stood in for.
"""

import gzip
import json
import random
import types

import pyarrow.parquet as pq
import pytest
import released_c4
from c4_rules import build_corpus
from mutated_pages import ADDRESSES, NEWS, Mutator, write_wet_files

from t5repro.c4.keys import normalize_url
from t5repro.c4.text import bad_words
from t5repro.c4.wet import url_filter
from t5repro.config.load import load_settings
from t5repro.config.presets.corpora import LANGDETECT
from t5repro.config.schema import Settings

pytestmark = [pytest.mark.slow, pytest.mark.parity]


@pytest.fixture(scope="module")
def released(english_punkt):
    """TFDS's c4_utils, with counters in `released.counters`."""
    module = released_c4.load(english_punkt)
    if module is None:
        pytest.skip("tensorflow_datasets is not installed; make parity installs it")
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
def english_words(real_data):
    return (real_data / "badwords" / "en.25e679f").read_text().split("\n")


@pytest.fixture(scope="module")
def theirs(released, wet_files, english_words):
    """Pages after each step of the released code: cleaned, deduplicated, final; by raw URL."""
    words = {"en": [word.strip() for word in english_words if word.strip()]}
    return released_c4.run(released, wet_files, released_c4.Recipe(bad_words=words))


def built(folder, settings, wet_files, **lists):
    """Return pages after cleaning and in the end, and the counts of each rule."""
    build_corpus(folder, settings, wet_files, shards=2, **lists)
    cleaned = sorted(folder.glob("0*.parquet"))
    pages = {}
    for path in sorted((folder / "c4").glob("*.parquet")):
        language, split = path.name.removesuffix("-00000-of-00001.parquet").rsplit("-", 1)
        for row in pq.read_table(path).to_pylist():
            pages[row["url"]] = (row["text"], row["timestamp"], language, split)
    rows = [row for path in cleaned for row in pq.read_table(path).to_pylist()]
    manifest = json.loads((folder / "c4" / "manifest.json").read_text())
    return types.SimpleNamespace(
        cleaned=[(row["url"], row["text"]) for row in rows if row["reason"] is None],
        final=pages,
        rules={item["rule"]: item for item in manifest["counters"]["rules"]},
    )


@pytest.fixture(scope="module")
def ours(wet_files, real_data, english_punkt, tmp_path_factory):
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
    return built(
        tmp_path_factory.mktemp("ours"),
        settings,
        wet_files,
        punkt={"en": english_punkt},
        bad_words={"en": real_data / "badwords" / "en.25e679f"},
    )


THEIR_NAMES = {  # rule -> namespace of their counters, our reason -> theirs
    "read": (
        "split-wet-file",
        {"no_url": "no_url", "no_content": "no_content", "no_timestamp": "no_timestamp"},
    ),
    "newest_of_url": ("duplicate-url-filter", {"duplicate_url": ""}),
    "clean_lines": (
        "clean-page",
        {
            "long_word": "too_long_word",
            "no_terminal_punctuation": "no_endmark",
            "few_words": "too_short",
            "javascript": "javascript",
            "policy": "policy",
        },
    ),
    "clean_pages": (
        "clean-page",
        {
            "lorem_ipsum": "loremipsum",
            "curly_bracket": "squigglybracket",
            "few_sentences": "too_few_sentences",
        },
    ),
    "dedup_pages": (
        "dedupe-lines",
        {"nothing_left": "empty", "few_sentences_left": "too_few_sentences"},
    ),
    "language": (
        "english-filter",
        {
            "language_undetected": "langdetect_exception",
            "language_uncertain": "low_confidence",
            "language_not_wanted": "ignored_language",
        },
    ),
    "bad_words": ("badwords-filter", {"bad_word": ""}),
}


def their_drops(counters):
    """Return rule -> reason -> number dropped, by the counters of the released code."""
    drops = {}
    for rule, (namespace, names) in THEIR_NAMES.items():
        kind = "line-filtered" if rule == "clean_lines" else "filtered"
        counts = counters.get(namespace, {})
        drops[rule] = {
            reason: counts.get(f"{kind}:{name}" if name else kind, 0)
            for reason, name in names.items()
        }
    drops["read"]["too_long"] = counters["too-long-filter"].get("filtered", 0)
    news = counters.get("realnews-domain-filter", {})
    drops["read"]["domain_not_listed"] = sum(
        news.get(f"filtered:{name}", 0) for name in ("bad_domain", "bad_subdomain")
    )
    drops["clean_pages"]["few_paragraphs"] = counters.get("paragraph-filter", {}).get("filtered", 0)
    repeats = counters.get("dedupe-lines", {})
    drops["dedup_text"] = {
        "repeated_text": sum(
            repeats.get(f"line-filtered:{name}", 0)
            for name in ("global_duplicate", "local_duplicate")
        )
    }
    return drops


def our_drops(rules, theirs):
    """Return the numbers of the same rules; a reason that the released code lacks has none."""
    drops = {}
    for rule, reasons in theirs.items():
        dropped = rules[rule]["dropped"] if rule in rules else {}
        drops[rule] = dict.fromkeys(reasons, 0) | {name: n for name, n in dropped.items() if n}
    return drops


def test_the_same_pages_are_kept_with_the_same_text_after_cleaning(theirs, ours):
    assert len(theirs.cleaned) > 6000
    assert dict(ours.cleaned) == theirs.cleaned


def test_the_same_english_pages_are_kept_with_the_same_text_in_the_end(theirs, ours):
    assert len(theirs.final) > 900
    assert {url: page[:2] for url, page in ours.final.items()} == {
        url: (page.text, page.timestamp) for url, page in theirs.final.items()
    }


def test_the_split_is_that_of_the_released_code(theirs, ours, released):
    held_out = released.get_hashed_url_filter_fn(lambda value: value % 1000 == 0)
    assert {url: page[3] for url, page in ours.final.items()} == {
        url: "validation" if held_out(page) else "train" for url, page in theirs.final.items()
    }


def test_every_counter_is_that_of_the_released_code(theirs, ours):
    expected = their_drops(theirs.counters)
    assert our_drops(ours.rules, expected) == expected
    kept = {name: counts["kept"] for name, counts in ours.rules.items()}
    assert kept["clean_lines"] == theirs.counters["clean-page"]["line-passed"]
    assert kept["dedup_text"] == theirs.counters["dedupe-lines"]["line-passed"]
    assert kept["language"] == theirs.counters["english-filter"]["passed"]


MUTATED_PAGES = 4600
WORD_LISTS = {"en": "en.25e679f", "de": "de", "fr": "fr"}


@pytest.fixture(scope="module")
def mutated(released, wet_files, english_words, tmp_path_factory):
    """Six WET files of 4,600 mutated pages, and their addresses."""
    texts = [
        page.text
        for path in wet_files
        for page in list(released.split_wet_file(str(path)))[:: 9 if "novels" in path.name else 1]
        if page.text.count("\n") < 1000
    ]
    draw = random.Random(3939)
    mutator = Mutator(draw, texts, list(filter(None, english_words)))
    records = [mutator.record() for _ in range(MUTATED_PAGES)]
    assert mutator.listed > len(mutator.words)
    return write_wet_files(tmp_path_factory.mktemp("mutated"), records, draw), mutator.addresses


@pytest.fixture(scope="module")
def recipes(mutated, real_data, tmp_path_factory):
    """Presets of the group c4 by name, with their files of words, domains and addresses."""
    folder = tmp_path_factory.mktemp("lists")
    (folder / "domains.json").write_text(json.dumps(NEWS))
    urls = mutated[1][::2]
    (folder / "urls.txt").write_text("\n".join(urls))
    paths = {name: real_data / "badwords" / file for name, file in WORD_LISTS.items()}
    words = {name: sorted(bad_words.read_words(path, name)) for name, path in paths.items()}
    english, english_path = {"en": words["en"]}, {"en": paths["en"]}
    Recipe = released_c4.Recipe  # noqa: N806
    return {
        "en": (Recipe(bad_words=english), english_path, {}),
        "en.noblocklist": (Recipe(), {}, {}),
        "en.noclean": (Recipe(clean=False, dedupe=False), {}, {}),
        "webtextlike": (
            Recipe(bad_words=english, urls=urls),
            english_path,
            {"urls": folder / "urls.txt"},
        ),
        "realnewslike": (
            Recipe(bad_words=english, domains=NEWS),
            english_path,
            {"domains": folder / "domains.json"},
        ),
        "multilingual": (
            Recipe(
                clean=False, paragraphs=True, bad_words=words, fraction=0.999, languages=LANGDETECT
            ),
            paths,
            {},
        ),
    }


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("en", 200),
        ("en.noblocklist", 200),
        ("en.noclean", 400),
        ("webtextlike", 90),
        ("realnewslike", 100),
        ("multilingual", 500),
    ],
)
def test_mutated_pages_are_kept_with_the_same_text_and_counters(
    name, pages, released, mutated, recipes, english_punkt, tmp_path
):
    recipe, words, select = recipes[name]
    if recipe.domains and released.tfds.core.lazy_imports.tldextract is None:
        pytest.skip("tldextract is not installed; make parity installs it")
    theirs = released_c4.run(released, mutated[0], recipe)
    settings = load_settings(
        {
            "use": ["cleaning/tfds", f"c4/{name}"],
            "vocab": {"language_parts": {"en": 1}},
            "tokens": {"languages": ["en"]},
        }
    )
    result = built(
        tmp_path, settings, mutated[0], punkt={"en": english_punkt}, bad_words=words, select=select
    )
    held_out = released.get_hashed_url_filter_fn(lambda value: value % 1000 == 0)
    assert len(theirs.final) > pages
    assert theirs.cleaned.items() <= set(result.cleaned)  # older copies are cleaned too
    assert result.final == {
        url: (page.text, page.timestamp, page.language, "validation" if held_out(page) else "train")
        for url, page in theirs.final.items()
    }
    expected = their_drops(theirs.counters)
    if recipe.urls is not None:  # they select the newest copies first, with the same result
        del expected["read"], expected["newest_of_url"]
    assert our_drops(result.rules, expected) == expected


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


def test_20000_addresses_are_of_the_news_domains_that_tldextract_finds(released):
    if released.tfds.core.lazy_imports.tldextract is None:
        pytest.skip("tldextract is not installed; make parity installs it")
    listed = {
        name: frozenset(allowed) if isinstance(allowed, list) else None
        for name, allowed in NEWS.items()
    }
    draw = random.Random(3003)
    differing, found = [], 0
    for _ in range(20_000):
        scheme, user, part, domain, end, path = map(draw.choice, ADDRESSES.values())
        url = f"{scheme}{user}{part}{'.' if part else ''}{domain}{end}{path}"
        page = released.PageFeatures(url=url, text="")
        page.normalized_url = released.normalize_url(url)
        expected = released.is_realnews_domain(page, NEWS)
        found += expected
        if url_filter.is_listed_domain(normalize_url(url), listed) != expected:
            differing.append(url)
    assert differing == []
    assert found > 1000
