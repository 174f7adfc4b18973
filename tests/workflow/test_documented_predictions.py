"""Every command and line of docs/predict.md, on a finished small run."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from clones import ROOT, run_in

pytestmark = pytest.mark.workflow
PAGE = (ROOT / "docs/predict.md").read_text(encoding="utf-8")
SHOW = "\nprint(run.experiments, len(run.scores()), len(run.predictions('glue_sst2')))\n"


def test_the_documented_command_prints_the_predictions_of_the_stage(finished: Path) -> None:
    command, *_ = re.findall(r"^t5repro predict .*", PAGE, re.MULTILINE)
    words = shlex.split(command)
    assert len(run_in(finished, *words).stdout.splitlines()[-2:]) == 2
    rows = (finished / "results/demo/evaluate_predict/no_pretraining/glue_sst2.jsonl").read_text()
    examples = [json.loads(line) for line in rows.splitlines()]
    answers = run_in(
        finished,
        *words[:3],
        *(row["inputs"] for row in examples),
        "--experiment=no_pretraining",
        "--json",
    ).stdout
    predictions = [
        json.loads(line)["prediction"] for line in answers.splitlines() if line.startswith("{")
    ]
    assert predictions == [row["prediction"] for row in examples]


def test_the_documented_lines_run_in_python(finished: Path, tmp_path: Path) -> None:
    code, as_keras_model = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    here = as_keras_model.replace('"results/demo"', repr(str(finished / "results/demo")))
    assert here != as_keras_model
    ran = run_in(tmp_path, sys.executable, "-c", here)
    assert ran.returncode == 0, ran.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {"network.keras", "served"}
    ran = run_in(finished, sys.executable, "-c", code + SHOW)
    assert ran.returncode == 0, ran.stdout
    scores = (finished / "results/demo/report/scores.csv").read_text(encoding="utf-8")
    rows = len(scores.splitlines()) - 1
    assert f"('baseline', 'no_pretraining') {rows} 6" in ran.stdout
