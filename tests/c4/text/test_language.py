import langdetect
import pytest

from t5repro.c4.text import language
from t5repro.c4.text.language import Detected
from t5repro.c4.wet import pages as wet_pages

LANGUAGES = frozenset({"en", "de"})


@pytest.fixture(scope="module")
def real_texts(real_data):
    texts = []
    for name, step in (("real_html", 40), ("novels_ron", 300), ("novels_fra", 300)):
        pages = wet_pages.read_pages(real_data / "wet" / f"{name}.warc.wet.gz")
        texts += [page.text for page in pages if page.fault is None and page.record % step == 1]
    return texts


def test_probabilities_are_those_of_langdetect_to_the_last_bit(real_texts):
    langdetect.DetectorFactory.seed = language.SEED
    expected = []
    for text in real_texts:
        best = langdetect.detect_langs(text)[0]
        expected.append(Detected(best.lang, best.prob))
    assert language.detect_languages(real_texts) == expected
    assert len(expected) > 30
    assert {"de", "en", "fr", "ro"} <= {detected.language for detected in expected}


def test_an_answer_does_not_depend_on_the_texts_beside_it(real_texts):
    together = language.detect_languages(real_texts)
    assert language.detect_languages(real_texts[::-1]) == together[::-1]
    assert [language.detect_languages([text])[0] for text in real_texts[:5]] == together[:5]


def test_a_text_without_letters_has_no_language():
    assert (
        language.detect_languages(["", "12345 67 !", "http://example.com/only"])
        == [Detected("", 0.0)] * 3
    )
    assert language.detect_languages([]) == []


def test_langdetect_answers_where_langdetect_rs_is_absent(real_texts, monkeypatch):
    texts = [*real_texts, "", "12345 67 !"]
    fast = language.detect_languages(texts)
    monkeypatch.setattr(language, "langdetect_rs", None)
    assert language.detect_languages(texts) == fast
    assert language.detector_version() == f"langdetect 1.0.9, seed {language.SEED}"


def test_plain_sentences_are_recognised():
    detected = language.detect_languages(
        [
            "The house at the end of the street was sold last week to a young family.",
            "Das Haus am Ende der Straße wurde letzte Woche an eine junge Familie verkauft.",
            "La maison au bout de la rue a été vendue la semaine dernière à une famille.",
            "Casa de la capătul străzii a fost vândută săptămâna trecută unei familii tinere.",
        ]
    )
    assert [result.language for result in detected] == ["en", "de", "fr", "ro"]
    assert all(result.probability > 0.99 for result in detected)


@pytest.mark.parametrize(
    ("detected", "fault"),
    [
        (Detected("en", 0.99), None),
        (Detected("de", 1.0), None),
        (Detected("en", 0.98999), language.UNCERTAIN),
        (Detected("pl", 0.5), language.UNCERTAIN),
        (Detected("pl", 0.999), language.NOT_WANTED),
        (Detected("", 0.0), language.UNDETECTED),
    ],
)
def test_the_threshold_has_two_sides(detected, fault):
    assert language.language_reason(detected, languages=LANGUAGES, min_probability=0.99) == fault


def test_the_manifest_names_detector_and_version():
    assert language.detector_version() == "langdetect-rs 0.1.0, seed 0"
