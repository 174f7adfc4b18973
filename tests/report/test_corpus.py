"""The corpus on the page: counts and shares of each rule, and hostile excerpts made harmless."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import ArtifactError
from t5repro.report.corpus import EXCERPT_CHARS, corpora, percentage, rule_title, safe_text

COUNTERS: dict[str, Any] = {
    "rules": [
        {
            "rule": "read",
            "unit": "pages",
            "in": 1200,
            "dropped": {"too_long": 191, "no_url": 9},
            "kept": 1000,
        },
        {"rule": "clean_lines", "unit": "lines", "in": 90, "dropped": {"policy": 9}, "kept": 81},
        {
            "rule": "clean_pages",
            "unit": "pages",
            "in": 1000,
            "dropped": {"lorem_ipsum": 100, "few_sentences": 300},
            "kept": 600,
        },
    ],
    "languages": {
        "en": {
            "detected_pages": 610,
            "pages_with_bad_words": 10,
            "rules": [
                {
                    "rule": "language",
                    "unit": "pages",
                    "in": 620,
                    "dropped": {"language_uncertain": 10},
                    "kept": 610,
                }
            ],
            "train_pages": 590,
            "train_characters": 123456,
            "validation_pages": 10,
            "validation_characters": 2000,
        }
    },
    "other_languages": {"it": 4},
    "samples": {"few_sentences": [{"url": "a.example", "text": "One."}] * 5, "policy": []},
}


def manifest(folder: Path, counters: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "manifest.json"
    path.write_text(json.dumps({"counters": counters}), encoding="utf-8")
    return path


def test_pages_are_counted_from_the_first_step_to_the_last(tmp_path: Path) -> None:
    (corpus,) = corpora({"baseline": manifest(tmp_path, COUNTERS)})
    assert (corpus.read, corpus.kept, corpus.kept_share) == ("1,200", "600", "50.0 %")
    assert (corpus.without_url, corpus.steps[0].unit) == ("9", "records")
    assert [step.title for step in corpus.steps] == ["read", "clean lines", "clean pages"]


def test_the_share_of_a_reason_is_relative_to_the_input_of_its_step(tmp_path: Path) -> None:
    (corpus,) = corpora({"baseline": manifest(tmp_path, COUNTERS)})
    most, least = corpus.steps[2].reasons
    assert (most.name, most.count, most.share, most.width) == (
        "few sentences",
        "300",
        "30.0 %",
        "30.0",
    )
    assert (least.name, least.share) == ("lorem ipsum", "10.0 %")


def test_signals_are_shares_of_the_pages_that_reading_kept(tmp_path: Path) -> None:
    (without,) = corpora({"baseline": manifest(tmp_path / "1", COUNTERS)})
    assert without.signals == ()
    signals = {"noai": 20, "unknown": 250, "mentions_licence_link": 0}
    (corpus,) = corpora({"baseline": manifest(tmp_path / "2", {**COUNTERS, "signals": signals})})
    assert corpus.read_pages == "1,000"
    assert [(signal.name, signal.count, signal.share) for signal in corpus.signals] == [
        ("unknown", "250", "25.0 %"),
        ("noai", "20", "2.0 %"),
        ("mentions licence link", "0", "0.0 %"),
    ]


def test_languages_have_their_size(tmp_path: Path) -> None:
    (corpus,) = corpora({"baseline": manifest(tmp_path, COUNTERS)})
    assert corpus.languages[0].train_characters == "123,456"
    assert corpus.other_languages == "it 4"


def test_arms_with_the_same_corpus_share_a_section(tmp_path: Path) -> None:
    one, other = manifest(tmp_path / "1", COUNTERS), manifest(tmp_path / "2", COUNTERS)
    more = manifest(tmp_path / "3", {**COUNTERS, "samples": {}})
    answer = corpora({"a": one, "b": other, "c": more})
    assert [item.arms for item in answer] == ["a, b", "c"]


def test_a_reason_has_a_few_samples_and_one_without_any_is_omitted(tmp_path: Path) -> None:
    (corpus,) = corpora({"baseline": manifest(tmp_path, COUNTERS)})
    assert [(item.rule, len(item.excerpts)) for item in corpus.samples] == [("few sentences", 3)]


def test_a_missing_manifest_names_its_stage(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"manifest\.json is missing; run the stage c4"):
        corpora({"baseline": tmp_path / "manifest.json"})


def test_a_manifest_without_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"has no counters \['rules', 'languages'\]"):
        corpora({"baseline": manifest(tmp_path, {})})


def test_a_share_of_zero_is_empty() -> None:
    assert (percentage(0, 0), percentage(1, 3), percentage(0, 9)) == ("", "33.3 %", "0.0 %")


def test_titles_of_rules_are_words() -> None:
    assert rule_title("no_terminal_punctuation") == "no terminal punctuation"
    assert rule_title("newest_of_url") == "newest of URL"


@given(st.text(st.characters(), max_size=600))
def test_an_excerpt_is_one_line_of_harmless_characters(text: str) -> None:
    safe = safe_text(text)
    assert len(safe) <= EXCERPT_CHARS + 2
    assert safe.encode("utf-8").decode("utf-8") == safe
    assert not any(character in safe for character in "\n\r\x00\u202e\u2066\x1b")


def test_ordinary_text_is_unchanged() -> None:
    assert safe_text("Füße, naïve, România … 5 > 3 & “q”") == "Füße, naïve, România … 5 > 3 & “q”"
