"""Sums of the estimate: over nodes, experiments and tables, with and without finished nodes."""

import json
import shutil
from dataclasses import astuple
from pathlib import Path

import pytest
from checkout import ROOT
from studies import unpacked

from t5repro.config.flops import step_flops
from t5repro.config.load import load_run_files, load_settings
from t5repro.config.schema import Experiment, Settings
from t5repro.estimate.machines import machine_named
from t5repro.estimate.plan import Calibration, Cost, Estimate, estimate_run
from t5repro.estimate.records import Records, done_nodes, examples_in, samples_of
from t5repro.estimate.tables import cheapest_of_tables, table_estimates
from t5repro.lineage.record import Record, read_records
from t5repro.lineage.store import Folder
from t5repro.plan.memory import ON_DEVICE
from t5repro.plan.run_plan import RunPlan
from t5repro.task_groups import RELEASED_GROUPS

V5E = machine_named("v5e-8")


@pytest.fixture(scope="module")
def study(paper_rows: Settings) -> Estimate:
    return estimate_run(paper_rows, V5E)


def test_the_sum_over_nodes_is_the_sum_over_experiments(study: Estimate) -> None:
    parts = [astuple(study.attributed(name)) for name in study.experiments]
    assert [sum(part) for part in zip(*parts, strict=True)] == pytest.approx(astuple(study.total))
    nodes = [one for one in study.nodes if one.on_device]
    assert study.total.chip_hours == pytest.approx(sum(one.hours for one in nodes))


def test_the_operations_of_a_training_are_those_of_its_steps(study: Estimate) -> None:
    trainings = [one for one in study.nodes if one.node.rule in ("pretrain", "finetune")]
    for one in trainings:
        settings = one.node.settings
        training = getattr(settings, one.node.rule)
        rows = settings.vocab.embedding_rows
        step = step_flops(settings.model, training, embedding_rows=rows)
        assert one.work.flops == training.steps * step
    # The baseline: 32.9 EFLOP, then seven groups, with targets of 84, 62, 97 and 512 tokens.
    work = {one.node.label: one.work.flops / 1e18 for one in trainings}
    assert work["pretrain baseline"] == pytest.approx(32.9, abs=0.1)
    groups = {group: work[f"finetune baseline_{group}"] for group in RELEASED_GROUPS}
    expected = dict.fromkeys(RELEASED_GROUPS, 25.9) | {
        "glue": 13.5,
        "super_glue": 12.9,
        "squad": 13.8,
    }
    assert groups == pytest.approx(expected, abs=0.1)


def test_a_phase_that_two_experiments_continue_counts_once_in_a_run_and_in_each_alone(
    demo: Settings,
) -> None:
    phase = {"pretrain.from_experiment": "first", "pretrain.steps": 50}
    experiments = [
        Experiment(name="first"),
        Experiment(name="a", change={**phase, "pretrain.inputs_length": 512}),
        Experiment(name="b", change={**phase, "pretrain.repeat": 1}),
    ]
    estimate = estimate_run(demo.model_copy(update={"experiments": experiments}), V5E)
    work = {one.node.name: one.work.flops for one in estimate.nodes if one.node.rule == "pretrain"}
    assert work["first"] == pytest.approx(8 * work["b"])
    assert work["a"] > work["b"]

    def pretraining(cost: Cost) -> float:
        others = estimate.of_rule("finetune").flops + estimate.of_rule("evaluate_predict").flops
        return cost.flops - others / 3

    assert estimate.of_rule("pretrain").flops == sum(work.values())
    alone = [estimate.alone([name]) for name in ("a", "b")]
    assert list(map(pretraining, alone)) == pytest.approx(
        [work["first"] + work[name] for name in ("a", "b")]
    )


def test_blocks_that_are_computed_twice_take_longer(demo: Settings) -> None:
    def operations(remat: str) -> float:
        devices = demo.devices.model_copy(update={"engine": "jax", "remat": remat})
        estimate = estimate_run(demo.model_copy(update={"devices": devices}), V5E)
        return sum(one.work.flops for one in estimate.nodes if one.node.rule == "pretrain")

    assert operations("none") < operations("dots") < operations("block")
    assert operations("block") < operations("none") * 4 / 3


def test_an_experiment_adds_what_no_other_needs(study: Estimate) -> None:
    total, without = study.total, [name for name in study.experiments if name != "rate_10"]
    added = study.additional(["rate_10"])
    assert total.flops - study.alone(without).flops == pytest.approx(added.flops)
    # Its pre-training and fine-tuning; corpus, vocabulary and ids are those of the baseline.
    assert added.flops == pytest.approx((28 + 143.7 + 1.1) * 1e18, rel=0.01)
    assert added.core_hours < 0.1 < study.alone(["rate_10"]).core_hours


def test_experiments_with_equal_settings_cost_nothing_extra(study: Estimate) -> None:
    assert study.additional(["prefix_language_modeling"]).flops == 0
    assert study.alone(["prefix_language_modeling"]).flops > 50e18


def test_a_table_costs_what_its_experiments_cost_together(study: Estimate) -> None:
    (six,) = table_estimates(study, [6])
    assert {"rate_10", "rate_25", "rate_50"} < set(six.experiments)
    assert six.missing == ()
    assert six.alone == study.alone(six.experiments)
    assert study.additional(["rate_10"]).flops < six.extra.flops < six.alone.flops
    names = cheapest_of_tables(study, [6])
    assert set(names) - {"rate_10", "rate_25", "rate_50"} in ({"baseline"}, {"again_2"})
    assert study.alone(names).chip_hours < six.alone.chip_hours


