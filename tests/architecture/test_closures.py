"""What the code of each rule may contain: its closure decides what an edit reruns."""

import ast
from pathlib import Path, PurePosixPath

import pytest
from checkout import ROOT

from t5repro.lineage.sources import source_files
from t5repro.stages import STAGES

FOUNDATION = {"", "cpu_dispatch", "errors", "files", "progress", "config"}
TASKS = {"task_facts", "task_table"}
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
    "pretrain": {"inputs", "model", "objectives", "randomness", "train", "vocab"},
    "preflight": {"model", "randomness", "train", "vocab", *TASKS},
    "tasks": {"tasks", *TASKS},
    "finetune": {"inputs", "model", "objectives", "randomness", "tasks", "train", "vocab", *TASKS},
    "evaluate_predict": {"evaluate", "model", "randomness", "vocab", *TASKS},
    "evaluate_score": {"evaluate", "metrics", "randomness", "tasks", *TASKS},
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
        *TASKS,
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


SOURCES = ROOT / "src" / "t5repro"
TABLE = "t5repro.task_table"
# Of a new row only these jobs are stale: `preflight` asks for the kinds of answers before there are
# examples, the others have averages of benchmarks and titles. Trainings and predictions of weeks
# look facts up in constants that do not reach the rows.
REACH_THE_ROWS = {"preflight", "evaluate_score", "report"}


def definitions_with_rows() -> set[str]:
    """Return the top-level names of the table of tasks that reach all of its rows."""
    tree = ast.parse((SOURCES / "task_table.py").read_text(encoding="utf-8"))
    reaching = {"TASKS"}
    for _ in tree.body:  # one definition is added at least, or all are known
        for statement in tree.body:
            names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            if isinstance(statement, ast.FunctionDef):
                names.add(statement.name)
            if isinstance(statement, ast.FunctionDef | ast.Assign | ast.AnnAssign):
                reaching |= names & defined_in(statement) if names & reaching else set()
    return reaching


def defined_in(statement: ast.FunctionDef | ast.Assign | ast.AnnAssign) -> set[str]:
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def imported_of_the_table(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == TABLE]
    return {alias.name for node in imports for alias in node.names}


def test_the_rows_of_tasks_are_code_of_no_training_and_no_prediction() -> None:
    with_rows = definitions_with_rows()
    assert {"TASKS", "BY_NAME", "facts_of"} <= with_rows
    assert not with_rows & {"SIMILARITY_TASKS", "ANSWERED_AS", "RELEASED_GROUPS", "DEFAULT_TASKS"}
    reaching = {
        stage.name
        for stage in STAGES
        if any(
            imported_of_the_table(SOURCES / module) & with_rows
            for module in modules_of(stage.name)
            if module.suffix == ".py"
        )
    }
    assert reaching == REACH_THE_ROWS


def test_pretraining_knows_no_task() -> None:
    names = {module.as_posix() for module in modules_of("pretrain")}
    assert not names & {"task_table.py", "task_facts.py", "config/known_tasks.py"}
