"""The head of each rule file states what its rules read, write and run."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.setting_names import leaves
from t5repro.config.stage_settings import stage_model
from t5repro.stages import BY_NAME, STAGES, Stage

NOT_STAGES = {"common.smk", "stages.smk"}
RULE_FILES = sorted((ROOT / "workflow/rules").glob("*.smk"))
FILES = [path for path in RULE_FILES if path.name not in NOT_STAGES]
SETTING = re.compile(r"\b(?:\w+(?:\.\w+)*\.\*|\w+\.[\w.]*\w|seed)(?!\w)")


def head_of(path: Path) -> dict[str, str]:
    head = path.read_text("utf-8").split('"""')[1]
    parts = re.split(r"^(READS|WRITES|SETTINGS|CODE) ", head, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def stages_of(path: Path) -> list[Stage]:
    pattern = r"^(?: *rule |.* in forms_of\(\")(\w+)"
    names = re.findall(pattern, path.read_text("utf-8"), re.MULTILINE)
    return [BY_NAME[name] for name in names] or [BY_NAME[path.stem]]


def rules_in(text: str) -> set[str]:
    return set(re.findall(r"(?:results|logs)/\{run\}/(\w+)/", text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_head_names_the_entry_modules(path: Path) -> None:
    modules = {f"src/t5repro/{stage.module.replace('.', '/')}.py" for stage in stages_of(path)}
    assert set(re.findall(r"src/[\w/.]+", head_of(path)["CODE"])) == modules


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_head_names_the_settings_that_the_jobs_receive(path: Path) -> None:
    if path.name == "report.smk":
        assert head_of(path)["SETTINGS"].strip().startswith("all")
        return
    received = {name for stage in stages_of(path) for name, _ in leaves(stage_model(stage.name))}
    patterns = SETTING.findall(head_of(path)["SETTINGS"])
    uncovered = {n for n in received if not any(fnmatchcase(n, one) for one in patterns)}
    unread = {one for one in patterns if not any(fnmatchcase(n, one) for n in received)}
    assert (uncovered, unread) == (set(), set())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_head_names_the_rules_that_it_writes_and_those_that_it_reads(path: Path) -> None:
    head, stages = head_of(path), stages_of(path)
    names = {stage.name for stage in stages}
    assert rules_in(head["WRITES"]) | {"data_fetch"} >= names
    upstream = {name for stage in stages for name in stage.upstream} | {"preflight"}
    assert rules_in(head["READS"]) <= upstream | names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_rule_measures_itself_and_says_what_it_needs(path: Path) -> None:
    text = path.read_text("utf-8")
    commands = len(re.findall(r"^ *shell:", text, re.MULTILINE))
    for word in ("log:", "benchmark:", "mem_mb=", "runtime="):
        assert len(re.findall(rf"^ *{word}", text, re.MULTILINE)) == commands, word


def test_every_stage_is_in_a_rule_file() -> None:
    assert {stage for path in FILES for stage in stages_of(path)} == set(STAGES)
