"""Terminals that cannot print a character, and text that would act on a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from made_graphs import RESULT, SCORES, manifest, small_run, write

from t5repro.cli import audit

NAME = "data/tasks/Zoë 中文 😀.tsv"
ESCAPE = "\x1b[2Jcleared\x1b]0;title\x07\u202egnp.exe"
ENVIRONMENTS = (
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C"},
    {"PYTHONIOENCODING": "utf-8"},
)
COMMANDS = (
    ("trace", SCORES),
    ("trace", SCORES, "--json"),
    ("verify",),
    ("verify", "--json"),
    ("impact", NAME),
    ("impact", NAME, "--json"),
    ("withdraw", NAME, "--reason", "für Zoë 😀", "--dry-run"),
    ("diff", ".", "."),
    ("export", "--format", "prov"),
    ("tasks", "list"),
    ("--help",),
    ("trace", "no such file 😀"),
)
# One process asks them all: its streams keep the encoding with which it started.
ASK_ALL = """
import json, os, sys, tempfile, traceback
from t5repro.cli.main import main
answers = []
for words in json.loads(sys.stdin.read()):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            code = main([sys.argv[number] for number in words])
        except SystemExit as error:
            code = error.code
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        texts = [os.pread(stream.fileno(), 1 << 24, 0).hex() for stream in (out, err)]
    answers.append([code, *texts])
with open("answers.json", "w") as file:
    json.dump(answers, file)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a file name that only Unicode can print."""
    root = small_run(tmp_path_factory.mktemp("terminals") / "checkout")
    write(root, NAME, "raw")
    raw = sorted(path.relative_to(root).as_posix() for path in (root / "data").rglob("*.*"))
    manifest(
        root,
        f"{RESULT}/data/manifest.json",
        rule="data",
        outputs=raw,
        settings={"data": {"folder": "data", "source": ""}},
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def ask(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "t5repro", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda values: "-".join(values.values()))
def test_every_question_is_answered_on_every_terminal(
    checkout: Path, environment: dict[str, str]
) -> None:
    arguments = [word for words in COMMANDS for word in words]  # decoded as those of a command
    numbers = iter(range(1, len(arguments) + 1))
    subprocess.run(
        [sys.executable, "-c", ASK_ALL, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        input=json.dumps([[next(numbers) for _ in words] for words in COMMANDS]).encode(),
        check=True,
    )
    answers = json.loads((checkout / "answers.json").read_text(encoding="utf-8"))
    for words, (code, printed, message) in zip(COMMANDS, answers, strict=True):
        assert b"Traceback" not in bytes.fromhex(message), (words, bytes.fromhex(message))
        assert code in (0, 1, 2), words
        if "--json" in words:
            json.loads(bytes.fromhex(printed))


def test_a_name_that_cannot_be_printed_is_escaped(checkout: Path) -> None:
    answer = ask(checkout, "impact", NAME, PYTHONIOENCODING="latin-1").stdout
    assert b"Zo\xeb \\u4e2d\\u6587 \\U0001f600.tsv" in answer
    answer = ask(checkout, "impact", NAME, PYTHONIOENCODING="utf-8").stdout
    assert NAME.encode() in answer


def test_a_locale_that_has_no_such_file_name_is_named(checkout: Path) -> None:
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    process = ask(checkout, "verify", **environment)
    assert process.returncode == 2
    assert b"Traceback" not in process.stderr
    assert b"set PYTHONUTF8=1" in process.stderr


def test_control_characters_of_a_url_do_not_reach_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    audit.print_text(f"url {ESCAPE}\n\tä中\n")
    printed = capfd.readouterr().out
    assert printed == "url \\x1b[2Jcleared\\x1b]0;title\\x07\\u202egnp.exe\n\tä中\n"
