"""The corpora that are called C4: languages and selection of pages, by their names in TFDS.

They are built by the rules of the group `cleaning`. The lists of domains and URLs are raw files;
`data.sources` has their origin and hash (`docs/c4_variants.md`).
"""

from typing import Any

from t5repro.config.presets.preset import Preset

# TFDS identifies 107 languages by gcld3; langdetect knows these, and `und` is for all other pages.
LANGDETECT = [
    "af", "ar", "bg", "bn", "ca", "cs", "cy", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr",
    "gu", "he", "hi", "hr", "hu", "id", "it", "ja", "kn", "ko", "lt", "lv", "mk", "ml", "mr", "ne",
    "nl", "no", "pa", "pl", "pt", "ro", "ru", "sk", "sl", "so", "sq", "sv", "sw", "ta", "te", "th",
    "tl", "tr", "uk", "ur", "vi", "zh-cn", "zh-tw", "und",
]  # fmt: skip


def _corpus(
    *languages: str, domains: str = "", urls: str = "", probability: float = 0.99, **clean: Any
) -> dict[str, Any]:
    rules = {"enabled": True, "bad_words": "page", "bad_word_fraction": 1.0}
    paragraphs = {"min_paragraphs": 0, "paragraph_chars": 200}
    return {
        "c4": {
            "languages": list(languages),
            "require_pages": True,
            "select": {"domains": domains, "urls": urls},
            "clean": {**rules, **paragraphs, **clean},
            "min_language_probability": probability,
        }
    }


def _without_rules(corpus: dict[str, Any], *, unit: str, **changes: Any) -> dict[str, Any]:
    """Return a corpus without rules for lines, and with another unit of deduplication."""
    return {"c4": {**corpus["c4"], "dedup": {"unit": unit, "min_sentences": 0}, **changes}}


OWN_CRAWL = "released code, the C4 of one language by the pipeline of the English one"
PRESETS = {
    "en": Preset(_corpus("en"), "Raffel et al., 2020, section 2.2: English of crawl 2019-18"),
    "de": Preset(_corpus("de"), OWN_CRAWL),
    "fr": Preset(_corpus("fr"), OWN_CRAWL),
    "ro": Preset(_corpus("ro"), OWN_CRAWL),
    "en.noblocklist": Preset(
        _corpus("en", bad_words="off"), "AllenAI's release of C4, without the list of bad words"
    ),
    "en.noclean": Preset(
        _without_rules(_corpus("en", enabled=False, bad_words="off"), unit="off"),
        "Raffel et al., 2020, section 3.4.1: unfiltered C4, length, address and language only",
    ),
    "realnewslike": Preset(
        _corpus("en", domains="lists/realnews_domains.json"),
        "Raffel et al., 2020, section 3.4.1: the news domains of RealNews (Grover)",
    ),
    "webtextlike": Preset(
        _corpus("en", urls="lists/openwebtext_urls.txt"),
        "Raffel et al., 2020, section 3.4.1: the URLs of OpenWebText, in crawls 2018-34 to 2019-30",
    ),
    "multilingual": Preset(
        _without_rules(
            _corpus(
                *LANGDETECT,
                probability=0.95,
                enabled=False,
                bad_word_fraction=0.999,
                min_paragraphs=3,
            ),
            unit="line",
            require_pages=False,
        ),
        "mC4, Xue et al., 2021: paragraphs instead of lines, each line once",
    ),
}
