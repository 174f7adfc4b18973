import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_graphs import manifest, write
from whole_records import whole_record

from t5repro.config.load import load_settings
from t5repro.errors import ArtifactError
from t5repro.lineage.dvc_lock import Lock, LockedStage
from t5repro.lineage.hashes import Hasher, hash_file
from t5repro.versions import dvc_pipeline
from t5repro.versions.proof import agrees_with_lock, files_of_stage, raw_file_faults
from t5repro.versions.snakemake_graph import PlannedJob, PlannedStage
from t5repro.versions.stage_dependencies import md5_of

FOLDER = "results/r/finetune/a"


def test_weights_of_checkpoints_that_a_manifest_lists_are_no_orphans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = [f"{FOLDER}/weights.safetensors", f"{FOLDER}/step-4/weights.safetensors"]
    for name in (*outputs, f"{FOLDER}/step-8/weights.safetensors"):
        write(tmp_path, name, name)
    manifest(tmp_path, f"{FOLDER}/manifest.json", rule="finetune", outputs=outputs)
    job = PlannedJob(
        inputs=(),
        code=(),
        outputs=(outputs[0], f"{FOLDER}/manifest.json"),
        record=Path("logs/r/finetune/a.json"),
    )
    present = files_of_stage(PlannedStage("finetune-a", "finetune", "a", FOLDER, (job,)), Hasher())
    assert set(present.files) == {*outputs, f"{FOLDER}/manifest.json"}
    assert present.orphans == [f"{FOLDER}/step-8/weights.safetensors"]


@pytest.mark.parametrize(("was", "now"), [("outputs", "outpuus"), ("path", "qath"), ("{", "[")])
def test_a_manifest_with_an_altered_word_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was: str, now: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"{FOLDER}/manifest.json"
    weights = str(write(tmp_path, f"{FOLDER}/weights.safetensors", "x").relative_to(tmp_path))
    manifest(tmp_path, name, rule="finetune", outputs=[weights])
    path = tmp_path / name
    path.write_text(path.read_text().replace(was, now, 1))
    job = PlannedJob(inputs=(), code=(), outputs=(name,), record=Path("logs/r/finetune/a.json"))
    stage = PlannedStage("finetune-a", "finetune", "a", FOLDER, (job,))
    with pytest.raises(ArtifactError, match=f"^{name} is not (a manifest|JSON)"):
        files_of_stage(stage, Hasher())


def test_a_lock_that_names_each_setting_is_out_of_date_if_the_pipeline_names_the_stage() -> None:
    """DVC says so, too: it looks for the keys of `dvc.yaml` in `dvc.lock`."""
    settings = load_settings({})
    stage = PlannedStage("vocab-baseline", "vocab", "baseline", FOLDER, ())
    leaves = dvc_pipeline.leaves_of(settings, stage)
    params = {f"{stage.name}.{name}": value for name, value in leaves.items()}
    entry = {"cmd": "run", "deps": [], "params": [{"r.json": [stage.name]}], "outs": [FOLDER]}
    locked = LockedStage("run", {}, params, {FOLDER: "1.dir"}, (stage.name,))
    folders = {FOLDER: "1.dir"}
    assert agrees_with_lock(settings, stage, entry, locked, folders, Hasher())
    older = replace(locked, tracked_params=tuple(params))
    assert not agrees_with_lock(settings, stage, entry, older, folders, Hasher())


def test_a_raw_file_is_known_by_the_lock_of_its_folder_or_by_the_record_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [f"data/crawl/{name}" for name in "ab"]
    entries = []
    for path in paths:
        written = write(tmp_path, path, path)
        entries.append({"path": path, "sha256": hash_file(written).sha256, "bytes": len(path)})
    record = Path("records/r/data.json")
    job = PlannedJob(inputs=tuple(paths), code=(), outputs=(), record=record)
    stages = [PlannedStage("data", "data", "", "results/r/data", (job,))]
    deps = {"data/crawl": str(md5_of("data/crawl", Hasher()))}
    lock = Lock(stages={"data": LockedStage(deps=deps)})
    assert raw_file_faults(stages, lock, Hasher()) == []
    assert len(raw_file_faults(stages, Lock(), Hasher())) == 2
    written.write_text("other")
    for end, named in (({"inputs": entries, "outputs": []}, paths[1:]), ({}, paths)):
        write(tmp_path, record.as_posix(), json.dumps(whole_record("r/data", end=end)))
        faults = raw_file_faults(stages, lock, Hasher(deep=True))
        assert [fault.partition(":")[0] for fault in faults] == named
