"""What keeps a checkout or a machine from running well is named with its cure."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.file_forms import LFS_POINTER
from t5repro.versions import checkout_faults
from t5repro.versions.checkout_faults import CHECKS

FILE = "configs/demo.yaml"


@pytest.fixture
def settings() -> Settings:
    return load_settings({"run": {"name": "demo"}})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with two files."""
    folder = tmp_path / "checkout"
    (folder / "configs").mkdir(parents=True)
    (folder / FILE).write_bytes(b"run:\n  name: demo\n")
    (folder / "read me.md").write_bytes(b"Read me.\n")
    (folder / ".gitattributes").write_bytes(b"* -text\n")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def faults(folder: Path, settings: Settings) -> dict[str, list[str]]:
    """Return check -> its lines, for the checks that depend on the folder."""
    of_machine = (checkout_faults.packages, checkout_faults.instructions)
    found = {
        check.__name__: list(check(folder, settings)) for check in CHECKS if check not in of_machine
    }
    return {name: lines for name, lines in found.items() if lines}


def from_the_future(folder: Path) -> None:
    for name in (FILE, "read me.md"):
        os.utime(folder / name, (time.time() + 86_400,) * 2)


def line_ends_of_windows(folder: Path) -> None:
    (folder / "read me.md").write_bytes(b"Read me.\r\n")


def pointer(folder: Path) -> None:
    (folder / FILE).write_bytes(LFS_POINTER + b"v1\noid sha256:0\nsize 1\n")


def link(folder: Path) -> None:
    (folder.parent / "disk").mkdir()
    (folder / "results").symlink_to(folder.parent / "disk")


@pytest.mark.parametrize(
    ("damage", "check", "words"),
    [
        (from_the_future, "dates", ("s in the future", "touch ", "(and 1 more)")),
        (
            line_ends_of_windows,
            "line_ends",
            ("read me.md has line", "git checkout -- 'read me.md'"),
        ),
        (pointer, "pointers", (FILE, "is a pointer of git LFS", "git lfs pull")),
        (link, "linked_folders", ("results is a link to", "mount --bind")),
    ],
)
def test_each_damage_is_one_line_with_place_and_cure(
    damage: Callable[[Path], None],
    check: str,
    words: tuple[str, ...],
    checkout: Path,
    settings: Settings,
) -> None:
    assert faults(checkout, settings) == {}
    damage(checkout)
    ((name, (line,)),) = faults(checkout, settings).items()
    assert name == check
    assert all(word in line for word in words)


def test_a_shallow_clone_is_named_with_the_command_that_completes_it(
    checkout: Path, settings: Settings
) -> None:
    shallow = checkout.parent / "shallow"
    words = ("git", "clone", "-q", "--depth", "1", checkout.as_uri(), str(shallow))
    subprocess.run(words, check=True)
    (line,) = checkout_faults.history(shallow, settings)
    assert line.startswith(f"{shallow} is a shallow clone")
    assert line.endswith("git fetch --unshallow")
    assert list(checkout_faults.history(checkout, settings)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_named_with_git_s_cure(
    checkout: Path, settings: Settings
) -> None:
    os.chown(checkout, 12_345, 12_345)
    (line,) = checkout_faults.git_trust(checkout, settings)
    assert f"git config --global --add safe.directory {checkout}" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(checkout: Path, settings: Settings) -> None:
    (checkout / "results").mkdir(mode=0o500)
    (line,) = faults(checkout, settings)["permissions"]
    assert line.startswith(f"{checkout}/results cannot be written by this user")


@pytest.mark.parametrize("flags", [frozenset(), frozenset({"avx2", "fma", "f16c"})])
def test_a_cpu_without_the_instructions_of_exact_runs_is_named(
    flags: frozenset[str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout_faults, "has_required_instructions", lambda: False)
    monkeypatch.setattr(checkout_faults, "cpu_flags", lambda: flags)
    (line,) = checkout_faults.instructions(ROOT, settings)
    assert "lacks abm," in line
    assert ("avx2" in line) == (not flags)
    assert "t5repro certificate" in line


def test_a_locale_without_utf8_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout_faults.sys, "getfilesystemencoding", lambda: "ascii")
    (line,) = checkout_faults.encoding(ROOT, settings)
    assert line == "the locale's encoding is ascii, not utf-8: set PYTHONUTF8=1, or a UTF-8 locale"


def test_versions_unlike_the_lock_are_named_once_with_their_number(
    tmp_path: Path, settings: Settings
) -> None:
    (tmp_path / "requirements").mkdir()
    lock = "numpy==1.0.0 \\\n    --hash=sha256:0\npydantic==1.0.0 \\\n    --hash=sha256:0\n"
    (tmp_path / "requirements/cpu-gpu.txt").write_text(lock)
    (line,) = checkout_faults.packages(tmp_path, settings)
    assert "requirements/cpu-gpu.txt has 1.0.0" in line
    assert line.endswith("(and 1 more)")
