"""A withdrawal that is killed at any write ends, when it is repeated, in the same bytes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clones import commit
from made_crawl import OLD, RUN_FILE
from made_graphs import RESULT, lock, write

from t5repro import files
from t5repro.audit import withdraw_list as withdraw_list_module
from t5repro.audit.removal import complete_unfinished
from t5repro.audit.withdraw import withdraw
from t5repro.audit.withdraw_list import withdraw_list
from t5repro.audit.withdrawal import Withdrawal
from t5repro.cli.main import main
from t5repro.config.withdrawn import PAGES, UNFINISHED, read_pages
from t5repro.errors import LineageError
from t5repro.files import sha256_of

SHARD = "data/crawl/1.warc.wet.gz"


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it has an effect on files."""


@pytest.fixture
def checkout(crawl: Path) -> Path:
    """The crawl with two run files that name the hash of a raw file, and a lock."""
    for name in (RUN_FILE, "configs/sources/other.yaml"):
        write(crawl, name, f"files: {{{SHARD}: {sha256_of(crawl / SHARD)}}}\n")
    lock(crawl, folders=(f"{RESULT}/c4/a", f"{RESULT}/tokens/a"), code="code")
    commit(crawl, "before")
    return crawl


def files_of(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not {".git", ".dvc"} & set(path.relative_to(root).parts)
    }


def withdraw_old(root: Path) -> Withdrawal:
    return withdraw(root, OLD, reason="ticket 7", delete_cache=True)


def withdraw_asked(root: Path) -> Withdrawal:
    path = write(root, "asked.csv", f"kind,value\nurl,{OLD}\nfile,data/crawl/0.warc.wet.gz\n")
    return withdraw_list(root, path, reason="ticket 7", max_share=100, delete_cache=True)


def withdraw_killed(root: Path, at: int, call: Callable[[Path], Withdrawal] = withdraw_old) -> bool:
    """Withdraw, killed before its write or deletion of this number; return whether it was."""
    changes = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal changes
            if ".writing-" not in str(arguments[0]) or function is replace:
                changes += 1
            if changes >= at:
                raise Killed
            return function(*arguments, **options)

        return call

    replace = files.os.replace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, "replace", counted(replace))
        patch.setattr(Path, "unlink", counted(Path.unlink))
        try:
            call(root)
        except Killed:
            return True
    return False


def test_a_withdrawal_killed_at_any_write_is_completed_by_its_repetition(
    checkout: Path, tmp_path: Path
) -> None:
    whole = shutil.copytree(checkout, tmp_path / "whole")
    withdraw(whole, OLD, reason="ticket 7", delete_cache=True)
    expected = files_of(whole)
    at = 1
    while True:
        root = shutil.copytree(checkout, tmp_path / f"killed-{at}")
        if not withdraw_killed(root, at):
            break
        answer = withdraw(root, OLD, reason="ticket 7", delete_cache=True)
        assert files_of(root) == expected, at
        assert answer.redacted == {SHARD: 2}
        assert not [path for path in root.rglob("*") if ".writing-" in path.name]
        at += 1
    # Journal, tombstone, raw file, two run files, lock, journal's end, and every artifact.
    assert at > 7 + len(answer.pruned)


def test_a_list_killed_at_any_write_is_completed_by_its_repetition(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdraw_list_module, "new_salt", lambda: "salt")
    monkeypatch.setattr(withdraw_list_module, "now", lambda: "2026-11-28T12:00:00+00:00")
    whole = shutil.copytree(checkout, tmp_path / "whole")
    withdraw_asked(whole)
    expected = files_of(whole)
    at = 1
    while True:
        root = shutil.copytree(checkout, tmp_path / f"killed-{at}")
        write(root, "asked.csv", (whole / "asked.csv").read_text())
        if not withdraw_killed(root, at, withdraw_asked):
            break
        withdraw_asked(root)
        assert files_of(root) == expected, at
        at += 1
    # Journal, two tombstones, two raw files, two run files, lock, salts, receipt, journal's end.
    assert at > 11 + len(withdraw_asked(root).pruned)


def test_the_next_command_that_writes_completes_a_stopped_withdrawal(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert withdraw_killed(checkout, 4)
    assert (checkout / UNFINISHED).is_file()
    monkeypatch.chdir(checkout)
    main(["sign"])  # which then finds no key
    assert f"completed the withdrawal of {OLD}" in capsys.readouterr().err
    assert not (checkout / UNFINISHED).exists()
    assert sha256_of(checkout / SHARD) in (checkout / RUN_FILE).read_text()
    assert read_pages(checkout / PAGES).urls == {OLD: "ticket 7"}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"files": []}'])
def test_a_journal_that_is_none_is_refused(checkout: Path, text: str) -> None:
    write(checkout, UNFINISHED.as_posix(), text)
    with pytest.raises(LineageError, match="is not the journal of a withdrawal"):
        complete_unfinished(checkout)


def test_a_journal_deletes_nothing_outside_the_checkout(checkout: Path) -> None:
    outside = write(checkout.parent, "outside.txt", "precious")
    assert withdraw_killed(checkout, 3)
    journal = checkout / UNFINISHED
    journal.write_text(
        journal.read_text().replace(f"{RESULT}/c4/a/manifest.json", "../outside.txt")
    )
    with pytest.raises(LineageError, match="outside the checkout"):
        complete_unfinished(checkout)
    assert outside.exists()
