"""The code of a rule: its closure, and what counts as a change of it."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from t5repro.lineage import remembered_closures, sources
from t5repro.lineage.remembered_closures import MEMORY
from t5repro.lineage.sources import closure, closure_path, closure_texts, source_files
from t5repro.stages import STAGES


def test_a_closure_holds_the_module_and_all_it_imports() -> None:
    files = source_files("data.check")
    assert "src/t5repro/data/check.py" in files
    assert "src/t5repro/config/sections/data.py" in files
    assert "src/t5repro/files.py" in files
    assert not any("/cli/" in name for name in files)
    assert list(files) == sorted(files)


def test_a_closure_holds_the_init_of_every_package_on_the_way() -> None:
    files = source_files("config.sections.data")
    assert {
        "src/t5repro/__init__.py",
        "src/t5repro/config/__init__.py",
        "src/t5repro/config/sections/__init__.py",
    } <= set(files)


def test_data_files_next_to_a_module_belong_to_its_closure() -> None:
    files = source_files("report.page")
    assert "src/t5repro/published/paper_tables.json" in files
    assert any(path.endswith(".css") for path in files)


def test_a_name_that_is_no_module_has_the_root_package_and_its_imports_alone() -> None:
    found = source_files("no_such_module")
    assert found == ("src/t5repro/__init__.py", "src/t5repro/cpu_dispatch.py")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package whose files a test may edit."""
    shutil.copytree(sources.PACKAGE, tmp_path / "src" / "t5repro")
    monkeypatch.setattr(sources, "PACKAGE", tmp_path / "src" / "t5repro")
    return tmp_path / "src" / "t5repro"


def changed_rules(before: dict[Path, str]) -> set[str]:
    return {path.stem for path, text in closure_texts().items() if text != before[path]}


DOCSTRING = re.compile(r'^( *)"""(?=[A-Z])', flags=re.MULTILINE)


def test_rewording_help_texts_docstrings_and_comments_changes_no_rule(copy: Path) -> None:
    before = closure_texts()
    for name in ("config/sections/c4.py", "config/schema.py", "files.py", "c4/__init__.py"):
        path = copy / name
        reworded, count = DOCSTRING.subn(r'\1"""Reworded: ', path.read_text())
        assert count
        path.write_text(f"# a new comment\n\n{reworded}")
    assert changed_rules(before) == set()


def test_a_value_or_a_bound_of_a_setting_changes_the_rules_that_reach_its_section(
    copy: Path,
) -> None:
    before = closure_texts()
    path = copy / "config/sections/c4.py"
    path.write_text(path.read_text().replace("Field(190_000, ge=1)", "Field(190_000, ge=2)"))
    assert {"c4_punkt", "c4_clean", "c4"} <= changed_rules(before)
    assert not changed_rules(before) & {"vocab", "tokens", "pretrain", "tasks", "finetune"}


def test_a_new_import_brings_the_imported_module_in(copy: Path) -> None:
    path = copy / "vocab/sample.py"
    assert "src/t5repro/metrics/bleu.py" not in closure("vocab_sample")
    path.write_text(path.read_text() + "\n\ndef late():\n    import t5repro.metrics.bleu\n")
    assert "src/t5repro/metrics/bleu.py" in source_files("vocab.sample")
    assert "src/t5repro/metrics/bleu.py" in closure("vocab_sample")  # it imports sacrebleu


def test_a_string_that_is_used_is_code_and_not_a_docstring(copy: Path) -> None:
    before = closure_texts()
    path = copy / "data/check.py"
    path.write_text(path.read_text() + '\nGREETING = "hello"\n')
    assert changed_rules(before) == {"data"}


def test_an_edit_of_a_shared_module_changes_the_rules_that_reach_the_edited_definition(
    copy: Path,
) -> None:
    before = closure_texts()
    path = copy / "files.py"
    path.write_text(path.read_text() + '\n\ndef new_helper():\n    return "hello"\n')
    assert changed_rules(before) == set()
    path.write_text(path.read_text() + "\nprint(new_helper())\n")
    assert changed_rules(before) == {path.stem for path in before}


def test_an_edited_setting_of_the_network_is_no_edit_of_the_ids(copy: Path) -> None:
    before = closure_texts()
    path = copy / "config/sections/model.py"
    text = path.read_text()
    path.write_text(text.replace("    d_model: int = ", "    new: int = 5\n    d_model: int = "))
    assert path.read_text() != text
    assert "pretrain" in changed_rules(before)
    assert not changed_rules(before) & {"vocab", "tokens", "tasks"}


def test_the_files_that_stand_for_code_name_files_that_python_runs() -> None:
    texts = closure_texts()
    assert set(texts) == {closure_path(stage.name) for stage in STAGES}
    for stage in STAGES:
        names = json.loads(texts[closure_path(stage.name)])
        assert list(names) == sorted(names)
        assert names.keys() <= set(source_files(stage.module))


