"""The chain end to end, in small: files, determinism, resume, refusals."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from clones import (
    PRINTED,
    SMALL,
    artifact_hashes,
    clone,
    copy_clone,
    environment,
    shrink,
    snakemake,
)

pytestmark = pytest.mark.workflow


def test_the_whole_chain_runs_and_ends_with_a_report(finished: Path) -> None:
    results = finished / "results/demo"
    report = (results / "report/report.html").read_text(encoding="utf-8")
    assert "baseline" in report
    assert "no_pretraining" in report
    assert "<script src" not in report
    scores = json.loads((results / "evaluate_score/baseline/scores.json").read_text())
    assert len(scores["tasks"]) == 12


def test_a_whole_run_ends_with_the_commands_that_are_next(finished: Path) -> None:
    printed = (finished / PRINTED).read_text(encoding="utf-8")
    assert "\nnext:\n  t5repro pages results/demo/evaluate_score/" in printed


def test_every_score_of_the_report_leads_back_to_the_raw_files(finished: Path) -> None:
    report = finished / "results/demo/report"
    page = (report / "report.html").read_text(encoding="utf-8")
    lineage = (report / "trace.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r'id="([^"]+)"', lineage))
    links = set(re.findall(r'href="trace\.html#([^"]+)"', page))
    arms = ("baseline", "no_pretraining")
    assert links == {f"demo.evaluate_score.{arm}" for arm in arms}
    assert page.count("trace.html#") > 2 * 12
    assert links < anchors
    assert set(re.findall(r'href="#([^"]+)"', lineage)) <= anchors
    files = set(re.findall(r'href="([^"#]+)"', lineage))
    jobs = re.findall(r'<section class="job" id="([^"]+)"', lineage)
    records = {name for name in files if name.startswith("../../../records/")}
    assert len(records) == len(jobs) == 31  # every job of a stage but the report itself
    assert "report.html" in files
    assert "../../../data/crawl/MINI-2019-18-00000.warc.wet.gz" in files
    assert [name for name in files if not (report / name).is_file()] == []
    assert "file:data.crawl.MINI-2019-18-00000.warc.wet.gz" in anchors
    assert not re.search(r'<script|<link|src=|href="https?:', lineage)


def in_clone(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


def test_data_is_what_data_dvc_froze_and_a_changed_file_is_noticed(
    finished: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "clone"
    shutil.copytree(finished, folder, symlinks=True, ignore=shutil.ignore_patterns("results"))
    checked = in_clone(folder, "t5repro", "dvc", "raw")
    assert checked.returncode == 0, checked.stderr
    assert "the raw inputs are those of data.dvc" in checked.stdout
    assert "up to date" in in_clone(folder, "dvc", "status", "data.dvc").stdout
    (folder / "data/tasks/glue/RTE/dev.tsv").write_text("other")
    changed = in_clone(folder, "t5repro", "dvc", "raw")
    assert changed.returncode == 1
    assert "data/ hashes to" in changed.stderr
    assert "a raw file was changed" in changed.stderr


def test_a_second_run_does_nothing_and_says_so(finished: Path) -> None:
    before = artifact_hashes(finished)
    ran = snakemake(finished, config=SMALL)
    assert ran.returncode == 0
    assert "Nothing to be done" in ran.stdout
    assert artifact_hashes(finished) == before


def test_every_stage_wrote_a_manifest_that_holds(finished: Path) -> None:
    from t5repro.files import sha256_of

    manifests = sorted((finished / "results").rglob("*manifest.json"))
    rules = {json.loads(path.read_text())["rule"] for path in manifests}
    assert {"data", "c4_clean", "c4_dedup", "c4", "vocab_sample", "vocab", "tokens"} <= rules
    assert {"pretrain", "tasks", "finetune", "evaluate_predict", "evaluate_score"} <= rules
    for path in manifests:
        text = path.read_text()
        assert str(finished) not in text
        for item in json.loads(text)["outputs"]:
            assert sha256_of(finished / item["path"]) == item["sha256"], item["path"]


def test_nothing_half_written_or_resumable_is_left_behind(finished: Path) -> None:
    assert [path for path in finished.rglob(".writing-*") if ".snakemake" not in path.parts] == []
    left = [path for path in (finished / "work").rglob("*") if path.suffix == ".safetensors"]
    assert left == []


@pytest.mark.slow
def test_another_clone_on_one_core_writes_the_same_bytes_and_another_seed_others(
    finished: Path, tmp_path: Path
) -> None:
    other = clone(tmp_path / "deep/er/clone")
    shrink(other)
    assert snakemake(other, config=SMALL, cores=1).returncode == 0
    assert artifact_hashes(other) == artifact_hashes(finished)
    assert snakemake(other, config=(*SMALL, "seed=1")).returncode == 0
    weights = "results/demo/finetune/baseline/weights.safetensors"
    assert artifact_hashes(other)[weights] != artifact_hashes(finished)[weights]


@pytest.mark.parametrize(
    "stage",
    [
        "pretrain",
        *(
            pytest.param(stage, marks=pytest.mark.slow)
            for stage in ("c4_clean", "vocab", "finetune", "evaluate_predict")
        ),
    ],
)
def test_ctrl_c_in_a_stage_loses_nothing_and_a_rerun_gives_the_same_bytes(
    finished: Path, tmp_path: Path, stage: str
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    wanted = artifact_hashes(folder)
    results = f"results/demo/{stage}/baseline"  # of one experiment
    targets = [path for path in wanted if path.startswith(results) and "manifest" in path]
    shutil.rmtree(folder / results)
    logs = sorted((folder / "logs/demo").rglob(f"{stage}*/**/*.log"))
    for log in logs:
        log.unlink()
    job = subprocess.Popen(
        ["snakemake", "--profile", "local", "--cores", "2", *targets],
        cwd=folder,
        env=environment(folder),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as on a terminal
    )
    while not (started := [log for log in logs if log.exists() and log.stat().st_size]):
        assert job.poll() is None, "snakemake ended before the stage began"
        time.sleep(0.05)
    assert started
    os.killpg(job.pid, signal.SIGINT)
    assert job.wait() != 0
    half = list((folder / "results").rglob(".writing-*"))
    assert half == []
    ran = snakemake(folder, *targets)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert artifact_hashes(folder) == wanted


def broken_task(folder: Path, name: str, change: str) -> subprocess.CompletedProcess[str]:
    """Run the task's rule after `change` (missing, header or row) to its first file."""
    path = folder / "data/tasks" / name
    if change == "missing":
        path.unlink()
    else:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        line = 0 if change == "header" else 3
        lines[line] = "broken\n"
        path.write_text("".join(lines), encoding="utf-8")
    return subprocess.run(
        [
            "t5repro",
            "stage",
            "tasks",
            "--settings",
            "{}",
            "--task",
            "glue_rte",
            "--files",
            f"train={path.relative_to(folder)}",
            "--folder",
            "out",
            "--manifest",
            "out/manifest.json",
        ],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", "glue/RTE/train.tsv"),
        ("header", "glue/RTE/train.tsv"),
        ("row", "glue/RTE/train.tsv line 4"),
    ],
)
def test_a_broken_task_file_is_named_with_its_line_and_nothing_is_written(
    finished: Path, tmp_path: Path, change: str, message: str
) -> None:
    folder = tmp_path / "clone"
    shutil.copytree(finished / "data", folder / "data")
    shutil.copytree(finished / "src", folder / "src")
    ran = broken_task(folder, "glue/RTE/train.tsv", change)
    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not list((folder / "out").glob("*")) if (folder / "out").exists() else True
