"""Which raw files a task is read from."""

import pytest

from t5repro.config.load import load_settings
from t5repro.config.task_files import start_files, task_files, tokenizer_files, vocabulary_files
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
    expected = "contains 'glue_colla'; nearest: 'glue_cola'; tasks are"
    with pytest.raises(SettingsError, match=expected):
        task_files(run_with("x"), "glue_colla")


def with_start(*files: str, **change: object) -> object:
    source = {"origin": "o", "licence": "l", "files": dict.fromkeys(files, "")}
    return load_settings({"data": {"sources": [source]}, **change})


def test_the_files_of_a_published_checkpoint_are_those_below_its_folder() -> None:
    files = ("t5/config.json", "t5/model.safetensors", "t5_large/config.json", "crawl/a")
    settings = with_start(*files, **{"pretrain.start_from": "t5"})
    assert start_files(settings) == ["t5/config.json", "t5/model.safetensors"]
    assert start_files(with_start(*files)) == []


def test_a_checkpoint_that_the_run_does_not_list_is_refused() -> None:
    settings = with_start("t5_large/config.json", **{"pretrain.start_from": "t5"})
    with pytest.raises(SettingsError, match="start_from is 't5', but data.sources lists no file"):
        start_files(settings)


def test_a_vocabulary_that_the_run_does_not_list_is_refused() -> None:
    assert vocabulary_files(with_start("a")) == []
    listed = with_start("t5/spiece.model", **{"vocab.model_file": "t5/spiece.model"})
    assert vocabulary_files(listed) == ["t5/spiece.model"]
    with pytest.raises(SettingsError, match=r"model_file is 'b', which data.sources does not"):
        vocabulary_files(with_start("a", **{"vocab.model_file": "b"}))


def test_listed_files_of_a_tokenizer_next_to_the_vocabulary_are_read_with_it() -> None:
    listed = ("t5/spiece.model", "t5/tokenizer_config.json", "t5/README.md", "tokenizer.json")
    settings = with_start(*listed, **{"vocab.model_file": "t5/spiece.model"})
    assert tokenizer_files(settings) == ["t5/tokenizer_config.json"]
    assert tokenizer_files(with_start(*listed)) == []


def test_beam_search_for_a_task_that_the_run_does_not_have_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"beam_tasks names \['wmt_en_xx'\], which are not in tasks.names"
    ):
        with_start("a", **{"evaluate.beam_tasks": ["wmt_en_xx"]})


@pytest.mark.parametrize(
    ("change", "reads"),
    [
        ({}, False),
        ({"pretrain.steps": 1}, True),
        ({"pretrain.start_from": ""}, True),
        ({"vocab.model_file": ""}, True),
        ({"finetune.corpus_examples": 10}, True),
    ],
)
def test_given_weights_and_vocabulary_need_no_corpus(
    change: dict[str, object], reads: bool
) -> None:
    given = {
        "pretrain.start_from": "t5",
        "pretrain.steps": 0,
        "vocab.model_file": "t5/spiece.model",
    }
    assert load_settings({**given, **change}).reads_corpus is reads
