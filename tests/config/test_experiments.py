"""Experiments that depend on other experiments."""

import pytest

from t5repro.config.experiments import pretraining_phases, settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.stage_settings import stage_settings
from t5repro.errors import SettingsError
from t5repro.plan.run_plan import RunPlan


def run_of(*experiments, **values):
    named = [{"name": name, "change": change} for name, change in experiments]
    return load_settings({**values, "experiments": named})


def test_an_experiment_continues_the_fine_tuning_of_an_earlier_one_and_shares_its_pretraining():
    settings = run_of(
        ("multi_task", {}),
        ("then_cola", {"finetune.start_from": "multi_task", "tasks.names": ["glue_cola"]}),
    )
    assert RunPlan(settings).node_of("pretrain", "then_cola") == "multi_task"
    assert RunPlan(settings).node_of("finetune", "then_cola") == "then_cola"


@pytest.mark.parametrize(
    ("experiments", "message"),
    [
        ([("a", {"finetune.start_from": "b"}), ("b", {})], "one of the experiments before it"),
        ([("a", {"finetune.start_from": "a"})], "one of the experiments before it"),
        (
            [("a", {}), ("b", {"finetune.start_from": "a", "pretrain.steps": 7})],
            "pretrain.steps is 7 and 524288; both must have the same",
        ),
        (
            [("a", {"finetune.method": "adapters"}), ("b", {"finetune.start_from": "a"})],
            "has adapters of width 2048",
        ),
        ([("a", {}), ("e", {"evaluate.ensemble": ["a", "x"]})], r"names 'x'; the experiments are"),
        (
            [("a", {}), ("b", {"seed": 1}), ("e", {"evaluate.ensemble": ["a", "b"]})],
            "seed is 0 and 1",
        ),
        (
            [("a", {}), ("b", {"model.d_ff": 8}), ("e", {"evaluate.ensemble": ["a", "b"]})],
            "model.d_ff is 3072 and 8",
        ),
        (
            [("a", {"finetune.method": "adapters"}), ("e", {"evaluate.ensemble": ["a"]})],
            "which has other adapters",
        ),
        ([("e", {"evaluate.ensemble": ["e"]})], "which is an ensemble itself"),
        ([("a", {}), ("e", {"evaluate.ensemble": ["a", "a"]})], r"\['a'\] more than once"),
        (
            [("a", {}), ("e", {"evaluate.ensemble": ["a"], "evaluate.beam_tasks": ["squad"]})],
            "evaluate.beam_tasks empty",
        ),
        ([("a", {"evaluate.checkpoints": "all"})], "needs finetune.keep_checkpoints 'all'"),
    ],
)
def test_an_experiment_that_cannot_build_on_another_is_refused(experiments, message):
    with pytest.raises(SettingsError, match=message):
        run_of(*experiments)


def test_members_of_an_ensemble_differ_in_their_repetition_and_share_what_comes_before():
    settings = run_of(
        ("one", {}),
        ("two", {"pretrain.repeat": 1}),
        ("three", {"finetune.repeat": 1}),
        ("all", {"evaluate.ensemble": ["one", "two", "three"]}),
    )
    plan = RunPlan(settings)
    assert plan.node_of("vocab", "two") == "one"
    assert plan.node_of("pretrain", "two") == "two"
    assert plan.node_of("pretrain", "three") == "one"
    assert plan.node_of("finetune", "three") == "three"
    assert plan.node_of("finetune", "all") == "one"  # nothing is trained for the ensemble
    assert plan.node_of("evaluate_predict", "all") == "all"


FROM = {"vocab.from_experiment": "baseline"}


def other_corpora():
    """Experiments with three corpora; the last two use the vocabulary of the first."""
    wiki = {"corpus": {"files": ["wiki.jsonl"], "language": "en"}}
    return run_of(
        ("baseline", {}),
        ("unfiltered", {"use": ["c4/en.noclean"], "tokens.languages": ["en"], **FROM}),
        ("wiki", {**wiki, **FROM}),
        ("wiki_longer", {**wiki, **FROM, "pretrain.steps": 7}),
    )


