"""Nothing can be altered, lost or added without being named."""

import json
import os
import shutil
from pathlib import Path

import pytest
from made_graphs import RESULT, SCORES, WEIGHTS, lock, write
from made_records import CODE, INIT, write_records

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.lineage.hashes import SETTLED_NANOSECONDS, Hasher, hash_file
from t5repro.lineage.store import files_below
from t5repro.lineage.verify import Verdict, verify_tree

FINETUNE = f"{RESULT}/finetune/a/manifest.json"


def flip(path: Path, at: int = -1) -> None:
    """Flip one bit of a file and set its times back to what they were."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def kinds(verdict: Verdict) -> dict[str, str]:
    return {finding.path: finding.kind for finding in verdict.findings}


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_folder_without_a_run_is_no_run_that_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", *option]) == 2
    assert "there is nothing to verify here" in capsys.readouterr().err


def test_a_run_that_holds_is_said_to_hold(run: Path) -> None:
    verdict = verify_tree(run)
    assert verdict.findings == ()
    assert [finding.path for finding in verdict.warnings] == ["dvc.lock"]
    lock(run)
    verdict = verify_tree(run)
    assert (verdict.findings, verdict.warnings, verdict.sealed) == ((), (), True)


def test_a_question_about_one_run_hears_nothing_of_others(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    lock(run)
    weights = (run / WEIGHTS).with_name("other.safetensors")
    shutil.copytree(run / RESULT, run / "results/beside")
    for path in (run / "results/beside").rglob("*.json"):
        path.unlink()
    (run / WEIGHTS).rename(weights)
    assert kinds(verify_tree(run))[WEIGHTS] == "missing"
    verdict = verify_tree(run, run="beside")
    assert {path.split("/")[1] for path in kinds(verdict)} <= {"beside"}
    main(["verify", "--run", "beside"])
    assert f" {RESULT}/" not in capsys.readouterr().out
    assert not verdict.sealed
    assert kinds(verify_tree(run, run="r"))[WEIGHTS] == "missing"
    with pytest.raises(LineageError, match="results/none is missing: --run must name a run"):
        verify_tree(run, run="none")


def test_one_flipped_bit_in_any_file_is_named_though_its_time_is_kept(run: Path) -> None:
    lock(run, folders=("results/r", "data"))
    assert verify_tree(run).findings == ()
    files = [Path(path) for folder in ("data", "results") for path in files_below(run / folder)]
    assert len(files) == 22
    for path in files:
        name = path.relative_to(run).as_posix()
        for at in (0, -3):
            flip(path, at)
            assert name in kinds(verify_tree(run)), name
            flip(path, at)
    assert verify_tree(run).findings == ()


def test_a_remembered_hash_is_used_and_a_change_with_its_time_set_back_still_found(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("t5repro.lineage.hashes.SETTLED_NANOSECONDS", -1)  # as if written long ago
    first = verify_tree(run)
    assert first.hashed > 0
    assert verify_tree(run).hashed == 0
    flip(run / WEIGHTS)
    second = verify_tree(run)
    assert second.hashed == 1
    assert kinds(second) == {WEIGHTS: "altered"}
    assert verify_tree(run, deep=True).hashed == first.hashed


def test_a_file_written_a_moment_ago_is_not_remembered(run: Path) -> None:
    assert SETTLED_NANOSECONDS >= 1_000_000_000
    hasher = Hasher(run)
    hasher.of(WEIGHTS)
    hasher.save()
    assert not (run / "work/lineage/hashes.json").exists()


def test_a_damaged_memory_is_no_answer(run: Path) -> None:
    write(run, "work/lineage/hashes.json", '{"x": [1], "' + WEIGHTS + '": "no"}')
    assert verify_tree(run).findings == ()
    write(run, "work/lineage/hashes.json", "{")
    assert verify_tree(run).findings == ()


def test_missing_and_extra_files_are_named(run: Path) -> None:
    (run / f"{RESULT}/tasks/one/train.jsonl").unlink()
    write(run, f"{RESULT}/c4_clean/a/2.parquet", "left over")
    write(run, f"{RESULT}/c4/a/.writing-x", "half")
    assert kinds(verify_tree(run)) == {
        f"{RESULT}/tasks/one/train.jsonl": "missing",
        f"{RESULT}/c4_clean/a/2.parquet": "extra",
        f"{RESULT}/c4/a/.writing-x": "extra",
    }


def test_the_first_broken_link_is_the_earliest_of_the_chain(run: Path) -> None:
    for name in (SCORES, WEIGHTS, f"{RESULT}/c4/a/en-train.parquet"):
        flip(run / name)
    verdict = verify_tree(run)
    assert verdict.findings[0].path == f"{RESULT}/c4/a/en-train.parquet"
    assert "first broken link: results/r/c4/a/en-train.parquet (r/c4/a), altered" in (
        verdict.to_text()
    )


def test_a_manifest_altered_together_with_its_file_breaks_the_link_to_the_next(run: Path) -> None:
    flip(run / WEIGHTS)
    values = json.loads((run / FINETUNE).read_text())
    values["outputs"][0]["sha256"] = hash_file(run / WEIGHTS).sha256
    (run / FINETUNE).write_text(json.dumps(values))
    verdict = verify_tree(run)
    assert kinds(verdict) == {WEIGHTS: "broken link"}
    assert verdict.findings[0].job == "r/finetune/a"


def test_an_altered_manifest_of_the_last_job_is_known_from_the_lock(run: Path) -> None:
    last = f"{RESULT}/evaluate_score/a/manifest.json"
    lock(run, folders=("results/r/evaluate_score",))
    values = json.loads((run / last).read_text())
    values["counters"]["files"] = 2
    (run / last).write_text(json.dumps(values))
    assert kinds(verify_tree(run)) == {last: "altered"}


def test_without_the_list_of_a_folder_the_folder_is_named(run: Path) -> None:
    last = f"{RESULT}/evaluate_score/a/manifest.json"
    lock(run, folders=("results/r/evaluate_score",))
    shutil.rmtree(run / ".dvc")
    (run / last).write_text((run / last).read_text() + " ")
    assert kinds(verify_tree(run)) == {"results/r/evaluate_score": "altered"}


def test_a_folder_that_is_not_here_and_not_in_the_cache_is_missing_and_not_altered(
    run: Path,
) -> None:
    lock(run, folders=("results/r/evaluate_score",))
    shutil.rmtree(run / ".dvc")
    shutil.rmtree(run / "results/r/evaluate_score")
    (finding,) = (f for f in verify_tree(run).findings if f.path == "results/r/evaluate_score")
    assert finding.kind == "missing"
    assert "dvc.lock tracks it: " in finding.message
    assert "build it again with snakemake" in finding.message


def test_changed_code_is_named_with_the_job_that_ran_it(run: Path) -> None:
    write(run, INIT, "import t5repro.one")
    path = write(run, CODE[0], "print()")
    write_records(run, None)
    assert verify_tree(run).findings == ()
    path.write_text("print(1)")
    (finding,) = verify_tree(run).findings
    assert (finding.kind, finding.path, finding.job) == ("code changed", CODE[0], "r/data")
    path.unlink()
    assert "it is absent now" in verify_tree(run).findings[0].message


def test_a_reworded_comment_and_an_unused_definition_are_no_change_of_code(run: Path) -> None:
    write(run, INIT, "import t5repro.one")
    path = write(run, CODE[0], "print()")
    write_records(run, None)
    for text in ("print()  # reworded", "print()\n\ndef unused(): pass"):
        path.write_text(text)
        assert verify_tree(run).findings == ()
    for text in ("print(1)", "print("):
        path.write_text(text)
        assert kinds(verify_tree(run)) == {CODE[0]: "code changed"}


def test_a_record_attests_a_manifest(run: Path) -> None:
    last = f"{RESULT}/evaluate_score/a/manifest.json"
    write(run, CODE[0], "print()")
    write_records(run, None)
    assert verify_tree(run).findings == ()
    (run / last).write_text((run / last).read_text() + " ")
    assert kinds(verify_tree(run)) == {last: "altered"}


def test_drifted_stages_are_named(run: Path) -> None:
    lock(run)
    text = (run / "dvc.yaml").read_text()
    write(run, "dvc.yaml", text.replace("cmd: run", "cmd: run otherwise"))
    (finding,) = verify_tree(run).findings
    assert (finding.kind, finding.path) == ("drifted", "dvc.yaml")
    write(run, "dvc.yaml", "stages: {}\n")
    assert "has a stage all that dvc.yaml lacks" in verify_tree(run).findings[0].message
    (run / "dvc.yaml").unlink()
    assert kinds(verify_tree(run)) == {"dvc.yaml": "missing"}


def test_a_lock_that_dvc_did_not_write_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(run, "dvc.lock", "stages: [")
    monkeypatch.chdir(run)
    assert main(["verify"]) == 2
    assert "is not in DVC's format" in capsys.readouterr().err


def test_the_exit_code_and_json_say_what_was_found(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    assert main(["verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"] is True
    flip(run / SCORES)
    assert main(["verify", "--json", "--deep"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["first"]["path"] == SCORES
    assert answer["first"]["kind"] == "altered"
