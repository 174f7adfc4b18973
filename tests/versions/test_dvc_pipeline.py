"""dvc.yaml agrees with the graph, leaf by leaf, and avoids what DVC handles wrongly."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from checkout import ROOT
from dvc.repo import Repo

from t5repro.config.load import load_run_file
from t5repro.errors import ArtifactError, SettingsError
from t5repro.lineage.dvc_lock import read_lock
from t5repro.plan.nodes import Key
from t5repro.versions import dvc_pipeline, lock_check
from t5repro.versions.dvc_pipeline import (
    SETTINGS_STAGE,
    VersionedRun,
    leaves_of,
    pipeline_text,
    reproducibility,
    resolved_text,
    settings_of_stage,
    versioned_run,
)
from t5repro.versions.lock_check import lock_faults
from t5repro.versions.snakemake_graph import (
    PlannedJob,
    PlannedStage,
    planned,
    resolve,
    stages_of_plan,
)
from t5repro.versions.stage_dependencies import folder_contents

RUN_FILE = Path("configs/demo.yaml")


@pytest.fixture(scope="module")
def pipeline() -> dict[str, dict[str, object]]:
    return yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("T5REPRO_PLANNING", "1")


def stage(name: str = "vocab-baseline", *jobs: PlannedJob) -> PlannedStage:
    rule, _, node = name.partition("-")
    return PlannedStage(name, rule, node, f"results/demo/{rule}/{node}", jobs)


def test_the_committed_files_are_what_the_graph_says() -> None:
    assert dvc_pipeline.drifted() == [], "cure: t5repro config generate"


def test_a_lock_of_other_code_is_named_with_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, name, code = read_lock(), "tokens-baseline", "configs/resolved/code/tokens.json"
    faults = lock_faults()  # of an edited tree that is not sealed yet
    older = replace(lock.stages[name], deps={**lock.stages[name].deps, code: "0" * 32})
    stages = {**lock.stages, name: older}
    monkeypatch.setattr(lock_check, "read_lock", lambda: replace(lock, stages=stages))
    (fault,) = (fault for fault in lock_faults() if fault not in faults)
    assert fault.startswith(f"dvc.lock: {name}: code {code} is 000000000000 as sealed, ")


def test_there_is_one_stage_for_each_rule_and_node(pipeline: dict[str, dict[str, object]]) -> None:
    names = set(pipeline)
    assert {"data", "report", "c4-baseline", "tasks_glue_cola", SETTINGS_STAGE} <= names
    assert {"pretrain-baseline", "pretrain-no_pretraining"} <= names
    assert "c4-no_pretraining" not in names
    outs = [out for entry in pipeline.values() for out in entry["outs"] if isinstance(out, str)]
    assert len(outs) == len(set(outs)) == len(names) - 1


def test_a_plot_names_only_losses_that_its_training_measures() -> None:
    """DVC reports a column that a history lacks as an error of every plot."""
    plots = yaml.safe_load((ROOT / "dvc.yaml").read_text())["plots"]
    columns = {name: plot["y"] for entry in plots for name, plot in entry.items()}
    assert set(map(tuple, columns["pretrain_loss"].values())) == {("loss", "validation_loss")}
    assert set(columns["finetune_loss"].values()) == {"loss"}


def test_each_stage_runs_its_rule_alone_and_persists_nothing(
    pipeline: dict[str, dict[str, object]],
) -> None:
    for name, entry in pipeline.items():
        if name == SETTINGS_STAGE:
            continue
        run, check = entry["cmd"]
        rule = name.partition("-")[0]
        assert run == f"snakemake stage_{name} --profile local --allowed-rules {rule} stage_{name}"
        assert check == f"t5repro seal --only {name}"
    assert "persist" not in (ROOT / "dvc.yaml").read_text()


@pytest.mark.parametrize(
    "name", ["my run.yaml", "it's.yaml", "a: b #c.yaml", f"{'long ' * 30}.yaml", "a&b$c.yaml"]
)
def test_a_run_file_of_any_name_is_one_word_of_every_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file = tmp_path / name
    run_file.write_text("run: {name: x}\n")
    text = pipeline_text(load_run_file(RUN_FILE), [stage()], run_file, "local")
    entries = yaml.safe_load(text)["stages"]
    run, _ = entries["vocab-baseline"]["cmd"]
    for command in (entries[SETTINGS_STAGE]["cmd"], run):
        assert str(run_file) in shlex.split(command)
    (tmp_path / "dvc.yaml").write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n")
    monkeypatch.chdir(tmp_path)
    assert versioned_run() == VersionedRun(run_file, "local")


def names_and_values(tree: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        yield name, value
        if isinstance(value, dict):
            yield from names_and_values(value)


def test_a_stage_has_the_settings_below_its_name_and_none_that_the_run_cache_drops(
    pipeline: dict[str, dict[str, Any]],
) -> None:
    resolved = json.loads((ROOT / "configs/resolved/demo.json").read_text())
    for stage_name, entry in pipeline.items():
        if stage_name != SETTINGS_STAGE:
            expected = [{"configs/resolved/demo.json": [stage_name]}]
            assert entry.get("params", []) == (expected if resolved[stage_name] else [])
    for name, value in names_and_values(resolved):
        assert name not in {"size", "nfiles"}
        assert isinstance(value, str | int | float | dict), name


def test_dvc_detects_each_changed_setting_below_the_name_of_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC itself says so, and what it locks reads as the dotted settings of an older lock."""
    settings = {"a": {"train": {"rate": 1e-06, "steps": 4}}, "ab": {"train": {"steps": 4}}}
    (tmp_path / "resolved.json").write_text(json.dumps(settings))
    stages = {
        name: {
            "cmd": f"echo > {name}.out",
            "params": [{"resolved.json": [name]}],
            "outs": [f"{name}.out"],
        }
        for name in settings
    }
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
    monkeypatch.chdir(tmp_path)
    Repo.init(no_scm=True).close()
    with Repo() as repo:
        repo.reproduce()
        assert repo.status() == {}
        locked = read_lock(tmp_path).stages["a"]
        assert locked.params == {"a.train.rate": 1e-06, "a.train.steps": 4}
        assert locked.tracked_params == ("a",)
    for leaf, value in {"rate": 2e-06, "steps": 5, "added": 1}.items():
        changed = {**settings, "a": {"train": {**settings["a"]["train"], leaf: value}}}
        (tmp_path / "resolved.json").write_text(json.dumps(changed))
        with Repo() as repo:
            assert repo.status().keys() == {"a"}
    with Repo() as repo:
        assert [stage.name for stage in repo.reproduce()] == ["a"]
        assert repo.status() == {}
    # Back again: the run cache has the outputs, by the settings below the name.
    (tmp_path / "resolved.json").write_text(json.dumps(settings))
    with Repo() as repo:
        repo.reproduce()
        assert repo.status() == {}
    assert read_lock(tmp_path).stages["a"] == locked


