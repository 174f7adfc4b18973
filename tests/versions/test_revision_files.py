"""Files of a revision that neither DVC's cache nor a remote has."""

import subprocess
import sys
from pathlib import Path

import pytest

from t5repro.errors import ArtifactError
from t5repro.versions.revision_files import RevisionFiles


def run(folder: Path, *words: str) -> str:
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_files_are_read_from_the_cache_and_named_with_the_cure_without_it(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a.txt").write_text("text")
    run(tmp_path, "git", "init", "-q")
    for words in (["init", "-q"], ["add", "-q", "results"]):
        run(tmp_path, sys.executable, "-m", "dvc", *words)
    run(tmp_path, "git", "add", ".")
    run(tmp_path, "git", "-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "-m", "a")
    revision = run(tmp_path, "git", "rev-parse", "HEAD").strip()
    files = RevisionFiles(tmp_path, revision)
    assert files.names("results", ".txt") == ["results/a.txt"]
    assert files.path("results/a.txt").read_text() == "text"
    run(tmp_path, "git", "clone", "-q", ".", "clone")
    files = RevisionFiles(tmp_path / "clone", revision)
    with pytest.raises(ArtifactError, match="results of revision .* neither in DVC's cache nor"):
        files.names("results", ".txt")
    with pytest.raises(ArtifactError, match=r"a.txt of revision .* push it with dvc push"):
        files.path("results/a.txt")
