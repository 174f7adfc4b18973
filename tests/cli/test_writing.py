"""A command that changes the checkout is refused while a run is at work in it."""

import argparse
from pathlib import Path

import pytest
from made_graphs import SCORES, small_run, write

from t5repro.cli.main import main, parser
from t5repro.cli.parsers import OutputFile, all_commands
from t5repro.cli.writing import writing
from t5repro.lineage.run_lock import run_lock

WRITES = (
    ["withdraw", "tasks/one.tsv", "--reason", "x"],
    ["dvc", "generate"],
    ["dvc", "settings"],
    ["config", "generate"],
    ["seal"],
    ["sign"],
    ["dvc", "rehydrate"],
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", WRITES, ids=" ".join)
def test_a_command_that_writes_waits_for_no_run(
    checkout: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with run_lock():
        assert main(words) == 1
    assert "another run is at work in this folder (process" in capsys.readouterr().err
    assert (checkout / SCORES).exists()


def test_what_a_killed_command_left_is_removed_by_the_next_one_that_writes(checkout: Path) -> None:
    left = [".writing-0123abcd-dvc.yaml", "configs/resolved/.writing-0123abcd-r.json"]
    others = [".writing-mine", "notes/.writing-0123abcd-a.txt"]
    for name in (*left, *others):
        write(checkout, name, "half")
    main(["dvc", "rehydrate"])
    assert not [name for name in left if (checkout / name).exists()]
    assert all((checkout / name).exists() for name in others)


def test_a_killed_command_leaves_nothing_beside_the_file_of_the_user(checkout: Path) -> None:
    left, other = ".writing-0123abcd-pages.csv", ".writing-0123abcd-other.csv"
    for name in (left, other):
        write(checkout, f"out/{name}", "half")
    arguments = argparse.Namespace(writes=False, csv=OutputFile(checkout / "out/pages.csv"))
    with writing(arguments):  # another command writes there meanwhile
        write(checkout, f"out/{left}", "half")
        with writing(arguments):
            assert (checkout / "out" / left).exists()
    with writing(arguments):
        assert [path.name for path in (checkout / "out").iterdir()] == [other]


@pytest.mark.parametrize("name", [SCORES, "dvc.lock", "records/r.index.json"])
def test_no_file_of_a_run_is_replaced_by_one_for_the_user(
    checkout: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(checkout, name, "of a run")
    assert main(["pages", SCORES, "--csv", name]) == 2
    assert f"{name} is a file of a run or of DVC" in capsys.readouterr().err
    assert (checkout / name).read_text() == "of a run"


def test_every_option_that_names_a_file_to_write_is_known_as_one() -> None:
    options = [action for _, command in all_commands(parser()) for action in command._actions]
    written = [option for option in options if (option.help or "").startswith(("write ", "zip to"))]
    files = [option for option in written if option.type in (Path, OutputFile)]
    assert len(files) == 9
    assert [option.dest for option in files if option.type is Path] == []


def test_a_question_is_answered_during_a_run(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_lock():
        main(["verify"])
        main(["withdraw", "tasks/one.tsv", "--reason", "x", "--dry-run"])
    assert "another run" not in capsys.readouterr().err


def test_outside_of_a_checkout_no_lock_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["seal"]) == 2
    assert list(tmp_path.iterdir()) == []
