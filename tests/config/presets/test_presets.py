"""Presets: each sets valid settings, replaces others of its group, and is added in one place."""

from pathlib import Path
from typing import Any

import pytest

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.generate import generated_files
from t5repro.config.load import load_settings
from t5repro.config.presets import cleaning, systems
from t5repro.config.presets.apply import apply_presets
from t5repro.config.presets.page import presets_page
from t5repro.config.presets.preset import Preset
from t5repro.config.presets.table import GROUPS, in_force, names, preset
from t5repro.config.schema import Settings
from t5repro.config.setting_names import leaf_names
from t5repro.config.tree import leaves_of, lookup
from t5repro.errors import SettingsError


def experiment_of(run: dict[str, Any], change: dict[str, Any]) -> Settings:
    experiments = [{"name": "baseline"}, {"name": "other", "change": change}]
    return settings_of_experiment(load_settings({**run, "experiments": experiments}), "other")


def load_presets(*used: str, **values: Any) -> Settings:
    return load_settings({"use": list(used), **values})


@pytest.mark.parametrize("name", names())
def test_a_preset_sets_settings_that_exist_and_has_a_source(name: str) -> None:
    paths = [".".join(map(str, path)) for path, _ in leaves_of(preset(name).values)]
    assert paths
    assert set(paths) <= set(leaf_names())
    assert preset(name).source
    assert all(preset(other) for other in preset(name).uses)


def test_the_rules_of_the_final_paper_are_the_defaults() -> None:
    defaults = Settings().model_dump(mode="json")
    values = leaves_of(cleaning.PRESETS["paper"].values)
    assert all(lookup(defaults, *path) == value for path, value in values)
    assert load_presets("cleaning/paper").c4 == load_settings({}).c4


def test_the_corpora_have_their_names_in_tfds() -> None:
    assert sorted(GROUPS["c4"].presets) == [
        "de",
        "en",
        "en.noblocklist",
        "en.noclean",
        "fr",
        "multilingual",
        "realnewslike",
        "ro",
        "webtextlike",
    ]


@pytest.mark.parametrize("name", GROUPS["c4"].presets)
def test_an_experiment_may_use_each_corpus(name: str) -> None:
    language = name if name in ("de", "fr", "ro") else "en"
    change = {"vocab.language_parts": {language: 1}, "tokens.languages": [language]}
    changed = experiment_of({}, {"use": [f"c4/{name}"], **change}).c4
    assert language in changed.languages
    assert (len(changed.languages) > 1) == (name == "multilingual")
    assert changed.clean.enabled == (name not in ("en.noclean", "multilingual"))
    assert bool(changed.select.domains) == (name == "realnewslike")
    assert bool(changed.select.urls) == (name == "webtextlike")


ENGLISH = {"vocab.language_parts": {"en": 1}, "tokens.languages": ["en"]}


def test_no_value_remains_of_a_preset_that_an_experiment_replaces() -> None:
    run = {"use": ["c4/en.noclean"], **ENGLISH}
    assert load_settings(run).c4.dedup.unit == "off"
    assert experiment_of(run, {"use": ["c4/en"]}).c4 == load_presets("c4/en", **ENGLISH).c4
    albert = {"use": ["systems/albert"], "tasks": {"names": ["glue_rte"], "segments": True}}
    changed = experiment_of(albert, {"use": ["systems/roberta"]})
    assert changed.use == ["systems/roberta", "sizes/roberta_base"]
    assert (changed.model.block_groups, changed.model.token_types) == (0, 0)
    assert changed.pretrain.masked_lm.pair_task == "none"


def test_a_preset_of_a_later_group_stays_above_one_that_an_experiment_replaces() -> None:
    changed = experiment_of({"use": ["c4/en.noclean"], **ENGLISH}, {"use": ["cleaning/tfds"]})
    assert changed.use == ["cleaning/tfds", "c4/en.noclean"]
    assert (changed.c4.dedup.unit, changed.c4.punkt_language) == ("off", "en")


def test_settings_of_the_run_file_stay_when_an_experiment_replaces_a_preset() -> None:
    run = {"use": ["cleaning/paper-v1"], "c4.clean.max_word_chars": 50, **ENGLISH}
    changed = experiment_of(run, {"use": ["c4/en"]}).c4
    assert (changed.clean.max_word_chars, changed.clean.min_sentences) == (50, 5)
    rules = experiment_of({"pretrain.steps": 7}, {"use": ["objectives/ul2"]}).pretrain
    assert (rules.steps, len(rules.denoisers)) == (7, 7)


def test_a_preset_of_an_experiment_replaces_what_the_run_file_states() -> None:
    assert experiment_of({"model.d_model": 8}, {"use": ["sizes/small"]}).model.d_model == 512


