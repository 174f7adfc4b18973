"""A checkout of another user: what can be read is answered, what cannot is named."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from made_graphs import RESULT, SCORES, small_run

from t5repro.lineage.git import untrusted_owner

NOBODY = 65534
# Root without these is a user like any other.
CAPABILITIES = "-dac_override,-dac_read_search,-fowner,-chown"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can become another user"
)
QUESTIONS = (
    ("trace", SCORES),
    ("verify",),
    ("impact", "data/tasks/one.tsv"),
    ("diff", ".", "."),
    ("export", "--format", "prov"),
)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A read-only checkout that belongs to another user."""
    root = small_run(tmp_path / "checkout")
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "run"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o755 if path.is_dir() else 0o644)
    return root


def ask(root: Path, *words: str) -> tuple[int, str]:
    """Ask as a user who does not own the checkout; return the exit code and the message."""
    process = as_another_user(root, *words)
    return process.returncode, process.stderr


def as_another_user(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    process = subprocess.run(
        ["setpriv", f"--bounding-set={CAPABILITIES}", sys.executable, "-m", "t5repro", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in process.stderr, process.stderr
    return process


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: words[0])
def test_a_read_only_checkout_answers_and_is_not_changed(
    foreign: Path, words: tuple[str, ...]
) -> None:
    before = sorted(foreign.rglob("*"))
    code, message = ask(foreign, *words)
    assert code in (0, 1), message
    assert sorted(foreign.rglob("*")) == before


def test_a_drawing_that_cannot_be_written_is_named(foreign: Path) -> None:
    code, message = ask(foreign, "trace", SCORES, "--svg", "drawing.svg")
    assert code == 1
    assert "cannot write drawing.svg: Permission denied" in message
    assert "check the owner of the folder" in message


@pytest.mark.parametrize("name", ["manifest.json", "en-train.parquet", ""])
def test_a_file_or_folder_that_cannot_be_read_is_named_with_the_cure(
    foreign: Path, name: str
) -> None:
    path = foreign / RESULT / "c4/a" / name
    path.chmod(0)
    code, message = ask(foreign, "verify")
    path.chmod(0o755)
    assert code == 2
    assert f"{RESULT}/c4/a" in message
    assert "Permission denied; run it as the owner of the checkout" in message


def test_git_s_refusal_of_another_owner_is_passed_on(foreign: Path) -> None:
    for words in (("verify", "HEAD"), ("trace", SCORES, "--rev", "HEAD")):
        code, message = ask(foreign, *words)
        assert code == 2
        assert "dubious ownership" in message
        assert "safe.directory" in message


def test_verify_says_that_it_compared_nothing_with_a_commit_of_another_owner(foreign: Path) -> None:
    process = as_another_user(foreign, "verify")
    assert "compared with no commit: git answers no question about this folder" in process.stdout
    cure = f"git config --global --add safe.directory {foreign}"
    assert cure in process.stdout
    assert untrusted_owner(ROOT) == ""


def test_a_reader_that_closes_the_pipe_gets_no_traceback(foreign: Path) -> None:
    process = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m t5repro export --format prov | head -c 1"],
        cwd=foreign,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout == "{"
    assert process.stderr == ""
