"""What a loss of power damaged is moved aside by the next run, which makes it again."""

import os
import time
from pathlib import Path

import pytest
from clones import artifact_hashes, copy_clone, snakemake
from made_graphs import RESULT, SCORES, WEIGHTS
from made_records import sealed_run

from t5repro.errors import StorageError
from t5repro.files import write_json
from t5repro.lineage.run_lock import run_lock
from t5repro.lineage.store import files_below
from t5repro.versions import power_loss
from t5repro.versions.power_loss import DAMAGED, NOTE, note_begin, note_end, set_damaged_aside

DAMAGES = {
    "zeros": lambda data: bytes(len(data)),
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
}
FILES = {
    "output": (WEIGHTS, WEIGHTS, "finetune/a"),
    "manifest": (f"{RESULT}/c4/a/manifest.json", f"{RESULT}/c4/a/manifest.json", "c4/a"),
    "shard": (f"{RESULT}/c4_clean/a/1.parquet", f"{RESULT}/c4_clean/a/1.parquet", "c4_clean/a"),
    "record": (
        "records/r/evaluate_score/a.json",
        f"{RESULT}/evaluate_score/a/manifest.json",
        "evaluate_score/a",
    ),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run during which the power failed: the note is of an earlier boot."""
    sealed_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    begin = min(path.stat().st_mtime for path in Path("results").rglob("*") if path.is_file())
    write_json(NOTE, {"boot": "earlier", "since": begin})
    return tmp_path


def damage(path: str, kind: str) -> None:
    Path(path).write_bytes(DAMAGES[kind](Path(path).read_bytes()))


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_job_is_moved_aside_and_named_in_one_line(
    run: Path, file: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, named, folder = FILES[file]
    damage(path, kind)
    before = set(files_below("results"))
    set_damaged_aside()
    moved = before - set(files_below("results"))
    assert moved
    assert all(name.startswith(f"{RESULT}/{folder}/") for name in moved)
    assert f"{RESULT}/c4_clean/a/0.parquet" not in moved  # of another job in the folder
    assert all((DAMAGED / name).is_file() for name in moved | {path})
    assert capsys.readouterr().err == (
        f"after a loss of power 1 jobs have damaged files ({named}); they are in work/damaged/ "
        "now, and this run makes them again\n"
    )
    assert not NOTE.exists()


def test_whole_results_stay_and_so_do_those_of_earlier_runs(run: Path) -> None:
    before = files_below("results")
    set_damaged_aside()
    assert files_below("results") == before
    damage(SCORES, "half")
    for path in (*Path(SCORES).parent.iterdir(), Path("records/r/evaluate_score/a.json")):
        os.utime(path, (0, 0))  # nobody wrote it since the note
    write_json(NOTE, {"boot": "earlier", "since": time.time()})
    set_damaged_aside()
    assert files_below("results") == before


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_note_that_is_damaged_itself_stands_for_any_time(run: Path, kind: str) -> None:
    damage(SCORES, "zeros")
    for path in (*Path(SCORES).parent.iterdir(), Path("records/r/evaluate_score/a.json")):
        os.utime(path, (0, 0))
    damage(NOTE.as_posix(), kind)
    set_damaged_aside()
    assert not Path(SCORES).exists()


def test_without_a_new_boot_nothing_is_read(run: Path) -> None:
    damage(SCORES, "empty")
    NOTE.unlink()
    note_begin()
    set_damaged_aside()  # the run was killed, which damages nothing
    assert Path(SCORES).exists()
    note_end()
    set_damaged_aside()
    assert Path(SCORES).exists()


def test_a_system_without_boot_ids_notes_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    NOTE.unlink()
    monkeypatch.setattr(power_loss, "BOOT_ID", Path("/nowhere"))
    note_begin()
    assert not NOTE.exists()


def test_results_under_a_run_at_work_are_left_to_it(run: Path) -> None:
    with run_lock(), pytest.raises(StorageError, match="another run is at work"):
        set_damaged_aside()
    assert NOTE.exists()


@pytest.mark.workflow
def test_the_next_run_makes_damaged_results_again_with_equal_bytes(
    chain_once: Path, tmp_path: Path
) -> None:
    folder = copy_clone(chain_once, tmp_path / "clone")
    expected = artifact_hashes(folder)
    write_json(folder / NOTE, {"boot": "earlier", "since": 0.0})
    tasks = folder / "results/demo/tasks/glue_sst2"
    (tasks / "train.jsonl").write_bytes(bytes(1000))
    (folder / "results/demo/data/manifest.json").write_bytes(b"")
    planned = snakemake(folder, "-n", "stage_tasks_glue_sst2")
    assert "after a loss of power" not in planned.stdout
    assert (tasks / "train.jsonl").exists()
    ran = snakemake(folder, "stage_tasks_glue_sst2", cores=1)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "after a loss of power 2 jobs have damaged files" in ran.stdout
    assert artifact_hashes(folder) == expected
    assert not (folder / NOTE).exists()
