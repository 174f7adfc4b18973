"""In what a run departs from the paper."""

import pytest

from t5repro.config.load import load_settings
from t5repro.report.comparability import PAPER_PAGES, departures, has_corpus_of_run


def test_the_baseline_on_the_papers_corpus_departs_in_nothing() -> None:
    assert departures(load_settings({}), [PAPER_PAGES]) == []


@pytest.mark.parametrize(
    ("section", "name", "value", "paper"),
    [
        ("pretrain", "steps", 1000, 524_288),
        ("pretrain", "targets_length", 114, 192),
        ("finetune", "inputs_length", 128, 512),
        ("finetune", "targets_length", 64, 512),
    ],
)
def test_another_length_of_a_training_is_a_departure(
    section: str, name: str, value: int, paper: int
) -> None:
    settings = load_settings({section: {name: value}})
    assert departures(settings, [PAPER_PAGES]) == [
        f"steps ({section}.{name} {value} instead of {paper})"
    ]


def test_own_text_is_a_departure_whatever_its_number_of_pages() -> None:
    settings = load_settings({"corpus": {"files": ["own.jsonl"]}})
    (departure,) = departures(settings, [PAPER_PAGES])
    assert departure == "data (files of corpus.files instead of the crawl)"


def test_a_corpus_of_another_size_is_a_departure() -> None:
    (departure,) = departures(load_settings({}), [650])
    assert departure == "data (a corpus of 650 pages instead of 364,868,892)"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"pretrain.steps": 0}, True),
        ({"use": ["c4/en.noclean"], "vocab.from_experiment": "baseline"}, False),
        ({"corpus": {"files": ["wiki.txt"], "language": "en"}}, False),
    ],
)
def test_the_corpus_of_an_experiment_is_what_its_row_of_the_paper_changes(
    change: dict[str, object], expected: bool
) -> None:
    experiments = [{"name": "baseline"}, {"name": "other", "change": change}]
    settings = load_settings({"tokens.languages": ["en"], "experiments": experiments})
    assert has_corpus_of_run(settings, "baseline")
    assert has_corpus_of_run(settings, "other") == expected
