"""The names of commands: groups, misspelt names, and old names, which are refused."""

import re

import pytest

from t5repro.cli.main import main, parser
from t5repro.cli.parsers import all_commands, subcommands
from t5repro.cli.renamed import RENAMED
from t5repro.stages import STAGES

GROUPS = {name: list(subcommands(p)) for name, p in subcommands(parser()).items() if subcommands(p)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trce", "results/demo"], "there is no command 'trce'; did you mean 'trace'?"),
        (["weights", "exprt"], "there is no command 'exprt'; did you mean 'export'?"),
    ],
)
def test_a_misspelt_command_names_the_nearest(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["\x1b[2J"], ["verify", "--\x1b[2J"], ["trace", "a", "b\x1b[2J"]]
)
def test_what_a_user_typed_is_quoted_without_control_characters(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    printed = capsys.readouterr().err
    assert "\x1b" not in printed
    assert r"\x1b[2J" in printed


def test_help_is_a_screen_with_a_line_for_each_command_or_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert text.index("a run and its results:") < text.index("audit:") < text.index("jobs:")
    assert re.search(r"^  trace +follow an artifact back", text, flags=re.MULTILINE)
    listed = re.findall(r"^  (\w[\w-]*) {2,}\S", text, flags=re.MULTILINE)
    assert listed == list(subcommands(parser()))
    assert len(text.splitlines()) <= 46


@pytest.mark.parametrize("group", sorted(GROUPS.keys() - {"stage"}))
def test_the_line_of_a_group_names_its_commands(group: str) -> None:
    description = subcommands(parser())[group].description or ""
    assert description.startswith(", ".join(GROUPS[group]) + ": ")


def test_only_names_of_rules_have_underscores() -> None:
    others = [name for name, _ in all_commands(parser()) if not name.startswith("stage ")]
    assert [name for name in others if not re.fullmatch(r"[a-z]+( [a-z]+(-[a-z]+)?)?", name)] == []


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_is_refused_with_the_new_one(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = dict(all_commands(parser()))
    new = RENAMED[old]
    assert old not in commands
    assert new.removesuffix(" --settings") in commands
    assert main([*old.split(), "x"]) == 2
    assert capsys.readouterr().err == f"t5repro {old} is now t5repro {new}\n"


def test_the_job_of_every_rule_has_moved_to_its_group() -> None:
    moved = {new.split()[1] for new in RENAMED.values() if new.startswith("stage ")}
    assert moved == set(GROUPS["stage"]) == {stage.name for stage in STAGES}
