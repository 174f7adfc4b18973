"""Command lines: `t5repro`, `make`, `snakemake`, and `python` with a script."""

import argparse
import re
import shlex
from collections.abc import Iterable, Iterator

import yaml

from t5repro.config.schema import Settings

from .settings import mapping
from .tree import PLACEHOLDER, Missing, Tree, matches

SEPARATORS = {"|", "||", "&&", ";", ">", ">>", "<", "2>&1", "&"}
SCRIPT_OPTION = re.compile(r"\"(--[\w-]+)\"")


def command(tree: Tree, text: str) -> Iterator[Missing]:
    """Yield the words of a command line that its tool does not know."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    simple_command: list[str] = []
    for word in [*words, ";"]:
        if word in SEPARATORS:
            yield from _one_command(tree, simple_command)
            simple_command = []
        else:
            simple_command.append(word)


def _one_command(tree: Tree, words: list[str]) -> Iterator[Missing]:
    while words and re.match(r"[A-Z_]+=", words[0]):  # variables of the environment
        words = words[1:]
    if not words:
        return
    tool, arguments = words[0].rpartition("/")[2], words[1:]
    if tool in ("python", "python3") and arguments[:2] == ["-m", "t5repro"]:
        tool, arguments = "t5repro", arguments[2:]
    if tool == "t5repro":
        yield from _arguments(tree.parser, arguments)
    elif tool == "make":
        yield from _make(tree, arguments)
    elif tool == "snakemake":
        yield from _snakemake(tree, arguments)
    elif tool in ("python", "python3") and arguments and arguments[0].endswith(".py"):
        script = arguments[0]
        if script not in tree.files:
            yield "file", script, tree.files
        else:
            options = frozenset(SCRIPT_OPTION.findall(tree.text(script)))
            yield from (("option", word, options) for word in _options(arguments) - options)


def _options(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.partition("=")[0] for word in words if re.match(r"--\w", word))


def _make(tree: Tree, arguments: list[str]) -> Iterator[Missing]:
    targets, variables = tree.make
    for word in arguments:
        variable, equals, _ = word.partition("=")
        if equals and variable not in variables:
            yield "make variable", variable, variables
        elif not equals and word not in targets and not PLACEHOLDER.fullmatch(word):
            yield "make target", word, targets


def _snakemake(tree: Tree, arguments: list[str]) -> Iterator[Missing]:
    option = ""
    for word in arguments:
        if word.startswith("-"):
            option = word.partition("=")[0]
            if option not in tree.snakemake_options and option != "--":
                yield "option", option, tree.snakemake_options
        elif PLACEHOLDER.fullmatch(word):
            continue
        elif option == "--configfile":
            if word.startswith("configs/") and not matches(tree.files, PLACEHOLDER.sub("*", word)):
                yield "file", word, tree.files
        elif option == "--profile":
            if word not in tree.folders:
                yield "profile", word, tree.top
            option = ""  # it takes one value
        elif option == "--config":
            key, _, value = word.partition("=")
            values = yaml.safe_load(re.sub(r"\.\.\.|…", "", value) or "null")
            if key.partition(".")[0] not in Settings.model_fields:
                yield "setting", key, tree.settings
            yield from mapping(tree, {key: values})
        elif option in ("", "-n", "--dry-run", "--quiet", "-np") and re.fullmatch(r"[\w-]+", word):
            rule = word.partition("-")[0]
            if rule not in tree.rules and not rule.removeprefix("stage_").startswith("tasks_"):
                yield "rule", word, tree.rules
        if option in ("--cores", "-n", "--dry-run") and not word.startswith("-"):
            option = ""


def _arguments(parser: argparse.ArgumentParser, words: list[str]) -> Iterator[Missing]:
    """Check words against a parser and, from its subcommand on, against the subcommand's parser."""
    options = set(parser._option_string_actions)
    commands = _subcommands(parser)
    action = None
    for position, word in enumerate(words):
        if word.startswith("--"):
            name = word.partition("=")[0]
            if name not in options:
                yield "option", name, options
            action = parser._option_string_actions.get(name)
        elif action is not None and action.choices and not PLACEHOLDER.search(word):
            if word not in action.choices:
                yield f"value of {action.option_strings[0]}:", word, map(str, action.choices)
        elif commands:
            if word in commands:
                yield from _arguments(commands[word], words[position + 1 :])
            elif not PLACEHOLDER.search(word):
                yield "subcommand", word, commands
            return


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def all_options(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a parser and of all its subcommands."""
    inner = [all_options(subparser) for subparser in _subcommands(parser).values()]
    return set(parser._option_string_actions).union(*inner)
