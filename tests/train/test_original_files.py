"""Tasks of other papers from the files of their publishers to the scores of a tiny BERT."""

from typing import Any

import pytest
from original_files_run import run_in_a_new_process

# Task -> metric, and the words of its answers; the tiny rows are learnt nearly by heart.
TASKS: dict[str, tuple[str, set[str]]] = {
    "snli": ("accuracy", {"entailment", "neutral", "contradiction"}),
    "scitail": ("accuracy", {"entailment", "neutral"}),
    "newsqa": ("f1", {"green"}),
    "conll_2003": ("f1", {"O", "B-PER", "B-LOC", "B-ORG"}),
}
LEFT_OUT = {"snli": {"no_gold_label": 1}, "scitail": {"no_gold_label": 1}}

pytestmark = pytest.mark.keras


@pytest.fixture(scope="module", params=list(TASKS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, run_in_a_new_process(folder, request.param)


def test_every_row_is_read_and_those_without_a_label_are_counted(run: Any) -> None:
    task, facts = run
    assert facts["validate"] == 0
    for split, expected in (("train", 64), ("validation", 16)):
        counted = facts["read"][split]
        left_out = LEFT_OUT.get(task, {})
        assert counted["rows"] == expected - sum(left_out.values())
        assert counted["left_out"] == left_out


def test_a_tiny_bert_learns_the_task(run: Any) -> None:
    task, facts = run
    metric, words = TASKS[task]
    scores = facts["scores"]["bert"]
    assert scores["metrics"][metric] >= 90
    assert scores["baseline"]["metrics"][metric] < 60
    answers = facts["answers"]["bert"]
    assert {word for answer in answers for word in answer.split()} <= words
    assert len(answers) == scores["examples"]
