"""The table of stages agrees with the rules, with Snakemake's graph and with the settings."""

import re
from pathlib import PurePosixPath

import pytest
from checkout import ROOT

from t5repro.config.stage_settings import stage_model
from t5repro.lineage.sources import PACKAGE
from t5repro.stages import BY_NAME, STAGES, VERSIONED, ancestors, depends_on_device, stage_of_rule
from t5repro.versions.snakemake_graph import resolve

RULES = {
    name
    for path in (ROOT / "workflow" / "rules").glob("*.smk")
    for name in re.findall(
        r"^(?: *rule |.* in forms_of\(\")(\w+)", path.read_text(), flags=re.MULTILINE
    )
}


def test_every_rule_has_a_row_and_every_row_a_rule() -> None:
    assert {stage.name for stage in STAGES} == RULES | {"tasks"}  # tasks: a rule per task


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_row_names_an_entry_module_and_settings_that_exist(stage) -> None:
    assert (PACKAGE / f"{stage.module.replace('.', '/')}.py").is_file()
    assert stage_model(stage.name).model_fields
    assert set(stage.upstream) <= BY_NAME.keys()


@pytest.mark.workflow
def test_the_table_has_the_edges_of_the_graph_that_snakemake_builds(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    _, jobs = resolve()
    owner = {job.folder: job.table_name for job in jobs}
    edges: dict[str, set[str]] = {}
    for job in jobs:
        folders = {PurePosixPath(path).parent.as_posix() for path in job.inputs}
        edges.setdefault(job.table_name, set()).update(
            owner[name] for name in folders if name in owner
        )
    # The demo's corpus comes from the crawl, and none of its experiments needs sentences.
    built = set(VERSIONED) - {"corpus", "sentences"}
    assert edges.keys() == built
    for name, upstream in edges.items():
        if name == "report":  # its lineage page reads the manifest of every job
            assert upstream == built - {"report"}
            continue
        # Corpus rows in the mixture are an option of fine-tuning that the demo does not use.
        assert upstream - set(BY_NAME[name].upstream) == set(), name
        assert set(ancestors(name)) >= upstream
        missing = set(BY_NAME[name].upstream) - upstream
        assert missing <= {"data", "tokens", "corpus", "sentences"}, name


def test_what_a_device_computes_reaches_everything_after_it() -> None:
    assert {name for name in VERSIONED if depends_on_device(name)} == {
        "pretrain",
        "finetune",
        "evaluate_predict",
        "evaluate_score",
        "report",
    }


def test_a_rule_of_one_task_belongs_to_the_stage_tasks() -> None:
    assert stage_of_rule("tasks_glue_cola") is BY_NAME["tasks"]
    assert stage_of_rule("all") is None
