"""Rules as executors of clusters need them: files, cores, resources, use by other workflows."""

import re
import subprocess
from pathlib import Path

import pytest
from clones import ROOT, SMALL, artifact_hashes, clone, environment, run_in, shrink, snakemake

pytestmark = pytest.mark.workflow

# Starts the script of a job in the background, as SLURM starts it on a node.
SBATCH = """#!/bin/bash
printf '%s\\n' "$*" >> submitted.txt
setsid bash "${@: -1}" > /dev/null 2>&1 &
echo $!
"""
# A rule of the workflow that uses those of this project as docs/run_on_a_cluster.md shows.
COUNT_ROWS = """
rule count_rows:
    input: "results/demo/tasks/glue_sst2/validation.jsonl"
    output: "rows.txt"
    shell: "wc -l {input} > {output}"
"""


def with_sbatch(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a clone; `sbatch` is the script above."""
    script = folder.parent / "bin/sbatch"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SBATCH)
    script.chmod(0o755)
    path = f"{script.parent}:{environment(folder)['PATH']}"
    return run_in(folder, *words, PATH=path)


SLURM = ("snakemake", "--profile", "slurm", "--configfile", "configs/demo.yaml")


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_cluster_plans_without_a_number_of_cores(only_planned: Path, kind: str) -> None:
    ran = run_in(only_planned, *SLURM, "-n", "--config", f"devices={{kind: {kind}}}")
    assert ran.returncode == 0, ran.stdout
    jobs = re.findall(r"^rule .*:\n(?:    .*\n)+", ran.stdout, re.MULTILINE)
    trained = [job for job in jobs if job.startswith(("rule pretrain", "rule finetune"))]
    assert len(trained) == 2 * 6
    memory = [int(size) for job in jobs for size in re.findall(r"\bmem_mb=(\d+)", job)]
    assert len(memory) == len(jobs)
    assert all(size >= 500 for size in memory)


def test_every_artifact_is_an_output_that_a_rule_declares(finished: Path) -> None:
    summary = snakemake(finished, "--summary", config=SMALL)
    declared = {line.split("\t")[0] for line in summary.stdout.splitlines()}
    made = {path for path in artifact_hashes(finished) if path.startswith("results/")}
    assert made - declared == set()


def test_a_node_with_other_files_has_a_rule_of_its_own(fresh: Path) -> None:
    arms = (
        "experiments=[{name: first}, {name: same, change: {seed: 1}}, "
        "{name: other, change: {tasks.names: [glue_cola]}}]"
    )
    path = fresh / "configs/arms.yaml"
    run_file = (fresh / "configs/demo.yaml").read_text().partition("\nexperiments:")[0]
    path.write_text(run_file + "\n" + arms.replace("=", ": ", 1) + "\n")
    ran = snakemake(fresh, "-n", "--quiet", "rules", "--configfile", "configs/arms.yaml")
    assert ran.returncode == 0, ran.stdout
    jobs = dict(line.split()[:2] for line in ran.stdout.splitlines() if len(line.split()) == 2)
    assert (jobs["evaluate_predict"], jobs["evaluate_predict-other"]) == ("2", "1")
    assert jobs["finetune"] == "3"  # their files have the same names


def test_another_workflow_uses_the_rules_as_a_module(fresh: Path, tmp_path: Path) -> None:
    snakefile = tmp_path / "Snakefile"
    page = (ROOT / "docs/run_on_a_cluster.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    snakefile.write_text(block.replace("path/to/checkout", str(fresh)) + COUNT_ROWS)
    words = ("--cores", "1", "--snakefile", str(snakefile), "--directory", str(fresh))
    ran = run_in(fresh, "snakemake", *words, "count_rows")
    assert ran.returncode == 0, ran.stdout
    assert (fresh / "rows.txt").read_text().split()[0].isdigit()
    assert "t5_tasks_glue_sst2" in ran.stdout


@pytest.mark.slow
def test_snakemakes_own_report_has_report_scores_and_losses(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    ran = snakemake(finished, "--report", str(page), config=SMALL)
    assert ran.returncode == 0, ran.stdout
    text = page.read_text(encoding="utf-8")
    assert all(f'"{name}"' in text for name in ("Report", "Scores", "Loss curves"))


@pytest.mark.slow
def test_a_run_through_sbatch_writes_the_bytes_of_a_local_run(
    finished: Path, tmp_path: Path
) -> None:
    folder = clone(tmp_path / "clone")
    shrink(folder)
    options = ("--latency-wait", "5", "--max-jobs-per-second", "20", "--jobs", "2")
    ran = with_sbatch(folder, *SLURM, *options, "--config", *SMALL)
    assert ran.returncode == 0, ran.stdout[-4000:]
    submitted = (folder / "submitted.txt").read_text()
    assert len(re.findall(r"--cpus-per-task=\d+ --mem=\d+ --time=\d+", submitted)) == 33
    assert artifact_hashes(folder) == artifact_hashes(finished)
    assert "sealed: " in ran.stdout
    records = {path.relative_to(finished) for path in (finished / "records").rglob("*.json")}
    assert {path.relative_to(folder) for path in (folder / "records").rglob("*.json")} == records
