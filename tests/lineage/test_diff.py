"""Where two runs first diverge, and why."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import whole_records
from made_graphs import WEIGHTS, lock, record, small_run, write
from whole_records import whole_record

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.files import write_json
from t5repro.lineage.diff import Difference, compare, load_side
from t5repro.lineage.facts import ENVIRONMENT, NOT_REQUIRED
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.record import FORMAT, End, Machine

MACHINE = {**whole_records.MACHINE, "libraries": {"keras": "3.15.1"}}
JOB = "r/finetune/a"
FACTS = (*(name for name in ENVIRONMENT if name not in NOT_REQUIRED), "workflow", "imported")
ALWAYS_RECORDED = ("system", "python", "libraries", "locks")
CODE = {"src/x.py": "1" * 64}


@pytest.fixture
def pair(run: Path, tmp_path: Path) -> tuple[Path, Path]:
    copy = tmp_path / "other"
    shutil.copytree(run, copy)
    return run, copy


def difference(pair: tuple[Path, Path]) -> Difference:
    a, b = pair
    return compare(load_side(a, str(a)), load_side(a, str(b)))


def records(pair: tuple[Path, Path], **changed: Any) -> None:
    """Record the training on both sides; `changed` is what the second has otherwise."""
    for folder, more in zip(pair, ({}, changed), strict=True):
        record(folder, "r/finetune/a", **{"code": CODE, "machine": MACHINE, **more})


def full_records(pair: tuple[Path, Path], *, without: str = "", other: str = "") -> None:
    """Record everything about the training on both sides.

    `without` is a fact that the second side lacks, `other` one that it has otherwise.
    """
    for folder, second in zip(pair, (False, True), strict=True):
        facts = {
            name: _value(name, changed=second and name == other)
            for name in (*ENVIRONMENT, "workflow", "imported")
            if not (second and name == without)
        }
        machine, end = (
            {name: value for name, value in facts.items() if name in part.__dataclass_fields__}
            for part in (Machine, End)
        )
        lacking = {without: None} if second and without in ENVIRONMENT else {}
        start = {"code": CODE, "machine": {**MACHINE, **machine, **lacking}}
        if "workflow" in facts:
            start["workflow"] = facts["workflow"]
        write_json(
            folder / "records/r/finetune/a.json", whole_record(JOB, start, {"devices": None, **end})
        )


def _value(name: str, *, changed: bool) -> Any:
    """Return the value of a fact of the type that it has in records."""
    text = "2" if changed else "1"
    if name in ("altered", "search_path", "forged_byte_code"):
        return [text]
    if name == "processors":
        return int(text)
    is_text = name in ("python", "interpreter", "system", "processor", "instruction_sets")
    return text if is_text else {"x.py": text}


def test_equal_runs_agree(pair: tuple[Path, Path]) -> None:
    result = difference(pair)
    assert (result.divergences, result.followers, result.harmless, result.equal) == ((), (), (), 9)


def test_a_changed_setting_is_the_cause_and_later_jobs_only_follow(pair: tuple[Path, Path]) -> None:
    small_run(pair[1], rate=0.2)
    result = difference(pair)
    (divergence,) = result.divergences
    (cause,) = divergence.causes
    assert (divergence.job, divergence.outputs) == (
        "finetune/a",
        ("finetune/a/weights.safetensors",),
    )
    assert (cause.kind, cause.what, cause.a, cause.b) == ("setting", "finetune.rate", "0.1", "0.2")
    assert result.followers == ("evaluate_predict/a", "evaluate_score/a")


def test_a_changed_raw_file_is_the_cause_at_the_first_job(pair: tuple[Path, Path]) -> None:
    write(pair[1], "data/crawl/1.wet", "another page")
    small_run(pair[1])
    result = difference(pair)
    assert result.divergences[0].job == "data"
    assert [(c.kind, c.what) for c in result.divergences[0].causes] == [
        ("input", "data/crawl/1.wet")
    ]
    assert "c4/a" in result.followers
    assert [divergence.job for divergence in result.divergences] == ["data", "c4_clean/a/1"]


def test_changed_code_is_the_cause(pair: tuple[Path, Path]) -> None:
    records(pair, code={"src/x.py": "2" * 64})
    small_run(pair[1], weights="otherwise")
    (divergence,) = difference(pair).divergences
    assert divergence.kinds == ["code"]
    assert divergence.causes[0].what == "src/x.py"


def test_reworded_code_is_not_the_cause(pair: tuple[Path, Path]) -> None:
    records(pair, code={"src/x.py": "2" * 64})
    for folder in pair:
        path = folder / "records/r/finetune/a.json"
        values = json.loads(path.read_text())
        values["format"] = FORMAT
        values["start"]["closure"] = {"src/x.py": "3" * 64}
        path.write_text(json.dumps(values))
    assert difference(pair).harmless == ()


def test_another_machine_is_the_cause(pair: tuple[Path, Path]) -> None:
    records(pair, machine={**MACHINE, "libraries": {"keras": "3.15.2"}})
    small_run(pair[1], weights="otherwise")
    (divergence,) = difference(pair).divergences
    assert [(c.kind, c.what) for c in divergence.causes] == [("environment", "libraries.keras")]


def test_if_nothing_differs_but_the_output_the_stage_is_not_deterministic(
    pair: tuple[Path, Path],
) -> None:
    full_records(pair)
    small_run(pair[1], weights="otherwise")
    (divergence,) = difference(pair).divergences
    assert divergence.kinds == ["nondeterminism"]


@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact not in ALWAYS_RECORDED])
def test_a_fact_that_one_side_did_not_record_is_named_and_chance_is_not_blamed(
    pair: tuple[Path, Path], fact: str
) -> None:
    full_records(pair, without=fact)
    small_run(pair[1], weights="otherwise")
    (divergence,) = difference(pair).divergences
    assert divergence.kinds == ["unknown"]
    name = {"workflow": "rule files", "imported": "imported files"}.get(fact, fact)
    assert divergence.causes[0].what.endswith(
        f"not recorded on both sides: {name.replace('_', ' ')}"
    )


@pytest.mark.parametrize("fact", FACTS)
def test_every_recorded_fact_that_differs_is_the_cause(pair: tuple[Path, Path], fact: str) -> None:
    full_records(pair, other=fact)
    small_run(pair[1], weights="otherwise")
    (divergence,) = difference(pair).divergences
    (cause,) = divergence.causes
    assert cause.kind == ("code" if fact in ("workflow", "imported") else "environment")
    first, second = (_value(fact, changed=changed) for changed in (False, True))
    if cause.kind == "code":
        assert (cause.what, cause.a, cause.b) == ("x.py", "1", "2")
    elif isinstance(first, dict):
        assert (cause.what, cause.a, cause.b) == (f"{fact}.x.py", '"1"', '"2"')
    else:
        assert (cause.what, cause.a, cause.b) == (fact, json.dumps(first), json.dumps(second))


def test_without_records_chance_is_not_blamed(pair: tuple[Path, Path]) -> None:
    small_run(pair[1], weights="otherwise")
    (divergence,) = difference(pair).divergences
    assert divergence.kinds == ["unknown"]
    assert divergence.causes[0].what == (
        "all that was recorded agrees; not recorded on both sides: code, rule files, imported "
        "files, environment"
    )


def test_a_difference_without_effect_is_said_apart(pair: tuple[Path, Path]) -> None:
    records(pair, code={"src/x.py": "2" * 64})
    result = difference(pair)
    assert result.divergences == ()
    assert [(divergence.job, divergence.kinds) for divergence in result.harmless] == [
        ("finetune/a", ["code"])
    ]


def test_a_job_of_one_side_only_is_named(pair: tuple[Path, Path]) -> None:
    shutil.rmtree(pair[1] / "results/r/evaluate_score")
    (divergence,) = difference(pair).divergences
    assert (divergence.job, divergence.kinds) == ("evaluate_score/a", ["only on one side"])


@pytest.fixture
def two_runs(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with run `r` and run `s`, whose rate is another one."""
    small_run(run, rate=0.2)
    shutil.move(run / "results/r", run / "results/s")
    for path in (run / "results/s").rglob("*manifest.json"):
        path.write_text(path.read_text().replace("results/r/", "results/s/"))
    monkeypatch.chdir(small_run(run))
    return run