def test_nodes_that_are_sealed_cost_nothing(demo: Settings) -> None:
    estimate = estimate_run(demo, machine_named("cpu-1"), root=ROOT)
    assert all(one.is_done for one in estimate.nodes)
    assert set(astuple(estimate.total)) == {0}
    changed = demo.model_copy(update={"finetune": demo.finetune.model_copy(update={"steps": 120})})
    again = estimate_run(changed, machine_named("cpu-1"), root=ROOT)
    open_rules = {one.node.rule for one in again.nodes if not one.is_done}
    assert open_rules == {"finetune", "evaluate_predict", "evaluate_score", "report"}
    assert again.total.core_hours > 0


def test_a_record_that_is_not_sealed_or_failed_is_not_done(tmp_path: Path, demo: Settings) -> None:
    shutil.copytree(ROOT / "records", tmp_path / "records")
    nodes = RunPlan(demo).nodes
    assert len(done_nodes(tmp_path, "demo", nodes)) == len(nodes)
    path = tmp_path / "records/demo/pretrain/baseline_seed_1.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["end"]["ok"] = False
    path.write_text(json.dumps(record), encoding="utf-8")
    labels = {f"{rule} {name}" for rule, name in done_nodes(tmp_path, "demo", nodes)}
    assert "pretrain baseline" in labels
    assert not {"pretrain baseline_seed_1", "evaluate_score baseline_seed_1"} & labels
    (tmp_path / "records/demo.index.json").unlink()
    assert done_nodes(tmp_path, "demo", nodes) == set()


@pytest.mark.parametrize("rule", ["pretrain", "finetune", "evaluate_predict"])
def test_jobs_of_the_demo_are_estimated_from_the_other_jobs(
    rule: str, demo: Settings, records: Records
) -> None:
    of_the_demo = {name: record for name, record in records.items() if name.startswith("demo/")}
    estimated, recorded = from_the_other_jobs(rule, demo, of_the_demo)
    assert estimated == pytest.approx(recorded, rel=0.3)


def test_jobs_of_a_real_run_are_estimated_from_the_other_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three objectives on real text: 27 trainings on two cores, 3.4 core-hours.

    Predictions, 2 % of them, are overestimated: answers of GLUE end long before their limit.
    """
    monkeypatch.chdir(ROOT)
    settings = load_run_files([Path("configs/desk_objectives.yaml")])
    records = read_records(Folder(unpacked("desk_objectives")))
    seconds = {rule: from_the_other_jobs(rule, settings, records) for rule in ON_DEVICE}
    for rule in ("pretrain", "finetune"):
        estimated, recorded = seconds[rule]
        assert estimated == pytest.approx(recorded, rel=0.3), rule
    estimated, recorded = map(sum, zip(*seconds.values(), strict=True))
    assert estimated == pytest.approx(recorded, rel=0.3)


def from_the_other_jobs(rule: str, settings: Settings, records: Records) -> tuple[float, float]:
    """Return estimated and recorded seconds of the jobs of a rule.

    The estimate of a job knows the other jobs of its run and not the job itself.
    """
    run = settings.run.name
    machine, examples = machine_named("cpu-1"), examples_in(records, run)
    estimated, recorded = 0.0, 0.0
    for job in [job for job in records if job.startswith(f"{run}/{rule}/")]:
        others = samples_of({name: record for name, record in records.items() if name != job})
        calibration = Calibration(samples=others, examples=examples)
        estimate = estimate_run(settings, machine, calibration=calibration)
        (one,) = [
            one
            for one in estimate.nodes
            if (one.node.rule, one.node.name) == (rule, job.split("/")[2])
        ]
        assert one.rate.source == "own"
        estimated += one.seconds
        recorded += seconds_of(records[job])
    return estimated, recorded


def seconds_of(record: Record) -> float:
    assert record.end is not None
    return record.end.seconds


def test_another_run_is_estimated_from_the_records_of_the_demo(records: Records) -> None:
    """A fine-tuning of the demo's model on the user's rows, a quarter of the demo's length."""
    settings = load_settings(
        {
            **records["feelings/finetune/baseline"].start.settings,
            "run": {"name": "feelings"},
            "data": {
                "sources": [
                    {
                        "origin": "x",
                        "licence": "none",
                        "files": {
                            "results/demo/pretrain/baseline/weights.safetensors": "",
                            "results/demo/vocab/baseline/sentencepiece.model": "",
                            "feelings.tsv": "",
                        },
                    }
                ]
            },
            "tasks": {
                "folder": ".",
                "names": ["feelings"],
                "own": {
                    "feelings": {
                        "files": {"train": ["feelings.tsv"], "validation": ["feelings.tsv"]},
                        "validation_share": 0.2,
                        "fields": ["sentence"],
                        "target": "label",
                        "labels": ["negative", "positive"],
                        "label_values": ["0", "1"],
                        "metrics": ["accuracy"],
                    }
                },
            },
            "evaluate": records["feelings/evaluate_predict/baseline"].start.settings["evaluate"],
            "experiments": [{"name": "baseline"}],
        }
    )
    samples = [one for one in samples_of(records) if one.job.startswith("demo/")]
    calibration = Calibration(samples=samples, examples=examples_in(records, "feelings"))
    estimate = estimate_run(settings, machine_named("cpu-1"), calibration=calibration)
    nodes = [one for one in estimate.nodes if one.node.rule in ON_DEVICE]
    recorded = [seconds_of(records[f"feelings/{one.node.rule}/baseline"]) for one in nodes]
    assert sum(one.seconds for one in nodes) == pytest.approx(sum(recorded), rel=0.3)
