"""Groups of tasks that an experiment fine-tunes separately."""

from pathlib import Path
from typing import Any

import pytest

from t5repro.config.experiments import names_at, settings_of_experiment
from t5repro.config.load import load_run_file, load_settings
from t5repro.config.schema import Settings
from t5repro.config.stage_settings import stage_settings
from t5repro.errors import SettingsError
from t5repro.plan.run_plan import RunPlan

GROUPS = {
    "glue": {"tasks.names": ["glue_cola", "glue_sst2"], "finetune.targets_length": 84},
    "squad": {"tasks.names": ["squad"], "finetune": {"targets_length": 97}},
}
OTHERS = {"squad": {"tasks.names": ["squad"]}}


def run_of(*experiments: tuple[str, dict[str, Any]], **values: Any) -> Settings:
    named = [{"name": name, "change": change} for name, change in experiments or (("a", {}),)]
    values.setdefault("finetune", {"groups": GROUPS})
    return load_settings({**values, "experiments": named})


def test_every_group_has_its_tasks_and_lengths_and_the_experiment_has_all_of_them() -> None:
    names = ["squad", "glue_sst2", "glue_cola"]
    run = run_of(evaluate={"beam_tasks": ["squad"]}, tasks={"names": names})
    assert run.tasks.names == names
    glue, squad = (settings_of_experiment(run, name) for name in ("a_glue", "a_squad"))
    assert (glue.tasks.names, glue.finetune.targets_length) == (["glue_cola", "glue_sst2"], 84)
    assert (squad.tasks.names, squad.finetune.targets_length) == (["squad"], 97)
    assert (glue.evaluate.beam_tasks, squad.evaluate.beam_tasks) == ([], ["squad"])
    assert glue.finetune.groups == {}


def test_the_tasks_of_a_run_are_those_of_its_groups() -> None:
    assert run_of().tasks.names == ["glue_cola", "glue_sst2", "squad"]


def test_a_group_of_a_named_mixture_has_its_tasks_and_rates() -> None:
    groups = {"all_of_glue": {"use": ["mixtures/glue_v002_proportional"]}, **OTHERS}
    run = run_of(finetune={"groups": groups})
    settings = settings_of_experiment(run, "a_all_of_glue")
    assert settings.finetune.mixture_examples == "released"
    assert settings.tasks.names == run.tasks.names[:-1]
    assert settings_of_experiment(run, "a_squad").finetune.mixture_examples == "rows"


def test_groups_have_their_own_fine_tuning_and_share_all_that_is_before_it() -> None:
    run = run_of(("a", {}), ("b", {"finetune.groups": OTHERS}), ("c", {"pretrain.steps": 7}))
    assert RunPlan(run).nodes_of("pretrain") == {"a": "a", "b": "a", "c": "c"}
    # The group squad of `a` has targets of 97 tokens, that of `b` those of the run.
    parts = ["a_glue", "a_squad", "b_squad", "c_glue", "c_squad"]
    assert RunPlan(run).nodes_of("finetune") == {name: name for name in parts}
    assert names_at(run, "evaluate_predict") == parts
    assert RunPlan(run).nodes_of("evaluate_score") == {"a": "a", "b": "b", "c": "c"}


def test_experiments_with_an_equal_group_share_its_fine_tuning_but_not_their_scores() -> None:
    run = run_of(("a", {}), ("b", {"finetune.groups": {"squad": GROUPS["squad"]}}))
    assert RunPlan(run).nodes_of("finetune")["b_squad"] == "a_squad"
    assert RunPlan(run).nodes_of("evaluate_score") == {"a": "a", "b": "b"}


def test_jobs_receive_the_settings_of_their_group_and_no_groups() -> None:
    received = stage_settings(settings_of_experiment(run_of(), "a_squad"), "finetune")
    assert received["tasks"]["names"] == ["squad"]
    assert received["finetune"]["targets_length"] == 97
    assert "groups" not in received["finetune"]


def test_an_experiment_with_tasks_of_its_own_fine_tunes_them_together() -> None:
    run = run_of(("a", {}), ("b", {"tasks.names": ["squad", "glue_cola"]}))
    assert settings_of_experiment(run, "b").finetune.groups == {}
    mixed = run_of(("a", {}), ("b", {"use": ["mixtures/glue_v002_proportional"]}))
    assert settings_of_experiment(mixed, "b").finetune.groups == {}


