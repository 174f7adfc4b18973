"""Arms of equal settings but for the seed are one experiment."""

from typing import Any

import pytest

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.sections.corpus import CorpusSettings
from t5repro.report.experiments import group_arms, introduction

BASE = {"name": "a", "row": "Baseline average", "change": {"seed": 0}}


def grouped(*experiments: dict[str, Any]) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Return arms and seeds of each experiment of the page."""
    settings = Settings.model_validate({"experiments": list(experiments)})
    names = [item.name for item in settings.experiments]
    return [(group.arms, group.seeds) for group in group_arms(settings, names)]


def test_arms_that_differ_in_the_seed_alone_are_one_experiment() -> None:
    assert grouped(
        BASE,
        {"name": "other", "change": {"pretrain.steps": 5}},
        {**BASE, "name": "b", "change": {"seed": 4}},
        {"name": "more", "change": {"pretrain.steps": 5, "seed": 4}},
    ) == [(("a", "b"), (0, 4)), (("other", "more"), (0, 4))]


@pytest.mark.parametrize(
    "change",
    [
        {"pretrain.from_experiment": "a", "pretrain.steps": 25},
        {"finetune.start_from": "a"},
        {"finetune.groups": {"g": {"tasks.names": ["squad"], "finetune.start_from": "a"}}},
    ],
)
def test_seeds_that_continue_their_own_seed_are_one_experiment(change: dict[str, Any]) -> None:
    first = {"name": "a", "change": {"tasks.names": ["squad"]}, "seeds": [1, 2]}
    run = load_settings({"experiments": [first, {"name": "b", "change": change, "seeds": [1, 2]}]})
    groups = group_arms(run, [entry.name for entry in run.experiments])
    assert [experiment.arms for experiment in groups] == [("a", "a_seed_2"), ("b", "b_seed_2")]


def test_equal_arms_of_one_seed_are_not_counted_twice() -> None:
    assert grouped(BASE, {**BASE, "name": "b"}) == [(("a",), (0,)), (("b",), (0,))]


def test_arms_for_different_rows_of_the_paper_are_separate_experiments() -> None:
    other = {"name": "b", "row": "No pre-training", "change": {"seed": 1}}
    assert grouped(BASE, other) == [(("a",), (0,)), (("b",), (1,))]


def test_the_seed_is_not_listed_as_a_change_if_there_are_several() -> None:
    settings = Settings.model_validate(
        {"experiments": [BASE, {**BASE, "name": "b", "change": {"seed": 1}}]}
    )
    (group,) = group_arms(settings, ["a", "b"])
    assert (group.name, dict(group.changes), group.has_seeds) == ("a", {}, True)
    assert group.paper_row == "“Baseline average” of tables 1, 16"


def test_the_introduction_says_whether_the_text_is_the_users_own() -> None:
    own = Settings().model_copy(update={"corpus": CorpusSettings(files=["a.txt"])})
    assert "2 experiments on 1 task, from own text to the scores" in introduction(own, 2, 1)
    assert "from the crawl to the scores" in introduction(Settings(), 2, 1)


def test_the_introduction_names_given_weights() -> None:
    given = Settings.model_validate(
        {"pretrain": {"steps": 0, "start_from": "t5_small"}, "finetune": {"steps": 1200}}
    )
    text = introduction(given, 1, 1)
    assert "from given weights to the scores" in text
    assert "weights are those of t5_small, and it is fine-tuned for 1,200 steps" in text
