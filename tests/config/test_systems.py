"""A preset of a system sets its training; stated settings replace its values."""

import csv
import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from checkout import ROOT
from studies import unpacked

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.flops import step_flops
from t5repro.config.load import load_run_files, load_settings
from t5repro.config.presets.systems import PRESETS
from t5repro.config.task_files import check_listed_files
from t5repro.errors import SettingsError


def load(system: str, **change: Any):
    sizes = change.pop("use", [])
    values = {
        "tasks": {"names": ["glue_mrpc", "glue_stsb"], "segments": True},
        "experiments": [
            {"name": "baseline"},
            {"name": "other", "change": {**change, "use": [f"systems/{system}", *sizes]}},
        ],
    }
    return settings_of_experiment(load_settings(values), "other")


LENGTHS = {
    "finetune.inputs_length": 128,
    "finetune.targets_length": 16,
    "evaluate.max_decode_length": 8,
}


# From the released code and its documented commands, read again for this test.
@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("bert", ("adam_bert", 0.999, 1e-6, 0.01, 1.0, "bert_linear", 1e-4)),
        ("roberta", ("adam_fairseq", 0.98, 1e-6, 0.01, 0.0, "linear", 5e-4)),
        ("albert", ("lamb", 0.999, 1e-6, 0.01, 1.0, "bert_linear", 1.76e-3)),
        ("spanbert", ("adam_fairseq", 0.999, 1e-8, 0.01, 1.0, "linear", 1e-4)),
        ("mt_dnn", ("adam_bert", 0.999, 1e-6, 0.01, 1.0, "bert_linear", 1e-4)),
        ("structbert", ("adam_bert", 0.999, 1e-6, 0.01, 1.0, "bert_linear", 1e-4)),
        ("electra", ("adam_bert", 0.999, 1e-6, 0.01, 1.0, "bert_linear", 2e-4)),
        ("xlnet", ("adam_bert", 0.999, 1e-6, 0.01, 1.0, "linear", 4e-4)),
        ("gpt", ("adam_gpt", 0.999, 1e-8, 0.01, 1.0, "cosine", 2.5e-4)),
    ],
)
def test_the_recipe_of_pretraining_is_the_published_one(system: str, expected: tuple) -> None:
    size = {"use": ["sizes/gpt_tiny"], "model.max_positions": 1024} if system == "gpt" else {}
    pretrain = load(system, **LENGTHS, **size).pretrain
    rate = pretrain.learning_rate
    assert (
        pretrain.optimizer, pretrain.adam_beta2, pretrain.adam_epsilon, pretrain.weight_decay,
        pretrain.max_grad_norm, rate.schedule, rate.factor,
    ) == expected  # fmt: skip
    assert pretrain.z_loss == 0


def test_the_rows_and_masks_of_the_encoders_differ() -> None:
    recipes = {
        name: load(name, **LENGTHS).pretrain.masked_lm
        for name in ("bert", "roberta", "albert", "spanbert", "structbert", "electra")
    }
    assert {name: (one.rows, one.pair_task, one.unit) for name, one in recipes.items()} == {
        "bert": ("segment_pair", "next_sentence", "piece"),
        "roberta": ("full_sentences", "none", "piece"),
        "albert": ("segment_pair", "sentence_order", "ngram"),
        "spanbert": ("doc_sentences", "none", "span"),
        "structbert": ("segment_pair", "sentence_structure", "piece"),
        "electra": ("electra_segments", "none", "piece"),
    }
    assert len(set(recipes.values())) == 6
    assert [recipes[name].copies for name in recipes] == [10, 0, 40, 0, 10, 0]
    assert [recipes[name].shuffle_share for name in recipes] == [0, 0, 0, 0, 0.05, 0]


def test_the_heads_of_roberta_and_albert_have_the_dropout_of_their_code() -> None:
    systems = ("bert", "roberta", "albert", "spanbert", "structbert")
    rates = {name: load(name, **LENGTHS).finetune.classifier_dropout for name in systems}
    others = dict.fromkeys(("bert", "spanbert", "structbert"))
    assert rates == {"roberta": 0, "albert": 0.1, **others}


