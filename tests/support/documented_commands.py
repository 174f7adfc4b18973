"""The commands and the blocks of Python and YAML that the pages show, and who executes them.

A command is a line of a block without language or of a shell's, in a `console` block a line after
`$ `; and inline code that begins with one of `PROGRAMS` and has another word. The output of a
command is in a `text` block. A block is known by its first line that no other block of its page
has.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

import yaml
from check_docs.snippets import FENCE, SHELL_BLOCKS, document_snippets
from checkout import CASES, ROOT

# The changelog is history.
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/**/*.md", "configs/**/*.md")
PROGRAMS = (
    *("t5repro", "snakemake", "dvc", "make", "tensorboard", "python", "python3", "pip", "git"),
    *("docker", "eval", "hf", "rocrate-validator"),
)
INLINE = re.compile(rf"(?:\S*/)?(?:{'|'.join(PROGRAMS)}) \S.*")
COMMENT = re.compile(r"(?:^|\s+)#\s.*")
CODE = {"python", "pycon", "snakemake", "yaml"}
LANGUAGES = {*SHELL_BLOCKS, *CODE, "text", "mermaid"}


class Documented(NamedTuple):
    """A command, or a block with the line that it is known by."""

    kind: Literal["command", "python", "pycon", "snakemake", "yaml"]
    name: str
    text: str
    line: int


@dataclass(frozen=True)
class Entry:
    """Commands, and blocks by page, with their test or the reason why there is none.

    Commands are a list, and blocks a mapping from page to list; if the test needs more to know
    than the name, the list is a mapping from names.
    """

    test: str = ""
    reason: str = ""
    commands: Any = ()
    blocks: dict[str, Any] = field(default_factory=dict)


@cache
def pages() -> dict[str, str]:
    """Return path -> text of every page."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for pattern in PAGES
        for path in sorted(ROOT.glob(pattern))
    }


def entries() -> list[Entry]:
    """Return what tests/cases/documented_commands.yaml says of commands and blocks."""
    return [Entry(**entry) for entry in _listed()["entries"]]


def entry_of(test: str) -> Entry:
    """Return the entry of a test, named as in the file."""
    (entry,) = (entry for entry in entries() if entry.test == test)
    return entry


def names() -> list[str]:
    """Return the inline code that names a command and cannot be run as it stands."""
    return list(_listed()["names"])


def documented(text: str) -> list[Documented]:
    """Return the commands and blocks of a page in its order."""
    return sorted([*_commands(text), *_blocks(text)], key=lambda command: command.line)


@cache
def _listed() -> Any:
    return yaml.safe_load((CASES / "documented_commands.yaml").read_text(encoding="utf-8"))


def _commands(text: str) -> Iterator[Documented]:
    for snippet in document_snippets(text):
        if snippet.kind in ("command", "span"):
            words = COMMENT.sub("", " ".join(snippet.text.split()))
            if words and (snippet.kind == "command" or INLINE.fullmatch(words)):
                yield Documented("command", words, words, snippet.line)


def _blocks(text: str) -> Iterator[Documented]:
    blocks = [block for block in FENCE.finditer(text) if block[1] in CODE]
    lines = [line for block in blocks for line in set(block[2].splitlines())]
    for block in blocks:
        name = next(line for line in block[2].splitlines() if lines.count(line) == 1)
        yield Documented(block[1], name.strip(), block[2], text.count("\n", 0, block.start()) + 1)
