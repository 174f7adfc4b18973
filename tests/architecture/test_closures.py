"""What the code of each rule may contain: its closure decides what an edit reruns."""

from pathlib import PurePosixPath

import pytest

from t5repro.lineage.sources import source_files
from t5repro.stages import STAGES

FOUNDATION = {"", "cpu_dispatch", "errors", "files", "progress", "config"}
ALLOWED = {  # rule -> parts of the package that its closure may contain
    "data_fetch": {"data"},
    "data": {"data"},
    "c4_punkt": {"data", "c4"},
    "c4_clean": {"data", "c4"},
    "corpus": {"data", "c4"},
    "c4_dedup": {"c4"},
    "c4": {"c4"},
    "vocab_sample": {"vocab", "randomness"},
    "vocab": {"vocab"},
    "tokens": {"vocab"},
    "sentences": {"c4", "vocab"},
    "pretrain": {"inputs", "model", "objectives", "randomness", "systems", "train", "vocab"},
    "preflight": {
        *("inputs", "model", "objectives", "randomness", "systems", "tasks", "train", "vocab")
    },
    "tasks": {"tasks"},
    "finetune": {
        *("inputs", "model", "objectives", "randomness", "systems", "tasks", "train", "vocab")
    },
    "evaluate_predict": {"evaluate", "model", "randomness", "systems", "vocab"},
    "evaluate_score": {"evaluate", "metrics", "randomness", "tasks"},
    "report": {
        "evaluate",
        "inputs",
        "lineage",
        "metrics",
        "model",
        "objectives",
        "randomness",
        "report",
        "stages",
        "tasks",
        "vocab",
    },
}
FORBIDDEN = {  # rule -> modules of its own packages that it must not contain
    "tokens": {"vocab/train.py", "vocab/sample.py"},
    "sentences": {"vocab/encode.py", "vocab/train.py", "c4/write.py", "c4/clean.py"},
    "pretrain": {
        "config/sections/finetune.py",
        "config/sections/tasks.py",
        "inputs/corpus_mixture.py",
        "inputs/finetuning.py",
        "train/finetune.py",
        "vocab/train.py",
    },
    "finetune": {"train/pretrain.py", "vocab/train.py"},
    "preflight": {"train/loop.py", "train/pretrain.py"},
    "evaluate_predict": {"evaluate/score.py", "vocab/train.py"},
}


def modules_of(rule: str) -> list[PurePosixPath]:
    module = next(stage.module for stage in STAGES if stage.name == rule)
    return [PurePosixPath(path).relative_to("src/t5repro") for path in source_files(module)]


def part_of(module: PurePosixPath) -> str:
    return module.parts[0].removesuffix(".py").removesuffix("__init__")


def test_every_rule_is_listed() -> None:
    assert ALLOWED.keys() == {stage.name for stage in STAGES}


@pytest.mark.parametrize("rule", ALLOWED)
def test_a_closure_contains_no_other_part_of_the_package(rule: str) -> None:
    parts = {part_of(module) for module in modules_of(rule)}
    assert parts - FOUNDATION == ALLOWED[rule]


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_a_closure_contains_no_module_of_another_rule(rule: str) -> None:
    names = {module.as_posix() for module in modules_of(rule)}
    assert names & FORBIDDEN[rule] == set()


@pytest.mark.parametrize("rule", [rule for rule in ALLOWED if rule != "report"])
def test_a_closure_contains_the_sections_of_settings_that_it_receives_and_not_all(
    rule: str,
) -> None:
    names = {module.as_posix() for module in modules_of(rule)}
    assert not names & {"config/schema.py", "config/load.py", "config/stage_settings.py"}


READING = {"c4/wet/pages.py", "c4/wet/reader.py", "c4/wet/url_filter.py", "data/crawl_lists.py"}
DECIDING = {"c4/deduplicate.py", "c4/dedup/duplicates.py", "c4/dedup/key_rows.py"}
WRITING = {"c4/write.py", "c4/page_filter.py", "c4/page_counts.py", "c4/dedup/shorten.py"}
REMOVALS = {"c4/dedup/removals.py"}
BAD_WORDS = {"c4/text/bad_words.py"}
SENTENCES = {"c4/text/sentences.py"}


@pytest.mark.parametrize(
    ("rule", "required", "forbidden"),
    [
        ("data", {"data/check.py"}, {"data/fetch.py", *READING}),
        ("c4_punkt", READING, {"c4/clean.py", "c4/tables.py", *DECIDING, *REMOVALS, *WRITING}),
        ("c4_clean", {"c4/dedup/spans.py", *READING}, {*DECIDING, *REMOVALS, *WRITING}),
        ("corpus", {"c4/own_text/rows.py"}, {*DECIDING, *REMOVALS, *WRITING}),
        (
            "c4_dedup",
            {*DECIDING, *REMOVALS},
            {"c4/clean.py", *READING, *BAD_WORDS, *SENTENCES, *WRITING},
        ),
        ("c4", {*REMOVALS, *WRITING, *BAD_WORDS}, {"c4/clean.py", *READING, *DECIDING}),
    ],
)
def test_a_rule_of_the_corpus_runs_its_own_code_only(
    rule: str, required: set[str], forbidden: set[str]
) -> None:
    files = {module.as_posix() for module in modules_of(rule)}
    assert required <= files
    assert forbidden & files == set()
    assert not any(name.startswith("c4/spark/") for name in files)