def test_electra_has_the_tasks_rates_and_masks_of_its_code() -> None:
    settings = load("electra", **LENGTHS)
    masked_lm, finetune = settings.pretrain.masked_lm, settings.finetune
    assert (masked_lm.mask_share, masked_lm.random_share, masked_lm.short_row_share) == (
        0.85,
        0,
        0.05,
    )
    assert settings.pretrain.replaced_tokens.model_dump() == {"task": "detection", "weight": 50}
    assert settings.model.generator_tying == "embeddings"
    assert (finetune.layer_decay, finetune.learning_rate.factor) == (0.8, 1e-4)
    assert (finetune.number_scale, finetune.doubled_tasks) == (5, ("glue_mrpc", "glue_stsb"))
    shapes = {
        name: load("electra", **LENGTHS, use=[f"sizes/electra_{name}"]).model.generator
        for name in ("small", "base", "large")
    }
    assert {
        name: (g.d_model, g.d_ff, g.num_heads, g.num_encoder_layers, g.embedding_width)
        for name, g in shapes.items()
    } == {
        "small": (64, 256, 1, 12, 128),
        "base": (256, 1024, 4, 12, 768),
        "large": (256, 1024, 4, 24, 1024),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model.generator_tying": "all"}, "one network for both has one size"),
        ({"model.generator_width": 0.21}, "makes a generator of width 161 with 2 heads"),
        ({"pretrain.masked_lm.mask_special_pieces": True}, "replaces pieces of the text only"),
        ({"pretrain.masked_lm.boundary_weight": 1}, "replaces pieces of the text only"),
        ({"pretrain.masked_lm.pair_task": "next_sentence"}, "needs two segments"),
        ({"pretrain.objective": "drop_tokens"}, "masked_lm is the objective of encoder and"),
        ({"model.norm": "rms"}, "model.architecture generator_detector has learned positions"),
        ({"finetune.answers": "labels"}, "belongs to language_model"),
        ({"model.pooler_dropout": True}, "which model.architecture generator_detector does not"),
        ({"model.block_groups": 1}, "which model.architecture generator_detector does not have"),
    ],
)
def test_settings_that_contradict_a_generator_are_refused(change, message) -> None:
    with pytest.raises(SettingsError, match=message):
        load("electra", **{**LENGTHS, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"model.generator_width": 0.5},
        {"pretrain.replaced_tokens.weight": 1},
        {"pretrain.replaced_tokens.task": "all_pieces"},
    ],
)
def test_settings_of_a_generator_are_refused_where_there_is_none(change) -> None:
    with pytest.raises(SettingsError, match="does not have|is read only with"):
        load("bert", **{**LENGTHS, **change})


def test_a_network_that_writes_text_has_no_scale_of_numbers() -> None:
    with pytest.raises(SettingsError, match="number_scale is 5.0, which only networks of labels"):
        load_settings({"finetune": {"number_scale": 5}})


def test_without_a_size_the_network_is_the_published_base() -> None:
    model = load("albert", **LENGTHS).model
    assert (model.num_encoder_layers, model.d_model, model.embedding_width) == (12, 768, 128)
    assert model.block_groups == 1
    tiny = load("albert", **LENGTHS, use=["sizes/albert_tiny"]).model
    assert (tiny.num_encoder_layers, tiny.d_model, tiny.embedding_width) == (2, 128, 64)


def test_stated_settings_of_an_experiment_replace_a_preset() -> None:
    changed = load("bert", **LENGTHS, **{"pretrain.learning_rate.factor": 3e-4})
    assert changed.pretrain.learning_rate.factor == 3e-4
    assert changed.pretrain.learning_rate.schedule == "bert_linear"


def test_a_preset_of_a_run_file_is_in_force_in_the_run() -> None:
    tasks = {"names": ["squad"], "segments": True}
    settings = load_settings({"use": ["systems/bert"], "tasks": tasks})
    assert settings.pretrain.objective == "masked_lm"
    assert settings.model.num_encoder_layers == 12


