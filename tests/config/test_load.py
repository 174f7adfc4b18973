"""Settings: what is refused and how it is said, and how experiments share nodes."""

import json
from pathlib import Path

import pytest
from checkout import ROOT
from run_files import load_committed

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_run_file, load_settings
from t5repro.config.schema import Settings
from t5repro.config.setting_names import leaf_names
from t5repro.config.stage_settings import received, stage_model, stage_settings
from t5repro.config.tree import nested
from t5repro.config.validation import parse_stage
from t5repro.errors import SettingsError
from t5repro.plan.run_plan import RunPlan
from t5repro.report.experiments import flatten
from t5repro.stages import BY_NAME, VERSIONED

EXPERIMENTS = [{"name": "baseline"}, {"name": "no_pretraining", "change": {"pretrain.steps": 0}}]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def nodes(settings: Settings, rule: str) -> list[str]:
    return list(dict.fromkeys(RunPlan(settings).nodes_of(rule).values()))


def test_an_empty_run_file_is_the_papers_baseline() -> None:
    settings = load_settings({})
    assert settings.pretrain.steps == 2**19
    assert settings.finetune.steps == 2**18
    assert (settings.model.d_model, settings.model.num_encoder_layers) == (768, 12)
    assert settings.vocab.embedding_rows == 32_128


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"finetune.learnig_rate": 1},
            r"unknown setting 'finetune.learnig_rate'; nearest: 'finetune.learning_rate",
        ),
        ({"pretrain": {"steps": -1}}, r"'pretrain.steps' is -1; Input should be greater than or"),
        ({"seed": "x"}, r"setting 'seed' is 'x'; Input should be a valid integer"),
        ({"vocab.language_parts": {"it": 1}}, r"language_parts names \['it'\], which c4.languages"),
        ({"tasks.names": []}, r"tasks.names is empty"),
        ({"pretrain.steps": True}, r"'pretrain.steps' is True; .*true is not a number"),
        ({"vocab.language_parts": {"en": True}}, r"vocab.language_parts: true is not a number"),
        ({"pretrain.steps": 10**40}, r"pretrain.steps' is 1000*; .*at most 9,007,199,254,740,992"),
        ({"pretrain.batch_size": 10**15}, r"batch_size' is 10*; Input should be less than or eq"),
        ({"run.name": "a" * 101}, r"'run.name' is 'a*'; String should have at most 100 char"),
        ({"pretrain.objective": "lm"}, r"objective lm has no inputs, which model.architecture"),
        (
            {"pretrain.optimizer": "adamw"},
            r"finetune.optimizer is adafactor and pretrain.optimizer adamw, which have diff",
        ),
        (
            {"pretrain.weight_decay": 0.1},
            r"weight_decay is 0.1, which optimizer adafactor does not have",
        ),
        (
            {"pretrain.adam_beta2": 0.98},
            r"adam_beta2 is 0.98, which optimizer adafactor does not have; set it to 0.999, or opt",
        ),
        ({"pretrain.max_grad_norm": -1}, r"pretrain.max_grad_norm' is -1; Input should be greater"),
        (
            {"pretrain.learning_rate": {"schedule": "linear"}, "pretrain.steps": 9},
            r"warmup_steps 10000 of the schedule linear must be less than steps 9",
        ),
        (
            {"pretrain.learning_rate.schedule": "cosine", "pretrain.steps": 10_000},
            r"warmup_steps 10000 of the schedule cosine must be less than steps 10000",
        ),
        (
            {"pretrain.learning_rate": {"schedule": "cosine", "factor": 0.1, "final_factor": 0.2}},
            r"final_factor 0.2 is more than factor 0.1",
        ),
        (
            {
                "vocab.extra_ids": 3,
                "pretrain.objective": "mixture_of_denoisers",
                "pretrain.denoisers": [{"mode_token": "NLU"}],
            },
            r"vocab.extra_ids is 3, but the mode tokens of pretrain.denoisers are three",
        ),
        (
            {"model.architecture": "shared_encoder_decoder", "model.num_decoder_layers": 6},
            r"stacks that share weights need as many blocks",
        ),
        ({"model.positions": "rotary", "model.d_kv": 7}, r"model.d_kv is 7; make model.d_kv even"),
        (
            {"model.positions": "rotary", "model.relative_position_bias": "per_layer"},
            r"model.relative_position_bias is per_layer, and model.positions rotary has no",
        ),
        (
            {"model.positions": "alibi"},
            r"'model.positions' is 'alibi'; .* 'relative', 'rotary', 'learned' or 'distances'",
        ),
        ({"model.max_positions": 0}, r"'model.max_positions' is 0; .* greater than or equal to 1"),
        ({"model.initializer": "zeros"}, r"'model.initializer' is 'zeros'; .* 't5', 'normal' or"),
        ({"model.initializer_range": 0}, r"'model.initializer_range' is 0; .* greater than 0"),
        ({"model.dropout_noise": "none"}, r"'model.dropout_noise' is 'none'; .* 'per_row' or"),
        ({"model.norm": "batch"}, r"'model.norm' is 'batch'; .* 'rms' or 'layer'"),
        ({"model.norm_placement": "both"}, r"'model.norm_placement' is 'both'; .* 'pre' or 'post'"),
        ({"model.biases": 2}, r"'model.biases' is 2; .* valid boolean"),
        ({"model.scale_attention": "x"}, r"'model.scale_attention' is 'x'; .* valid boolean"),
        (
            {"model.scale_decoder_outputs": "x"},
            r"'model.scale_decoder_outputs' is 'x'; .* valid boolean",
        ),
        ({"tasks.names": ["a", "a"]}, r"tasks.names contains \['a'\] more than once"),
        (
            {"devices.remat": "block"},
            r"devices.remat is 'block', which JAX computes only; set it to none, or set devices",
        ),
        (
            {"devices.mesh": {"data": 2, "model": 4}},
            r"devices.mesh is 2 x 4 devices, which JAX divides a model among only; leave it out",
        ),
        (
            {"devices": {"engine": "jax", "kind": "mirrored", "mesh": {"data": 2}}},
            r"devices.mesh has 2 devices and devices.kind is 'mirrored', which takes all",
        ),
        (
            {"devices": {"engine": "jax", "mesh": {"model": 5}}},
            r"devices.mesh.model is 5, which does not divide model.num_heads, 12: each device",
        ),
        (
            {"devices": {"engine": "jax", "mesh": {"model": 256}}, "model.num_heads": 256},
            r"devices.mesh.model is 256, which does not divide the rows of the embedding .* 32128",
        ),
        (
            {"devices": {"engine": "jax", "mesh": {"data": 3}}},
            r"pretrain.batch_size is 128, which is not a multiple of 3: devices.mesh.data 3 times",
        ),
        (
            {"devices": {"engine": "jax", "mesh": {"model": 0}}},
            r"'devices.mesh.model' is 0; Input should be greater than or equal to 1",
        ),
        ({"devices.kind": "npu"}, r"'devices.kind' is 'npu'; Input should be 'cpu', 'gpu'"),
        ({"finetune.mixture_temperature": float("nan")}, r"mixture_temperature' is nan"),
        (
            {"experiments": [*EXPERIMENTS, {"name": "baseline"}]},
            r"contains \['baseline'\] more than once",
        ),
        (
            {"experiments": [{"name": "a", "change": {"pretrain.stepz": 0}}]},
            r"experiment 'a': unknown setting 'pretrain.stepz'; nearest: 'pretrain.steps'",
        ),
        (
            {"experiments": [{"name": "a", "change": {"data.folder": "x"}}]},
            r"experiment 'a' changes data; all experiments of a run share",
        ),
        (
            {"experiments": [{"name": "a", "change": {"tasks.folder": "x"}}]},
            r"experiment 'a' changes tasks.folder; all experiments of a run share",
        ),
        ({"c4": 3}, r"setting 'c4' is 3; Input should be"),
        ({"vocab.language_parts.en": 5}, r"is a part of 'language_parts', .* the whole mapping"),
    ],
)
def test_an_unknown_or_impossible_setting_is_refused_with_its_name_and_cure(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(values)


def test_a_missing_or_broken_run_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nothing.yaml is missing"):
        load_run_file(Path("nothing.yaml"))
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [1")
    with pytest.raises(SettingsError, match="broken.yaml is not YAML"):
        load_run_file(broken)
    broken.write_text("- a")
    with pytest.raises(SettingsError, match="contains a list; it must map settings"):
        load_run_file(broken)


def test_dotted_and_nested_keys_mean_the_same() -> None:
    assert nested({"a.b": 1, "a": {"c.d": 2}}) == {"a": {"b": 1, "c": {"d": 2}}}
    assert load_settings({"pretrain.steps": 7}) == load_settings({"pretrain": {"steps": 7}})


def test_an_override_wins_over_the_run_file_and_the_run_file_over_a_preset() -> None:
    values = {"use": ["cleaning/paper-v1"], "c4": {"clean": {"min_words_per_line": 4}}}
    settings = load_settings(values, {"c4.clean.min_sentences": 2})
    assert settings.c4.clean.min_words_per_line == 4
    assert settings.c4.clean.min_sentences == 2
    assert settings.c4.dedup.min_sentences == 5


def test_a_part_of_a_section_keeps_the_rest_of_the_sections_own_baseline() -> None:
    rate = load_settings({"finetune": {"learning_rate": {"factor": 0.01}}}).finetune.learning_rate
    assert (rate.schedule, rate.factor) == ("constant", 0.01)


def test_numbers_written_with_an_exponent_are_numbers() -> None:
    assert load_settings({"pretrain.z_loss": "1e-3"}).pretrain.z_loss == 1e-3


def test_experiments_share_every_node_before_their_first_difference() -> None:
    settings = load_settings({"experiments": EXPERIMENTS})
    for rule in ("c4", "vocab", "tokens", "tasks"):
        assert nodes(settings, rule) == ["baseline"]
    for rule in ("pretrain", "finetune", "evaluate_predict", "evaluate_score"):
        assert nodes(settings, rule) == ["baseline", "no_pretraining"]
    assert RunPlan(settings).node_of("vocab", "no_pretraining") == "baseline"
    assert settings_of_experiment(settings, "no_pretraining").pretrain.steps == 0


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({"c4.crawl": ["crawl/a*"]}, "c4_punkt"),
        ({"c4.bad_word_lists": {"en": "lists/x"}}, "c4_clean"),
        ({"c4.punkt_parameters": {"en": "punkt"}}, "c4_punkt"),
        ({"c4.dedup.unit": "line"}, "c4_clean"),
        ({"c4.dedup.min_sentences": 1}, "c4_dedup"),
        ({"use": ["cleaning/paper-v1"]}, "c4_punkt"),
        ({"tasks.names": ["glue_cola"]}, "finetune"),
        ({"evaluate.split": "test"}, "evaluate_predict"),
        ({"vocab.sample_seed": 5}, "vocab_sample"),
        ({"seed": 5}, "pretrain"),
    ],
)
def test_an_experiment_has_its_own_nodes_from_the_first_stage_that_its_change_reaches(
    change: dict[str, object], first: str
) -> None:
    settings = load_settings(
        {"experiments": [EXPERIMENTS[0], {"name": "experiment", "change": change}]}
    )
    order = VERSIONED
    assert RunPlan(settings).node_of(first, "experiment") == "experiment"
    earlier = order[order.index(first) - 1]
    shared = "baseline" if BY_NAME[earlier].per_experiment else ""  # a rule with one node
    assert RunPlan(settings).node_of(earlier, "experiment") == shared


