"""The nodes of a run before it runs."""

import yaml
from checkout import ROOT

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.plan.run_plan import Node, RunPlan, stage_name
from t5repro.task_groups import RELEASED_GROUPS


def by_label(settings: Settings) -> dict[str, Node]:
    return {node.label: node for node in RunPlan(settings).nodes}


def labels(*keys: tuple[str, str]) -> list[str]:
    return [f"{rule} {name}".rstrip() for rule, name in keys]


def test_the_demo_has_the_nodes_of_its_pipeline(demo: Settings) -> None:
    # dvc.yaml is written from the graph that Snakemake builds.
    stages = set(yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"])
    planned = {stage_name(node.key) for node in RunPlan(demo).nodes}
    assert planned == stages - {"data_fetch", "settings"}


def test_the_nodes_of_the_paper_s_rows_are_those_of_the_study(paper_rows: Settings) -> None:
    rules = [node.rule for node in RunPlan(paper_rows).nodes]
    counts = {rule: rules.count(rule) for rule in ("c4", "pretrain", "finetune")}
    # 56 experiments on seven groups of tasks and 19 on a mixture of all; two ensembles of seven.
    assert counts == {"c4": 6, "pretrain": 45, "finetune": 7 * 56 + 19}
    assert rules.count("evaluate_predict") == counts["finetune"] + 2 * 7
    assert rules.count("evaluate_score") == 77


def test_a_node_names_the_experiments_that_need_it(demo: Settings) -> None:
    nodes = by_label(demo)
    assert len(nodes["tokens baseline"].experiments) == 6
    assert nodes["pretrain baseline_seed_1"].experiments == ("baseline_seed_1",)
    assert labels(*nodes["tokens baseline"].upstream) == ["c4 baseline", "vocab baseline"]


def test_an_experiment_needs_the_training_that_it_continues(paper_rows: Settings) -> None:
    nodes = by_label(paper_rows)
    assert "multi_then" in nodes["finetune multi_pretrained"].experiments
    assert ("finetune", "multi_pretrained") in nodes["finetune multi_then_glue"].upstream
    assert ("finetune", "without_squad") in nodes["finetune leave_one_out_squad"].upstream


def test_scores_need_the_predictions_of_every_group(paper_rows: Settings) -> None:
    nodes = by_label(paper_rows)
    predicted = [key for key in nodes["evaluate_score shared"].upstream if "predict" in key[0]]
    assert set(predicted) == {("evaluate_predict", f"shared_{group}") for group in RELEASED_GROUPS}
    assert nodes["evaluate_predict shared_squad"].experiments == ("shared",)
    assert nodes["finetune shared_squad"].settings.finetune.targets_length == 97


def test_another_corpus_needs_the_vocabulary_that_it_names(paper_rows: Settings) -> None:
    nodes = by_label(paper_rows)
    assert set(nodes["tokens wikipedia"].upstream) == {("c4", "wikipedia"), ("vocab", "baseline")}
    assert "wikipedia" in nodes["vocab baseline"].experiments


def test_an_ensemble_needs_the_models_of_its_members(paper_rows: Settings) -> None:
    nodes = by_label(paper_rows)
    node = nodes["evaluate_predict ensemble_squad"]
    members = [f"{member}_squad" for member in node.settings.evaluate.ensemble]
    assert len(members) == 4
    assert {("finetune", member) for member in members} <= set(node.upstream)
    assert all("ensemble" in nodes[f"finetune {member}"].experiments for member in members)


def test_a_run_with_given_weights_and_vocabulary_needs_no_corpus() -> None:
    settings = load_settings(
        {
            "data": {
                "sources": [
                    {
                        "origin": "x",
                        "licence": "none",
                        "files": {"m/model": "", "sst2/train.tsv": "", "sst2/dev.tsv": ""},
                    }
                ]
            },
            "pretrain": {"start_from": "m", "steps": 0},
            "vocab": {"model_file": "m/model"},
            "tasks": {"names": ["glue_sst2"]},
            "experiments": [{"name": "baseline"}],
        }
    )
    nodes = by_label(settings)
    assert {node.rule for node in nodes.values()} == {
        "data",
        "vocab",
        "pretrain",
        "tasks",
        "finetune",
        "evaluate_predict",
        "evaluate_score",
        "report",
    }
    assert nodes["pretrain baseline"].upstream == (("data", ""),)


def test_a_node_without_an_experiment_has_the_settings_of_the_run() -> None:
    settings = load_settings(
        {"experiments": [{"name": "short", "change": {"pretrain.steps": 7}}, {"name": "whole"}]}
    )
    steps = {node.key: node.settings.pretrain.steps for node in RunPlan(settings).nodes}
    assert steps["report", ""] == steps["pretrain", "whole"] == settings.pretrain.steps
    assert steps["pretrain", "short"] == 7