def test_presets_are_the_same_after_they_were_used() -> None:
    before = str(PRESETS)
    load("bert", **LENGTHS, **{"pretrain.masked_lm.copies": 1})
    assert str(PRESETS) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pretrain.objective": "drop_tokens"}, "masked_lm is the objective of encoder"),
        ({"finetune.optimizer_state": "continue"}, "heads of an encoder-only network are new"),
        ({"pretrain.loss_normaliser": "padded_size"}, "losses of an encoder-only network are"),
        ({"vocab.vocab_size": 32_024}, "leave 4 rows of the embedding unused"),
        ({"model.norm": "rms"}, "model.architecture encoder has learned positions"),
        ({"model.num_encoder_layers": 5, "model.block_groups": 2}, "is not a multiple of"),
        ({"tasks.segments": False}, "tasks.segments"),
        (
            {"tasks.names": ["glue_rte", "wmt_en_de", "glue_wnli"]},
            "'wmt_en_de', 'glue_wnli'.* predicts only labels, numbers, choices, spans and tags;",
        ),
        ({"pretrain.masked_lm.rows": "full_sentences"}, "needs two segments"),
        (
            {"pretrain.masked_lm.shuffle_share": 0.05, "pretrain.targets_length": 103},
            "77 masked pieces .* and 27 shuffled ones .* at least 104",
        ),
        (
            {"pretrain.masked_lm.shuffle_share": 0.1, "pretrain.masked_lm.boundary_weight": 1},
            "shuffled pieces are in no span",
        ),
        ({"pretrain.masked_lm.shuffle_unit": "word"}, "shuffle_unit is 'word', which is not read"),
        ({"pretrain.learning_rate.schedule": "constant"}, "warmup_share 0.01 is not read"),
        (
            {"tasks.names": ["squad"], "evaluate.inputs_length": 67},
            "evaluate.inputs_length is 67, of which a question of squad .* can take 67",
        ),
    ],
)
def test_settings_that_contradict_an_encoder_are_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load("bert", **LENGTHS, **change)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["glue_sst2", "glue_ax"],
            r"'glue_ax', and an encoder-only .* \['glue_sst2'\]; add glue_mnli",
        ),
        (["glue_sst2", "super_glue_axb"], "'super_glue_axb'.*; add super_glue_rte or glue_rte to"),
        (["glue_mnli_matched"], r"which are \[\]; add glue_mnli to the same fine-tuning"),
    ],
)
def test_a_task_that_no_head_would_answer_is_refused_before_the_training(
    names: list[str], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load("bert", **LENGTHS, **{"tasks.names": names})
    with pytest.raises(SettingsError, match="labels only for tasks that it is trained on"):
        load("gpt", **LENGTHS, **GPT, **{"tasks.names": names})


def test_a_group_of_tasks_needs_the_training_task_of_each_of_its_own() -> None:
    groups = {"mnli": {"tasks.names": ["glue_mnli"]}, "ax": {"tasks.names": ["glue_ax"]}}
    with pytest.raises(SettingsError, match="contains 'glue_ax'.*add glue_mnli to the same"):
        load("bert", **LENGTHS, **{"finetune.groups": groups})
    load("bert", **LENGTHS, **{"finetune.groups": {"a": {"tasks.names": ["glue_mnli", "glue_ax"]}}})


def test_an_ensemble_answers_the_tasks_of_its_members_only() -> None:
    def ensemble(names: list[str]) -> dict[str, Any]:
        member = {"use": ["systems/bert"], **LENGTHS, "tasks.names": ["glue_rte", "glue_mrpc"]}
        both = {**member, "evaluate.ensemble": ["a", "b"], "tasks.names": names}
        return {
            "tasks": {"names": ["glue_rte"], "segments": True},
            "experiments": [
                {"name": "a", "change": member},
                {"name": "b", "change": {**member, "pretrain.repeat": 1}},
                {"name": "both", "change": both},
            ],
        }

    load_settings(ensemble(["glue_rte"]))
    with pytest.raises(SettingsError, match="contains 'glue_cola'.*'glue_mrpc', 'glue_rte'"):
        load_settings(ensemble(["glue_cola"]))


def test_a_network_of_labels_needs_listed_training_rows_of_a_task() -> None:
    origin = {"origin": "https://example.org/a", "licence": "none"}
    files = {"tasks/glue/SST-2/dev.tsv": ""}
    values = {
        "use": ["systems/bert"],
        "data": {"sources": [{**origin, "files": files}]},
        "tasks": {"names": ["glue_sst2"], "segments": True},
    }
    with pytest.raises(SettingsError, match="'glue_sst2'.*add its training file to the same"):
        check_listed_files(load_settings(values))
    files["tasks/glue/SST-2/train.tsv"] = ""
    check_listed_files(load_settings(values))


def test_winograd_schemas_with_labels_are_tasks_of_an_encoder() -> None:
    values: dict[str, Any] = {
        "use": ["systems/bert"],
        "tasks": {"names": ["glue_wnli", "super_glue_wsc"], "segments": True},
    }
    with pytest.raises(SettingsError, match="tasks.text.winograd: labels"):
        load_settings(values)
    values["tasks"]["text"] = {"winograd": "labels"}
    assert load_settings(values).tasks.names == ["glue_wnli", "super_glue_wsc"]


GPT = {"use": ["sizes/gpt_tiny"], "model.max_positions": 1024}


def test_gpt_predicts_labels_with_the_loss_of_its_language_model() -> None:
    """Radford et al., 2018, section 3.2 and 4.1: lambda is 0.5."""
    finetune = load("gpt", **LENGTHS, **GPT).finetune
    assert (finetune.answers, finetune.lm_weight) == ("labels", 0.5)
    text = {"finetune.answers": "text", "finetune.lm_weight": 0}
    assert load("gpt", **LENGTHS, **GPT, **text).finetune.answers == "text"
    # Its rows are inputs alone: the table of positions need not hold targets.
    rows = {"pretrain.targets_length": 512, "finetune.inputs_length": 512}
    load("gpt", **(LENGTHS | rows), **{**GPT, "model.max_positions": 512})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"finetune.answers": "text"}, "finetune.lm_weight is 0.5, which counts next to"),
        ({"finetune.optimizer_state": "continue"}, "heads of a network with finetune.answers"),
        ({"finetune.loss_normaliser": "padded_size"}, "losses of a network with finetune.answers"),
        ({"tasks.segments": False}, "tasks.segments"),
        ({"vocab.vocab_size": 32_024}, "leave 4 rows of the embedding unused"),
        ({"model.architecture": "prefix_language_model"}, "belongs to language_model"),
    ],
)
def test_settings_that_contradict_labels_of_a_decoder_are_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load("gpt", **{**LENGTHS, **GPT, **change})