def test_experiments_with_other_corpora_use_the_vocabulary_of_one():
    settings = other_corpora()
    names = ["baseline", "unfiltered", "wiki", "wiki_longer"]
    for rule in ("vocab_sample", "vocab"):
        assert RunPlan(settings).nodes_of(rule) == dict.fromkeys(names, "baseline")
    for rule in ("c4", "tokens"):
        assert list(RunPlan(settings).nodes_of(rule).values()) == [*names[:3], "wiki"]
    assert list(RunPlan(settings).nodes_of("pretrain").values()) == names
    parts = settings_of_experiment(settings, "wiki").vocab.language_parts
    assert parts == {"en": 10, "de": 1, "fr": 1, "ro": 1}
    assert "from_experiment" not in stage_settings(settings, "pretrain")["vocab"]


def test_an_experiment_with_the_same_corpus_and_vocabulary_shares_all_nodes():
    settings = run_of(("baseline", {}), ("again", FROM))
    assert RunPlan(settings).node_of("evaluate_score", "again") == "baseline"


def test_an_experiment_with_given_weights_reads_no_corpus_for_the_vocabulary_of_another():
    given = {"pretrain.steps": 0, "pretrain.start_from": "published"}
    settings = run_of(("baseline", {}), ("given", {**given, **FROM}), ("own", given))
    assert not settings_of_experiment(settings, "given").reads_corpus
    assert settings_of_experiment(settings, "own").reads_corpus


@pytest.mark.parametrize(
    ("experiments", "message"),
    [
        ([("a", {"vocab.from_experiment": "a"})], r"is 'a'; it must be one of .* before it: \[\]"),
        ([("a", {}), ("b", {"vocab.from_experiment": "x"})], r"before it: \['a'\]"),
        (
            [("a", {}), ("b", {"vocab": {"from_experiment": "a", "vocab_size": 99}})],
            r"it changes \['vocab.vocab_size'\]; remove these changes, or vocab.from_experiment",
        ),
        (
            [
                ("a", {}),
                ("b", {"vocab.from_experiment": "a"}),
                ("c", {"vocab.from_experiment": "b"}),
            ],
            "is 'b', whose vocabulary is that of 'a'; name that experiment",
        ),
    ],
)
def test_a_vocabulary_that_another_experiment_cannot_give_is_refused(experiments, message):
    with pytest.raises(SettingsError, match=f"'{experiments[-1][0]}': .*{message}"):
        run_of(*experiments)


def test_a_run_uses_no_vocabulary_of_its_experiments():
    with pytest.raises(
        SettingsError, match=r"'baseline': vocab.from_experiment .* before it: \[\]"
    ):
        load_settings({"vocab.from_experiment": "baseline"})


def test_members_of_an_ensemble_with_other_corpora_need_one_vocabulary():
    corpus = {"c4.dedup.unit": "line"}
    ensemble = ("all", {"evaluate.ensemble": ["a", "b"]})
    run_of(("a", {}), ("b", {**corpus, "vocab.from_experiment": "a"}), ensemble)
    with pytest.raises(SettingsError, match="c4.dedup.unit is 'three_sentence_span' and 'line'"):
        run_of(("a", {}), ("b", corpus), ensemble)


def test_fine_tuning_continues_with_the_vocabulary_that_it_began_with():
    corpus = {"c4.dedup.unit": "line"}
    then = {**corpus, "finetune.start_from": "b", "vocab.from_experiment": "a"}
    run_of(("a", {}), ("b", {**corpus, "vocab.from_experiment": "a"}), ("then", then))
    with pytest.raises(SettingsError, match="names 'b', with another vocabulary, but c4.dedup"):
        run_of(("a", {}), ("b", corpus), ("then", then))


def test_a_setting_that_no_experiment_can_change_names_the_experiment():
    with pytest.raises(SettingsError, match="whole mapping") as error:
        run_of(("a", {}), ("b", {"vocab.language_parts.en": 5}))
    assert error.value.experiment == "b"


BERT = {"use": ["systems/bert"], "tasks.names": ["glue_cola"]}
ADAMW = {"pretrain.optimizer": "adamw", "finetune.optimizer_state": "fresh"}


def phases_of(first, second, **values):
    """Return a run of two phases of pre-training, with changes of each."""
    return run_of(("a", first), ("b", {"pretrain.from_experiment": "a", **second}), **values)


def test_a_second_phase_has_its_own_rows_steps_and_rate_and_the_first_is_shared():
    run = phases_of({}, {"pretrain.inputs_length": 1024, "pretrain.steps": 7})
    plan = RunPlan(run)
    assert plan.inputs("pretrain", "b")["weights"] == ["results/base/pretrain/a/manifest.json"]
    assert plan.inputs("pretrain", "a")["weights"] == []
    nodes = {node.label: node for node in plan.nodes}
    assert nodes["pretrain a"].experiments == ("a", "b")
    assert ("pretrain", "a") in nodes["pretrain b"].upstream
    assert pretraining_phases(run, "b") == ["a", "b"]


