"""Rows with options from files to scores: T5 writes a letter, BERT and GPT score the options."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

SUPPORT = ROOT / "tests/support"
WORDS = {"race": ["A", "B", "C", "D"], "mine": ["X", "Y", "Z"]}

pytestmark = pytest.mark.keras


@pytest.fixture(scope="module", params=list(WORDS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp(request.param)
    (folder / "configs").symlink_to(ROOT / "configs")
    process = subprocess.run(
        [sys.executable, str(SUPPORT / "choice_run.py"), ".", request.param],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{SUPPORT}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return request.param, json.loads(process.stdout.splitlines()[-1])


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
