"""Runs whose jobs share no file system with the process that starts them, only a bucket."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import SMALL, artifact_hashes, clone, environment, run_in, shrink, snakemake
from s3_server import BUCKET, CREDENTIALS, open_bucket, serve_bucket

from t5repro.lineage.record import read_record
from t5repro.lineage.sources import CLOSURES
from t5repro.stages import STAGES

pytestmark = pytest.mark.workflow
PREFIX = "runs/small"
FOLDER = f".snakemake/storage/s3/{BUCKET}/{PREFIX}"

# Stands for a batch service: takes the script of a job, runs it in another checkout, as another
# user would on another machine, and knows its state. A machine has one job at a time: each unpacks
# the sources that Snakemake sends, which another job may be importing.
SUBMIT = """#!/bin/bash
job=$(mktemp "$SERVICE/jobs/XXXXXXXX")
cp "${@: -1}" "$job"
echo running > "$job.state"
(
    for machine in "$SERVICE"/machine-*; do
        exec 9> "$machine/lock"
        flock --nonblock 9 && break
    done
    flock 9
    cd "$machine/checkout"
    export HOME="$machine/checkout-home" PYTHONPATH="$machine/checkout/src"
    bash "$job" > "$job.log" 2>&1 && state=success || state=failed
    echo $state > "$job.new" && mv "$job.new" "$job.state"
) > /dev/null 2>&1 &
basename "$job"
"""
MACHINES = 2
OTHER_WORKFLOW = """
rule count_rows:
    output: "rows.txt"
    log: "rows.log"
    shell: "wc -l README.md > {output} 2> {log}"

module t5repro:
    snakefile: "Snakefile"
    config: config

