"""The subcommands of the rules agree with the table of stages, the rules and the functions."""

import importlib
import inspect
import re

import pytest
from checkout import ROOT

from t5repro.cli.main import parser
from t5repro.cli.parsers import subcommands
from t5repro.cli.stages import STAGE_COMMANDS
from t5repro.stages import STAGES

CALLED = re.compile(r'^\s*"t5repro stage (\w+)"((?:\n\s*"[^\n]*")+)', flags=re.MULTILINE)


def test_every_stage_has_a_subcommand() -> None:
    names = [row.stage for row in STAGE_COMMANDS]
    assert sorted([*names, "preflight"]) == sorted(stage.name for stage in STAGES)


CALLS = [row for row in STAGE_COMMANDS if isinstance(row.function, str)]  # not by a handler


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.stage)
def test_arguments_are_keywords_of_the_function(row) -> None:
    module, _, name = row.function.partition(":")
    function = getattr(importlib.import_module(f"t5repro.{module}"), name)
    keywords = set(list(inspect.signature(function).parameters)[1:])
    assert keywords == {argument.name for argument in row.arguments} - {"data"}  # `_run` uses it


NO_FILES = {"task", "engine", "loggers", "resume_changed", "sample_every_steps", "sample_count"}
UNVERIFIED = {  # options with a path that no manifest attests, and why
    "manifest metrics folder output model pieces html trace csv answers corpus_page": "written",
    "work monitor downloads": "written",
    "withdrawn": "tracked by git",
    "root": "the folder of raw files that other options name",
    "data": "verified with the raw files it lists",
    "model_file start_from": "files of others, whose hash the rule data compared",
}


@pytest.mark.parametrize("row", STAGE_COMMANDS, ids=lambda row: row.stage)
def test_every_file_that_a_stage_reads_is_verified(row) -> None:
    unverified = {
        argument.name
        for argument in row.arguments
        if argument.kind == "other" and argument.options.get("type") is not int
    }
    known = {name for names in UNVERIFIED for name in names.split()}
    verified = {argument.name for argument in row.arguments} - unverified
    assert not verified & known
    assert unverified - known <= NO_FILES


def test_rules_use_the_options_that_exist() -> None:
    commands = subcommands(subcommands(parser())["stage"])
    calls = 0
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        for name, words in CALLED.findall(path.read_text()):
            known = set(commands[name]._option_string_actions)
            used = set(re.findall(r'" (--[a-z-]+)', words))
            assert used <= known, f"{path.name}: {sorted(used - known)}"
            calls += 1
    assert calls == len(STAGES)
