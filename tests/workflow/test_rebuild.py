"""Forged results are detected by building them again."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from clones import SMALL, commit, copy_clone, environment

from t5repro.files import sha256_of

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

SCORES = "results/demo/evaluate_score/baseline/scores.json"
MANIFEST = "results/demo/evaluate_score/baseline/manifest.json"


def rebuild(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["t5repro", "rebuild", *arguments, "--json", "--config", *SMALL],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    folder = copy_clone(finished, tmp_path / "clone")
    commit(folder, "results")
    return folder


def test_an_honest_stage_comes_out_byte_for_byte(copy: Path) -> None:
    ran = rebuild(copy, "evaluate_score")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    answer = json.loads(ran.stdout)
    assert len(answer["outcomes"]) == 4
    assert {outcome["result"] for outcome in answer["outcomes"]} == {"same bytes"}


def test_forged_scores_with_a_manifest_to_match_are_found(copy: Path) -> None:
    scores = json.loads((copy / SCORES).read_text())
    scores["tasks"]["glue_sst2"]["metrics"]["accuracy"] = 99.9
    (copy / SCORES).write_text(json.dumps(scores))
    manifest = json.loads((copy / MANIFEST).read_text())
    manifest["outputs"][0]["sha256"] = sha256_of(copy / SCORES)
    (copy / MANIFEST).write_text(json.dumps(manifest))
    ran = rebuild(copy, "evaluate_score/baseline")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    wrong = [i["path"] for i in json.loads(ran.stdout)["outcomes"] if i["result"] == "different"]
    assert SCORES in wrong


def test_a_forged_lock_alone_is_found(copy: Path) -> None:
    lock = yaml.safe_load((copy / "dvc.lock").read_text())
    (out,) = lock["stages"]["evaluate_score-baseline"]["outs"]
    honest = out["md5"]
    out["md5"] = f"{'0' * 32}{honest[32:]}"  # a folder's hash ends with .dir
    (copy / "dvc.lock").write_text(yaml.safe_dump(lock))
    ran = rebuild(copy, "evaluate_score/baseline")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    (wrong,) = [i for i in json.loads(ran.stdout)["outcomes"] if i["result"] == "different"]
    assert wrong["path"] == out["path"]
    assert wrong["detail"] == f"rebuilt md5 {honest[:12]}, dvc.lock says {'0' * 12}"


def test_a_sample_is_drawn_and_can_be_drawn_again(copy: Path) -> None:
    ran = rebuild(copy, "--sample", "1", "--seed", "3")
    again = rebuild(copy, "--sample", "1", "--seed", "3")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["outcomes"] == json.loads(again.stdout)["outcomes"]


def test_an_unknown_stage_is_refused(copy: Path) -> None:
    ran = rebuild(copy, "nothing")
    assert ran.returncode == 2
    assert "no such job in results/; rules are" in ran.stderr
    assert "name a stage, such as t5repro rebuild --clean vocab" in rebuild(copy).stderr
