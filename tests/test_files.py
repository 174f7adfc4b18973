"""Files are whole or absent, and errors say which file and what to do."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro import files
from t5repro.errors import ArtifactError, StorageError


def test_a_file_interrupted_while_written_is_not_there_and_the_old_one_stays(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    with pytest.raises(KeyboardInterrupt), files.atomic_path(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_files_have_the_mode_of_the_users_umask(tmp_path: Path, umask: int, mode: int) -> None:
    former = os.umask(umask)
    try:
        files.write_text(tmp_path / "a.txt", "private text")
    finally:
        os.umask(former)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == mode


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with (
        pytest.raises(StorageError, match="the disk is full: free some space"),
        files.atomic_path(path) as temporary,
    ):
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write .*file/a.txt"):
        files.write_text(tmp_path / "file/a.txt", "x")


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3)))
def test_json_lines_read_back_what_was_written(rows: list[dict[str, str]]) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"t5repro-test-{os.getpid()}.jsonl"  # noqa: S108
    try:
        assert files.write_json_lines(path, rows) == len(rows)
        assert list(files.read_json_lines(path)) == rows
    finally:
        path.unlink(missing_ok=True)


def test_a_broken_line_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a"\n')
    with pytest.raises(ArtifactError, match=r"a\.jsonl line 2 is not JSON"):
        list(files.read_json_lines(path))


def test_a_missing_artifact_is_named_with_the_cure(tmp_path: Path) -> None:
    for reader in (files.read_json, files.describe_file, lambda p: list(files.read_json_lines(p))):
        with pytest.raises(ArtifactError, match="is missing; run the stage"):
            reader(tmp_path / "none")
    (tmp_path / "bad").write_text("{")
    with pytest.raises(ArtifactError, match="is not JSON"):
        files.read_json(tmp_path / "bad")


def test_equal_runs_write_equal_manifests(tmp_path: Path) -> None:
    data = tmp_path / "data"
    files.write_bytes(data, b"abc")
    for name in ("one", "two"):
        files.write_manifest(
            tmp_path / name,
            rule="vocab",
            settings={"b": 1, "a": 2},
            inputs=[data],
            outputs=[data],
            counters={"pages": 3},
        )
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert files.read_json(tmp_path / "one")["inputs"][0]["sha256"] == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    with pytest.raises(ArtifactError, match=r"is a folder; name a file, such as .*manifest\.json"):
        files.read_json(tmp_path)
    with pytest.raises(ArtifactError, match="is a folder; name a file in it"):
        list(files.read_json_lines(tmp_path))
