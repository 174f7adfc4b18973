"""What follows from `corpus.files`: files, languages, rules; what is refused and how it is said."""

import re
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.own_text import files_of_tasks, text_files
from t5repro.errors import SettingsError
from t5repro.plan.run_plan import RunPlan


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where recipes are


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jsonl", "b/c.txt", "b/d.json.gz", "b/notes.md", ".hidden/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


def names(folder: Path, *files: str) -> list[str]:
    settings = load_settings({"data.folder": str(folder), "corpus": {"files": list(files)}})
    return text_files(
        settings.corpus, {name for source in settings.data.sources for name in source.files}
    )[0]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.jsonl"], ["a.jsonl"]),
        (["*.jsonl", "b"], ["a.jsonl", "b/c.txt", "b/d.json.gz"]),
        (["b/*.txt"], ["b/c.txt"]),
        (["*.jsonl", "?.json*"], ["a.jsonl"]),  # * stays within a folder
        (["*/*.txt"], ["b/c.txt"]),
        (["./b"], ["b/c.txt", "b/d.json.gz"]),
        (["b/"], ["b/c.txt", "b/d.json.gz"]),
        (["./a.jsonl"], ["a.jsonl"]),
        (["./*.jsonl"], ["a.jsonl"]),
        (["."], ["a.jsonl", "b/c.txt", "b/d.json.gz"]),
        (["still/to/fetch.parquet"], ["still/to/fetch.parquet"]),
    ],
)
def test_a_path_a_pattern_and_a_folder_name_files(
    folder: Path, files: list[str], expected: list[str]
) -> None:
    assert names(folder, *files) == expected


def test_patterns_and_folders_leave_out_the_files_of_tasks(folder: Path) -> None:
    task_files = {"tasks/t.jsonl": "", "tasks/v.jsonl": ""}
    for name in task_files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    own = {
        "files": {"train": ["t.jsonl"], "validation": ["v.jsonl"]},
        "fields": ["x"],
        "target": "y",
        "metrics": ["accuracy"],
    }
    values = {
        "data": {
            "folder": str(folder),
            "sources": [{"origin": "o", "licence": "l", "files": task_files}],
        },
        "tasks": {"names": ["t"], "own": {"t": own}},
    }
    for files, expected in (
        (["."], ["a.jsonl", "b/c.txt", "b/d.json.gz"]),
        (["a.jsonl", "tasks/t.jsonl"], ["a.jsonl", "tasks/t.jsonl"]),  # a path is meant
    ):
        settings = load_settings({**values, "corpus": {"files": files}})
        listed = {name for source in settings.data.sources for name in source.files}
        assert text_files(settings.corpus, listed, files_of_tasks(settings))[0] == expected
    with pytest.raises(SettingsError, match=r"a file of a task is named by its path"):
        load_settings({**values, "corpus": {"files": ["tasks/*.jsonl"]}})


def test_a_file_of_data_sources_keeps_its_origin_and_hash(folder: Path) -> None:
    sources = [{"origin": "o", "licence": "l", "files": {"a.jsonl": "0" * 64}}]
    settings = load_settings(
        {"data": {"folder": str(folder), "sources": sources}, "corpus": {"files": ["*.jsonl", "b"]}}
    )
    assert settings.data.sources[0].files == {"a.jsonl": "0" * 64}
    assert settings.data.sources[1].files == {"b/c.txt": "", "b/d.json.gz": ""}


def test_an_address_of_the_hub_is_a_file_with_its_origin() -> None:
    train = "hf://datasets/allenai/c4@1588ec4/en/c4-train.00000-of-01024.json.gz"
    held_out = "hf://datasets/allenai/c4/en/a file.json.gz"
    settings = load_settings({"corpus": {"files": [train], "validation_files": [held_out]}})
    found = [(source.origin, [*source.files]) for source in settings.data.sources]
    hub = "https://huggingface.co/datasets/allenai/c4/resolve"
    name = "en/c4-train.00000-of-01024.json.gz"
    assert found == [
        (f"{hub}/1588ec4/{name}", [f"hub/allenai/c4/1588ec4/{name}"]),
        (f"{hub}/main/en/a%20file.json.gz", ["hub/allenai/c4/main/en/a file.json.gz"]),
    ]
    listed = {name for source in settings.data.sources for name in source.files}
    assert text_files(settings.corpus, listed) == tuple([name] for _, (name,) in found)


def test_an_address_of_the_hub_that_data_sources_lists_keeps_its_hash() -> None:
    name = "hub/a/b/main/c.parquet"
    source = {"origin": "o", "licence": "CC0-1.0", "files": {name: "0" * 64}}
    settings = load_settings(
        {"data.sources": [source], "corpus": {"files": ["hf://datasets/a/b/c.parquet"]}}
    )
    assert [entry.files for entry in settings.data.sources] == [{name: "0" * 64}]


