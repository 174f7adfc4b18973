"""The plan is the graph that Snakemake builds: the same jobs, files and settings."""

import copy
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT

from t5repro.plan.inputs import watched
from t5repro.plan.outputs import EARLIER
from t5repro.plan.run_plan import Job, RunPlan
from t5repro.versions.snakemake_graph import planned, stage_name, stages_of_plan

pytestmark = pytest.mark.workflow

NOT_PLANNED = {"all", "data_fetch", "preflight"}  # no nodes: targets, a transfer, a check
GROUPS = {
    "glue": {"tasks.names": ["glue_sst2", "glue_rte"]},
    "boolq": {"tasks.names": ["super_glue_boolq"], "finetune.steps": 40},
}
KEPT = {"finetune.keep_checkpoints": "all", "finetune.checkpoint_every_steps": 50}
GIVEN = {"pretrain.start_from": "m", "pretrain.steps": 0, "vocab.model_file": "m/spiece.model"}
TEXT = ("text/a.txt", "text/b.jsonl")
PUNKT = tuple(
    f"punkt/en/{name}"
    for name in ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")
)
OWN_TASK = {
    "mine": {
        "files": {"train": ["mine/train.tsv"], "validation": ["mine/dev.tsv"]},
        "fields": ["text"],
        "target": "label",
        "metrics": ["accuracy"],
    }
}


def experiments(**changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "change": change} for name, change in changes.items()]


