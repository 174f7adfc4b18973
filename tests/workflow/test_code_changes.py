"""Which rules run again after an edit of the code, by Snakemake's own plan."""

import re
import shutil
from pathlib import Path

import pytest
from clones import SMALL, copy_clone, snakemake

from t5repro.lineage.record import read_record
from t5repro.stages import STAGES

pytestmark = pytest.mark.workflow
PACKAGE = "src/t5repro"
SCORES = {"evaluate_score", "report"}
EFFECT = "print"  # a statement that does nothing here, and might do something elsewhere
NOT_PLANNED = {"data_fetch", "preflight", "corpus", "sentences"}  # not in the small run
REASON = re.compile(r"^ *reason: Updated input files: (.*)$", flags=re.MULTILINE)
DOCSTRING = re.compile(r'^( *)"""(?=[A-Z])', flags=re.MULTILINE)


@pytest.fixture
def checkout(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished clone that a test may edit."""
    return copy_clone(finished, tmp_path / "clone")


def planned(checkout: Path) -> set[str]:
    ran = snakemake(checkout, "-n", "--quiet", "rules", config=SMALL)
    assert ran.returncode == 0, ran.stdout
    words = (line.split() for line in ran.stdout.splitlines())
    rules = {row[0] for row in words if len(row) == 2 and row[1].isdigit()}
    return rules - {"total", "all"}


def reword(checkout: Path, module: str) -> None:
    """Change every docstring and setting's meaning of a module, and add a comment."""
    path = checkout / PACKAGE / module
    text, count = DOCSTRING.subn(r'\1"""Reworded: ', path.read_text(encoding="utf-8"))
    assert count
    path.write_text(f"# A comment.\n\n{text}", encoding="utf-8")


def append(checkout: Path, module: str) -> None:
    path = checkout / PACKAGE / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n\n{EFFECT}\n", encoding="utf-8")


def test_rewording_a_help_text_a_docstring_or_a_comment_reruns_nothing(checkout: Path) -> None:
    assert planned(checkout) == set()
    for module in ("config/sections/c4.py", "config/schema.py", "c4/clean.py", "files.py"):
        reword(checkout, module)
    assert planned(checkout) == set()


def test_an_edit_of_each_rule_plans_it_for_the_edit(checkout: Path) -> None:
    # From the last rule to the first: the rules that are edited already depend on the next one, and
    # nothing that it reads is to be made again.
    for stage in reversed(STAGES):
        if stage.name not in NOT_PLANNED:
            append(checkout, f"{stage.module.replace('.', '/')}.py")
            ran = snakemake(checkout, "-n", config=SMALL)
            reasons = [path for line in REASON.findall(ran.stdout) for path in line.split(", ")]
            assert f"configs/resolved/code/{stage.name}.json" in reasons, stage.name


def test_a_definition_that_no_rule_reaches_reruns_nothing(checkout: Path) -> None:
    for module in ("files.py", "vocab/vocabulary.py", "config/sections/model.py"):
        path = checkout / PACKAGE / module
        unused = "\n\ndef never_called() -> int:\n    return 1\n"
        path.write_text(path.read_text(encoding="utf-8") + unused, encoding="utf-8")
    assert planned(checkout) == set()


def test_results_that_a_failed_rerun_deleted_are_made_again(checkout: Path) -> None:
    shutil.rmtree(checkout / "results/demo/finetune/baseline")
    assert planned(checkout) == {"finetune", "evaluate_predict", *SCORES}


def test_an_edit_of_a_metric_reruns_scores_and_report_only(checkout: Path) -> None:
    append(checkout, "metrics/classification.py")
    append(checkout, "metrics/__init__.py")
    assert planned(checkout) == SCORES


def test_an_edit_of_the_corpus_writer_does_not_rerun_cleaning(checkout: Path) -> None:
    append(checkout, "c4/write.py")
    rules = planned(checkout)
    assert "c4" in rules
    assert not rules & {"c4_punkt", "c4_clean", "c4_dedup"}


def test_an_edit_of_the_vocabulary_trainer_reruns_tokens_only_if_the_vocabulary_changes(
    checkout: Path,
) -> None:
    append(checkout, "vocab/train.py")
    assert "vocab" in planned(checkout)
    ran = snakemake(checkout, "stage_vocab", config=SMALL)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert planned(checkout) == set()  # the same vocabulary: nothing that reads it runs again


def test_an_edit_of_the_division_of_the_crawl_reruns_both_stages_that_divide_it(
    checkout: Path,
) -> None:
    append(checkout, "data/crawl_lists.py")
    assert planned(checkout) >= {"c4_punkt", "c4_clean"}
    ran = snakemake(checkout, "stage_c4_punkt", config=SMALL)
    assert ran.returncode == 0, ran.stdout[-4000:]
    records = checkout / "records/demo"
    for path in (records / "c4_punkt/baseline.json", *(records / "c4_clean/baseline").glob("*")):
        assert f"{PACKAGE}/data/crawl_lists.py" in read_record(path).start.code


def test_an_edit_of_one_tasks_definition_leaves_the_corpus_alone(checkout: Path) -> None:
    append(checkout, "tasks/glue.py")
    assert not planned(checkout) & {
        "c4_punkt",
        "c4_clean",
        "c4_dedup",
        "c4",
        "vocab_sample",
        "vocab",
        "tokens",
        "pretrain",
    }