def test_mt_dnn_is_bert_with_another_fine_tuning() -> None:
    """Liu et al., 2019; namisan/mt-dnn v0.1: steps of one task, SAN, Adamax, 5e-5."""
    bert, mt_dnn = (load(name, **LENGTHS) for name in ("bert", "mt_dnn"))
    assert (mt_dnn.pretrain, mt_dnn.model) == (bert.pretrain, bert.model)
    finetune = mt_dnn.finetune
    assert (finetune.batches, finetune.pair_head, finetune.pair_order, finetune.long_rows) == (
        "tasks", "san", "reversed", "drop",
    )  # fmt: skip
    assert (finetune.optimizer, finetune.weight_decay, finetune.max_grad_norm) == (
        "adamax_mt_dnn", 0.01, 1,
    )  # fmt: skip
    assert (finetune.learning_rate.schedule, finetune.learning_rate.factor) == ("bert_linear", 5e-5)


@pytest.mark.parametrize(
    ("system", "change", "message"),
    [
        ("gpt", {"pair_head": "san"}, "pair_head is 'san', which only encoders .* 'pooled'"),
        ("gpt", {"task_dropout": {"glue_mrpc": 0.1}}, "which only encoders"),
        ("roberta", {"pair_head": "san"}, "pair_head is san and model.token_types 0"),
        ("bert", {"task_dropout": {"glue_rte": 0.1}}, "task_dropout names .'glue_rte'., which are"),
        (
            "bert",
            {"turn_dropout": 0.2},
            "turn_dropout is 0.2, which is read only with finetune.pai",
        ),
    ],
)
def test_heads_that_a_network_lacks_are_refused(
    system: str, change: dict[str, Any], message: str
) -> None:
    values = {f"finetune.{name}": value for name, value in change.items()}
    with pytest.raises(SettingsError, match=message):
        load(system, **{**LENGTHS, **(GPT if system == "gpt" else {}), **values})


