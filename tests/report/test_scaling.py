"""Loss and scores over the compute of pre-training."""

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.config.experiments import pretraining_flops
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.randomness import stream
from t5repro.report.experiments import group_arms
from t5repro.report.loss_law import Law, fit, intervals
from t5repro.report.rows import ScoreRow
from t5repro.report.scaling import scalings

COMPUTES = (1.0, 2.4, 5.5, 13.0, 30.0)
SEEDS = (0, 1, 2)
STEPS = {"hour": 1000, "minute": 100, "second": 10}  # not in the order of compute


@given(
    scale=st.floats(0.5, 9),
    exponent=st.floats(0.01, 1),
    computes=st.sets(st.integers(1, 10_000), min_size=3, max_size=4),
)
def test_a_power_law_is_found_exactly(scale: float, exponent: float, computes: set[int]) -> None:
    law = fit({float(c): [scale * c**-exponent] for c in computes})
    assert law.floor == 0
    assert (law.scale, law.exponent) == pytest.approx((scale, exponent), rel=1e-6)


@settings(max_examples=25)
@given(floor=st.floats(0.3, 3), scale=st.floats(0.3, 3), exponent=st.floats(0.2, 0.9))
def test_a_floor_is_found_from_five_computes_on(
    floor: float, scale: float, exponent: float
) -> None:
    truth = Law(floor, scale, exponent)
    losses = {c: [float(truth.loss(np.array(c)))] for c in COMPUTES}
    law = fit(losses)
    assert law.floor == pytest.approx(floor, abs=1e-3)
    assert law.loss(np.array(COMPUTES)) == pytest.approx(truth.loss(np.array(COMPUTES)), rel=1e-4)
    assert fit({c: losses[c] for c in COMPUTES[:4]}).floor == 0


def test_intervals_of_95_percent_have_the_true_exponent_in_at_least_80_of_100_studies() -> None:
    """Eight trainings a compute; fewer draws are narrower than the truth."""
    draws = stream(0, "test", "scaling")
    covered = 0
    for _ in range(100):
        losses = {c: (3 * c**-0.2 + draws.normal(0, 0.02, 8)).tolist() for c in (1.0, 5.0, 25.0)}
        _, exponent = intervals(losses, seed=0)
        assert exponent is not None
        covered += exponent[0] <= 0.2 <= exponent[1]
    assert 80 <= covered < 100


def test_a_compute_with_one_training_has_no_interval() -> None:
    assert intervals({1.0: [3.0, 3.1], 2.0: [2.0]}, seed=0) == (None, None)


@pytest.fixture
def run() -> Settings:
    lengths = [
        {"name": name, "seeds": list(SEEDS), "change": {"pretrain.steps": steps}}
        for name, steps in {**STEPS, "none": 0}.items()
    ]
    wider = {"name": "wider", "change": {"pretrain.steps": 50, "model.d_ff": 4096}}
    return load_settings(
        {"tasks.names": ["glue_sst2", "glue_rte"], "experiments": [*lengths, wider]}
    )


@pytest.fixture
def histories(run: Settings, tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for entry in run.experiments:
        paths[entry.name] = path = tmp_path / f"{entry.name}.csv"
        compute = pretraining_flops(run, entry.name) / 1e15
        lines = ["step,loss,validation_loss"]
        if compute:
            lines.append(f"50,4,{4 * compute**-0.125 + 0.01 * entry.change.get('seed', 0)}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def score(experiment: str, arm: str, seed: int, task: str, value: float) -> ScoreRow:
    empty: dict[str, Any] = dict.fromkeys(
        ("sd", "baseline", "examples", "invalid", "paper_baseline"), None
    )
    return ScoreRow(experiment, arm, seed, 1, task, "accuracy", value, baseline_kind="", **empty)


def test_experiments_that_differ_in_compute_are_a_series_with_law_and_gains(
    run: Settings, histories: dict[str, Path]
) -> None:
    """SST-2 gains from 100 steps on; RTE at 100 steps, but not reliably at 1,000."""
    experiments = group_arms(run, [entry.name for entry in run.experiments])
    means = {
        "glue_sst2": {"none": 50, "second": 50.5, "minute": 70, "hour": 90},
        "glue_rte": {"none": 50, "second": 50, "minute": 60, "hour": 51},
    }
    rows = [
        score(experiment.name, arm, seed, task, means[task][experiment.name] + seed)
        for task in means
        for experiment in experiments
        if experiment.name in means[task]
        for arm, seed in zip(experiment.arms, experiment.seeds, strict=True)
    ]
    (series,) = scalings(run, experiments, rows, histories)
    assert series.experiments == ("second", "minute", "hour")
    computes = [pretraining_flops(run, name) / 1e15 for name in series.experiments]
    assert series.operations == tuple(f"{compute:,.3g}" for compute in computes)
    assert computes[2] / computes[1] == pytest.approx(10)
    mean = statistics.fmean(4 * computes[0] ** -0.125 + 0.01 * seed for seed in SEEDS)
    assert series.losses[0] == f"{mean:.3f} ± 0.010"
    assert series.law.startswith("L = 4.0")
    assert "/ C^0.12" in series.law
    assert series.chart is not None
    assert series.chart.count("<polyline") == len(SEEDS) + 1
    assert [(gain.title, gain.worth_from) for gain in series.gains] == [
        ("SST-2", series.operations[1]),
        ("RTE", "–"),
    ]
    chart = series.gains[0].chart
    assert chart.count("<circle") == len(SEEDS) * len(computes)
    assert chart.count("<polyline") == 2  # the means, and no pre-training
    assert f"no pre-training: 51.00 ± 1.00; {series.operations[0]}: 51.50 ± 1.00" in chart
    assert series.gains[0].scores == (
        "51.00 ± 1.00",
        "51.50 ± 1.00",
        "71.00 ± 1.00",
        "91.00 ± 1.00",
    )


def test_two_computes_are_no_series(run: Settings, histories: dict[str, Path]) -> None:
    experiments = group_arms(run, ["hour", "minute", "none", "wider"])
    assert scalings(run, experiments, [], histories) == []
