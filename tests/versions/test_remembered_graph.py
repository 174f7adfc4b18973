"""The planned graph is remembered until something changes that decides it."""

import json
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from clones import clone, run_in

from t5repro.config.load import load_run_file
from t5repro.versions.remembered_graph import GRAPH_FILE, graph_key, recall_graph, remember_graph

RUN_FILE = Path("configs/demo.yaml")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that decide a graph."""
    for name in ("workflow", "configs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["Snakefile", "workflow/rules/c4.smk", "configs/demo.yaml", "withdrawn/pages.yaml"]
)
def test_another_rule_file_run_file_or_withdrawal_is_another_key(checkout: Path, name: str) -> None:
    settings = load_run_file(RUN_FILE)
    key = graph_key(settings, RUN_FILE)
    assert graph_key(settings, RUN_FILE) == key
    (checkout / name).parent.mkdir(exist_ok=True)
    with (checkout / name).open("a", encoding="utf-8") as handle:
        handle.write("# edited\n")
    assert graph_key(settings, RUN_FILE) != key


def test_other_settings_and_other_raw_files_are_another_key(checkout: Path) -> None:
    settings = load_run_file(RUN_FILE)
    key = graph_key(settings, RUN_FILE)
    assert graph_key(load_run_file(RUN_FILE, {"seed": 5}), RUN_FILE) != key
    name = next(iter(settings.data.sources[0].files))
    (checkout / "data" / name).parent.mkdir(parents=True)
    (checkout / "data" / name).write_text("raw")
    assert graph_key(settings, RUN_FILE) != key


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 5}', "null"])
def test_a_damaged_memory_counts_as_none(checkout: Path, damage: str) -> None:
    remember_graph("key", "[]")
    assert recall_graph("key") == "[]"
    assert recall_graph("other") is None
    (checkout / GRAPH_FILE).write_text(damage)
    assert recall_graph("key") is None


@pytest.mark.workflow
def test_a_remembered_graph_is_the_one_that_snakemake_plans(tmp_path: Path) -> None:
    folder = clone(tmp_path / "clone")
    first = run_in(folder, "t5repro", "dvc", "check")
    planned = (folder / GRAPH_FILE).read_bytes()
    second = run_in(folder, "t5repro", "dvc", "check")
    assert first.stdout == second.stdout
    assert (folder / GRAPH_FILE).read_bytes() == planned
    (text,) = json.loads(planned).values()
    (folder / GRAPH_FILE).unlink()
    run_in(folder, "t5repro", "dvc", "check")
    assert json.loads((folder / GRAPH_FILE).read_bytes()).popitem()[1] == text
