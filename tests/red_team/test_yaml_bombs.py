"""Run files, lists and locks that stand for more than they contain."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.load import load_run_file
from t5repro.config.origins import read_with_lines
from t5repro.config.run_file import read_sources
from t5repro.config.withdrawn import read_pages
from t5repro.errors import SettingsError, T5ReproError
from t5repro.lineage.dvc_lock import parse_lock


def bomb(start: str, levels: int = 9) -> str:
    """Return YAML of 10 ** levels values; `start` is the innermost one."""
    lines = [f"a0: &a0 {start}"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)
    ]
    return "\n".join(lines) + "\n"


MERGES = "a0: &a0 {x0: 1}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}\n" for level in range(1, 9)
)
EXPANDING = {
    "lists": bomb("[lol]"),
    "mappings": bomb("{x: lol}"),
    "merged mappings": MERGES,
    "a list in itself": "a: &a [*a]\n",
    "a mapping in itself": "a: &a {b: {c: *a}}\n",
    "a key": bomb("[lol]") + "? [*a8]\n: 1\n",
}
BROKEN = {
    "nested": "[" * 5000,
    "nested mappings": "{a: " * 5000,
    "a number of 5,000 digits": "seed: " + "9" * 5000,
    "a number in base 8": "seed: 010",
    "a number in base 60": "seed: 12:30",
    "a date that does not exist": "seed: 2001-99-99",
    "a Python object": "seed: !!python/object/apply:os.system [id]",
    "an unknown alias": "seed: *nothing",
    "a list as key": "? [a]\n: 1",
    "a control character": "seed: \x07",
    "two documents": "a: 1\n---\nb: 2\n",
}
READERS: list[Callable[[Path], Any]] = [read_with_lines, load_run_file, read_sources, read_pages]


@pytest.mark.parametrize("read", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("name", EXPANDING)
def test_aliases_that_expand_without_limit_are_refused(
    tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(EXPANDING[name], encoding="utf-8")
    with pytest.raises(SettingsError, match=r"run\.yaml.*aliases \(\*name\) expand to more than"):
        read(path)


@pytest.mark.parametrize("read", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("name", BROKEN)
def test_yaml_that_cannot_be_read_is_named_with_its_file(
    tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(BROKEN[name], encoding="utf-8")
    with pytest.raises(SettingsError, match=r"run\.yaml"):
        read(path)


def test_anchors_of_an_honest_file_are_allowed() -> None:
    text = "a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n"
    assert parse_yaml(text, "f") == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
    assert parse_yaml("", "f") is None


@pytest.mark.parametrize("text", [*EXPANDING.values(), "stages: {a: &a {outs: []}, b: *a}"])
def test_aliases_in_a_lock_are_refused(text: str) -> None:
    with pytest.raises(T5ReproError, match="not in DVC's format"):
        parse_lock(text.encode())
    with pytest.raises(T5ReproError, match="not in DVC's format"):
        parse_lock(None, text.encode())


@pytest.mark.parametrize("text", BROKEN.values(), ids=list(BROKEN))
def test_a_lock_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(T5ReproError, match="not in DVC's format"):
        parse_lock(None, text.encode())


def test_the_command_line_refuses_a_bomb_without_expanding_it(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(bomb("[lol]"), encoding="utf-8")
    limit = "import resource as r; r.setrlimit(r.RLIMIT_CPU, (60, 60)); "
    code = f"{limit}from t5repro.cli.main import main; raise SystemExit(main())"
    process = subprocess.run(
        [sys.executable, "-c", code, "config", "show", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2, process.stderr
    assert "expand to more than" in process.stderr