def test_a_change_of_the_vocabulary_trainer_reruns_neither_tokens_nor_training() -> None:
    trainers = {"src/t5repro/vocab/sample.py", "src/t5repro/vocab/train.py"}
    for rule in ("tokens", "pretrain", "finetune", "evaluate_predict"):
        assert not trainers & closure(rule).keys(), rule


def test_pretraining_inputs_need_neither_tasks_nor_metrics() -> None:
    packages = {name.split("/")[2] for name in source_files("inputs.pretraining")}
    assert not packages & {"tasks", "metrics", "evaluate"}
    assert "src/t5repro/inputs/finetuning.py" not in source_files("inputs.pretraining")


def test_a_file_that_stands_for_no_rule_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(sources.write_closures()) == len(STAGES)
    extra = sources.CLOSURES / "former_rule.json"
    extra.write_text("{}")
    assert sources.leftover_closures() == [extra]
    assert sources.write_closures() == [extra]
    assert not extra.exists()
    assert sources.write_closures() == []


@pytest.fixture
def followed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules whose definitions plans of the copy have followed."""
    monkeypatch.chdir(copy.parents[1])
    rules: list[str] = []
    closure_of = sources.SourceTree.closure

    def counted(tree: sources.SourceTree, rule: str) -> dict[str, str]:
        rules.append(rule)
        return closure_of(tree, rule)

    monkeypatch.setattr(sources.SourceTree, "closure", counted)
    return rules


def test_a_plan_follows_definitions_only_if_a_source_has_changed(
    copy: Path, followed: list[str]
) -> None:
    for change in (None, ("files.py", "EDITED = 1"), ("report/report.css", "p {}"), ("new.py", "")):
        if change:
            path = copy / change[0]
            path.write_text(f"{path.read_text() if path.exists() else ''}\n{change[1]}\n")
        followed.clear()
        sources.write_closures_for_plan()
        assert len(followed) == len(STAGES), change
        followed.clear()
        sources.write_closures_for_plan()
        assert followed == []
        assert sources.stale_closures() == {}


def test_an_edit_that_keeps_size_and_date_is_seen(copy: Path, followed: list[str]) -> None:
    sources.write_closures_for_plan()
    path, before = copy / "c4/clean.py", closure_path("c4_clean").read_text()
    status, text = path.stat(), path.read_text()
    path.write_text(text.replace("return ", "yield  ", 1))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    sources.write_closures_for_plan()
    assert closure_path("c4_clean").read_text() != before
    assert sources.stale_closures() == {}


DAMAGES = {
    "empty": lambda text: "",
    "cut": lambda text: text[:-20],
    "a list": lambda text: "[]",
    "no texts": lambda text: '{"sources": 5, "texts": [1], "sha256": 0}',
    "one letter": lambda text: text.replace("src/t5repro", "src/t5repr0", 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_memory_of_closures_counts_as_none(
    followed: list[str], damage: Callable[[str], str]
) -> None:
    sources.write_closures_for_plan()
    text = MEMORY.read_text()
    assert damage(text) != text
    MEMORY.write_text(damage(text))
    followed.clear()
    sources.write_closures_for_plan()
    assert len(followed) == len(STAGES)
    assert sources.stale_closures() == {}


def test_a_memory_that_cannot_be_written_or_is_a_folder_changes_no_closure(
    followed: list[str],
) -> None:
    for blocked in (MEMORY, MEMORY.parent.parent):
        shutil.rmtree(MEMORY.parent.parent, ignore_errors=True)
        blocked.parent.mkdir(parents=True, exist_ok=True)
        if blocked == MEMORY:
            blocked.mkdir()
        else:
            blocked.write_text("a file where a folder belongs")
        followed.clear()
        sources.write_closures_for_plan()
        assert len(followed) == len(STAGES)
        assert sources.stale_closures() == {}


def test_closures_of_another_version_of_python_are_not_used(
    followed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.write_closures_for_plan()
    followed.clear()
    monkeypatch.setattr(remembered_closures.sys, "version", "another")
    sources.write_closures_for_plan()
    assert len(followed) == len(STAGES)


def test_what_proves_a_result_asks_no_memory(copy: Path, followed: list[str]) -> None:
    sources.write_closures_for_plan()
    values = json.loads(MEMORY.read_text())
    values["texts"]["vocab"] = "{}\n"
    values["sha256"] = remembered_closures._hash(values["texts"])
    MEMORY.write_text(json.dumps(values))
    sources.write_closures_for_plan()
    assert closure_path("vocab").read_text() == "{}\n"
    assert closure_path("vocab") in sources.stale_closures()


def test_a_job_brings_the_file_of_its_rule_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources.write_closures()
    closure_path("vocab").write_text("{}\n")
    sources.write_closure("vocab", closure("vocab"))
    assert sources.stale_closures() == {}
