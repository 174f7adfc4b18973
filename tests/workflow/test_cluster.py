"""Rules as executors of clusters need them: files, cores, resources, use by other workflows."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import slurm_stand_in
from clones import ROOT, SMALL, artifact_hashes, clone, environment, run_in, shrink, snakemake

from t5repro.lineage.shared_facts import SHARED

pytestmark = pytest.mark.workflow

# A rule of the workflow that uses those of this project as docs/run_on_a_cluster.md shows.
COUNT_ROWS = """
rule count_rows:
    input: "results/demo/tasks/glue_sst2/validation.jsonl"
    output: "rows.txt"
    shell: "wc -l {input} > {output}"
"""


needs_plugin = pytest.mark.skipif(
    find_spec("snakemake_executor_plugin_slurm") is None, reason="make slurm installs the plugin"
)
SLURM = ("snakemake", "--profile", "slurm", "--configfile", "configs/demo.yaml")
# One job for each way in which SLURM ends a job that did nothing wrong.
FAULTS = {
    "data": ["CANCELLED by 1000"],
    "c4_clean": ["FAILED", "OUT_OF_MEMORY"],
    "c4_dedup": ["NODE_FAIL"],
    "vocab": ["TIMEOUT"],
    "pretrain": ["PREEMPTED"],
}


def on_slurm(folder: Path, commands: Path, seconds: int) -> subprocess.CompletedProcess[str]:
    """Run the small chain of a clone through SLURM's commands in a folder.

    Args:
        folder: the clone.
        commands: the folder.
        seconds: how often the plugin asks for the states of jobs, if one has ended since.
    """
    check = ("--slurm-init-seconds-before-status-checks", str(seconds))
    options = ("--latency-wait", "5", *check, "--config", *SMALL)
    return run_in(folder, *SLURM, *options, PATH=f"{commands}:{environment(folder)['PATH']}")


@needs_plugin
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
    (block,) = re.findall(r"```snakemake\n(.*?)```", page, re.DOTALL)
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


def records_of_jobs(folder: Path) -> set[Path]:
    """Return the records of a clone; the names of shared facts are hashes of the environment."""
    records = folder / "records"
    return {
        path.relative_to(records) for path in records.rglob("*.json") if SHARED not in path.parts
    }


@needs_plugin
@pytest.mark.slow
def test_jobs_that_slurm_ends_are_repeated_with_more_memory_and_give_the_bytes_of_a_local_run(
    finished: Path, tmp_path: Path
) -> None:
    folder = clone(tmp_path / "clone")
    shrink(folder)
    commands = slurm_stand_in.install(tmp_path / "slurm", FAULTS, unanswered=5)
    ran = on_slurm(folder, commands, seconds=6)
    assert ran.returncode == 0, ran.stdout[-4000:]
    submitted = (commands / "submitted.txt").read_text().splitlines()
    asked = [re.findall(r"^(\w+) .*--mem (\d+) --no-requeue", line)[0] for line in submitted]
    lost = sum(map(len, FAULTS.values()))
    assert len(asked) == 34 + lost
    for rule, states in FAULTS.items():
        memory = sorted(int(megabytes) for name, megabytes in asked if name == rule)
        assert memory[-len(states) :] == [2 * memory[0]] * len(states), rule
    assert "SLURM does not answer; its jobs count as running" in ran.stdout
    assert artifact_hashes(folder) == artifact_hashes(finished)
    assert "sealed: " in ran.stdout
    assert records_of_jobs(folder) == records_of_jobs(finished)