def test_an_experiment_may_use_another_preset_with_all_its_values() -> None:
    experiments = [EXPERIMENTS[0], {"name": "first_text", "change": {"use": ["cleaning/paper-v1"]}}]
    settings = load_settings({"experiments": experiments})
    assert settings_of_experiment(settings, "first_text").c4.clean.min_sentences == 5


def test_a_job_receives_exactly_the_settings_its_stage_names() -> None:
    settings = load_settings({})
    for rule in VERSIONED:
        model = stage_model(rule)
        values = stage_settings(settings, rule)
        assert set(values) == set(model.model_fields)
        assert parse_stage(rule, model.model_validate(values).model_dump_json()) is not None
    assert "z_loss" not in str(stage_settings(settings, "c4"))


@pytest.mark.parametrize("rule", VERSIONED)
def test_a_record_holds_the_settings_that_were_sent_and_no_filled_in_ones(rule: str) -> None:
    settings = load_settings({"c4": {"engine": "spark"}})
    sent = stage_settings(settings, rule)
    parsed = parse_stage(rule, json.dumps(sent)).model_dump(mode="json")
    assert received(rule, parsed) == sent


def test_settings_of_another_stage_are_refused() -> None:
    with pytest.raises(SettingsError, match="--settings of vocab"):
        parse_stage("vocab", '{"nonsense": 1}')


