"""A disk that is really full: a small file system, filled by a stage."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import ROOT, environment

pytestmark = pytest.mark.workflow
SMALL_BYTES = 100_000  # less than the examples need, more than a log does


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_said_and_no_half_file_has_its_final_name(
    small_disk: Path, tmp_path: Path
) -> None:
    source = ROOT / "examples/mini/raw/tasks/glue/STS-B/train.tsv"
    examples = small_disk / "tasks/glue_stsb"
    ran = subprocess.run(
        [
            "t5repro",
            "stage",
            "tasks",
            "--settings",
            "{}",
            "--task",
            "glue_stsb",
            "--files",
            f"train={source}",
            "--folder",
            examples,
            "--manifest",
            examples / "manifest.json",
            "--log",
            small_disk / "log",
        ],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "the disk is full: free some space and run the same command again" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["log"]
