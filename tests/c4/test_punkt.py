"""Punkt trained on crawls made here, and what pages are split with."""

import json

import pytest

from t5repro.c4 import punkt
from t5repro.c4.text.sentences import SentenceSplitter, Splitters
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import PUNKT_FILES, languages_to_train
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.errors import RawDataError
from t5repro.jobs.corpus import PunktJob

ENGLISH = (
    "The old house of Dr. Miller number {0} stood at the end of the street for years. "
    "Mr. Brown and Dr. Miller met there every week, and nobody knew what they talked about.\n"
    "Later Mr. Brown sold the house to Mrs. Green, who painted room {0} in white.\n"
    "Dr. Miller was not pleased, but Mrs. Green did not mind what Dr. Miller said of it.\n"
    "{1}"
)
GERMAN = (
    "Das alte Haus von Hrn. Schmidt mit der Nummer {0} stand lange am Ende der Straße. "
    "Hr. Braun und Hrn. Schmidt sah man dort jede Woche bzw. jeden Monat miteinander reden.\n"
    "Später kaufte Frau Grün das Haus bzw. den Garten und strich das Zimmer {0} weiß.\n"
    "Das gefiel Hrn. Schmidt gar nicht, aber Frau Grün bzw. ihr Mann lachte nur darüber.\n"
    "{1}"
)


@pytest.fixture
def crawl(write_wet, wet_record):
    files = []
    for number in range(3):
        records = []
        for page in range(20):
            own = f"It was page {number} {page} of them all."
            records.append(wet_record(f"http://en/{number}/{page}", ENGLISH.format(page, own)))
            own = f"Das war die Seite {number} {page} von allen."
            records.append(wet_record(f"http://de/{number}/{page}", GERMAN.format(page, own)))
        files.append(write_wet(records, name=f"{number}.wet.gz"))
    return files


def settings_of(**c4):
    values = {"languages": ["en", "de"], **c4}
    settings = Settings(
        c4=values, vocab={"language_parts": {"en": 1}}, tokens={"languages": ["en"]}
    )
    return stage_model("c4_punkt")(**stage_settings(settings, "c4_punkt"))


def train(folder, wet, **c4):
    punkt.train_punkt(PunktJob(settings_of(**c4), folder, folder / "manifest.json", wet=wet))
    return json.loads((folder / "manifest.json").read_text())


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.t*")}


def test_abbreviations_are_learned_for_each_language_from_its_own_pages(tmp_path, crawl):
    manifest = train(tmp_path / "p", crawl)
    english, german = (
        set((tmp_path / "p" / name / "abbrev_types.txt").read_text().split())
        for name in ("en", "de")
    )
    assert {"dr", "mr", "mrs"} <= english
    assert {"bzw", "hrn"} <= german
    assert not english & {"bzw", "hrn"}
    assert manifest["counters"]["languages"]["en"]["pages"] == 60
    assert manifest["counters"]["detector"].startswith("langdetect-rs")
    text = "They met Dr. Miller again. He was late."
    assert len(SentenceSplitter(tmp_path / "p" / "en").split(text)) == 2
    assert len(SentenceSplitter().split(text)) == 3


def test_parameters_do_not_depend_on_the_order_of_files_or_on_a_rerun(tmp_path, crawl):
    for number, files in enumerate((crawl, crawl[::-1], crawl[1:] + crawl[:1])):
        train(tmp_path / str(number), files)
    assert files_of(tmp_path / "0") == files_of(tmp_path / "1") == files_of(tmp_path / "2")
    train(tmp_path / "0", crawl)
    assert files_of(tmp_path / "0") == files_of(tmp_path / "1")


def test_the_sample_is_the_pages_with_the_smallest_ranks_whatever_their_order():
    texts = [
        ((bytes([number]), "f", number), f"line {number} is long enough") for number in range(9)
    ]
    results = []
    for order in (texts, texts[::-1], texts[4:] + texts[:4]):
        sample = punkt._Sample(60)
        for rank, text in order:
            sample.add(rank, text)
        results.append((sample.text(), sample.pages))
    assert results[0] == results[1] == results[2]
    assert results[0] == ("\n\n".join(text for _, text in texts[:3]), 3)


def test_a_repeated_line_is_learned_from_once():
    sample = punkt._Sample(1000)
    sample.add((b"1", "f", 0), "same\nown one")
    sample.add((b"2", "f", 1), "same\nown two\nsame")
    assert sample.text() == "same\nown one\n\nown two"


def test_a_language_without_pages_gets_empty_parameters(tmp_path, crawl):
    manifest = train(tmp_path / "p", crawl[:1], languages=["en", "ro"])
    assert manifest["counters"]["languages"]["ro"]["characters"] == 0
    assert sorted(path.name for path in (tmp_path / "p" / "ro").iterdir()) == list(PUNKT_FILES)
    assert len(SentenceSplitter(tmp_path / "p" / "ro").split("Dr. Miller came. He sat.")) == 3


@pytest.mark.parametrize(
    ("c4", "expected"),
    [
        ({}, ["en", "de"]),
        ({"punkt_parameters": {"en": "x"}}, ["de"]),
        ({"punkt_training": False}, []),
        ({"punkt_language": "en"}, ["en"]),
        ({"punkt_language": "en", "punkt_parameters": {"en": "x"}}, []),
        ({"languages": ["en", "und"]}, ["en"]),
    ],
)
def test_only_languages_without_given_parameters_are_trained(c4, expected):
    assert languages_to_train(settings_of(**c4).c4) == expected


@pytest.fixture
def trained(tmp_path, crawl):
    train(tmp_path / "p", crawl)
    return {name: tmp_path / "p" / name for name in ("en", "de")}


PAGES = [
    "The house of Dr. Miller was sold to a young family from the village last week.",
    "Das Haus von Hrn. Schmidt wurde bzw. wird an eine junge Familie im Dorf verkauft.",
    "La maison au bout de la rue a été vendue la semaine dernière à une jeune famille.",
]


def test_a_page_is_split_with_the_parameters_of_its_language_or_none(trained):
    splitters = Splitters(trained)
    assert [detected.language for detected in splitters.languages_of(PAGES)] == ["en", "de", "fr"]
    assert [len(splitters.for_text(text).split(text)) for text in PAGES] == [1, 1, 1]
    assert len(splitters.of("").split(PAGES[1])) == 3  # "Hrn." is no abbreviation without


def test_one_language_may_split_every_page(trained):
    splitters = Splitters(trained, only="en")
    assert len(splitters.for_text(PAGES[1]).split(PAGES[1])) == 3
    assert splitters.languages_of(PAGES) == [None] * 3
    assert Splitters({}, only="en").languages_of(PAGES) == [None] * 3
    assert splitters.of("de") is splitters.of("en") is splitters.for_text(PAGES[1])
    assert len(Splitters({}, only="en").for_text(PAGES[0]).split(PAGES[0])) == 2


def test_missing_parameters_are_named(tmp_path):
    with pytest.raises(RawDataError, match=r"c4\.punkt_parameters must name a folder"):
        Splitters({"en": tmp_path})
