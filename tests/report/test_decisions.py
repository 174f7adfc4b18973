"""The choices in force: every decision is named, with the value of each experiment."""

import re

from checkout import ROOT

from t5repro.config.load import leaf_names
from t5repro.config.schema import Settings
from t5repro.report.decisions import CHOICES, all_settings, in_force, switched
from t5repro.report.experiments import groups

DECISIONS = ROOT / "docs/decisions"


def decisions() -> list[tuple[str, str, str]]:
    """Return number, topic and switch of every row of the decisions' table."""
    rows = [
        line.strip("| \n").split(" | ")
        for line in (DECISIONS / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| [D-")
    ]
    return [(row[0][1:6], row[1], row[5]) for row in rows]


def test_every_decision_is_a_choice_of_the_page_under_its_own_topic() -> None:
    listed = [(choice.decision, choice.topic) for choice in CHOICES if choice.decision]
    assert listed == [(number, topic) for number, topic, _ in decisions()]


def test_a_decision_with_a_switch_shows_it_and_one_without_says_what_was_taken() -> None:
    known = set(leaf_names())
    shown = {choice.decision: choice for choice in CHOICES}
    for number, _, switch in decisions():
        named = {name for name in re.findall(r"`([a-z0-9_.]+)`", switch) if name in known}
        choice = shown[number]
        assert set(choice.settings) <= known
        assert bool(choice.settings) != bool(choice.fixed)
        assert bool(named & set(choice.settings)) or not named - {"data.sources"}, number


def test_a_value_of_each_experiment_stands_beside_its_question() -> None:
    settings = Settings.model_validate(
        {
            "experiments": [
                {"name": "a"},
                {"name": "b", "change": {"tasks.text.copa_target": "code", "pretrain.steps": 0}},
                {"name": "c", "change": {"c4.dedup.unit": "line"}},
            ]
        }
    )
    listed = groups(settings, ["a", "b", "c"])
    answers = {item.decision: item for item in in_force(all_settings(settings, listed))}
    (unit,) = answers["D-027"].settings
    assert unit.values == ("three_sentence_span", "three_sentence_span", "line")
    assert unit.differs
    assert answers["D-034"].fixed.startswith("0.0")


def test_switches_away_from_their_defaults_are_named_with_their_value() -> None:
    assert switched(Settings()) == ""
    changed = Settings.model_validate(
        {"tasks": {"text": {"copa_target": "paper"}}, "evaluate": {"split": "test"}}
    )
    assert switched(changed) == "tasks.text.copa_target=paper; evaluate.split=test"


def test_a_long_value_does_not_stretch_the_list() -> None:
    files = {"wmt_en_fr": {"validation": ["a/rather/long/name.en", "a/rather/long/name.fr"]}}
    changed = Settings.model_validate({"tasks": {"files": files}})
    assert switched(changed) == "tasks.files=(its own)"
    answers = {
        item.decision: item
        for item in in_force(all_settings(changed, groups(changed, ["baseline"])))
    }
    assert answers["D-012"].settings[0].values == ("see all settings",)