@pytest.mark.parametrize("name", ["pair_order", "long_rows", "batches"])
def test_rows_of_labels_are_refused_for_a_network_that_writes_text(name: str) -> None:
    value = {"pair_order": "reversed", "long_rows": "drop", "batches": "tasks"}[name]
    with pytest.raises(SettingsError, match=f"finetune.{name} is '{value}', which only networks"):
        load_settings({"finetune": {name: value}})


@pytest.mark.parametrize("name", ["token_types", "embedding_width", "block_groups"])
def test_parts_of_an_encoder_are_refused_in_other_networks(name: str) -> None:
    with pytest.raises(SettingsError, match=f"model.{name} is 2, which model.architecture"):
        load_settings({"model": {name: 2}})


@pytest.mark.parametrize("name", ["systems", "desk_systems"])
def test_all_systems_have_the_compute_of_the_baseline(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each within half a step of its own; no arm has the objective of another."""
    monkeypatch.chdir(ROOT)
    run = load_run_files([Path(f"configs/{name}.yaml")])
    names = [one.name.partition("_seed_")[0] for one in run.experiments]
    assert list(dict.fromkeys(names)) == ["t5", *PRESETS]
    recipes = set()
    for one in run.experiments:
        settings = settings_of_experiment(run, one.name)
        training = settings.pretrain
        step = step_flops(settings.model, training, embedding_rows=settings.vocab.embedding_rows)
        assert abs(training.steps * step - run.pretrain.flops) <= step / 2
        assert settings.evaluate == run.evaluate
        assert settings.tasks.names == run.tasks.names
        optimizers = training.optimizer, settings.finetune.optimizer  # MT-DNN's second is its own
        recipes.add((training.objective, str(training.masked_lm), *optimizers))
    assert len(recipes) == 10


PAGE = "### On the demo"
STUDIED = ["t5", "gpt", "bert", "spanbert", "roberta", "albert"]  # in the order of the page
STUDIED += ["xlnet", "structbert", "electra", "mt_dnn"]


def shown_score(row: dict[str, str]) -> str:
    """Return a score as the page shows it: of several seeds the mean and its deviation."""
    if not row["sd"]:
        return f"{float(row['value']):.2f}"
    return f"{float(row['value']):.1f} ±{float(row['sd']):.1f}"


def test_the_page_has_the_scores_of_the_committed_report() -> None:
    report = ROOT / "studies/systems/scores.csv"
    rows = list(csv.DictReader(report.read_text(encoding="utf-8").splitlines()))
    # The row of the mean over seeds comes after those of the seeds.
    scores = {
        (row["task"].split("_")[-1], row["metric"], row["experiment"]): shown_score(row)
        for row in sorted(rows, key=lambda row: not row["seed"])
        if row["value"]
    }
    page = (ROOT / "docs/systems.md").read_text(encoding="utf-8")
    results = re.split("\n##+ ", page.partition(PAGE)[2])[0]
    lines = [line.strip("| ").split(" | ") for line in results.splitlines() if line[:2] == "| "]
    shown = {
        (line[0].lower().replace("-", ""), line[1], system): value
        for line in lines
        if line[0] != "task"
        for system, value in zip(STUDIED, line[3:], strict=True)
    }
    assert shown == scores


def test_each_system_beats_the_trivial_answers_where_t5_does() -> None:
    """On the mean of three seeds, by the first metric of a task."""
    folder = unpacked("systems") / "results/systems/evaluate_score"
    beaten = {}
    for name in STUDIED:
        runs = [
            json.loads((folder / run / "scores.json").read_text())["tasks"]
            for run in (name, f"{name}_seed_1", f"{name}_seed_2")
        ]
        beaten[name] = {
            task
            for task, first in runs[0].items()
            if mean(scores[task]["metrics"][first["primary_metric"]] for scores in runs)
            > first["baseline"]["metrics"][first["primary_metric"]]
        }
    assert len(beaten["t5"]) >= 5
    for name, tasks in beaten.items():
        assert beaten["t5"] <= tasks, name


def test_xlnet_has_its_own_rows_and_optimizer_of_fine_tuning() -> None:
    """The README's command for STS-B, and `tf.train.AdamOptimizer` for a decay of 0."""
    settings = load("xlnet", **LENGTHS, **{"pretrain.targets_length": 85})
    tuning, rate = settings.finetune, settings.finetune.learning_rate
    assert (tuning.optimizer, tuning.adam_epsilon, tuning.weight_decay) == ("adam_gpt", 1e-8, 0)
    assert (rate.schedule, rate.factor, rate.warmup_of(1200)) == ("linear", 5e-5, 120)
    rows = settings.pretrain.permutation_lm
    assert (rows.reuse_length(512), rows.memory_length(512)) == (256, 384)
    assert (rows.longest_span, rows.span_context, rows.both_directions) == (5, 6, True)
    model = settings.model
    assert (model.feed_forward, model.activation_dropout) == ("gelu_tanh", True)
    assert settings.pretrain.dropout_rate == 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pretrain.micro_batches": 2}, "micro_batches is 2, but the memory of a two-stream"),
        ({"pretrain.objective": "masked_lm"}, "permutation_lm is the objective of two_stream"),
        ({"model.positions": "learned"}, "two_stream has keys of distances"),
        ({"model.token_types": 2}, "model.token_types is 2, which model.architecture two_stream"),
        ({"pretrain.targets_length": 260, "pretrain.permutation_lm.reuse_share": 0.2}, "targets"),
        ({"pretrain.batch_size": 3}, "batch_size 3 is odd"),
    ],
)
def test_settings_that_xlnet_cannot_have_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load("xlnet", **{**LENGTHS, "pretrain.targets_length": 85, **change})


