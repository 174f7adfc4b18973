"""What a run asks of Snakemake: memory that jobs share, and resources by their present names."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.settings.types import ResourceSettings

from t5repro.errors import SettingsError
from t5repro.versions import snakemake_run
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


def stopped_run(folder: Path, message: str, *options: str) -> list[str]:
    """Return the lines that Snakemake prints if reading its rules ends in an error."""
    (folder / "Snakefile").write_text('include: "rules.smk"\n', encoding="utf-8")
    (folder / "rules.smk").write_text(
        "from t5repro.errors import SettingsError\n"
        "from t5repro.versions.snakemake_run import with_message\n"
        f"def refuse():\n    raise SettingsError({message!r})\n"
        "with_message(refuse)()\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
    ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    return (ran.stdout + ran.stderr).splitlines()  # a dry run prints to standard output


def test_an_error_that_stops_a_run_is_its_message_without_lines_of_rule_files(
    tmp_path: Path,
) -> None:
    lines = stopped_run(tmp_path, "lower pretrain.steps")
    assert lines[-2:] == ["RunError:", "lower pretrain.steps"]


@pytest.mark.parametrize(
    "options",
    [(), ("--quiet", "all"), ("--quiet", "rules"), ("--quiet", "all", "--dry-run")],
    ids=" ".join,
)
def test_an_error_that_stops_a_run_is_said_once_however_quiet_it_is(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    lines = stopped_run(tmp_path, "lower pretrain.steps", *options)
    assert lines.count("lower pretrain.steps") == 1


@pytest.mark.parametrize("options", [(), ("--quiet", "all")], ids=" ".join)
def test_an_error_of_snakemake_s_own_is_said_once_however_quiet_it_is(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "Snakefile").write_text(
        "from t5repro.versions.job_errors import print_hidden_errors\n"
        "print_hidden_errors()\n"
        "rule all:\n    input: 'absent.txt'\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
    ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.count("Missing input files for rule all") == 1
    assert ran.stderr.count("absent.txt") == 1


@pytest.mark.parametrize("options", [(), ("--quiet", "all")], ids=" ".join)
def test_control_characters_of_a_run_file_do_not_reach_the_terminal(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert r"name is \x1b[2J" in stopped_run(tmp_path, "name is \x1b[2J", *options)


def test_what_a_run_says_at_its_end_has_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snakemake_run.power_loss, "note_end", lambda: None)
    pruned = lambda settings, whole: "deleted results/\x1b[2J"  # noqa: E731
    monkeypatch.setattr(snakemake_run.seal, "seal_run", pruned)
    monkeypatch.setattr(snakemake_run, "last_screen", lambda plan: "score of \x1b[31m")
    run = snakemake_run.SnakemakeRun.__new__(snakemake_run.SnakemakeRun)
    dag = SimpleNamespace(targets=("all",), until=(), omit_from=())
    run._workflow = SimpleNamespace(dag_settings=dag)
    run._lock = SimpleNamespace(close=lambda: None)
    run.settings = run.plan = None
    run.uses_storage = False
    run.end()
    printed = capsys.readouterr().err
    assert printed.splitlines() == [r"deleted results/\x1b[2J", r"score of \x1b[31m"]