def test_every_setting_is_read_by_a_stage_or_decides_the_graph() -> None:
    # Settings that are recorded only where they are not the default.
    devices = {"engine": "jax", "remat": "block", "mesh": {"model": 2}}
    signals = {"source": "wat", "drop": ["tdm_reserved"]}
    settings = load_settings({"devices": devices, "c4": {"signals": signals}})
    read = set()
    for rule in VERSIONED:
        if rule != "report":
            read |= set(_leaves(stage_settings(settings, rule)))
    # These select files, jobs, names or machines; jobs receive them apart from their settings.
    graph = {
        "run.name",
        "run.check_memory",
        "run.resume_changed",
        "run.loggers",
        "run.samples.every_steps",
        "run.samples.examples",
        "experiments",
        "c4.crawl",
        "c4.crawl_paths",
        "c4.punkt_parameters",
        "c4.bad_word_lists",
        "tasks.folder",
        "tasks.files",
        "finetune.groups",
        "corpus.filters",
        "vocab.from_experiment",
        "use",
    }
    free = (
        "data.",
        "vocab.language_parts",
        "tasks.own",
        "finetune.mixture_weights",
        "finetune.task_dropout",
        "c4.engine",
        "c4.spark.",
    )
    unread = {
        name for name in leaf_names() if name not in read | graph and not name.startswith(free)
    }
    assert unread == set()