def test_code_and_inputs_are_dependencies_and_a_manifest_stands_for_its_folder(
    pipeline: dict[str, dict[str, object]],
) -> None:
    tokens = pipeline["tokens-baseline"]["deps"]
    assert "results/demo/c4/baseline" in tokens
    assert "results/demo/vocab/baseline" in tokens
    assert "configs/resolved/code/tokens.json" in tokens
    assert not [path for path in tokens if path.endswith("manifest.json")]


def test_a_stage_that_reads_all_of_a_folder_names_the_folder(
    pipeline: dict[str, dict[str, Any]],
) -> None:
    assert pipeline["data"]["deps"][0] == "data"
    assert "data/crawl" in pipeline["c4_clean-baseline"]["deps"]
    assert "data/tasks/glue/CoLA" in pipeline["tasks_glue_cola"]["deps"]
    assert "results/demo/c4_clean/baseline" in pipeline["c4_dedup-baseline"]["deps"]
    # Of the lists the cleaning reads three of five, and the report of the shards the manifests.
    assert "data/lists/badwords.en.txt" in pipeline["c4_clean-baseline"]["deps"]
    assert "results/demo/c4_clean/baseline/00000.manifest.json" in pipeline["report"]["deps"]


def test_a_folder_that_data_dvc_does_not_track_may_have_other_files() -> None:
    settings, stages = resolve(RUN_FILE)
    elsewhere = settings.data.model_copy(update={"folder": "raw"})
    contents = folder_contents(settings.model_copy(update={"data": elsewhere}), stages)
    assert contents.keys() == {planned_stage.folder for planned_stage in stages}
    raw = folder_contents(settings, stages)["data"]
    assert len(raw) == sum(len(source.files) for source in settings.data.sources) == 47


