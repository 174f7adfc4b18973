"""Every command and block of the pages has a test that executes it, or a reason why none does."""

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator

import pytest
from checkout import ROOT
from documented_commands import LANGUAGES, PROGRAMS, Entry, documented, entries, names, pages

from t5repro.cli.main import main

ANY = "any page"  # a command is the same on every page, a block is that of its page


def shown(page: str, text: str) -> Iterator[tuple[str, str]]:
    for one in documented(text):
        yield (ANY if one.kind == "command" else page), one.name


def listed() -> Iterator[tuple[str, str]]:
    yield from ((ANY, name) for name in names())
    for entry in entries():
        yield from ((ANY, command) for command in entry.commands)
        yield from ((page, name) for page, blocks in entry.blocks.items() for name in blocks)


def unlisted(page: str, text: str) -> list[str]:
    known = set(listed())
    return [name for key, name in shown(page, text) if (key, name) not in known]


@pytest.mark.parametrize("page", pages())
def test_every_command_and_block_of_a_page_is_listed(page: str) -> None:
    assert unlisted(page, pages()[page]) == [], (
        "add them to tests/cases/documented_commands.yaml with a test or a reason"
    )


def test_nothing_is_listed_that_no_page_shows() -> None:
    on_pages = {key for page, text in pages().items() for key in shown(page, text)}
    assert [key for key in listed() if key not in on_pages] == []


def test_nothing_is_listed_twice() -> None:
    assert [key for key, count in Counter(listed()).items() if count > 1] == []


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.test or entry.reason)
def test_an_entry_has_a_test_that_exists_or_a_sentence(entry: Entry) -> None:
    assert bool(entry.test) != bool(entry.reason)
    if entry.test:
        path, _, name = entry.test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    else:
        assert entry.reason[0].isupper()
        assert entry.reason.endswith(".")
        assert len(entry.reason.split()) > 3


@pytest.mark.parametrize("name", [name for name in names() if name.startswith("t5repro ")])
def test_a_name_is_no_command_because_it_is_refused_without_further_words(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(shlex.split(name)[1:])
    except SystemExit as refusal:
        code = refusal.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("page", pages())
def test_every_block_is_fenced_at_the_margin_and_in_a_known_language(page: str) -> None:
    text = pages()[page]
    assert set(re.findall(r"^```(\w*)", text, re.MULTILINE)) <= LANGUAGES
    assert re.findall(r"^ +```.*|^ *~~~.*|(?<=\n\n) {4}\S.*", text, re.MULTILINE) == []


MADE_UP = """\
Run `t5repro verify --deep`, not `t5repro`, or `make nothing`; `results/demo` is a folder.

```
make demo
t5repro new_command \\
    --option  # a comment
```

```console
$ dvc new
printed
```

```sh
curl --silent https://host.example
```

```text
task  accuracy
```

```yaml
run: {name: new}
```
"""


@pytest.mark.parametrize("page", pages())
def test_no_command_of_a_page_hides_the_errors_of_a_run(page: str) -> None:
    """With ``--quiet all`` Snakemake prints no error, so a wrong run file ends without a word."""
    hidden = re.compile(r"--quiet[ =]all|-q[ =]?all")
    assert [one.text for one in documented(pages()[page]) if hidden.search(one.text)] == []
    assert hidden.search(documented("    x\n`snakemake --quiet all --cores 2`")[0].text)


def test_a_new_command_or_block_is_found() -> None:
    assert unlisted("docs/page.md", MADE_UP) == [
        "make nothing",
        "t5repro new_command --option",
        "dvc new",
        "curl --silent https://host.example",
        "run: {name: new}",
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_inline_code_of_every_program_is_found(program: str) -> None:
    assert unlisted("docs/page.md", f"Call `{program} it`.") == [f"{program} it"]