def _leaves(values: dict[str, object], prefix: str = "") -> list[str]:
    found = []
    for name, value in values.items():
        if isinstance(value, dict):
            found += _leaves(value, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found


def test_no_setting_has_a_name_that_dvc_forgets() -> None:
    last_words = {name.rpartition(".")[2] for name in leaf_names()}
    assert not last_words & {"size", "nfiles"}


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.name)
def test_every_committed_run_file_loads(path: Path) -> None:
    assert load_committed(path.stem).experiments


def test_more_episodes_than_steps_are_refused():
    with pytest.raises(SettingsError, match="unfreezing_episodes 12 is more than the steps 11"):
        load_settings(
            {
                "finetune.method": "gradual_unfreezing",
                "finetune.unfreezing_episodes": 12,
                "finetune.steps": 11,
            }
        )


SEEDED = [
    {"name": "baseline", "seeds": [0, 1, 7]},
    {"name": "other", "change": {"pretrain.steps": 5}},
]


def test_an_experiment_with_seeds_is_expanded_before_the_run() -> None:
    settings = load_settings({"experiments": SEEDED})
    assert [
        (experiment.name, experiment.change.get("seed")) for experiment in settings.experiments
    ] == [("baseline", 0), ("baseline_seed_1", 1), ("baseline_seed_7", 7), ("other", None)]
    seeds = [
        settings_of_experiment(settings, experiment.name).seed
        for experiment in settings.experiments
    ]
    assert seeds == [0, 1, 7, 0]
    assert nodes(settings, "vocab") == nodes(settings, "tokens") == ["baseline"]
    names = [experiment.name for experiment in settings.experiments]
    assert nodes(settings, "pretrain") == names


def test_settings_with_several_seeds_are_read_back_unchanged() -> None:
    settings = load_settings({"experiments": SEEDED})
    assert load_settings(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("experiments", "message"),
    [
        ([{"name": "a", "seeds": [3, 3]}], r"seeds of experiment 'a' repeat \[3\]"),
        ([{"name": "a", "seeds": [1], "change": {"seed": 2}}], "sets both seeds"),
        ([{"name": "a", "seeds": [-1]}], "greater than or equal to 0"),
        (
            [{"name": "a", "seeds": [1, 2]}, {"name": "a_seed_2"}],
            r"experiments contains \['a_seed_2'\] more than once",
        ),
    ],
)
def test_impossible_seeds_are_refused(experiments: list[dict[str, object]], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings({"experiments": experiments})


def test_a_setting_that_records_do_not_have_is_recorded_if_it_is_changed() -> None:
    assert not {"remat", "mesh"} & stage_settings(load_settings({}), "pretrain")["devices"].keys()
    changed = load_settings({"devices": {"engine": "jax", "remat": "block", "mesh.model": 4}})
    recorded = stage_settings(changed, "pretrain")["devices"]
    assert (recorded["remat"], recorded["mesh"]) == ("block", {"data": 1, "model": 4})
    alone = load_settings({"devices.engine": "jax"})
    assert flatten(changed).keys() == flatten(alone).keys()
    assert (flatten(alone)["devices.remat"], flatten(alone)["devices.mesh.model"]) == ("none", 1)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"modl": {"d_model": 8}}, "unknown setting 'modl'; nearest: 'model'"),
        ({"modl.d_model": 8}, "unknown setting 'modl'; nearest: 'model'"),
        ({"c4": {"sparc": {"python": ""}}}, "'c4.sparc'; nearest: 'c4.spark'"),
        ({"fintune": {}}, "'fintune'; nearest: 'finetune'"),
        ({"sed": 1}, "'sed'; nearest: 'seed'"),
    ],
)
def test_a_misspelt_section_is_answered_with_the_section(
    settings: dict[str, object], expected: str
) -> None:
    with pytest.raises(SettingsError, match=expected):
        load_settings(settings)
