"""A record that was edited, deleted or added is named, even if its index was forged with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_graphs import RESULT, WEIGHTS, lock, write
from made_records import CODE, FOLDERS, commit, git, syntax, write_index, write_records

from t5repro.files import sha256_of, write_json
from t5repro.lineage.findings import Finding
from t5repro.lineage.sources import closure_text
from t5repro.lineage.verify import verify_tree

JOB = "r/finetune/a"
RECORD = f"records/{JOB}.json"
SCORE_RECORD = "records/r/evaluate_score/a.json"
INDEX = "records/r.index.json"
Edit = Callable[[dict[str, Any]], object]


def edit(run: Path, change: Edit, path: str = RECORD) -> None:
    values = json.loads((run / path).read_text())
    change(values)
    write_json(run / path, values)


def setting(path: str, value: object) -> Edit:
    """Return an edit that sets one value, named by its dotted path."""

    def change(values: dict[str, Any]) -> None:
        *folders, leaf = path.split(".")
        for name in folders:
            values = values[int(name) if isinstance(values, list) else name]
        values[leaf] = value

    return change


def named(run: Path) -> Finding:
    (finding,) = verify_tree(run).findings
    return finding


# Each edit of a record, and what contradicts it if the index was forged as well.
EDITS = [
    pytest.param(setting("start.commit", "deadbeef" * 5), "is not in this repository", id="commit"),
    pytest.param(setting("start.commit", "HEAD"), "is not in this repository", id="no hash"),
    pytest.param(setting("start.settings.finetune.rate", 0.2), "setting finetune.rate", id="rate"),
    pytest.param(setting("start.settings", {}), "setting devices", id="settings"),
    pytest.param(setting("start.seeds", {"seed": 1}), "seeds {'seed': 1}", id="seeds"),
    pytest.param(setting("start.code", {}), "names no source file", id="no code"),
    pytest.param(
        setting("start.closure", {}), "code configs/resolved/code/finetune.json is", id="no syntax"
    ),
    pytest.param(
        lambda values: values["start"]["code"].pop(CODE[0]),
        f"reached code in {CODE[0]}, which it did not run",
        id="less code",
    ),
    pytest.param(
        lambda values: values["start"]["closure"].update({CODE[0]: "0" * 64}),
        "code configs/resolved/code/finetune.json is",
        id="syntax",
    ),
    pytest.param(
        lambda values: values["start"]["machine"]["locks"].update(
            {"requirements/cpu-gpu.txt": "0" * 64}
        ),
        "requirements/cpu-gpu.txt is 000000000000 here, without changes",
        id="package lock",
    ),
    pytest.param(setting("start.attempt", 0), "attempt 0", id="attempt"),
    pytest.param(setting("start.at", "2000-01-01T00:00:00+00:00"), "before its commit", id="start"),
    pytest.param(setting("start.at", "yesterday"), "which is no time", id="no time"),
    pytest.param(setting("end.at", "2100-01-02T03:04:04+00:00"), "2.9 s from", id="end before"),
    pytest.param(setting("end.seconds", 7200.0), "7200.0 s from", id="seconds"),
    pytest.param(setting("end.cpu_seconds", -1.0), "-1.0 s of processor time", id="cpu seconds"),
    pytest.param(setting("end.numbers", {"files": 7}), "number files is 7.0 here, ", id="numbers"),
    pytest.param(setting("end", None), "has no end", id="end removed"),
    pytest.param(setting("end.ok", False), "the job failed (ok is false)", id="not ok"),
    pytest.param(setting("end.error", "SystemExit"), "the job failed (SystemExit)", id="error"),
    pytest.param(setting("end.code_changed", ["src/x.py"]), "code changed", id="code changed"),
    pytest.param(setting("end.inputs", []), "is absent here, ", id="no inputs"),
    pytest.param(setting("end.inputs.0.sha256", "0" * 64), "in the manifest", id="input hash"),
    pytest.param(setting("end.inputs.0.bytes", 3), "has 3 bytes here, ", id="input bytes"),
    pytest.param(setting("end.outputs", []), f"output {WEIGHTS} is absent here, ", id="no outputs"),
    pytest.param(setting("end.outputs.0.sha256", "0" * 64), "in the manifest", id="output hash"),
    pytest.param(
        lambda values: values["end"]["outputs"].append(
            {"path": "results/r/x", "bytes": 1, "sha256": "0" * 64}
        ),
        "output results/r/x is 000000000000 here, absent in the manifest",
        id="more outputs",
    ),
    pytest.param(
        lambda values: values["end"]["inputs"].append(
            {"path": "data/crawl/0.wet", "bytes": 1, "sha256": "0" * 64}
        ),
        "input data/crawl/0.wet is 000000000000 here, ",
        id="more inputs",
    ),
    pytest.param(setting("rule", "pretrain"), "says it is of r/pretrain/a", id="rule"),
    pytest.param(setting("node", "b"), "says it is of r/finetune/b", id="node"),
]
# Nothing but the index, git and a signature attests these.
UNATTESTED = [
    pytest.param(setting("start.machine.processor", "another"), id="processor"),
    pytest.param(setting("start.machine.processors", 64), id="processors"),
    pytest.param(setting("start.machine.installed", "1" * 64), id="installed"),
    pytest.param(setting("start.machine.python", "CPython 3.13"), id="python"),
    pytest.param(setting("end.devices", {"TPU": 4}), id="devices"),
    pytest.param(setting("end.seconds", 1.5), id="shorter"),
]


def test_a_sealed_run_holds_without_a_warning(sealed: Path) -> None:
    verdict = verify_tree(sealed)
    assert verdict.findings == ()
    assert {warning.kind for warning in verdict.warnings} <= {"not signed"}


@pytest.mark.parametrize(
    "change", [*(pytest.param(edit.values[0], id=edit.id) for edit in EDITS), *UNATTESTED]
)
def test_an_edited_record_is_not_the_sealed_one(sealed: Path, change: Edit) -> None:
    edit(sealed, change)
    found = {(finding.kind, finding.path) for finding in verify_tree(sealed).findings}
    assert ("altered", RECORD) in found
    assert {path for _, path in found} == {RECORD}


@pytest.mark.parametrize(("change", "fault"), EDITS)
def test_a_record_forged_with_its_index_is_contradicted(
    sealed: Path, change: Edit, fault: str
) -> None:
    edit(sealed, change)
    write_index(sealed)
    finding = named(sealed)
    assert (finding.kind, finding.path, finding.job) == ("contradicted", RECORD, JOB)
    assert fault in finding.message


@pytest.mark.parametrize("change", UNATTESTED)
def test_a_forged_index_is_not_the_committed_one(sealed: Path, change: Edit) -> None:
    edit(sealed, change)
    write_index(sealed)
    verdict = verify_tree(sealed)
    assert verdict.findings == ()
    (warning,) = (warning for warning in verdict.warnings if warning.kind == "not committed")
    assert RECORD in warning.message


def test_numbers_of_a_record_are_those_of_the_scores(sealed: Path) -> None:
    edit(
        sealed,
        lambda v: v["end"]["numbers"].update({"tasks.one.metrics.accuracy": 99.9}),
        SCORE_RECORD,
    )
    write_index(sealed)
    assert "tasks.one.metrics.accuracy is 99.9 here, 50.0 in its files" in named(sealed).message


def test_uncommitted_changes_cannot_be_denied(sealed: Path) -> None:
    revision = git(sealed, "rev-parse", "HEAD")
    write(sealed, CODE[0], "print('edited')\n")
    write_records(sealed, revision)
    lock(sealed, folders=FOLDERS, code=closure_text(syntax(sealed)))
    write_index(sealed)
    findings = verify_tree(sealed).findings
    assert len(findings) == 9
    assert all("in commit" in finding.message for finding in findings)
    for path in sorted((sealed / "records/r").rglob("*.json")):
        edit(sealed, setting("start.uncommitted", "1" * 64), path.relative_to(sealed).as_posix())
    write_index(sealed)
    assert verify_tree(sealed).findings == ()
    edit(sealed, setting("start.uncommitted", None))
    write_index(sealed)
    message = named(sealed).message
    assert f"without changes, {sha256_of_commit(sealed)} in commit" in message


def sha256_of_commit(run: Path) -> str:
    write(run, "work/then.py", git(run, "show", f"HEAD:{CODE[0]}") + "\n")
    return sha256_of(run / "work/then.py")[:12]


def test_a_deleted_record_is_named(sealed: Path) -> None:
    (sealed / RECORD).unlink()
    finding = named(sealed)
    assert (finding.kind, finding.path, finding.job) == ("missing", RECORD, JOB)


def test_the_code_of_a_job_without_record_is_compared_with_its_closure(sealed: Path) -> None:
    (sealed / RECORD).unlink()
    write_index(sealed)
    assert verify_tree(sealed).findings == ()
    write(sealed, CODE[1], "print('edited')\n")
    messages = {f.message for f in verify_tree(sealed).findings if f.path == CODE[1]}
    (message,) = messages
    assert "rerun the job" in message
    for path in (sealed / "records/r").rglob("*.json"):
        path.unlink()
    write_index(sealed)
    found = [f for f in verify_tree(sealed).findings if f.kind == "code changed"]
    assert [f.path for f in found] == [CODE[1]]
    assert "no record of its own" in found[0].message


def test_an_added_record_is_named(sealed: Path) -> None:
    write(sealed, "records/r/finetune/b.json", (sealed / RECORD).read_text())
    kinds = {(f.kind, f.path) for f in verify_tree(sealed).findings}
    assert ("extra", "records/r/finetune/b.json") in kinds
    assert ("contradicted", "records/r/finetune/b.json") in kinds


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[]", "not a record"),
        ("{", "not JSON"),
        ('{"run": 3}', "not a record"),
        ('{"start": 3}', "not a record"),
        ("\ud800", "JSON"),
    ],
)
def test_a_file_that_is_no_record_is_named(sealed: Path, text: str, fault: str) -> None:
    (sealed / RECORD).write_bytes(text.encode("utf-8", "surrogatepass"))
    write_index(sealed)
    finding = named(sealed)
    assert finding.path == RECORD
    assert fault in finding.message


def test_a_record_of_another_run_attests_nothing(sealed: Path) -> None:
    write(sealed, RECORD, (sealed / "records/r/c4/a.json").read_text())
    write_index(sealed)
    assert "says it is of r/c4/a" in named(sealed).message


@pytest.mark.parametrize("text", ["[]", "{", '{"format": 2, "stages": {}}', '{"format": 1}'])
def test_a_damaged_index_is_named(sealed: Path, text: str) -> None:
    write(sealed, INDEX, text)
    finding = verify_tree(sealed).findings[0]
    assert (finding.kind, finding.path) == ("altered", INDEX)
    assert "not an index of records" in finding.message


def test_a_deleted_index_is_named_while_git_has_it(sealed: Path) -> None:
    (sealed / INDEX).unlink()
    finding = named(sealed)
    assert (finding.kind, finding.path) == ("missing", INDEX)
    commit(sealed, "without an index")
    verdict = verify_tree(sealed)
    assert verdict.findings == ()
    (warning,) = (warning for warning in verdict.warnings if warning.path == INDEX)
    assert warning.kind == "not sealed"
    assert "run t5repro seal" in warning.message


def test_a_stage_that_index_and_folder_know_blames_the_lock(sealed: Path) -> None:
    values = (sealed / "dvc.lock").read_text()
    md5 = next(line for line in values.splitlines() if ".dir" in line).split()[-1]
    write(sealed, "dvc.lock", values.replace(md5, "0" * 32 + ".dir"))
    finding = named(sealed)
    assert (finding.kind, finding.path) == ("contradicted", "dvc.lock")
    assert md5[:12] in finding.message


def test_a_stage_that_lock_and_folder_know_blames_the_index(sealed: Path) -> None:
    values = json.loads((sealed / INDEX).read_text())
    values["stages"]["finetune-a"]["md5"] = "0" * 32 + ".dir"
    write_json(sealed / INDEX, values)
    finding = named(sealed)
    assert (finding.kind, finding.path) == ("contradicted", INDEX)


def test_a_library_that_no_lock_has_is_a_warning(sealed: Path) -> None:
    edit(sealed, lambda v: v["start"]["machine"]["libraries"].update({"numpy": "1.0"}))
    write_index(sealed)
    verdict = verify_tree(sealed)
    assert verdict.findings == ()
    (warning,) = (warning for warning in verdict.warnings if warning.kind == "not locked")
    assert "numpy 1.0" in warning.message
    assert "2.4.6" in warning.message


def test_a_shallow_clone_does_not_call_an_old_commit_forged(sealed: Path, tmp_path: Path) -> None:
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{sealed}", str(clone))
    for name in ("results", "data", ".dvc"):
        (clone / name).symlink_to(sealed / name)
    assert verify_tree(clone).findings == ()


def test_a_folder_without_git_is_checked_without_it(sealed: Path) -> None:
    git_folder = sealed / ".git"
    git_folder.rename(sealed.parent / "elsewhere")
    assert verify_tree(sealed).findings == ()
    edit(sealed, setting("end.ok", False))
    assert verify_tree(sealed).findings[0].path == RECORD


def test_an_unsealed_run_says_the_cure(sealed: Path) -> None:
    (sealed / INDEX).unlink()
    commit(sealed, "unsealed")
    assert f"{INDEX}: absent" in verify_tree(sealed).to_text()
    assert (sealed / RESULT).is_dir()
