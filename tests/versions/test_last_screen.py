"""The last screen of a run: scores, the path of the report, and what to type next."""

from types import SimpleNamespace
from typing import Any

import pytest
from checkout import ROOT

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.plan.run_plan import RunPlan
from t5repro.versions import last_screen


def test_a_run_with_tasks_ends_with_its_scores_and_two_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []

    class Shown:
        stdout, stderr = "glue_sst2  80.00\nreport: results/mine/report/report.html\n", ""

    def run(words: list[str], **_: Any) -> Shown:
        asked.append(words)
        return Shown()

    monkeypatch.setattr(last_screen.subprocess, "run", run)
    settings = Settings.model_validate({"run": {"name": "mine"}, "tasks": {"names": ["glue_sst2"]}})
    scores = "results/mine/evaluate_score/baseline/scores.json"
    assert last_screen.last_screen(RunPlan(settings)).splitlines() == [
        "glue_sst2  80.00",
        "report: results/mine/report/report.html",
        "next:",
        f"  t5repro pages {scores}  the pages behind a score",
        f"  t5repro predict results/mine TEXT{' ' * (len(scores) - 19)}  "
        "the answer to a line of your own",
    ]
    assert asked[0][1:] == ["-m", "t5repro", "show", "results/mine"]


@pytest.mark.parametrize(
    ("run_file", "commands"),
    [
        ("systems", ["pages results/systems/evaluate_score/t5/scores.json", "TEXT"]),
        # The weights are published, and the network writes no text.
        ("tuned_bert", ["trace results/tuned_bert/evaluate_score/bert/scores.json", "--task"]),
    ],
)
def test_the_commands_fit_the_run(
    run_file: str, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        last_screen.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="ok")
    )
    screen = last_screen.last_screen(RunPlan.of_run_file(ROOT / f"configs/{run_file}.yaml"))
    origin, prediction = screen.splitlines()[-2:]
    assert origin.split("  ")[1] == f"t5repro {commands[0]}"
    assert prediction.split()[3] == commands[1]


def test_a_run_without_tasks_ends_with_its_weights() -> None:
    settings = load_settings(
        {
            "run": {"name": "mine"},
            "corpus": {"files": ["a.txt"], "language": "en"},
            "experiments": [
                {"name": "baseline", "row": "Baseline average"},
                {"name": "long", "change": {"pretrain.steps": 9}},
            ],
        }
    )
    assert last_screen.last_screen(RunPlan(settings)).splitlines() == [
        "weights: results/mine/pretrain/baseline/weights.safetensors",
        "weights: results/mine/pretrain/long/weights.safetensors",
        "next:",
        "  t5repro tasks new ROWS.csv --from results/mine  fine-tune on rows of your own",
    ]
