"""Rows with options from files to scores: T5 writes a letter, BERT and GPT score the options."""

from typing import Any

import pytest
from original_files_run import run_in_a_new_process

WORDS = {"race": ["A", "B", "C", "D"], "mine": ["X", "Y", "Z"]}

pytestmark = pytest.mark.keras


@pytest.fixture(scope="module", params=list(WORDS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, run_in_a_new_process(folder, request.param)


def test_the_settings_are_valid_and_a_row_has_a_text_for_each_option(run: Any) -> None:
    task, facts = run
    assert (facts["validate"], facts["texts"]) == (0, len(WORDS[task]))
    assert facts["labels"][task] == WORDS[task]


def test_a_network_of_labels_learns_which_option_is_right(run: Any) -> None:
    task, facts = run
    for system in facts["scores"].keys() - {"text"}:
        assert facts["scores"][system]["metrics"]["accuracy"] >= 90, system
        assert facts["scores"][system]["baseline"]["metrics"]["accuracy"] < 60
        assert set(facts["answers"][system]) == set(WORDS[task])


def test_t5_is_scored_by_the_same_words(run: Any) -> None:
    task, facts = run
    scores, answers = facts["scores"]["text"], facts["answers"]["text"]
    assert len(answers) == scores["examples"] == 16
    # After two steps it may write anything; what is no name of an option is invalid.
    assert scores["invalid"] == sum(answer not in WORDS[task] for answer in answers)
