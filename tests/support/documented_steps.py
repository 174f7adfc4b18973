"""The steps of a page that tests walk: files that it writes, commands and what they print."""

import re
from typing import NamedTuple

BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Step(NamedTuple):
    """A file to write, or a command and its output according to the page."""

    path: str
    command: str
    text: str


def steps_of(page: str) -> list[Step]:
    steps = []
    for block in BLOCK.finditer(page):
        if block["path"]:
            steps.append(Step(block["path"], "", block["body"]))
        elif block["kind"] == "console":
            for command_text in re.split(r"^\$ ", block["body"], flags=re.M)[1:]:
                command, _, printed = command_text.partition("\n")
                steps.append(Step("", command, printed))
    return steps
