"""The choices in force: every decision is listed, with the value of each experiment."""

import pytest
from checkout import ROOT

from t5repro.config.decisions import read_decisions
from t5repro.config.schema import Settings
from t5repro.config.setting_names import leaf_names
from t5repro.report.decisions import (
    HIDDEN_PREFIXES,
    all_settings,
    changed_choices,
    choices,
    choices_in_force,
)
from t5repro.report.experiments import group_arms


def test_the_choices_are_the_decisions_and_then_those_that_the_paper_varies() -> None:
    decisions = read_decisions(ROOT / "docs/decisions")
    expected = [
        (path.name[:5], decision.topic, decision.settings, decision.ours)
        for path, decision in decisions.items()
    ]
    numbered = [choice for choice in choices() if choice.number]
    actual = [(item.number, item.topic, item.settings, item.ours) for item in numbered]
    assert actual == expected, "cure: make generate"
    assert not any(choice.number for choice in choices()[len(numbered) :])


@pytest.mark.parametrize("choice", choices(), ids=lambda choice: choice.number or choice.topic)
def test_a_choice_has_visible_settings_or_our_behaviour(choice) -> None:
    assert choice.settings or choice.ours
    assert set(choice.settings) <= set(leaf_names())
    assert not [name for name in choice.settings if name.startswith(HIDDEN_PREFIXES)]


def test_each_choice_has_the_value_of_each_experiment() -> None:
    settings = Settings.model_validate(
        {
            "experiments": [
                {"name": "a"},
                {"name": "b", "change": {"tasks.text.copa_target": "code", "pretrain.steps": 0}},
                {"name": "c", "change": {"c4.dedup.unit": "line"}},
            ]
        }
    )
    experiments = group_arms(settings, ["a", "b", "c"])
    answers = {
        choice.number: choice for choice in choices_in_force(all_settings(settings, experiments))
    }
    (unit,) = answers["D-027"].settings
    assert unit.values == ("three_sentence_span", "three_sentence_span", "line")
    assert unit.differs
    assert answers["D-034"].ours.startswith("0.0")


def test_changed_choices_are_named_with_their_value() -> None:
    assert changed_choices(Settings()) == ""
    changed = Settings.model_validate(
        {"tasks": {"text": {"copa_target": "paper"}}, "evaluate": {"split": "test"}}
    )
    assert changed_choices(changed) == "tasks.text.copa_target=paper; evaluate.split=test"


def test_a_long_value_is_abbreviated() -> None:
    files = {"wmt_en_fr": {"validation": ["a/rather/long/name.en", "a/rather/long/name.fr"]}}
    changed = Settings.model_validate({"tasks": {"files": files}})
    assert changed_choices(changed) == "tasks.files=(its own)"
    listing = all_settings(changed, group_arms(changed, ["baseline"]))
    answers = {choice.number: choice for choice in choices_in_force(listing)}
    assert answers["D-012"].settings[0].values == ("see all settings",)