def test_a_system_brings_its_published_size_unless_another_one_is_used() -> None:
    assert in_force(["systems/bert"]) == ["systems/bert", "sizes/bert_base"]
    used = ["sizes/bert_tiny", "systems/bert"]
    assert in_force(used) == ["systems/bert", "sizes/bert_tiny"]
    assert in_force(["sizes/bert_mini"], used) == ["systems/bert", "sizes/bert_mini"]


def test_the_records_of_jobs_have_the_name_of_the_size() -> None:
    assert load_presets("sizes/small").model.published == "small"


def test_settings_with_presets_are_read_back_unchanged() -> None:
    settings = load_presets("sizes/small", "mixtures/all_mix", **{"model.d_ff": 9})
    assert load_settings(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"use": ["sizes/smal"]},
            r"use names 'sizes/smal'; presets of sizes are \['sizes/small', .*"
            r"'sizes/xlnet_mini'\]; nearest: 'sizes/small'; "
            "`t5repro config presets` prints what each sets",
        ),
        (
            {"use": ["size/small"]},
            "'size/small'; presets begin with cleaning/, c4/, machines/, objectives/, systems/, "
            "sizes/, mixtures/; nearest: 'sizes/small'",
        ),
        ({"use": ["bert"]}, "use names 'bert'; presets begin with .*nearest: "),
        ({"use": "systems/bert"}, r"use is 'systems/bert'; it must be a list of presets, such as"),
        ({"use": [3]}, r"use is \[3\]; it must be a list"),
        (
            {"use": ["sizes/small", "sizes/base"]},
            "use names 'sizes/small' and 'sizes/base', which replace each other; keep one",
        ),
        (
            {"use": ["mixtures/all_mix"], "finetune.groups": {"a": {"tasks.names": ["squad"]}}},
            "use names 'mixtures/all_mix', but finetune.groups is also set; remove one",
        ),
    ],
)
def test_a_preset_that_cannot_be_used_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(values)
    with pytest.raises(SettingsError, match=message) as refused:
        experiment_of({}, values)
    assert (refused.value.experiment, refused.value.keys) == ("other", ("use",))


@pytest.mark.parametrize(
    ("setting", "value", "use"),
    [
        ("c4.recipe", "tfds", "cleaning/tfds"),
        ("c4.variant", "en.noclean", "c4/en.noclean"),
        ("system", "bert", "systems/bert"),
        ("model.published", "small", "sizes/small"),
        ("tasks.mixture", "all_mix", "mixtures/all_mix"),
    ],
)
def test_a_former_setting_is_refused_with_the_preset(setting: str, value: str, use: str) -> None:
    message = rf"{setting} is '{value}', but presets are named in use; write use: \[{use}\]"
    with pytest.raises(SettingsError, match=message):
        load_settings({setting: value})
    with pytest.raises(SettingsError, match=message):
        experiment_of({}, {setting: value})
    with pytest.raises(SettingsError, match=message):
        load_settings({"finetune.groups": {"x": {"tasks.names": ["squad"], setting: value}}})


def test_a_preset_below_a_complete_run_file_is_refused_because_it_has_no_effect() -> None:
    """Otherwise `--configfile configs/base.yaml mine.yaml` would ignore it in silence."""
    complete = load_settings({}).model_dump(mode="json")
    message = "use names 'sizes/small', but all of its settings are also set to other values, such "
    with pytest.raises(SettingsError, match=message):
        load_settings(complete, {"use": ["sizes/small"]})
    assert load_settings(complete, {"use": ["sizes/base"]}).model.d_model == 768


def test_a_preset_is_added_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of the group's dictionary: it is applied, listed, suggested and in the schema."""
    values = {"pretrain": {"dropout_rate": 0.3}}
    toy = Preset(values, "Nobody, 2030, table 9", uses=("sizes/small",))
    monkeypatch.setitem(systems.PRESETS, "toy", toy)
    settings = experiment_of({}, {"use": ["systems/toy"]})
    assert (settings.pretrain.dropout_rate, settings.model.d_model) == (0.3, 512)
    row = "| `systems/toy` | `pretrain.dropout_rate`: 0.3; uses `sizes/small` | Nobody, 2030, table"
    assert row in presets_page()
    with pytest.raises(SettingsError, match="nearest: 'systems/toy'"):
        load_presets("systems/toi")
    assert "systems/toy" in generated_files()[Path("configs/schema.json")]


def test_a_tree_without_presets_is_unchanged() -> None:
    tree = load_settings({}).model_dump(mode="json")
    apply_presets(tree, {"seed": 3})
    assert tree == load_settings({}).model_dump(mode="json")
