"""The parts of run files that the pages show are valid settings."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_commands import documented, entry_of, pages

from t5repro.config.load import load_run_file

TEST = "tests/config/test_documented_settings.py::test_a_block_of_a_page_is_a_run_file"
BLOCKS = [(page, name) for page, names in entry_of(TEST).blocks.items() for name in names]


def write_own_text(folder: Path, values: dict[str, Any]) -> None:
    """Write an empty file for each pattern of `corpus`, because it must match one."""
    data = values.get("data", {}).get("folder", "data")
    corpus = values.get("corpus", {})
    for pattern in [*corpus.get("files", []), *corpus.get("validation_files", [])]:
        path = folder / data / pattern.replace("*", "text.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.mark.parametrize(("page", "name"), BLOCKS)
def test_a_block_of_a_page_is_a_run_file(
    page: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = (block.text for block in documented(pages()[page]) if block.name == name)
    monkeypatch.chdir(tmp_path)
    write_own_text(tmp_path, yaml.safe_load(text))
    empty, run_file = tmp_path / "empty.yaml", tmp_path / "run.yaml"
    empty.write_text("{}\n", encoding="utf-8")
    run_file.write_text(text, encoding="utf-8")
    assert load_run_file(run_file) != load_run_file(empty)