def test_two_runs_of_a_checkout_are_compared(two_runs: Path) -> None:
    result = compare(*(load_side(Path(), f"results/{name}") for name in "rs"))
    (divergence,) = result.divergences
    assert (divergence.job, divergence.kinds) == ("finetune/a", ["setting"])
    assert result.followers == ("evaluate_predict/a", "evaluate_score/a")
    (two_runs / "results/rs").mkdir()
    with pytest.raises(LineageError, match=r"run 'rs'; there are \['r', 's'\]; nearest: 's'"):
        load_side(Path(), "results/rs")


def test_all_runs_of_two_checkouts_are_compared(two_runs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other"
    shutil.copytree(two_runs, copy)
    assert difference((two_runs, copy)).equal == 2 * 9
    small_run(copy, rate=0.3)
    (divergence,) = difference((two_runs, copy)).divergences
    assert divergence.job == "r/finetune/a"
    shutil.rmtree(copy / "results/s")
    ours, only_there = difference((two_runs, copy)).divergences
    assert (ours.job, only_there.job) == ("r/finetune/a", "s")
    assert only_there.kinds == ["only on one side"]


def commit(run: Path, message: str) -> None:
    lock(run, folders=("results/r", "data"))
    for arguments in (["add", "-A"], ["commit", "-qm", message]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=run, check=True
        )


@pytest.fixture
def history(run: Path) -> Path:
    """A repository with two revisions; artifacts are in DVC's cache only."""
    subprocess.run(["git", "init", "-q"], cwd=run, check=True)
    write(run, ".gitignore", "/results/\n/data/\n/.dvc/\n/work/\n")
    commit(run, "first")
    small_run(run, rate=0.2)
    commit(run, "second")
    return run


def test_two_revisions_are_compared_from_the_lock_and_the_cache(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history)
    shutil.rmtree(history / "results")
    assert main(["diff", "HEAD~1", "HEAD", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["first"]["job"] == "finetune/a"
    assert answer["first"]["kinds"] == ["setting"]
    assert main(["diff", "HEAD", "HEAD"]) == 0
    assert main(["diff", "HEAD", "nowhere"]) == 2
    assert "neither a revision of this repository nor a folder" in capsys.readouterr().err


def test_a_revision_is_verified_in_the_cache(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history)
    assert main(["verify", "--deep", "HEAD~1"]) == 0
    small_run(history)  # the first revision's files again, to know their objects
    md5 = hash_file(history / WEIGHTS).md5
    held = history / f".dvc/cache/files/md5/{md5[:2]}/{md5[2:]}"
    data = held.read_bytes()
    held.write_bytes(data[:-1] + b"?")
    assert main(["verify", "--deep", "HEAD~1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out.split("\n", 1)[1])["first"]["path"] == WEIGHTS
    held.unlink()
    assert main(["verify", "HEAD~1"]) == 1
    assert "is not in DVC's cache" in capsys.readouterr().out
    assert main(["verify", "--deep", "HEAD"]) == 0


def test_a_trace_can_look_into_a_revision(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history)
    assert main(["trace", "scores.json#one", "--rev", "HEAD~1"]) == 0
    assert "finetune.rate=0.1" in capsys.readouterr().out


def test_impact_of_all_revisions_lists_each(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history)
    assert main(["impact", "crawl/1.wet", "--all-revisions", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["revisions"]) == 2
    assert answer["unread"] == []
    weights = [impact["outputs"]["weights"][0]["sha256"] for impact in answer["revisions"]]
    assert weights[0] != weights[1]
    assert weights[0] == answer["here"]["outputs"]["weights"][0]["sha256"]
