"""What a run asks of Snakemake: memory that jobs share, and resources by their present names."""

import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.settings.types import ResourceSettings

from t5repro.errors import SettingsError
from t5repro.versions.snakemake_run import refuse_former_resource

pytestmark = pytest.mark.workflow

SNAKEFILE = """
from t5repro.versions import snakemake_run
snakemake_run.machine_bytes = lambda: 3e9
MEGABYTES = {"a": 2000, "b": 2000, "c": 900, "d": 9000}

rule all:
    input: "a", "b", "c", "d"

rule one:
    output: "{name}"
    wildcard_constraints: name="[a-d]"
    resources: mem_mb=lambda wildcards: MEGABYTES[wildcards.name]
    shell: "echo +{wildcards.name} >> log; sleep 1; touch {output}; echo -{wildcards.name} >> log"

onstart:
    snakemake_run.share_memory(workflow)
"""


def most_megabytes(folder: Path, *options: str) -> int:
    """Run the four jobs on four cores; return the most memory that they had at a time."""
    (folder / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--cores", "4", "--quiet", "all", *options]
    subprocess.run(command, cwd=folder, check=True)
    needs = {"a": 2000, "b": 2000, "c": 900, "d": 9000}
    now, most = 0, 0
    for line in (folder / "log").read_text().split():
        now += needs[line[1]] if line[0] == "+" else -needs[line[1]]
        most = max(most, now)
    return most


def test_jobs_run_together_only_if_the_machine_has_memory_for_all_of_them(tmp_path: Path) -> None:
    # One needs three times the machine: alone it runs, where run.check_memory allows it.
    assert most_megabytes(tmp_path) == 9000


def test_a_limit_of_the_user_stays(tmp_path: Path) -> None:
    assert most_megabytes(tmp_path, "--resources", "mem_mb=100000") == 13900


@pytest.mark.parametrize(
    "settings",
    [
        ResourceSettings(resources={"tpu_slices": 1}),
        ResourceSettings(default_resources={"mem_mb": 2000, "tpu_slices": 0}),
        ResourceSettings(overwrite_resources={"pretrain": {"tpu_slices": 1}}),
    ],
)
def test_the_former_name_of_a_resource_is_refused(settings: ResourceSettings) -> None:
    with pytest.raises(SettingsError, match="the resource tpu_slices is called accelerators now"):
        refuse_former_resource(settings)
    refuse_former_resource(ResourceSettings(default_resources={"accelerators": 1}))


def test_an_error_that_stops_a_run_is_its_message_without_lines_of_rule_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "Snakefile").write_text('include: "rules.smk"\n', encoding="utf-8")
    (tmp_path / "rules.smk").write_text(
        "from t5repro.errors import SettingsError\n"
        "from t5repro.versions.snakemake_run import with_message\n"
        "def refuse():\n    raise SettingsError('lower pretrain.steps')\n"
        "with_message(refuse)()\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-2:] == ["RunError:", "lower pretrain.steps"]
