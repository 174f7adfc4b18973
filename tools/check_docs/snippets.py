"""Documents, modules, rule files and run files -> the parts that name something."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Literal, NamedTuple

SPAN = re.compile(r"(`+)((?:(?!\n\s*\n).)+?)\1", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
SOURCE = re.compile(r"Source: .*?(?=\n\s*\n|\Z)", re.DOTALL)  # names of the released code
CURE = re.compile(r"\b(?:run|call|with) ((?:t5repro|snakemake)(?: [\w.<>{}=/-]+)+|make \w+)")
SHELL_BLOCKS = {"", "console", "sh", "bash", "shell"}


class Snippet(NamedTuple):
    """A part of a text: a code span, a command, a YAML block, a link, or prose."""

    kind: Literal["span", "command", "yaml", "link", "prose"]
    text: str
    line: int


def document_snippets(text: str) -> Iterator[Snippet]:
    """Split a document of Markdown."""
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start(2)) + 1
        if block[1] == "yaml":
            yield Snippet("yaml", block[2], line)
        elif block[1] in SHELL_BLOCKS:
            yield from _commands(block[2], line, prompt="$ " if block[1] == "console" else "")
    # Lines stay, so that positions keep their line numbers.
    prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for link in LINK.finditer(prose):
        yield Snippet("link", link[1], text.count("\n", 0, link.start()) + 1)
    prose = LINK.sub(lambda link: link[0].replace(link[1], ""), prose)
    yield from _spans_and_prose(prose, 1)


def python_snippets(text: str, *, messages: bool) -> Iterator[Snippet]:
    """Split the docstrings and comments of a module, and its other strings for `messages`."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node, string in _strings(tree):
        if id(node) in docstrings:
            released = SOURCE.sub(lambda source: source[0].replace("`", " "), string)
            yield from _spans_and_prose(released, node.lineno)
        elif messages:
            for snippet in _spans_and_prose(string, node.lineno):
                if snippet.kind == "span":
                    yield snippet
            for cure in CURE.finditer(string):
                yield Snippet("command", cure[1], node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from _spans_and_prose(token.string, token.start[0])


def _strings(tree: ast.Module) -> Iterator[tuple[ast.Constant | ast.JoinedStr, str]]:
    """Yield every string, with `{}` for the values of a formatted one."""
    inner_nodes: set[int] = set()
    for node in ast.walk(tree):  # a formatted string comes before its parts
        if isinstance(node, ast.JoinedStr):
            inner_nodes |= {id(value) for value in node.values}
            texts = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.values]
            yield node, "".join(map(str, texts))
        elif (
            isinstance(node, ast.Constant)
            and type(node.value) is str
            and id(node) not in inner_nodes
        ):
            yield node, node.value


def commented_snippets(text: str) -> Iterator[Snippet]:
    """Split the comments and docstrings of a rule file or a run file."""
    for number, line in enumerate(text.splitlines(), start=1):
        comment = re.search(r"(?:^|\s)#(?!:)(.*)", line)
        if comment:
            yield from _spans_and_prose(comment[1], number)
    for block in re.finditer(r'"""(.*?)"""', text, re.DOTALL):
        yield from _spans_and_prose(block[1], text.count("\n", 0, block.start()) + 1)
        for line in re.findall(r"^(?:snakemake|t5repro) .*", block[1], re.M):
            yield Snippet("command", line.split("    ")[0], text.count("\n", 0, block.start()) + 1)


def _spans_and_prose(text: str, line: int) -> Iterator[Snippet]:
    for span in SPAN.finditer(text):
        yield Snippet("span", span[2], line + text.count("\n", 0, span.start(2)))
    yield Snippet("prose", SPAN.sub(lambda span: re.sub(r"[^\n]", " ", span[0]), text), line)


def _commands(block: str, line: int, prompt: str) -> Iterator[Snippet]:
    number = line
    for row in re.sub(r"\\\n", "\0", block).split("\n"):
        if row.startswith(prompt):  # a console block also shows output
            text = row.replace("\0", " ").removeprefix(prompt)
            yield Snippet("command", text, number)
        number += 1 + row.count("\0")
