"""A checkout has the bytes of the repository, with whatever configuration of git it was cloned."""

import subprocess
from pathlib import Path

import pytest
from checkout import ROOT


@pytest.mark.parametrize("autocrlf", ["true", "input"])
def test_a_clone_that_converts_line_ends_has_the_committed_bytes(
    tmp_path: Path, autocrlf: str
) -> None:
    config = ["-c", f"core.autocrlf={autocrlf}", "-c", "core.eol=crlf"]
    paths = ["README.md", "dvc.lock", "data.dvc", "examples/mini/raw/lists"]
    subprocess.run(
        ["git", "clone", "--quiet", "--no-checkout", ROOT, tmp_path / "clone"], check=True
    )
    subprocess.run(
        ["git", *config, "checkout", "--quiet", "HEAD", "--", ".gitattributes", *paths],
        cwd=tmp_path / "clone",
        check=True,
    )
    files = [path for path in (tmp_path / "clone").rglob("*") if path.is_file()]
    checked = [path for path in files if ".git" not in path.parts]
    assert len(checked) > 8
    for path in checked:
        assert b"\r" not in path.read_bytes(), path
