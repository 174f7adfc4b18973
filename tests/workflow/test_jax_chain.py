"""The whole chain on JAX, from the crawl to the report, in an environment without TensorFlow.

The corpus is made in one checkout and the trainings in another one, as on a machine with a GPU.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from clones import clone, commit, copy_clone, run_in, shrink
from jax_environment import CACHE, ENVIRONMENT, MARKS

pytestmark = MARKS


@pytest.fixture(scope="module")
def finished_on_jax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of a small run on JAX, which another clone has trained, predicted and scored."""
    folders = tmp_path_factory.mktemp("jax")
    folder = clone(folders / "clone")
    shrink(folder)
    run_file = folder / "configs/demo.yaml"
    values = yaml.safe_load(run_file.read_text(encoding="utf-8"))
    values["devices"]["engine"] = "jax"
    values["tasks"] = {"names": ["glue_cola", "glue_stsb", "squad"]}
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    commit(folder, "on JAX")
    words = ("snakemake", "--profile", "local", "--cores", "2")
    assert "(100%) done" in command(folder, *words, "--omit-from", "pretrain")
    there = copy_clone(folder, folders / "there")
    # The jobs of both experiments run the same programs.
    ran = command(there, *words, **CACHE)
    assert "10 of 10 steps (100%) done" in ran  # no job of the corpus
    for name in ("results", "records", "logs", ".snakemake"):
        shutil.copytree(there / name, folder / name, dirs_exist_ok=True)
    command(folder, "t5repro", "seal")
    commit(folder, "results")
    return folder


def command(folder: Path, *words: str, **variables: str) -> str:
    """Run a command of the environment without TensorFlow; return all that it printed."""
    path = f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}"
    process = run_in(folder, *words, PATH=path, PYTHONPATH=str(folder / "src"), **variables)
    assert process.returncode == 0, process.stdout[-4000:]
    return process.stdout


def test_nothing_is_left_to_do_and_every_file_agrees(finished_on_jax: Path) -> None:
    assert "Nothing to be done" in command(finished_on_jax, "snakemake", "--profile", "local", "-n")
    verified = command(finished_on_jax, "t5repro", "verify")
    assert "files agree with manifests and dvc.lock" in verified
    assert "up to date" in command(finished_on_jax, "dvc", "status")


def test_all_tasks_of_both_experiments_have_scores(finished_on_jax: Path) -> None:
    for experiment in ("baseline", "no_pretraining"):
        scores = finished_on_jax / "results/demo/evaluate_score" / experiment / "scores.json"
        assert {"glue_cola", "glue_stsb", "squad"} <= set(json.loads(scores.read_text())["tasks"])
    assert (finished_on_jax / "results/demo/report/report.html").is_file()


def test_a_score_is_traced_to_the_engine(finished_on_jax: Path) -> None:
    scores = "results/demo/evaluate_score/baseline/scores.json"
    trace = command(finished_on_jax, "t5repro", "trace", scores)
    assert "jax 0.10.2" in trace
    assert "tensorflow" not in trace.lower()


def test_tensorflow_calculates_the_same(finished_on_jax: Path) -> None:
    options = ("--steps", "3", "--python", sys.executable, "--json")
    nodes = ("pretrain/baseline", "finetune/baseline", "evaluate_predict/baseline")
    words = ("t5repro", "certificate", "--engine", "tensorflow", *options, "--node", *nodes)
    answer = command(finished_on_jax, *words)
    comparison = json.loads(answer[answer.index("{") :])
    assert comparison["holds"]
    assert set(comparison["libraries"]) == {"jax", "jaxlib", "tensorflow"}
    measures = comparison["measures"]
    assert len(measures) == 2 * 6 + 3
    of_float64 = [measure["value"] for measure in measures if "float64" in measure["what"]]
    assert len(of_float64) == 4
    assert max(of_float64) < 1e-12


def test_a_training_is_rebuilt_with_equal_bytes(finished_on_jax: Path) -> None:
    answer = command(finished_on_jax, "t5repro", "rebuild", "pretrain/baseline", "--json")
    outcomes = json.loads(answer[answer.index("{") :])["outcomes"]
    assert {outcome["result"] for outcome in outcomes} == {"same bytes"}