def test_experiments_with_one_second_phase_share_its_node():
    second = {"pretrain.from_experiment": "a", "pretrain.steps": 7}
    run = run_of(("a", {}), ("b", second), ("c", {**second, "finetune.steps": 9}))
    assert RunPlan(run).nodes_of("pretrain") == {"a": "a", "b": "b", "c": "b"}


def test_a_second_phase_may_have_other_text_and_weights_may_move_to_other_devices():
    corpus = {"use": ["c4/en.noclean"], "vocab.from_experiment": "a"}
    phases_of({}, {**corpus, "devices.precision": "bfloat16"})


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, {"model.d_ff": 8}, "model.d_ff is 8 and 3072; both must have the same there"),
        ({}, {"vocab.vocab_size": 99}, "vocab.vocab_size is 99 and 32000"),
        ({}, ADAMW, "pretrain.optimizer is 'adamw' and 'adafactor'"),
        (
            BERT,
            {**BERT, "pretrain.masked_lm.pair_task": "none"},
            "the head of pretrain.masked_lm.pair_task is 'absent' and 'present'",
        ),
        (
            {**BERT, "pretrain.masked_lm.pair_task": "sentence_structure"},
            {**BERT, "pretrain.optimizer_state": "fresh"},
            "whose head of pairs has 3 classes; that of .* next_sentence has 2",
        ),
        ({}, {"pretrain.start_from": "m"}, "the initial weights are those of one of them"),
        ({}, {"pretrain.from_experiment": "b"}, r"'b'; it must be one of .* before it: \['a'\]"),
        ({"pretrain.from_experiment": "b"}, {}, r"'b'; it must be one of .* before it: \[\]"),
        ({}, {"pretrain.from_experiment": "x"}, r"'x'; it must be one of .* before it: \['a'\]"),
    ],
)
def test_a_phase_that_cannot_continue_is_refused_with_what_differs(first, second, message):
    with pytest.raises(SettingsError, match=message):
        phases_of(first, second, tasks={"segments": True})


def test_a_fresh_optimizer_may_be_another_one_and_heads_may_be_new():
    fresh = {"pretrain.optimizer_state": "fresh"}
    phases_of({}, {**fresh, **ADAMW})
    none = {**BERT, "pretrain.masked_lm.pair_task": "none"}
    phases_of(none, {**BERT, **fresh}, tasks={"segments": True})


@pytest.mark.parametrize(
    "second",
    [
        {"pretrain.from_experiment": "a", "pretrain.steps": 7},
        {"pretrain": {"from_experiment": "a", "steps": 7}},
    ],
)
def test_each_seed_of_a_phase_continues_the_same_seed_of_the_phase_before(second):
    run = load_settings(
        {
            "experiments": [
                {"name": "a", "seeds": [5, 6]},
                {"name": "b", "change": second, "seeds": [6, 5, 7]},
            ]
        }
    )
    starts = {
        experiment.name: settings_of_experiment(run, experiment.name).pretrain.from_experiment
        for experiment in run.experiments
    }
    # Seed 7 has no first phase of its own and continues the first seed's.
    assert starts == {"a": "", "a_seed_6": "", "b": "a_seed_6", "b_seed_5": "a", "b_seed_7": "a"}


@pytest.mark.parametrize("start", [{"finetune.start_from": "a"}, {"finetune": {"start_from": "a"}}])
def test_each_seed_of_a_group_continues_the_same_seed(start):
    groups = {
        "pair": {"tasks.names": ["glue_mrpc"], **start},
        "one": {"tasks.names": ["glue_sst2"]},
    }
    run = load_settings(
        {
            "experiments": [
                {"name": "a", "change": {"tasks.names": ["glue_sst2"]}, "seeds": [5, 6]},
                {"name": "b", "change": {"finetune.groups": groups}, "seeds": [6, 5]},
            ]
        }
    )
    starts = {
        f"{name}_{group}": settings_of_experiment(run, f"{name}_{group}").finetune.start_from
        for name in ("b", "b_seed_5")
        for group in groups
    }
    assert starts == {"b_pair": "a_seed_6", "b_one": "", "b_seed_5_pair": "a", "b_seed_5_one": ""}
