"""Attacks on the code of a job: what was edited while it ran is named, even if restored since."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from checkout import ROOT
from clones import commit, environment
from task_chain import (
    FORGERY,
    RECORD,
    STAGE,
    append,
    findings,
    is_forged,
    keep_times,
    record,
    rerun,
    t5repro,
)

from t5repro.lineage.sources import source_files
from t5repro.lineage.verify_other_code import EXPLAINED
from t5repro.lineage.workflow_files import rule_files, rule_text_hash
from t5repro.stages import STAGES

pytestmark = pytest.mark.workflow
CLI = "src/t5repro/cli/stages.py"
RULES = "workflow/rules/tasks.smk"


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_closure_contains_the_init_of_every_package_on_the_way(stage) -> None:
    files = set(source_files(stage.module))
    for name in files:
        for folder in PurePosixPath(name).parents:
            init = folder / "__init__.py"
            if folder.is_relative_to("src/t5repro") and (ROOT / init).is_file():
                assert init.as_posix() in files


def test_a_metric_forged_in_an_init_is_another_code_of_the_rule(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    script = "from t5repro.lineage.sources import closure; print(closure('evaluate_score'))"

    def closure_now() -> str:
        return subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    honest = closure_now()
    append(
        tmp_path / "src/t5repro/metrics/__init__.py",
        "import t5repro.metrics.classification as c\nc.accuracy = lambda a, p: 99.9\n",
    )
    assert closure_now() != honest


def test_what_every_job_imports_outside_of_its_closure_is_on_the_list() -> None:
    script = (
        "import json, t5repro.cli.main, t5repro.config.load, t5repro.lineage.record\n"
        "from t5repro.config.stage_settings import stage_model\n"
        "from t5repro.lineage.sources import source_files\n"
        "from t5repro.lineage.startup import own_modules\n"
        "from t5repro.stages import STAGES\n"
        "for stage in STAGES: stage_model(stage.name)\n"
        "print(json.dumps({s.name: list(own_modules(source_files(s.module))) for s in STAGES}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    for stage, names in json.loads(ran.stdout).items():
        others = {name.removeprefix("src/t5repro/") for name in names}
        assert {name for name in others if not name.startswith(EXPLAINED)} == set(), stage


def test_an_honest_job_has_no_findings_and_nothing_foreign(chain: Path) -> None:
    assert findings(chain) == {}
    end = record(chain)["end"]
    assert (end["foreign"], end["forged_byte_code"]) == ({}, [])
    assert CLI in end["imported"]
    assert record(chain)["start"]["machine"]["altered"] == []


def test_an_init_forged_for_a_run_is_named(chain: Path) -> None:
    init = "src/t5repro/tasks/__init__.py"
    append(chain / init, "import sys\nsys.argv.append('edited')\n")
    assert findings(chain)[init]["kind"] == "code changed"


def test_a_command_line_forged_for_one_run_is_named_after_it_was_restored(chain: Path) -> None:
    honest = (chain / CLI).read_text(encoding="utf-8")
    append(chain / CLI, FORGERY)
    rerun(chain)
    assert is_forged(chain)
    (chain / CLI).write_text(honest, encoding="utf-8")
    finding = findings(chain)[CLI]
    assert finding["kind"] == "code changed"
    assert "neither the file as it is now nor the one of commit" in finding["message"]


def test_a_command_line_that_changed_after_the_run_is_told_apart(chain: Path) -> None:
    append(chain / CLI, "EDITED = True\n")
    commit(chain, "another command line")
    found = findings(chain)
    assert found.keys() == {CLI}
    assert found[CLI]["kind"] == "since changed"
    code, text = t5repro(chain, "verify")
    assert code == 0, text
    assert f"-- {CLI} shows what has changed" in text


def test_code_outside_of_the_closure_that_a_job_imports_is_named(chain: Path) -> None:
    append(chain / CLI, "import t5repro.metrics.classification\n")
    commit(chain, "the command line imports more")
    rerun(chain)
    found = findings(chain)
    assert found["src/t5repro/metrics/classification.py"]["kind"] == "foreign code"
    assert "not in the closure" in found["src/t5repro/metrics/classification.py"]["message"]


def test_a_rule_file_forged_for_one_run_is_named_and_not_sealed(chain: Path) -> None:
    honest = (chain / RULES).read_text(encoding="utf-8")
    forged = honest.replace(
        'command_of("tasks")', 'command_of("tasks") + "; sed -i s/0/1/ {output.examples}"'
    )
    assert forged != honest
    (chain / RULES).write_text(forged, encoding="utf-8")
    append(chain / CLI, FORGERY)  # so that the outputs differ and are to be sealed
    rerun(chain)
    (chain / RULES).write_text(honest, encoding="utf-8")
    assert findings(chain)[RULES]["kind"] == "code changed"
    code, text = t5repro(chain, "seal", "--only", STAGE)
    assert code != 0
    assert f"rule file {RULES} is" in text


def test_an_edited_rule_file_is_not_the_one_of_the_lock(chain: Path) -> None:
    assert t5repro(chain, "dvc", "check")[0] == 0
    append(chain / RULES, "\n# a comment\n")
    code, text = t5repro(chain, "dvc", "check")
    assert code != 0
    assert "workflow/rules is not the one that dvc.lock was sealed with" in text


def test_a_comment_in_a_rule_file_is_no_other_rule(tmp_path: Path) -> None:
    text = (ROOT / RULES).read_text(encoding="utf-8")
    assert rule_text_hash(f"# comment\n{text}\n\n# end\n") == rule_text_hash(text)
    assert rule_text_hash(text.replace('"tasks"', '"task"')) != rule_text_hash(text)


def test_every_rule_that_is_recorded_has_a_rule_file_of_its_own() -> None:
    shared = {"Snakefile", "workflow/rules/common.smk", "src/t5repro/plan/commands.py"}
    for stage in STAGES:
        names = {path.as_posix() for path in rule_files(stage.name, ROOT)}
        assert names > shared, stage.name
        assert len(names) == len(shared) + 1, stage.name


def test_an_edited_run_file_is_named_by_the_settings_of_the_jobs_that_it_changes(
    chain: Path,
) -> None:
    run_file = chain / "configs/demo.yaml"
    append(run_file, "\n")
    assert findings(chain) == {}  # other bytes, the same settings
    append(run_file, "seed: 12345\n")
    assert findings(chain) == {}  # no setting of these jobs
    append(run_file, "tasks.text.copa_target: paper\n")
    finding = findings(chain)["configs/demo.yaml"]
    assert finding["kind"] == "settings"
    assert 'setting tasks.text.copa_target is "code" in' in finding["message"]
    assert '"paper" now' in finding["message"]


def test_of_two_run_files_the_merged_settings_are_compared(chain: Path) -> None:
    names = ["configs/demo.yaml", "second.yaml"]
    second = chain / names[1]
    second.write_text("seed: 12345\n", encoding="utf-8")
    values = record(chain)
    values["start"]["run_file"] |= {"names": names}
    values["start"]["run_file"]["hashes"][names[1]] = "0" * 64  # it has been edited since
    (chain / RECORD).write_text(json.dumps(values), encoding="utf-8")
    assert " ".join(names) not in findings(chain)
    append(second, "tasks.text.copa_target: paper\n")
    finding = findings(chain)[" ".join(names)]
    assert finding["kind"] == "settings"
    assert 'setting tasks.text.copa_target is "code" in' in finding["message"]


def test_a_setting_that_is_newer_than_a_job_is_no_difference_unless_the_run_file_has_it(
    chain: Path,
) -> None:
    values = record(chain)
    del values["start"]["settings"]["tasks"]["text"]["copa_target"]
    run_file = chain / "configs/demo.yaml"
    append(run_file, "\n")
    (chain / RECORD).write_text(json.dumps(values), encoding="utf-8")
    assert "configs/demo.yaml" not in findings(chain)
    append(run_file, "tasks.text.copa_target: paper\n")
    message = findings(chain)["configs/demo.yaml"]["message"]
    assert 'setting tasks.text.copa_target is "code" in' in message


def test_byte_code_of_other_instructions_is_named(chain: Path) -> None:
    source = chain / "src/t5repro/tasks/build.py"
    honest = source.read_bytes()
    # Compiled from forged text, under the header of the honest file: same size, same time.
    keep_times(source, "PROGRESS_ROWS = 1000", "PROGRESS_ROWS = 1001")
    py_compile.compile(str(source), doraise=True)
    status = os.stat(source)
    source.write_bytes(honest)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    rerun(chain)
    assert findings(chain)["src/t5repro/tasks/build.py"]["kind"] == "code changed"
    assert record(chain)["end"]["forged_byte_code"] == ["src/t5repro/tasks/build.py"]


def test_an_old_record_is_read_and_its_gaps_are_named(chain: Path) -> None:
    values = record(chain)
    for part, names in {
        "start": ("workflow", "run_file"),
        "end": ("imported", "foreign", "shared_libraries", "forged_byte_code"),
    }.items():
        for name in names:
            del values[part][name]
    for name in ("packages", "altered", "interpreter", "variables", "search_path", "start_files"):
        del values["start"]["machine"][name]
    (chain / RECORD).write_text(json.dumps(values), encoding="utf-8")
    assert findings(chain).keys() <= {RECORD}
    _, text = t5repro(chain, "trace", "results/demo/tasks/glue_sst2/test.jsonl")
    assert "not recorded: packages, variables, search path, start files, foreign modules" in text


def test_a_trace_names_uncommitted_changes_and_foreign_code(chain: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("", encoding="utf-8")
    append(chain / CLI, "EDITED = True\n")
    rerun(chain, PYTHONPATH=f"{environment(chain)['PYTHONPATH']}{os.pathsep}{folder}")
    _, text = t5repro(chain, "trace", "results/demo/tasks/glue_sst2/test.jsonl")
    assert "with uncommitted changes" in text
    assert "/sitecustomize.py " in text
    assert str(tmp_path) not in text