use rule * from t5repro as t5_*
"""
STATUS = """#!/bin/bash
cat "$SERVICE/jobs/$1.state"
"""


@pytest.fixture
def address() -> Iterator[str]:
    """The address of an S3-protocol server with an empty bucket."""
    with serve_bucket() as address:
        yield address


class Service:
    """A batch service with machines, each of which has a clone of a checkout and a home."""

    def __init__(self, folder: Path, origin: Path) -> None:
        self.folder = folder
        self.checkouts = [folder / f"machine-{number}/checkout" for number in range(MACHINES)]
        self.jobs = folder / "jobs"
        self.jobs.mkdir(parents=True)
        for checkout in self.checkouts:
            subprocess.run(["git", "clone", "--quiet", origin, checkout], check=True)
            environment(checkout)  # makes its home
        for name, text in (("submit", SUBMIT), ("status", STATUS)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def options(self) -> list[str]:
        """Return the options that make Snakemake use the service."""
        return [
            *("--executor", "cluster-generic", "--jobs", str(MACHINES)),
            *("--cluster-generic-submit-cmd", str(self.folder / "submit")),
            *("--cluster-generic-status-cmd", str(self.folder / "status")),
            "--job-deploy-sources",  # as executors of clouds do by themselves
        ]


def run_batch(
    folder: Path, service: Service, address: str, *words: str, config: tuple[str, ...] = SMALL
) -> subprocess.CompletedProcess[str]:
    """Run the small chain from a clone, through a service and a bucket."""
    command = ["snakemake", "--profile", "batch", "--configfile", "configs/demo.yaml"]
    command += ["--default-storage-prefix", f"s3://{BUCKET}/{PREFIX}", *service.options()]
    command += ["--seconds-between-status-checks", "1", *words, "--config", *config]
    variables = {
        **CREDENTIALS,
        "SNAKEMAKE_STORAGE_S3_ENDPOINT_URL": address,
        "SERVICE": str(service.folder),
    }
    return run_in(folder, *command, **variables)


@pytest.mark.slow
def test_a_run_without_a_shared_file_system_writes_the_bytes_of_a_local_run(
    finished: Path, tmp_path: Path, address: str
) -> None:
    folder = clone(tmp_path / "clone")
    shrink(folder)
    service = Service(tmp_path / "service", folder)
    ran = run_batch(folder, service, address)
    assert ran.returncode == 0, ran.stdout[-4000:]
    scripts = [path for path in service.jobs.iterdir() if not path.suffix]
    assert len(scripts) == 32  # all jobs but data_fetch, which copies the bundled files
    assert not any(str(folder) in script.read_text() for script in scripts)
    assert {path.read_text() for path in service.jobs.glob("*.state")} == {"success\n"}
    assert artifact_hashes(folder) == artifact_hashes(finished)

    assert "sealed: " in ran.stdout
    records = {path.relative_to(finished) for path in (finished / "records").rglob("*.json")}
    assert {path.relative_to(folder) for path in (folder / "records").rglob("*.json")} == records
    assert not any(".snakemake" in (folder / path).read_text() for path in records)
    assert run_in(folder, "t5repro", "verify").returncode == 0

    again = run_batch(folder, service, address)
    assert "Nothing to be done" in again.stdout, again.stdout[-4000:]
    assert "Nothing to be done" in snakemake(folder, "-n", config=SMALL).stdout


@pytest.mark.slow
def test_raw_files_of_the_user_are_uploaded_and_a_failed_job_returns_its_log(
    fresh: Path, tmp_path: Path, address: str
) -> None:
    shutil.copytree(fresh / "examples/mini/raw", fresh / "data")
    raw = fresh / "data/lists/badwords.en.txt"
    right = raw.read_bytes()
    raw.write_bytes(right.swapcase())
    service = Service(tmp_path / "service", fresh)
    words, config = ("stage_data", "--retries", "0"), (*SMALL, "data={source: ''}")
    failed = run_batch(fresh, service, address, *words, config=config)
    assert failed.returncode == 1
    log = (fresh / "logs/demo/data.log").read_text()
    assert f"{raw.relative_to(fresh)}" in log
    assert not read_record(fresh / "records/demo/data.json").end.ok

    raw.write_bytes(right)
    ran = run_batch(fresh, service, address, *words, config=config)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert (service.checkouts[0] / "data/lists/badwords.en.txt").read_bytes() == right
    assert (fresh / "results/demo/data/manifest.json").is_file()
    assert read_record(fresh / "records/demo/data.json").sealable

    shutil.rmtree(fresh / "data")  # the bucket has the files
    again = run_batch(fresh, service, address, *words, config=config)
    assert "Nothing to be done" in again.stdout, again.stdout[-4000:]


def test_inputs_that_no_rule_writes_are_uploaded_if_they_changed(
    fresh: Path, tmp_path: Path, address: str
) -> None:
    service = Service(tmp_path / "service", fresh)
    store = open_bucket(address)

    def plan() -> dict[str, object]:
        planned = run_batch(fresh, service, address, "-n", "--quiet")
        assert planned.returncode == 0, planned.stdout[-4000:]
        return {
            item.key.removeprefix(f"{PREFIX}/"): item.last_modified for item in store.objects.all()
        }

    first = plan()
    names = {"withdrawn/pages.yaml", *(f"{CLOSURES}/{stage.name}.json" for stage in STAGES)}
    assert first.keys() == names
    withdrawn = fresh / "withdrawn/pages.yaml"
    withdrawn.write_text(withdrawn.read_text() + "# reworded\n")
    second = plan()
    assert {name for name in names if first[name] != second[name]} == {"withdrawn/pages.yaml"}
    stored = store.Object(f"{PREFIX}/withdrawn/pages.yaml").get()["Body"].read()
    assert stored == withdrawn.read_bytes()


def test_a_folder_in_place_of_the_link_to_the_checkout_is_named(
    fresh: Path, tmp_path: Path, address: str
) -> None:
    (fresh / FOLDER).mkdir(parents=True)
    ran = run_batch(fresh, Service(tmp_path / "service", fresh), address, "-n")
    assert ran.returncode == 1
    assert f"{FOLDER} must be a link to the checkout, but it is a folder; remove it" in ran.stdout


def test_rules_of_another_workflow_have_no_record(
    fresh: Path, tmp_path: Path, address: str
) -> None:
    (fresh / "other.smk").write_text(OTHER_WORKFLOW)
    service = Service(tmp_path / "service", fresh)
    ran = run_batch(fresh, service, address, "-n", "--snakefile", "other.smk", "count_rows")
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert f"log: s3://{BUCKET}/{PREFIX}/rows.log (send to storage)\n" in ran.stdout