def test_a_leaf_reaches_the_stages_that_read_it_and_the_arm_that_changes_it() -> None:
    settings = load_run_file(RUN_FILE)
    assert leaves_of(settings, stage("pretrain-baseline"))["pretrain.steps"] == 400
    assert leaves_of(settings, stage("pretrain-no_pretraining"))["pretrain.steps"] == 0
    vocabulary = leaves_of(settings, stage())
    assert vocabulary["vocab.vocab_size"] == 2400
    assert not [name for name in vocabulary if not name.startswith("vocab.")]
    lists = leaves_of(settings, stage("c4-baseline"))["c4.bad_word_lists"]
    assert json.loads(lists)["en"] == "lists/badwords.en.txt"
    assert set(settings_of_stage(settings, stage("tasks_glue_cola"))) <= {"tasks"}


def test_the_report_has_the_leaves_of_the_run_and_not_of_its_first_experiment() -> None:
    settings = load_run_file(RUN_FILE)
    first, *others = settings.experiments
    changed = first.model_copy(update={"change": {"pretrain.steps": 7}, "seeds": []})
    settings = settings.model_copy(update={"experiments": [changed, *others]})
    leaves = leaves_of(settings, stage("report"))
    assert leaves["settings.pretrain.steps"] == settings.pretrain.steps != 7


def test_a_leaf_that_the_run_cache_ignores_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_run_file(RUN_FILE)
    monkeypatch.setattr(dvc_pipeline, "KEYS_THE_RUN_CACHE_DROPS", {"vocab_size"})
    with pytest.raises(SettingsError, match=r"'vocab.vocab_size'.*choose another name"):
        resolved_text(settings, [stage()])


def test_another_run_file_is_named_in_the_commands() -> None:
    settings = load_run_file(RUN_FILE)
    text = pipeline_text(settings, [stage()], Path("configs/real.yaml"), "local")
    assert "--configfile configs/real.yaml" in text


def test_training_on_accelerators_promises_a_tolerance_and_the_rest_bytes() -> None:
    settings = load_run_file(RUN_FILE)
    on_tpu = settings.model_copy(
        update={"devices": settings.devices.model_copy(update={"kind": "tpu"})}
    )
    assert reproducibility(settings, stage("pretrain-baseline")) == "exact"
    assert reproducibility(on_tpu, stage("pretrain-baseline")) == "tolerance"
    assert reproducibility(on_tpu, stage("vocab-baseline")) == "exact"


def test_stages_come_after_what_they_read() -> None:
    _, stages = resolve(RUN_FILE)
    position = {stage.folder: number for number, stage in enumerate(stages)}
    for number, stage in enumerate(stages):
        for path in stage.inputs:
            assert position.get(Path(path).parent.as_posix(), -1) < number


def test_a_run_file_that_cannot_be_planned_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    text = RUN_FILE.read_text(encoding="utf-8")
    broken.write_text(text.replace("clean_shards: 4", "clean_shards: 99"), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"broken.yaml.*c4.clean_shards is 99, but c4.crawl"):
        resolve(broken)
    with (
        pytest.raises(SettingsError, match=r"Snakemake cannot plan .*broken.yaml"),
        planned(broken),
    ):
        pass


def planned_job(rule: str, output: str, log: str = "logs/demo/x.log") -> Any:
    key = Key(rule, "a")
    outputs = {"manifest": [output]}
    return SimpleNamespace(rule=rule, key=key, inputs={}, outputs=outputs, log=log)


def plan_of(*jobs: Any) -> Any:
    """A plan with jobs that ours could not have."""
    nodes = [SimpleNamespace(key=job.key, rule=job.rule, name="a") for job in jobs]
    by_key = {job.key: [job] for job in jobs}
    return SimpleNamespace(nodes=nodes, jobs=lambda rule, node: by_key[Key(rule, node)])


def test_two_stages_in_one_folder_and_logs_elsewhere_are_refused() -> None:
    one = planned_job("vocab", "results/a/manifest.json")
    two = planned_job("tokens", "results/a/1.manifest.json")
    with pytest.raises(ArtifactError, match=r"both write results/a/"):
        stages_of_plan(plan_of(one, two))
    with pytest.raises(ArtifactError, match=r"logs to elsewhere/x.log"):
        stages_of_plan(plan_of(planned_job("vocab", "results/a/x", "elsewhere/x.log")))
