"""Every command that a user types has examples at the end of its help, and they can be typed."""

import argparse
import shlex
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.cli.examples import EXAMPLES
from t5repro.cli.main import main, parser
from t5repro.cli.parsers import all_commands
from t5repro.stages import BY_NAME

QUICK = ("tasks list", "tasks sources", "config presets", "paper rows", "init")


def commands() -> dict[str, argparse.ArgumentParser]:
    return dict(all_commands(parser()))


def test_every_command_but_the_jobs_of_the_rules_has_examples() -> None:
    assert set(EXAMPLES) == set(commands()) - {f"stage {name}" for name in BY_NAME}
    assert all(1 <= len(lines) <= 2 for lines in EXAMPLES.values())


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_are_at_the_end_of_the_help_and_parse(command: str) -> None:
    text = commands()[command].format_help()
    listed = text[text.rindex("\nexample") :].partition(":\n")[2].replace("\\\n", "")
    lines = [shlex.split(line) for line in listed.splitlines()]
    assert lines == [shlex.split(line.replace("\\\n", "")) for line in EXAMPLES[command]]
    for name, *words in lines:
        assert name == "t5repro"
        assert parser().parse_args(words).command == command
        for word in words:  # what is not the user's is in the checkout
            if word.startswith("configs/"):
                assert (ROOT / word).is_file()


@pytest.mark.parametrize("command", QUICK)
def test_examples_that_need_no_run_print_their_answer(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path if command == "init" else ROOT)
    for line in EXAMPLES[command]:
        assert main(shlex.split(line)[1:]) == 0
        assert capsys.readouterr().out