def test_the_predictions_of_xlnet_belong_to_no_other_network() -> None:
    with pytest.raises(SettingsError, match="masked_lm is the objective of encoder"):
        load("bert", **LENGTHS, **{"pretrain.objective": "permutation_lm"})


def test_spans_are_refused_before_a_run_of_xlnet() -> None:
    values = {
        "tasks": {"names": ["squad"], "segments": True},
        "experiments": [{"name": "xlnet", "change": {"use": ["systems/xlnet"], **LENGTHS}}],
    }
    with pytest.raises(SettingsError, match="a two-stream network predicts only labels, numbers"):
        load_settings({**values, "pretrain": {"targets_length": 85}})


def test_the_operations_of_xlnet_are_those_of_its_products() -> None:
    """XLNet-base of 512 tokens, 384 of memory and 85 predictions: 169.2 GFLOP with keys a row."""
    from t5repro.config.flops import forward_multiplications

    settings = load("xlnet", **LENGTHS, **{"pretrain.targets_length": 85})
    shape = {"inputs_length": 512, "targets_length": 85, "embedding_rows": 32_000, "memory": 384}
    row = 2 * forward_multiplications(settings.model, **shape)
    keys = 2 * 12 * (2 * 512 + 384) * 768 * 768
    assert (row + keys) / 1e9 == pytest.approx(169.2, abs=0.05)
    batch = settings.pretrain.batch_size
    step = step_flops(settings.model, settings.pretrain, embedding_rows=32_000)
    assert step == 3 * (batch * row + 2 * keys)