RUNS: dict[str, dict[str, Any]] = {
    "demo": {},
    "groups, kept checkpoints, continued trainings and ensembles": {
        "experiments": experiments(
            a={"evaluate.checkpoints": "all", **KEPT},
            grouped={"finetune.groups": GROUPS},
            seed={"finetune.groups": GROUPS, "seed": 3},
            then={"finetune.start_from": "a", "finetune.groups": GROUPS},
            b={"finetune.batch_size": 2},
            c={"finetune.batch_size": 6},
            both={"evaluate.ensemble": ["b", "c"]},
        )
    },
    "phases of pre-training": {
        "experiments": experiments(
            a={},
            b={"pretrain.from_experiment": "a", "seed": 1, "finetune.groups": GROUPS},
            c={"pretrain.from_experiment": "b", "pretrain.steps": 3},
            bert={"use": ["systems/bert"]},
            longer={"use": ["systems/bert"], "pretrain.from_experiment": "bert"},
        ),
        "tasks": {"segments": True},
    },
    "systems, corpus in the mixture, slices, samples": {
        "experiments": experiments(
            a={"finetune.corpus_examples": 7},
            bert={"use": ["systems/bert"]},
            gpt={"use": ["systems/gpt"]},
            slice={"devices.slice": "v5e:4x4", "devices.kind": "tpu"},
        ),
        "run": {"samples": {"every_steps": 2}},
        "tasks": {"segments": True},
    },
    # Its first experiment gives its name to nodes of the corpus that only the second one reads.
    "given weights": {
        "experiments": experiments(
            given=GIVEN, trained={}, continued={"pretrain.start_from": "m", "seed": 9}
        ),
        "files": ["m/spiece.model", "m/model.safetensors"],
    },
    "own text": {
        "experiments": experiments(a={}, b={"pretrain.steps": 3}),
        "files": TEXT,
        "corpus": {"files": [TEXT[0]], "validation_files": [TEXT[1]], "filters": "c4"},
        "tasks": {"names": []},
    },
    "own text of an experiment, another's vocabulary": {
        "experiments": experiments(
            a={},
            b={"corpus.files": list(TEXT)},
            c={"corpus.files": list(TEXT), "vocab.from_experiment": "a"},
        ),
        "files": TEXT,
    },
    "a list of paths, given Punkt parameters, selected pages, own tasks": {
        "experiments": experiments(
            a={},
            selected={
                "c4.select.domains": "lists/realnews_domains.json",
                "c4.select.urls": "lists/openwebtext_urls.txt",
            },
            untrained={"c4.punkt_training": False, "evaluate.split": "test"},
        ),
        "files": ["crawl/wet.paths", *PUNKT, "tasks/mine/train.tsv", "tasks/mine/dev.tsv"],
        "c4": {"crawl_paths": "crawl/wet.paths", "punkt_parameters": {"en": "punkt/en"}},
        "tasks": {"names": ["glue_cola", "mine"], "own": OWN_TASK},
    },
    "parts and withdrawn files": {
        "experiments": experiments(a={}),
        "c4": {"clean_parts": 3, "output_shards": 2},
        "withdrawn": {"crawl/MINI-2019-18-00002.warc.wet.gz": "x", "tasks/glue/CoLA/dev.tsv": "y"},
    },
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("workflow", "configs", "withdrawn"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_run(project: Path, changes: dict[str, Any]) -> Path:
    """Write the run file of a changed demo; all of its raw files are still to be fetched."""
    values = yaml.safe_load((project / "configs/demo.yaml").read_text(encoding="utf-8"))
    changes = copy.deepcopy(changes)
    values["data"] |= {"source": "", "download": True}
    files = dict.fromkeys(changes.pop("files", []), "")
    entry = {"origin": "https://example.org/x", "licence": "none", "files": files}
    values["data"]["sources"] += [entry] if files else []
    if withdrawn := changes.pop("withdrawn", None):
        (project / "withdrawn/files.yaml").write_text(yaml.safe_dump({"files": withdrawn}))
    for section, leaves in changes.items():
        merged = isinstance(leaves, dict) and section in values
        values[section] = {**values[section], **leaves} if merged else leaves
    run_file = project / "run.yaml"
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return run_file


def by_role(files: Any) -> dict[str, list[str]]:
    """Return role -> files of the inputs or outputs of a job of Snakemake."""
    return {
        role: [str(path) for path in files[start : start + 1 if end is None else end]]
        for role, (start, end) in files._get_names()
        if role != "code"
    }


def named_inputs(command: str) -> set[str]:
    """Return the roles of inputs that a command line names."""
    return set(re.findall(r"\{input\.(\w+)", command))


def assert_attested(job: Job, named: set[str], owners: dict[str, str]) -> None:
    """Assert that a manifest that a job watches lists each file that it does not watch.

    Args:
        job: the job.
        named: roles that its command line names.
        owners: file that a rule writes, or raw file -> the manifest that lists it.
    """
    kept = watched(job.inputs)
    seen = {path for paths in kept.values() for path in paths}
    assert named <= kept.keys(), job.rule
    for role in job.inputs.keys() - kept.keys():
        assert {owners[path] for path in job.inputs[role]} <= seen, (job.rule, role)


@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS.keys())
def test_the_plan_has_the_jobs_that_snakemake_plans(project: Path, changes: dict[str, Any]) -> None:
    run_file = write_run(project, changes)
    plan = RunPlan.of_run_file(run_file)
    jobs: dict[tuple[str, str], Job] = {
        (job.rule, job.log): job for node in plan.nodes for job in plan.jobs(*node.key)
    }
    owners = {
        path: job.outputs["manifest"][0]
        for job in jobs.values()
        for paths in [*job.outputs.values(), *(job.inputs.values() if job.rule == "data" else ())]
        for path in paths
    }
    with planned(run_file) as workflow:
        built = [job for job in workflow.dag.jobs if job.rule.name not in NOT_PLANNED]
        assert {(job.rule.name, str(job.log[0])) for job in built} == set(jobs)
        for job in built:
            expected = jobs[job.rule.name, str(job.log[0])]
            assert by_role(job.input) == watched(expected.inputs), job
            assert_attested(expected, named_inputs(job.rule.shellcmd), owners)
            # The manifest stands for what earlier steps left.
            declared = {role: [] if role == EARLIER else p for role, p in expected.outputs.items()}
            assert by_role(job.output) == declared, job
            assert job.params.settings == expected.settings
        targets = {rule.name: sorted(map(str, rule.input)) for rule in workflow.rules}
        for name, manifests in plan.targets.items():
            assert targets[f"stage_{name}"] == sorted(manifests)
        stages = stages_of_plan(plan)
        assert {stage.name for stage in stages} == {stage_name(job) for job in built}
        assert len({stage.folder for stage in stages}) == len(stages)


def test_a_later_run_file_replaces_groups_of_tasks_as_a_whole(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    apart = {name: {"tasks.names": [name]} for name in ("glue_rte", "glue_sst2")}
    first = write_run(project, {"tasks": {"names": [*apart]}, "finetune": {"groups": apart}})
    second = first.with_name("second.yaml")
    second.write_text("finetune: {groups: {both: {tasks.names: [glue_rte, glue_sst2]}}}")
    plan = RunPlan.of_run_file(first, second)
    expected = {job.log for node in plan.nodes for job in plan.jobs(*node.key)}
    trained = {node.key.node for node in plan.nodes if node.key.rule == "finetune"}
    assert {name.rpartition("_")[2] for name in trained} == {"both"}
    with planned(first, second) as workflow:
        built = [job for job in workflow.dag.jobs if job.rule.name not in NOT_PLANNED]
    assert {str(job.log[0]) for job in built} == expected


def test_a_lost_file_that_a_manifest_stands_for_is_asked_for_until_its_reader_has_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    run_file = write_run(project, {})
    plan = RunPlan.of_run_file(run_file)
    reader = next(node.key for node in plan.nodes if node.key.rule == "pretrain")
    ids = plan.inputs(*reader)["ids"]
    touch_outputs(plan)
    assert RunPlan.of_run_file(run_file).lost == {}
    Path(ids[0]).unlink()
    assert RunPlan.of_run_file(run_file).lost == {}  # the training has read it
    Path(plan.jobs(*reader)[0].outputs["manifest"][0]).unlink()
    assert RunPlan.of_run_file(run_file).lost == {reader: [ids[0]]}
    with planned(run_file) as workflow:
        assert "tokens" in {job.rule.name for job in workflow.dag.needrun_jobs()}


def test_lost_predictions_of_an_earlier_step_are_made_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    kept = {"evaluate.checkpoints": "all", **KEPT}
    run_file = write_run(project, {"experiments": experiments(kept=kept)})
    plan = RunPlan.of_run_file(run_file)
    (predicting, *_) = (node.key for node in plan.nodes if node.key.rule == "evaluate_predict")
    reader = next(node.key for node in plan.nodes if predicting in node.upstream)
    touch_outputs(plan)
    earlier = plan.outputs(*predicting)[EARLIER][0]
    Path(earlier).unlink()
    Path(plan.outputs(*reader)["manifest"][0]).unlink()
    with planned(run_file) as workflow:
        again = [job for job in workflow.dag.needrun_jobs() if earlier in map(str, job.output)]
    assert [job.rule.name for job in again] == ["evaluate_predict"]


def touch_outputs(plan: RunPlan) -> None:
    """Make an empty file for each output of each job."""
    for node in plan.nodes:
        for job in plan.jobs(*node.key):
            for path in (path for paths in job.outputs.values() for path in paths):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).touch()


def test_a_node_reads_what_its_jobs_read(project: Path) -> None:
    for changes in RUNS.values():
        plan = RunPlan.of_run_file(write_run(project, changes))
        data = f"{plan.settings.data.folder}/"
        folders = {
            Path(job.outputs["manifest"][0]).parent: node.key
            for node in plan.nodes
            for job in plan.jobs(*node.key)
        }
        for node in plan.nodes:
            paths = {p for job in plan.jobs(*node.key) for ps in job.inputs.values() for p in ps}
            read = {
                ("data", "") if path.startswith(data) else folders.get(Path(path).parent)
                for path in paths
            }
            # Weights of kept checkpoints are in folders of their own, beside those of the last.
            read -= {None, node.key}
            # Not every task has the split that a node reads.
            without_split = {key for key in node.upstream if key.rule == "tasks"} - read
            assert read == set(node.upstream) - without_split, node.label
