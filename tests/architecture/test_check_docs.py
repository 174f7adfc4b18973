"""The check of documents names what does not exist, and accepts what exists."""

import pytest
from check_docs.__main__ import ALLOWED, Fault, check
from check_docs.tree import Tree
from checkout import ROOT


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree.of(ROOT)


def names_of(tree: Tree, text: str, path: str = "docs/page.md") -> list[tuple[str, str]]:
    return [(fault.kind, fault.name) for fault in check(tree, path, text)]


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("see `src/t5repro/nowhere.py`", "file", "src/t5repro/nowhere.py"),
        ("see `config/nowhere.py`", "file", "config/nowhere.py"),
        ("see nowhere.py in prose", "file", "nowhere.py"),
        ("see `docs/nowhere.md`", "file", "docs/nowhere.md"),
        ("see `configs/*.toml`", "file", "configs/*.toml"),
        ("see `docs/NOWHERE.md`", "file", "docs/NOWHERE.md"),
        ("see `lineage/nowhere`", "file", "lineage/nowhere"),
        ("see `results/<run>/nowhere/<node>/`", "rule", "nowhere"),
        ("see [page](nowhere.md)", "file", "nowhere.md"),
        ("see [page](settings.md#nothing)", "anchor", "settings.md#nothing"),
        ("see t5repro.config.nowhere", "module", "t5repro.config.nowhere"),
        ("see `t5repro.errors.NoError`", "module", "t5repro.errors.NoError"),
        ("see `inputs.nowhere`", "module", "inputs.nowhere"),
        ("set `finetune.learnig_rate`", "setting", "finetune.learnig_rate"),
        ("set `c4.nothing.*`", "setting", "c4.nothing.*"),
        ("set `devices.kind: abacus`", "value of devices.kind:", "abacus"),
        ("```yaml\nvocab: {vocab_sise: 9}\n```", "setting", "vocab.vocab_sise"),
        (
            "```yaml\nexperiments:\n  - name: a\n    change: {pretrain.stepps: 0}\n```",
            "setting",
            "pretrain.stepps",
        ),
        ("run `t5repro pretrian`", "subcommand", "pretrian"),
        ("run `t5repro verify --deeper`", "option", "--deeper"),
        ("with `--deeper`", "option", "--deeper"),
        ("```\nt5repro export x \\\n  --format nothing\n```", "value of --format:", "nothing"),
        ("```console\n$ make nothing\nprinted\n```", "make target", "nothing"),
        ("run `make test WORKER=1`", "make variable", "WORKER"),
        ("run `snakemake --profile nothing`", "profile", "nothing"),
        ("run `snakemake --dry-runn`", "option", "--dry-runn"),
        ("run `snakemake -n pretrian`", "rule", "pretrian"),
        ("run `snakemake --configfile configs/no.yaml`", "file", "configs/no.yaml"),
        ("run `snakemake --config 'finetune={stepps: 1}'`", "setting", "finetune.stepps"),
        ("run `python benchmarks/nothing.py`", "file", "benchmarks/nothing.py"),
        ("run `python benchmarks/training.py --nothing`", "option", "--nothing"),
        ("decided in D-999", "decision", "D-999"),
        ("held by `test_that_nobody_wrote`", "test", "test_that_nobody_wrote"),
    ],
)
def test_a_made_up_name_is_named(tree: Tree, text: str, kind: str, name: str) -> None:
    assert (kind, name) in names_of(tree, text)


@pytest.mark.parametrize(
    "text",
    [
        "see `src/t5repro/errors.py`, `config/load.py`, load.py, `docs/` and `configs/*.yaml`",
        "see `results/<run>/pretrain/<node>/` and `records/RUN/c4_clean/`",
        "see [settings](settings.md) and [text](https://example.org/nowhere.md)",
        "see t5repro.errors.SettingsError and `config.setting_names.leaves`",
        "set `finetune.learning_rate.*`, `devices.kind: cpu`, `tasks.files.squad.train`",
        "```yaml\ndata: {folder: my_data}\nfinetune.steps: 3\n```",
        "run `t5repro verify --deep`, `make demo`, `make test WORKERS=1`, `dvc pull --anything`",
        "run `snakemake --profile local -n --config 'finetune={steps: 100}' 'seed=1'`",
        "run `PYTHONHASHSEED=0 python -m t5repro verify`",
        "decided in D-001",
        "artifacts: `scores.json`, `train.ids`, `model.safetensors`",
    ],
)
def test_a_name_that_exists_is_accepted(tree: Tree, text: str) -> None:
    assert names_of(tree, text) == []


def test_a_fault_gives_file_line_and_the_nearest_name(tree: Tree) -> None:
    fault, *more = check(tree, "docs/page.md", "One line.\n\nSet `finetune.learnig_rate`.\n")
    assert more == []
    assert str(fault) == (
        "docs/page.md:3: no setting 'finetune.learnig_rate'; nearest: 'finetune.learning_rate'"
    )


def test_docstrings_comments_and_messages_of_the_package_are_read(tree: Tree) -> None:
    text = '"""See `config/nowhere.py`."""\nx = "run `t5repro nothing`"  # as docs/nothing.md\n'
    assert [(fault.line, fault.name) for fault in check(tree, "src/t5repro/x.py", text)] == [
        (1, "config/nowhere.py"),
        (2, "nothing"),
        (2, "docs/nothing.md"),
    ]
    assert [fault.line for fault in check(tree, "tests/test_x.py", text)] == [1, 2]


def test_the_docstring_of_a_package_names_its_modules(tree: Tree) -> None:
    text = '"""Lineage: `trace`, `Graph`, `c4`, `pretrain`, `nothing`."""\n'
    assert names_of(tree, text, "src/t5repro/lineage/__init__.py") == [("module", "nothing")]


def test_a_cure_in_a_message_is_a_command(tree: Tree) -> None:
    text = 'raise Error(f"{path} is missing; run t5repro " "nothing now, or make nothing")\n'
    assert names_of(tree, text, "src/t5repro/x.py") == [("subcommand", "nothing")]


def test_the_source_of_a_docstring_may_name_the_released_code(tree: Tree) -> None:
    assert names_of(tree, '"""Count.\n\nSource: `metrics.bleu`, `c4.no`.\n"""\n', "src/x.py") == []


def test_the_head_of_a_rule_file_is_read(tree: Tree) -> None:
    text = '"""\nREADS  results/{run}/nowhere/x\nCODE   src/t5repro/nowhere/\n"""\n# see c4.py\n'
    names = {fault.name for fault in check(tree, "workflow/rules/x.smk", text)}
    assert "src/t5repro/nowhere/" in names


def test_released_sections_of_the_changelog_are_history(tree: Tree) -> None:
    text = "## [Unreleased]\n\n`docs/a.md`\n\n## [0.1.0]\n\n`docs/b.md`\n"
    assert [fault.name for fault in check(tree, "CHANGELOG.md", text)] == ["docs/a.md"]


def test_every_allowed_name_has_a_reason() -> None:
    assert all(reason for reason in ALLOWED.values())
    assert str(Fault("a", 1, "file", "b")) == "a:1: no file 'b'"
