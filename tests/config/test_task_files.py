"""Which raw files a task is read from."""

import pytest

from t5repro.config.load import load_settings
from t5repro.config.task_files import task_files
from t5repro.errors import SettingsError


def run_with(*files: str, **tasks: object) -> object:
    source = {"origin": "o", "licence": "l", "files": dict.fromkeys(files, "")}
    return load_settings({"data": {"sources": [source]}, "tasks": tasks})


def test_a_split_without_listed_files_is_not_built() -> None:
    settings = run_with("tasks/glue/CoLA/train.tsv", "tasks/glue/CoLA/dev.tsv")
    assert task_files(settings, "glue_cola") == {
        "train": ["tasks/glue/CoLA/train.tsv"],
        "validation": ["tasks/glue/CoLA/dev.tsv"],
    }


def test_a_run_file_may_name_other_files_for_a_split() -> None:
    chosen = {"wmt_en_de": {"train": ["a.en", "a.de"]}}
    settings = run_with("tasks/a.en", "tasks/a.de", files=chosen)
    assert task_files(settings, "wmt_en_de") == {"train": ["tasks/a.en", "tasks/a.de"]}


def test_a_named_file_that_the_run_does_not_list_is_refused() -> None:
    settings = run_with("tasks/a.en", files={"wmt_en_de": {"train": ["a.en", "a.de"]}})
    with pytest.raises(SettingsError, match=r"names \['tasks/a.de'\], which data.sources"):
        task_files(settings, "wmt_en_de")


def test_a_task_without_any_file_says_what_it_is_read_from() -> None:
    with pytest.raises(SettingsError, match="'glue_cola' has no file in data.sources"):
        task_files(run_with("x"), "glue_cola")
    with pytest.raises(SettingsError, match="holds 'glue_colla'; tasks are"):
        task_files(run_with("x"), "glue_colla")