def test_seeds_repeat_every_group() -> None:
    experiments = [{"name": "a", "seeds": [0, 1]}]
    run = load_settings({"finetune": {"groups": GROUPS}, "experiments": experiments})
    assert names_at(run, "finetune") == ["a_glue", "a_squad", "a_seed_1_glue", "a_seed_1_squad"]
    assert settings_of_experiment(run, "a_seed_1_squad").seed == 1


def test_a_group_continues_the_same_group_or_an_experiment_without_groups() -> None:
    run_of(("a", {}), ("then", {"finetune.start_from": "a"}))
    run_of(("all", {"tasks.names": ["squad"]}), ("then", {"finetune.start_from": "all"}))
    each = {name: {**values, "finetune.start_from": "all"} for name, values in OTHERS.items()}
    run = run_of(("all", {"tasks.names": ["squad"]}), ("then", {"finetune.groups": each}))
    assert settings_of_experiment(run, "then_squad").finetune.start_from == "all"


@pytest.mark.parametrize(
    ("finetune", "message"),
    [
        ({"groups": {"x": {"pretrain.steps": 3}}}, "groups.x names no tasks"),
        (
            {"groups": {"x": {"tasks.names": ["squad"], "pretrain.steps": 3}}},
            "groups.x changes pretrain.steps; a group may change",
        ),
        (
            {"groups": {"x": {"tasks.names": ["squad"], "evaluate.split": "test"}}},
            "groups.x changes evaluate.split",
        ),
        (
            {"groups": {"x": {"tasks.names": ["squad"], "use": ["sizes/small"]}}},
            "groups.x changes model.d_ff; a group may change",
        ),
        (
            {"groups": {"x": {"tasks.names": ["squad"]}, "y": {"tasks.names": ["squad"]}}},
            "share the task 'squad'",
        ),
        ({"groups": {"x": ["squad"]}}, r"groups.x is \['squad'\]; it must map settings"),
        (
            {"groups": {"x": {"tasks.names": ["squad"], "finetune.stps": 3}}},
            "unknown setting 'finetune.stps'; nearest: 'finetune.steps'",
        ),
        ({"groups": {"x": {"use": ["mixtures/glu"]}}}, "use names 'mixtures/glu'; presets of mix"),
    ],
)
def test_a_group_that_cannot_be_fine_tuned_is_refused(
    finetune: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        run_of(finetune=finetune)


@pytest.mark.parametrize(
    ("experiments", "message"),
    [
        (
            [("a", {}), ("b", {"finetune.groups": OTHERS, "tasks.names": ["glue_cola"]})],
            r"differ in \['glue_cola', 'squad'\]",
        ),
        (
            [("a", {}), ("b", {"finetune.groups": OTHERS, "use": ["mixtures/en_mix"]})],
            "use names 'mixtures/en_mix', but finetune.groups is also set",
        ),
        ([("a", {}), ("a_squad", {})], "called 'a_squad', as another experiment"),
        (
            [("a", {"finetune.groups": OTHERS}), ("b", {"finetune.start_from": "a"})],
            r"fine-tuned in the groups \['squad'\], not on glue",
        ),
        (
            [("a", {}), ("b", {"finetune.start_from": "a", "tasks.names": ["squad"]})],
            "not on all tasks",
        ),
        (
            [("a", {"finetune.groups": OTHERS}), ("b", {"evaluate.ensemble": ["a"]})],
            "members have the same finetune.groups",
        ),
        (
            [
                (
                    "a",
                    {
                        "finetune.keep_checkpoints": "all",
                        "evaluate.checkpoints": "all",
                        "finetune.groups": {
                            "x": {"tasks.names": ["squad"], "finetune.steps": 10_000}
                        },
                    },
                )
            ],
            "groups.x has 10000 steps and experiment 'a' 262144",
        ),
    ],
)
def test_experiments_whose_groups_do_not_fit_are_refused(
    experiments: list[tuple[str, dict[str, Any]]], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        run_of(*experiments)


def test_an_error_in_a_group_names_the_line_of_the_run_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "finetune:\n  groups:\n    squad:\n      tasks.names: [squad]\n      finetune.steps: -1\n",
        encoding="utf-8",
    )
    with pytest.raises(SettingsError, match=r"run.yaml:5: .*finetune.steps"):
        load_run_file(file)
