"""What the code of each rule may contain: its closure decides what an edit reruns.

The closure follows names (`lineage/reach.py`). What names cannot show is refused here.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

import pytest

from t5repro.lineage.sources import PACKAGE, SourceTree, closure
from t5repro.lineage.syntax import SourceFacts, facts_of
from t5repro.stages import STAGES

FOUNDATION = {
    "jobs",
    "",
    "array_types",
    "artifacts",
    "cpu_dispatch",
    "errors",
    "file_forms",
    "files",
    "progress",
    "config",
    "strict_json",
}
TASKS = {"task_facts", "task_groups", "task_table"}
TRAINING = {
    *("engines", "inputs", "model", "objectives", "randomness", "systems", "train", "vocab")
}
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
    "pretrain": {*TRAINING},
    "preflight": {*TRAINING, "tasks", *TASKS},
    "tasks": {"data", "tasks", "task_facts"},
    "finetune": {*TRAINING, "tasks", "task_facts", "task_groups"},
    "evaluate_predict": {
        "engines",
        "evaluate",
        "model",
        "randomness",
        "systems",
        "task_facts",
        "task_groups",
        "vocab",
    },
    "evaluate_score": {"data", "evaluate", "metrics", "randomness", "tasks", *TASKS},
    "contamination": {"contamination", "data", "tasks", "task_facts", "task_groups", "vocab"},
    "report": {
        "contamination",
        "data",
        "evaluate",
        "inputs",
        "lineage",
        "metrics",
        "objectives",
        "published",
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


@cache
def modules_of(rule: str) -> list[PurePosixPath]:
    return [PurePosixPath(path).relative_to("src/t5repro") for path in closure(rule)]


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


COMPUTED = {"import_module", "__import__", "eval", "exec", "globals", "__subclasses__"}
COMPUTES_NAMES = {  # module -> why no closure misses what it names
    "__init__.py": "the public names of `import t5repro`, which no rule uses",
    "cli/stages.py": "calls the entry module, whose definitions all count",
    "config/descriptions.py": "help texts of settings, for generated files",
    "config/stage_settings.py": "the settings that a job receives, which are in its manifest",
    "train/loggers.py": "loggers of the user, which change no result",
}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def called_name(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_names_are_computed_only_where_no_closure_needs_them() -> None:
    names = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called_name(node) in COMPUTED
    }
    assert names == COMPUTES_NAMES.keys()


def called_at_import(tree: ast.Module) -> set[str]:
    """Return the names of the callables that the assignments of a module call."""
    return {
        called_name(node)
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    }


def changes_more_than_its_names(function: ast.FunctionDef, names: set[str]) -> bool:
    """Return whether a function may change a value of its module."""
    return any(
        isinstance(node, ast.Global)
        or (
            isinstance(node, ast.Expr)
            and called_name(getattr(node.value, "func", node)) == "setattr"
        )
        or (
            isinstance(node, ast.Attribute | ast.Subscript)
            and isinstance(node.ctx, ast.Store | ast.Del)
            and isinstance(node.value, ast.Name)
            and node.value.id in names
        )
        for node in ast.walk(function)
    )


def names_in(tree: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}


def local_names(function: ast.FunctionDef) -> set[str]:
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return names_in(function, ast.Store) | arguments


def test_functions_that_make_the_values_of_a_module_change_nothing() -> None:
    called = set().union(*(called_at_import(tree) for _, tree in trees()))
    faults = [
        f"{name}: {node.name}"
        for name, tree in trees()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in called
        if changes_more_than_its_names(node, names_in(tree) - local_names(node))
    ]
    assert faults == []


# Of a new row only these jobs are stale: `preflight` asks for the kinds of answers before there are
# examples, the others have averages of benchmarks and titles. Trainings and predictions of weeks
# look facts up in constants that do not reach the rows.
REACH_THE_ROWS = {"preflight", "evaluate_score", "report"}
ROWS = "TASKS: tuple[TaskFacts, ...] = ("


def test_a_new_row_of_the_table_of_tasks_reruns_no_training_and_no_prediction() -> None:
    def with_row(text: str, name: str) -> SourceFacts:
        if name.endswith("/task_table.py"):
            assert ROWS in text
            text = text.replace(ROWS, f'{ROWS}\n    TaskFacts("new", "New"),')
        return facts_of(text, name)

    before, after = SourceTree(), SourceTree(with_row)
    rules = [stage.name for stage in STAGES]
    assert {rule for rule in rules if before.closure(rule) != after.closure(rule)} == REACH_THE_ROWS


def test_pretraining_knows_no_task() -> None:
    names = {module.as_posix() for module in modules_of("pretrain")}
    assert not names & {"task_table.py", "task_facts.py", "config/known_tasks.py"}