def test_a_language_decides_that_of_corpus_vocabulary_and_ids_unless_they_are_set() -> None:
    settings = load_settings({"corpus": {"files": ["a.txt"], "language": "ro"}})
    assert settings.c4.languages == settings.tokens.languages == ["ro"]
    assert settings.vocab.language_parts == {"ro": 1}
    assert settings.tasks.names == []
    assert (settings.c4.clean.enabled, settings.c4.dedup.unit) == (False, "off")
    assert settings.c4.clean.bad_words == "off"
    changed = load_settings(
        {
            "corpus": {"files": ["a.txt"], "language": "ro", "filters": "c4"},
            "c4.languages": ["ro", "en"],
            "tasks.names": ["glue_sst2"],
        }
    )
    assert changed.c4.languages == ["ro", "en"]
    assert changed.tasks.names == ["glue_sst2"]
    assert (changed.c4.clean.enabled, changed.c4.dedup.unit) == (True, "three_sentence_span")
    assert not changed.c4.punkt_training


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ({"files": ["x/*"]}, r"corpus.files names 'x/\*', which matches no file below .*dvc pull"),
        (
            {"files": ["my_txt"]},
            r"names 'my_txt', and there is no such file or folder below .*; put it there",
        ),
        ({"files": ["b/*"]}, r"matches \['b/notes.md'\]; files of own text end in .parquet"),
        ({"files": ["../a.txt"]}, r"corpus names '../a.txt'; write a path below data.folder"),
        ({"files": ["/etc/a.txt"]}, r"names '/etc/a.txt'; write a path below data.folder"),
        (
            {"files": ["hf://datasets/a/b/*.parquet"]},
            r"names the address 'hf://.*'; allowed: hf://",
        ),
        ({"files": ["hf://datasets/a/b/../c.txt"]}, r"names the address 'hf://.*'; allowed: hf://"),
        (
            {"files": ["hf://datasets/a/b/c.zip"]},
            r"names the address .* files that end in .parquet",
        ),
        ({"files": ["hf://a/b/c.txt"]}, r"names the address 'hf://a/b/c.txt'; allowed: hf://data"),
        ({"files": ["https://x.org/a.txt"]}, r"list any other address in data.sources"),
        ({"validation_files": ["a.txt"]}, r"corpus.files is empty; name the files for training"),
        (
            {"files": ["a.txt"], "language": "en", "language_column": "l"},
            r"corpus.language is 'en' and corpus.language_column is 'l'; keep one",
        ),
        ({"files": ["a.txt"], "language": "English"}, r"'corpus.language' is 'English'"),
        ({"files": ["a.txt"], "language": ["en"]}, r"'corpus.language' is \['en'\]"),
        ({"files": ["b\0"]}, r"corpus names 'b\\x00'; write a path below data.folder"),
        ({"files": ["*.txt"]}, r"names '\*.txt', which matches no file .*\* stays within a folder"),
    ],
)
def test_wrong_files_and_languages_are_refused(
    folder: Path, corpus: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings({"data.folder": str(folder), "corpus": corpus})


@pytest.mark.parametrize(
    ("c4", "message"),
    [
        ({"engine": "spark"}, r"c4.engine is 'spark', but own text .*; use local"),
        ({"punkt_training": True}, r"c4.punkt_training is true, but Punkt is trained on the crawl"),
        ({"languages": ["de"]}, r"corpus.language is 'en', which c4.languages \['de'\] does not"),
    ],
)
def test_what_reads_the_crawl_alone_is_refused_with_own_text(
    c4: dict[str, object], message: str
) -> None:
    values = {"corpus": {"files": ["a.txt"], "language": "en"}, "c4": c4}
    if "languages" in c4:
        values |= {"tokens.languages": ["de"], "vocab.language_parts": {"de": 1}}
    with pytest.raises(SettingsError, match=message):
        load_settings(values)


def test_every_language_of_own_text_is_trained_on_unless_it_is_set() -> None:
    corpus = {"files": ["a.parquet"], "language_column": "l"}
    settings = load_settings({"corpus": corpus, "c4.languages": ["de", "en"]})
    assert settings.tokens.languages == ["de", "en"]
    assert settings.vocab.language_parts == {"de": 1, "en": 1}
    settings = load_settings({"corpus": corpus})
    assert settings.tokens.languages == settings.c4.languages == ["en", "de", "fr", "ro"]
    settings = load_settings({"corpus": corpus, "tokens.languages": ["en"]})
    assert settings.tokens.languages == ["en"]


def test_a_file_in_both_splits_is_refused() -> None:
    settings = load_settings({"corpus": {"files": ["a.txt"], "validation_files": ["a.txt"]}})
    with pytest.raises(SettingsError, match=r"both name \['a.txt'\]; a row is in one split"):
        text_files(settings.corpus, {"a.txt"})


@pytest.mark.parametrize(
    ("key", "value"),
    [("files", ["b.txt"]), ("validation_files", ["b.txt"]), ("filters", "c4"), ("language", "ro")],
)
def test_an_experiment_has_the_own_text_of_its_run(key: str, value: object) -> None:
    corpus = {"files": ["a.txt"], "language": "en"}
    for change in ({"corpus": {key: value}}, {f"corpus.{key}": value}):
        with pytest.raises(SettingsError, match=rf"'b' changes corpus.{key} from .*a run file of"):
            load_settings(
                {"corpus": corpus, "experiments": [{"name": "a"}, {"name": "b", "change": change}]}
            )


def test_an_experiment_of_a_run_on_the_crawl_may_have_its_own_text() -> None:
    change = {"corpus": {"files": ["a.txt", "hub.txt"], "language": "de"}}
    listed = {"origin": "o", "licence": "l", "files": {"hub.txt": "0" * 64}}
    experiments = [{"name": "a"}, {"name": "b", "change": change}, {"name": "c", "change": change}]
    run = load_settings({"data.sources": [listed], "experiments": experiments})
    sources = run.data.sources
    assert [source.files for source in sources] == [{"hub.txt": "0" * 64}, {"a.txt": ""}]
    assert sources[1].origin == "own text, named by corpus.files"
    crawl, own = (settings_of_experiment(run, name) for name in ("a", "b"))
    assert (crawl.corpus.files, crawl.c4.clean.enabled) == ([], True)
    assert (own.c4.clean.enabled, own.c4.dedup.unit, own.c4.punkt_training) == (False, "off", False)
    assert own.c4.languages == own.tokens.languages == ["de"]
    assert own.vocab.language_parts == {"de": 1}
    assert own.tasks == crawl.tasks
    assert RunPlan(run).nodes_of("c4") == {"a": "a", "b": "b", "c": "b"}
    assert load_settings(run.model_dump(mode="json")) == run


def test_text_of_an_experiment_that_matches_no_file_is_refused(folder: Path) -> None:
    experiments = [{"name": "a"}, {"name": "b", "change": {"corpus.files": ["none/*.txt"]}}]
    with pytest.raises(SettingsError, match=r"names 'none/\*.txt', which matches no file") as error:
        load_settings({"data.folder": str(folder), "experiments": experiments})
    assert error.value.experiment == "b"


def test_an_experiment_without_own_text_names_no_language_of_it() -> None:
    experiments = [{"name": "a"}, {"name": "b", "change": {"corpus.language": "de"}}]
    with pytest.raises(SettingsError, match="'b' changes corpus.language from '' to 'de'"):
        load_settings({"experiments": experiments})


def test_an_experiment_may_repeat_the_text_of_its_run_and_read_it_otherwise() -> None:
    corpus = {"files": ["a.txt"], "language": "en"}
    change = {"corpus": {**corpus, "documents": "line"}}
    settings = load_settings(
        {"corpus": corpus, "experiments": [{"name": "a"}, {"name": "b", "change": change}]}
    )
    assert settings_of_experiment(settings, "b").corpus.documents == "line"
    assert not settings_of_experiment(settings, "b").c4.clean.enabled


def test_a_name_with_brackets_that_exists_is_that_file_and_no_other(folder: Path) -> None:
    for name in ("train[1].jsonl", "train1.jsonl", "b/what?.txt", "b/whats.txt"):
        (folder / name).write_text("x")
    assert names(folder, "train[1].jsonl") == ["train[1].jsonl"]
    assert names(folder, "b/what?.txt") == ["b/what?.txt"]
    assert names(folder, "train[12].jsonl") == ["train1.jsonl"]  # a pattern where no file is


@pytest.mark.parametrize("name", ["a{b}.jsonl", "{node}.jsonl", "${x}.jsonl", "b/}.txt"])
def test_braces_in_a_name_are_refused_before_snakemake_reads_them(folder: Path, name: str) -> None:
    (folder / name).write_text("x")
    message = rf"'{re.escape(name)}' has .* which Snakemake takes for a wildcard; rename it"
    for files in (["."], [name]):
        with pytest.raises(SettingsError, match=message):
            load_settings({"data.folder": str(folder), "corpus": {"files": files}})
    source = {"origin": "o", "licence": "l", "files": {name: ""}}
    with pytest.raises(SettingsError, match=message):
        load_settings({"data.sources": [source]})


def test_a_line_break_in_a_name_is_refused(folder: Path) -> None:
    (folder / "a\nattested: b.txt").write_text("x")
    with pytest.raises(SettingsError, match=r"'a\\nattested: b.txt' has a line break in its name"):
        load_settings({"data.folder": str(folder), "corpus": {"files": ["."]}})


def test_a_folder_that_does_not_exist_is_named_without_a_word_on_patterns(folder: Path) -> None:
    with pytest.raises(SettingsError, match="names 'my_txt', and there is no such file or folder"):
        load_settings({"data.folder": str(folder), "corpus": {"files": ["my_txt"]}})
