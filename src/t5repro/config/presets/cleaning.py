"""Rules by which C4 cleans a page and removes duplicates, in three published versions (D-003)."""

from typing import Any

from t5repro.config.presets.preset import Preset


def _rules(
    *, sentences: int, words: int, unit: str = "three_sentence_span", punkt_language: str = ""
) -> dict[str, Any]:
    return {
        "c4": {
            "clean": {
                "max_page_chars": 190_000,
                "max_word_chars": 1000,
                "min_words_per_line": words,
                "min_sentences": sentences,
                "bad_words": "page",
            },
            "dedup": {"unit": unit, "min_sentences": sentences},
            "punkt_language": punkt_language,
        }
    }


PRESETS = {
    "paper": Preset(_rules(sentences=3, words=5), "Raffel et al., 2020, section 2.2"),
    "paper-v1": Preset(
        _rules(sentences=5, words=3), "first version of the paper, arXiv:1910.10683v1, section 2.2"
    ),
    # English parameters split every page, whatever its language.
    "tfds": Preset(_rules(sentences=3, words=5, unit="line", punkt_language="en"), "TFDS 3.1.0"),
}
