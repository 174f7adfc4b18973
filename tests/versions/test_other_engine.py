"""What `certificate --engine` asks for before it starts, and how it judges."""

import argparse
import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.cli.arguments import add_settings
from t5repro.cli.job_options import add_options, job_of, named_files
from t5repro.errors import DeviceError, LineageError, SettingsError
from t5repro.jobs.fields import fields_of
from t5repro.jobs.table import JOBS
from t5repro.plan.run_plan import RunPlan
from t5repro.versions.other_engine import (
    Comparison,
    Measure,
    _can_be_repeated,
    _worst,
    answers_measure,
    compare_engines,
    interpreter,
    margin_of,
)

DEMO = ROOT / "configs/demo.yaml"


def compare(folder: Path, **change: Any) -> Comparison:
    values: dict[str, Any] = {"engine": "jax", "steps": 20, "nodes": (), "python": "python"}
    return compare_engines([DEMO], folder=folder, **(values | change))


def measure(value: float, bar: float | None) -> Measure:
    return Measure("pretrain baseline", "loss", value, bar, "step 1")


def test_the_engine_of_the_run_is_no_other_engine(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="'tensorflow', the engine of the run; name 'jax'"):
        compare(tmp_path, engine="tensorflow")


def test_there_must_be_a_step(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--steps is 0; it must be at least 1"):
        compare(tmp_path, steps=0)


@pytest.mark.parametrize("name", ["pretrain/none", "vocab", "pretrain/"])
def test_a_node_must_be_a_training_or_a_prediction(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    with pytest.raises(
        LineageError, match=f"--node {name} does not name .* these are pretrain/baseline, "
    ):
        compare(tmp_path, nodes=[name])


def test_a_node_that_is_not_built_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr("t5repro.versions.other_engine.RESULTS", str(tmp_path))
    with pytest.raises(LineageError, match="pretrain/baseline/manifest.json is missing: build"):
        compare(tmp_path, nodes=["pretrain"])


def test_the_interpreter_of_an_engine_is_this_one_or_of_the_environment_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeviceError, match="make .venv-jax/installed makes it, or name one with"):
        interpreter("jax")
    beside = Path(".venv-jax/bin/python")
    beside.parent.mkdir(parents=True)
    beside.touch()
    assert interpreter("jax") == str(beside)


def test_nothing_compared_is_no_agreement() -> None:
    nothing = Comparison(("tensorflow", "jax"), {}, ())
    assert not nothing.holds
    assert "nothing was compared" in nothing.to_text()


@pytest.mark.parametrize(
    ("value", "bar", "agrees"),
    [(1e-6, 1e-6, True), (2e-6, 1e-6, False), (float("nan"), 1e-6, False), (1.0, None, True)],
)
def test_a_measure_agrees_up_to_its_bar(value: float, bar: float | None, agrees: bool) -> None:
    comparison = Comparison(("tensorflow", "jax"), {}, (measure(value, bar),))
    assert comparison.holds is agrees
    assert ("differ by more than rounding" in comparison.to_text()) is not agrees


def side(text: str, *logits: float) -> dict[str, Any]:
    """Return what an engine's repetition says of the only answer of a task."""
    pairs = {"0": list(logits)} if logits else {}
    return {"answers": {"sst2": [{"text": text}]}, "logits": {"sst2": pairs}}


@pytest.mark.parametrize(
    ("sides", "margin"),
    [
        ([side("a", 12.0, 11.99997), side("b", 12.0, 11.99999)], 2.5e-6),
        ([side("a", 0.25, 0.2499995), side("b", 0.25, 0.2499999)], 5e-7),
        ([side("a", 12.0, 11.5), side("b", 12.0, 12.0)], 0.5 / 12),
        ([side("c", 12.0, 12.0), side("b", 12.0, 12.0)], math.inf),  # the run wrote a
        ([side("a"), side("b", 12.0, 12.0)], math.inf),
        ([side("a"), side("a")], math.inf),
    ],
)
def test_a_margin_is_the_larger_difference_of_two_logits_in_either_engine(
    sides: list[Any], margin: float
) -> None:
    assert margin_of(sides, "sst2", 0, "a") == pytest.approx(margin, rel=1e-6)


@pytest.mark.parametrize(
    ("margins", "agrees", "where"),
    [
        ([], True, "sst2: 600 of 600 equal"),
        ([(3e-6, 7)], True, "sst2: 599 of 600 equal; margin 3e-06 in line 7"),
        (
            [(5e-6, 9), (3e-6, 7)],
            True,
            "sst2: 598 of 600 equal; margin 3e-06 in line 7 to 5e-06 in line 9",
        ),
        ([(3e-6, 7), (2e-2, 8)], False, "sst2: 598 of 600 equal; margin 3e-06 in line 7 to 2e-02"),
        ([(math.inf, 1)], False, "sst2: 599 of 600 equal; margin inf in line 1"),
    ],
)
def test_answers_agree_if_those_that_differ_are_ties(
    margins: list[tuple[float, int]], agrees: bool, where: str
) -> None:
    found = answers_measure("evaluate_predict a", "sst2", 600, margins)
    assert found.agrees is agrees
    assert found.where.startswith(where)
    comparison = Comparison(("tensorflow", "jax"), {}, (found,))
    assert where in comparison.to_text()
    (measure,) = json.loads(json.dumps(comparison.to_json(), allow_nan=False))["measures"]
    assert measure["value"] == (found.value if math.isfinite(found.value) else None)


@pytest.mark.parametrize("rule", ["pretrain", "finetune", "evaluate_predict"])
def test_the_words_of_a_node_are_the_job_that_the_workflow_starts(rule: str) -> None:
    plan = RunPlan.of_run_file(DEMO)
    fields = {field.name for field in fields_of(JOBS[rule])}
    for name in set(plan.nodes_of(rule).values()):
        _, *words = plan.words(rule, name)
        parser = argparse.ArgumentParser()
        add_settings(parser)
        add_options(parser, rule)
        named = set(named_files(job_of(rule, parser.parse_args(words))))
        files = plan.inputs(rule, name) | plan.outputs(rule, name)
        for role in fields & set(files):
            assert set(map(Path, files[role])) <= named
        assert Path(f"results/demo/{rule}/{name}") in named


@pytest.mark.parametrize(("values", "index"), [([1.0, 3.0, 2.0], 1), ([1.0, float("nan"), 9.0], 1)])
def test_a_difference_that_is_no_number_is_the_worst(values: list[float], index: int) -> None:
    assert _worst(values) == index


def test_trainings_without_steps_are_not_repeated() -> None:
    nodes = [node for node in RunPlan.of_run_file(DEMO).nodes if _can_be_repeated(node)]
    names = {f"{node.rule}/{node.name}" for node in nodes}
    assert {"pretrain/baseline", "finetune/no_pretraining"} <= names
    assert "pretrain/no_pretraining" not in names
