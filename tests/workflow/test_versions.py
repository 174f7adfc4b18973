"""DVC and Snakemake of one mind: after runs, pulls and checkouts, after tampering and kills."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from clones import artifact_hashes, change, commit, copy_clone, environment, run_in, snakemake
from made_graphs import manifest

pytestmark = pytest.mark.workflow
NOTHING = "Nothing to be done"
# Flips a byte of every named file in turn, keeps its date, and asks the words of CHECKS.
FLIP = """
import json, os, sys
from pathlib import Path
from t5repro.errors import ArtifactError
{check}
missed = [["as it was", asked()]] if asked() else []
for word in sys.argv[1:]:
    path = Path(word)
    facts, data = path.stat(), path.read_bytes()
    place = len(data) // 2
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1:])
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    found = asked()
    if word not in found:
        missed.append([word, found])
    path.write_bytes(data)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
missed += [["as it was", asked()]] if asked() else []
print(json.dumps(missed))
"""
CHECKS = {
    "verify": """
from t5repro.lineage.verify import verify_tree
def asked():
    return [item.path for item in verify_tree(Path()).findings]
""",
    "seal": """
from t5repro.versions.snakemake_graph import RUN_FILE, resolve
from t5repro.versions.seal import seal_stages
settings, stages = resolve(RUN_FILE)
def asked():
    try:
        seal_stages(settings, stages, [stage.name for stage in stages])
    except ArtifactError as error:
        return str(error)
    return ""
""",
}


def lock_of(folder: Path) -> str:
    return (folder / "dvc.lock").read_text()


def with_remote(finished: Path, tmp_path: Path) -> Path:
    """Return a copy whose results are committed and pushed to a folder remote."""
    folder = copy_clone(finished, tmp_path / "origin")
    commit(folder, "results")
    ran = run_in(folder, "dvc", "remote", "add", "--local", "-d", "folder", str(tmp_path / "store"))
    assert ran.returncode == 0, ran.stdout
    pushed = run_in(folder, "dvc", "push", "--run-cache")
    assert "pushed" in pushed.stdout, pushed.stdout
    return folder


def clone_of(origin: Path, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", origin, folder], check=True)
    shutil.copy(origin / ".dvc/config.local", folder / ".dvc/config.local")
    return folder


def test_after_snakemake_dvc_agrees_and_has_sealed_every_stage(finished: Path) -> None:
    status = run_in(finished, "dvc", "status")
    assert "up to date" in status.stdout, status.stdout
    stages = yaml.safe_load((finished / "dvc.yaml").read_text())["stages"]
    assert stages.keys() == yaml.safe_load(lock_of(finished))["stages"].keys()


def test_a_clone_that_pulls_has_nothing_to_do_in_either_tool(
    finished: Path, tmp_path: Path
) -> None:
    origin = with_remote(finished, tmp_path)
    clone = clone_of(origin, tmp_path / "clone")
    assert run_in(clone, "dvc", "pull").returncode == 0
    before = {path: path.stat().st_mtime_ns for path in (clone / "results").rglob("*")}
    assert NOTHING in snakemake(clone, "-n").stdout
    assert {path: path.stat().st_mtime_ns for path in (clone / "results").rglob("*")} == before
    repro = run_in(clone, "dvc", "repro", "--pull")
    assert "Running stage" not in repro.stdout
    assert "up to date" in repro.stdout
    assert artifact_hashes(clone) == artifact_hashes(origin)


def test_a_clone_whose_lock_is_of_other_code_plans_every_stage_of_that_code(
    finished: Path, tmp_path: Path
) -> None:
    origin = with_remote(finished, tmp_path)
    assert run_in(origin, "t5repro", "config", "check").returncode == 0
    for module in ("vocab/encode", "evaluate/score"):
        path = origin / f"src/t5repro/{module}.py"
        path.write_text(path.read_text() + "\nprint\n")
    assert run_in(origin, "t5repro", "config", "generate").returncode == 0
    for command in (("config", "check"), ("dvc", "check")):
        checked = run_in(origin, "t5repro", *command)
        assert checked.returncode != 0
        for rule in ("tokens-baseline", "evaluate_score-baseline"):
            file = f"configs/resolved/code/{rule.partition('-')[0]}.json"
            assert f"dvc.lock: {rule}: code {file} is " in checked.stdout
        assert "is not the one that dvc.lock was sealed with" not in checked.stdout
    commit(origin, "other code, and the lock of before")
    clone = clone_of(origin, tmp_path / "clone")
    assert run_in(clone, "dvc", "pull").returncode == 0
    plan = snakemake(clone, "-n").stdout
    assert re.search(r"rule tokens:(.*\n)+? *reason: Params have changed", plan), plan[-3000:]
    assert "rule vocab:" not in plan
    # The stage after it runs only if the ids come out differently.
    ran = snakemake(clone, "stage_tokens")
    assert ran.returncode == 0, ran.stdout[-3000:]
    plan = snakemake(clone, "-n").stdout
    assert "rule evaluate_score:" in plan
    assert "rule pretrain:" not in plan


def test_results_that_came_out_as_committed_can_be_pushed_and_pulled(
    finished: Path, tmp_path: Path
) -> None:
    origin = copy_clone(finished, tmp_path / "reproduced")
    commit(origin, "results")
    lock = lock_of(origin)
    shutil.rmtree(origin / ".dvc" / "cache")  # as if the lock had come with a clone
    assert run_in(origin, "t5repro", "seal").returncode == 0
    assert lock_of(origin) == lock
    status = run_in(origin, "dvc", "status")
    assert "up to date" in status.stdout, status.stdout
    store = str(tmp_path / "store")
    run_in(origin, "dvc", "remote", "add", "--local", "-d", "folder", store)
    assert run_in(origin, "dvc", "push").returncode == 0
    clone = clone_of(origin, tmp_path / "clone")
    assert run_in(clone, "dvc", "pull").returncode == 0
    assert artifact_hashes(clone) == artifact_hashes(origin)
    assert NOTHING in snakemake(clone, "-n").stdout
    compared = run_in(clone, "t5repro", "diff", "HEAD", "HEAD")
    assert compared.returncode == 0, compared.stdout


@pytest.mark.slow
def test_without_a_lock_the_run_cache_knows_everything(finished: Path, tmp_path: Path) -> None:
    origin = with_remote(finished, tmp_path)
    clone = clone_of(origin, tmp_path / "clone")
    (clone / "dvc.lock").unlink()
    assert run_in(clone, "dvc", "pull", "--run-cache", "data.dvc").returncode == 0
    repro = run_in(clone, "dvc", "repro", "--pull")
    assert repro.returncode == 0, repro.stdout
    assert set(re.findall(r"Running stage '(\S+)'", repro.stdout)) <= {"settings"}
    assert artifact_hashes(clone) == artifact_hashes(origin)
    assert NOTHING in snakemake(clone, "-n").stdout


def artifacts(folder: Path) -> list[str]:
    return sorted(path for path in artifact_hashes(folder) if (folder / path).stat().st_size)


@pytest.mark.parametrize("check", ["verify", "seal"])
@pytest.mark.parametrize(
    "part", [pytest.param(5, id="some"), pytest.param(None, id="all", marks=pytest.mark.slow)]
)
def test_one_flipped_byte_with_its_date_kept_is_named_by_verify_and_never_sealed(
    finished: Path, tmp_path: Path, part: int | None, check: str
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    lock, paths = lock_of(folder), artifacts(folder)
    sample = random.Random(0).sample(paths, part) if part else paths
    code = FLIP.replace("{check}", CHECKS[check])
    ran = subprocess.run(
        ["python", "-c", code, *sample],
        cwd=folder,
        env=environment(folder),
        check=False,
        text=True,
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == []
    assert lock_of(folder) == lock


def test_a_tampered_file_is_not_laundered_by_the_next_run(finished: Path, tmp_path: Path) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    lock = lock_of(folder)
    ids = folder / "results/demo/tokens/baseline/train.ids"  # which the report does not read
    facts, content = ids.stat(), ids.read_bytes()
    ids.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    os.utime(ids, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    (folder / "results/demo/report/report.html").unlink()
    ran = snakemake(folder)
    assert ran.returncode != 0
    assert "results/demo/tokens/baseline/train.ids: changed, but no job" in ran.stdout
    assert lock_of(folder) == lock
    ids.write_bytes(content)
    assert run_in(folder, "t5repro", "seal").returncode == 0


def test_orphans_go_and_a_job_whose_code_moved_is_refused(finished: Path, tmp_path: Path) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    orphan = folder / "results/demo/c4_clean/baseline/00009.parquet"
    orphan.write_bytes(b"withdrawn text")
    former = orphan.with_name("00009.manifest.json")  # of a crawl in more shards
    name = orphan.relative_to(folder).as_posix()
    manifest(folder, f"{Path(name).parent}/{former.name}", rule="c4_clean", outputs=[name])
    (orphan.parent / ".writing-abcdefgh-00000.parquet").write_bytes(b"half")
    ran = run_in(folder, "t5repro", "seal")
    assert f"removed {orphan.relative_to(folder)}" in ran.stdout, ran.stdout
    assert not orphan.exists()
    assert not former.exists()
    assert not list(orphan.parent.glob(".writing-*"))
    record = folder / "records/demo/tokens/baseline.json"
    values = json.loads(record.read_text())
    values["end"]["code_changed"] = ["src/t5repro/vocab/encode.py"]
    record.write_text(json.dumps(values))
    (folder / "dvc.lock").unlink()
    ran = run_in(folder, "t5repro", "seal")
    assert ran.returncode == 1
    assert "src/t5repro/vocab/encode.py: changed while the job of" in ran.stdout
    assert not (folder / "dvc.lock").exists()


def test_two_runs_in_one_folder_are_kept_apart(finished: Path, tmp_path: Path) -> None:
    from t5repro.lineage.run_lock import run_lock

    folder = copy_clone(finished, tmp_path / "clone")
    (folder / "results/demo/report/report.html").unlink()
    with run_lock(folder / ".snakemake/t5repro.lock"):
        ran = snakemake(folder)
        assert ran.returncode != 0
        assert f"another run is at work in this folder (process {os.getpid()})" in ran.stdout
        assert run_in(folder, "t5repro", "seal").returncode == 1
    assert not (folder / "results/demo/report/report.html").exists()


def test_scores_are_metrics_and_histories_are_plots(finished: Path) -> None:
    metrics = run_in(finished, "dvc", "metrics", "show", "--json")
    files = json.loads(metrics.stdout)[""]["data"]
    assert len(files) == 2  # one row for each experiment
    metrics_of_baseline = files["results/demo/report/baseline.metrics.json"]["data"]
    assert metrics_of_baseline["glue_sst2"].keys() == {"accuracy"}
    losses = {"pretrain", "pretrain_validation", "finetune"}
    assert metrics_of_baseline["loss"].keys() == losses
    columns = [f"{task}.{name}" for task, row in metrics_of_baseline.items() for name in row]
    assert len(columns) <= 20
    shown = run_in(finished, "dvc", "plots", "show", "--json").stdout
    plots = json.loads(shown[shown.index("{") :])
    assert {"pretrain_loss", "finetune_loss"} <= plots["data"].keys()
    assert "errors" not in plots, plots["errors"]


def test_inside_dvc_the_first_stage_alone_hashes_the_code_of_the_rules(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    code = folder / "configs/resolved/code/vocab.json"
    current = code.read_text(encoding="utf-8")
    stage = ("snakemake", "--profile", "local", "-n", "stage_tasks_glue_cola")
    for variables, text in (({"DVC_ROOT": ".", "DVC_STAGE": "tasks"}, "stale"), ({}, current)):
        code.write_text("stale", encoding="utf-8")
        assert run_in(folder, *stage, **variables).returncode == 0
        assert code.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("command", "foreign"),
    [
        (("snakemake", "--profile", "local", "-n"), {"pandas", "dvc", "tensorflow"}),
        (("t5repro", "seal"), {"dvc.repo", "snakemake", "pandas", "pyarrow", "tensorflow"}),
    ],
    ids=["plan", "seal"],
)
def test_a_finished_run_is_planned_and_sealed_without_libraries_that_only_other_answers_need(
    finished: Path, tmp_path: Path, command: tuple[str, ...], foreign: set[str]
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    assert run_in(folder, *command).returncode == 0  # remembers what the next one reads
    ran = run_in(folder, "python", "-X", "importtime", "-m", *command)
    assert ran.returncode == 0, ran.stdout[-3000:]
    imported = set(re.findall(r"import time:.*\| +(\S+)", ran.stdout))
    assert "t5repro.versions.proof" in imported
    assert not foreign & imported


def test_the_drawing_of_the_pipeline_fits_a_screen(finished: Path) -> None:
    drawing = run_in(finished, "t5repro", "dvc", "dag")
    assert drawing.returncode == 0, drawing.stdout
    assert max(map(len, drawing.stdout.splitlines())) <= 80
    for rule in ("data.dvc", "settings", "c4_clean", "tasks", "pretrain", "evaluate_score"):
        assert f"| {rule} |" in drawing.stdout


def test_a_trained_model_is_an_artifact_that_a_tag_publishes(
    finished: Path, tmp_path: Path
) -> None:
    origin = copy_clone(finished, tmp_path / "origin")
    commit(origin, "results")
    tag = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "tag", "-a", "-m", "first"]
    subprocess.run([*tag, "finetune-no-pretraining@v1.0.0"], cwd=origin, check=True)
    command = ("dvc", "artifacts", "get", str(origin), "finetune-no-pretraining", "-o", "model")
    assert run_in(tmp_path, *command).returncode == 0
    weights = origin / "results/demo/finetune/no_pretraining/weights.safetensors"
    assert (tmp_path / "model").read_bytes() == weights.read_bytes()


@pytest.mark.slow
def test_an_experiment_of_dvc_changes_one_leaf_of_the_resolved_settings(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    commit(folder, "results")
    resolved = folder / "configs/resolved/demo.json"
    before = resolved.read_text(encoding="utf-8").splitlines()
    ran = run_in(
        folder, "dvc", "exp", "run", "-S", "configs/demo.yaml:evaluate.max_decode_length=9"
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    after = resolved.read_text(encoding="utf-8").splitlines()
    changed = {line.strip(" ,") for line in set(after) - set(before)}
    assert changed == {'"max_decode_length": 9'}
    assert len(after) == len(before)
    again = set(re.findall(r"Running stage '(\S+)'", ran.stdout)) - {"settings"}
    assert rules_of(again) == expected("evaluate.max_decode_length")
    table = run_in(folder, "dvc", "exp", "show", "--only-changed", "--csv")
    assert len(table.stdout.splitlines()[0].split(",")) < 60, table.stdout


def test_a_run_file_edited_reaches_dvc_without_any_command_of_ours(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    change(folder, "evaluate.max_decode_length", 9)
    repro = run_in(folder, "dvc", "repro", "settings")
    assert repro.returncode == 0, repro.stdout
    assert dirty(folder) == {
        f"evaluate_predict-{arm}" for arm in ("baseline", "no_pretraining")
    } | {"report"}


def dirty(folder: Path) -> set[str]:
    """Return the stages that DVC finds changed themselves."""
    return set(json.loads(run_in(folder, "dvc", "status", "--json").stdout)) - {"settings"}


def without_a_shard(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    files = dict(sources[0]["files"])
    del files["crawl/MINI-2019-18-00007.warc.wet"]
    return [{**sources[0], "files": files}]


def without_a_row(experiments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**experiments[0], "row": ""}, *experiments[1:]]  # only the report shows it


CHANGES: dict[str, object] = {
    "run.name": "other",
    "data.folder": "raw",
    "data.source": "examples/elsewhere",
    "data.sources": without_a_shard,
    "experiments": without_a_row,
    "c4.clean_shards": 3,
    "c4.validation_modulus": 41,
    "c4.bad_word_lists": {"en": "lists/badwords.en.txt", "de": "lists/badwords.de.txt"},
    "c4.crawl": ["crawl/MINI-2019-18-0000[0-6]*"],
    "vocab.vocab_size": 1201,
    "vocab.sample_chars": 2000001,
    "vocab.required_characters": "_!",
    "model.d_model": 48,
    "model.d_ff": 80,
    "model.d_kv": 8,
    "model.num_heads": 3,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.positions": "rotary",
    "pretrain.steps": 7,
    "pretrain.batch_size": 5,
    "pretrain.inputs_length": 120,
    "pretrain.targets_length": 50,
    "pretrain.noise_mask": "iid",
    "pretrain.concatenate_documents": True,
    "pretrain.learning_rate": {"warmup_steps": 9},
    "pretrain.checkpoint_every_steps": 3,
    "pretrain.log_every_steps": 5,
    "pretrain.validation_every_steps": 160,
    "pretrain.validation_batches": 3,
    "tasks.names": ["glue_sst2"],
    "finetune.steps": 9,
    "finetune.batch_size": 5,
    "finetune.inputs_length": 120,
    "finetune.targets_length": 50,
    "finetune.learning_rate": {"factor": 0.02},
    "finetune.mixture_limit": 1400,
    "finetune.checkpoint_every_steps": 3,
    "finetune.log_every_steps": 3,
    "evaluate.batch_size": 32,
    "evaluate.inputs_length": 120,
    "evaluate.max_decode_length": 9,
    "evaluate.max_examples": 5,
    "contamination.methods": ["longest"],
    "devices.intra_op_threads": 2,
}
LATER = {
    "run": "data",
    "data": "c4_punkt c4 tasks",  # all that begins with raw files follows their manifest
    "c4": "vocab",
    "vocab": "contamination pretrain finetune evaluate",
    "model": "pretrain finetune evaluate",
    "pretrain": "finetune",
    "tasks": "contamination finetune",
    "finetune": "evaluate",
    "devices": "pretrain",
}
RULES = {
    "c4": {"c4_clean", "c4_dedup", "c4"},
    "vocab": {"vocab_sample", "vocab", "tokens"},
    "evaluate": {"evaluate_predict", "evaluate_score", "report"},
    "contamination": {"contamination", "report"},
    "model": set(),
}
FIRST = {  # where a leaf enters in the middle of its section
    "run.name": {"data"},
    "c4.crawl": {"c4_punkt", "c4_clean", "c4_dedup", "c4"},
    "c4.validation_modulus": {"c4"},
    "vocab.vocab_size": {"vocab", "tokens"},
    "vocab.required_characters": {"vocab", "tokens"},
    "tasks.names": {"finetune"},
    "devices.intra_op_threads": {"pretrain"},
}


def expected(leaf: str) -> set[str]:
    """Return the rules that a changed leaf must rerun, written down by hand, not resolved."""
    if leaf == "experiments":  # as `without_a_row` changes them
        return {"report"}
    section = leaf.partition(".")[0]
    rules = set(FIRST.get(leaf) or RULES.get(section, {section}))
    queue = LATER.get(section, "").split()
    while queue:
        later = queue.pop()
        rules |= RULES.get(later, {later})
        queue += LATER.get(later, "").split()
    return rules


def rules_of(stages: set[str]) -> set[str]:
    return {"tasks" if name.startswith("tasks_") else name.partition("-")[0] for name in stages}


def closure(folder: Path, first: set[str]) -> set[str]:
    """Return stages and all that depend on them, as dvc.yaml links them."""
    stages = yaml.safe_load((folder / "dvc.yaml").read_text())["stages"]
    writers = {str(entry["outs"][0]): name for name, entry in stages.items()}
    stale = set(first)
    has_grown = True
    while has_grown:
        dependents = {
            name
            for name, entry in stages.items()
            for path in entry["deps"]
            if {writers.get(path), writers.get(path.rpartition("/")[0])} & stale
        }
        has_grown = not dependents <= stale
        stale |= dependents
    return stale


def planned(folder: Path) -> set[str]:
    ran = snakemake(folder, "-n", "--quiet", "rules")
    assert ran.returncode == 0, ran.stdout
    rows = (line.split() for line in ran.stdout.splitlines())
    counts = {row[0] for row in rows if len(row) == 2 and row[1].isdigit()}
    return counts - {"total", "all", "data_fetch"}


@pytest.mark.parametrize(
    "leaf",
    [
        leaf if leaf in {"vocab.vocab_size"} else pytest.param(leaf, marks=pytest.mark.slow)
        for leaf in CHANGES
    ],
)
def test_each_leaf_of_the_run_file_reruns_the_same_stages_in_both_tools(
    finished: Path, tmp_path: Path, leaf: str
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    change(folder, leaf, CHANGES[leaf])
    assert rules_of(planned(folder)) == expected(leaf)
    assert run_in(folder, "t5repro", "dvc", "generate").returncode == 0
    by_dvc = closure(folder, dirty(folder))
    assert rules_of(by_dvc) == expected(leaf)


def test_every_leaf_of_the_run_file_is_changed_by_a_test_and_to_an_allowed_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clones import ROOT

    from t5repro.config.load import load_run_file

    text = (ROOT / "configs/demo.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    leaves = {
        f"{section}.{name}" if isinstance(content, dict) else section
        for section, content in values.items()
        for name in content
    }
    assert leaves <= CHANGES.keys()
    monkeypatch.chdir(ROOT)
    run_file = tmp_path / "configs/demo.yaml"
    run_file.parent.mkdir()
    run_file.write_text(text, encoding="utf-8")
    before = load_run_file(run_file)
    for leaf, value in CHANGES.items():
        change(tmp_path, leaf, value)
        assert load_run_file(run_file) != before, leaf
        run_file.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_both_tools_rerun_a_changed_leaf_alike_and_older_revisions_come_back(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "one")
    commit(folder, "first")
    first = artifact_hashes(folder)
    second = copy_clone(folder, tmp_path / "two")
    for checkout in (folder, second):
        change(checkout, "evaluate.max_decode_length", 9)
    ran = snakemake(folder)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "up to date" in run_in(folder, "dvc", "status").stdout
    repro = run_in(second, "dvc", "repro")
    assert repro.returncode == 0, repro.stdout[-3000:]
    again = set(re.findall(r"Running stage '(\S+)'", repro.stdout)) - {"settings"}
    assert rules_of(again) == expected("evaluate.max_decode_length")
    assert artifact_hashes(second) == artifact_hashes(folder) != first
    assert NOTHING in snakemake(second, "-n").stdout
    commit(folder, "second")
    metrics_and_plots_of_both_revisions_are_told_apart(folder)
    subprocess.run(["git", "checkout", "--quiet", "HEAD~1"], cwd=folder, check=True)
    assert run_in(folder, "dvc", "checkout").returncode == 0
    assert artifact_hashes(folder) == first
    assert NOTHING in snakemake(folder, "-n").stdout


@pytest.mark.slow
def test_a_leaf_changed_and_changed_back_comes_from_the_run_cache_and_both_tools_agree(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    before = artifact_hashes(folder)
    experiments = yaml.safe_load((folder / "configs/demo.yaml").read_text())["experiments"]
    changed = without_a_row(experiments)
    hashes = []
    for value, ran in ((changed, {"report"}), (experiments, set()), (changed, set())):
        change(folder, "experiments", value)
        assert planned(folder) == {"report"}
        repro = run_in(folder, "dvc", "repro")
        assert repro.returncode == 0, repro.stdout[-3000:]
        again = set(re.findall(r"Running stage '(\S+)'", repro.stdout)) - {"settings"}
        assert again == ran, repro.stdout[-3000:]
        assert NOTHING in snakemake(folder, "-n").stdout
        hashes.append(artifact_hashes(folder))
    assert hashes[1] == before
    assert hashes[2] == hashes[0] != before


def metrics_and_plots_of_both_revisions_are_told_apart(folder: Path) -> None:
    process = run_in(folder, "dvc", "metrics", "diff", "--all", "--json", "HEAD~1")
    metrics = json.loads(process.stdout)
    name = "results/demo/report/baseline.metrics.json"
    assert metrics[name]["glue_sst2.accuracy"].keys() >= {"old", "new"}
    params = run_in(folder, "dvc", "params", "diff", "--json", "HEAD~1")
    (changed,) = json.loads(params.stdout).values()
    assert changed["evaluate_predict-baseline.evaluate.max_decode_length"]["new"] == 9
    plots = run_in(folder, "dvc", "plots", "diff", "--json", "HEAD~1", "HEAD")
    assert plots.returncode == 0, plots.stdout[-3000:]
    loss_plots = json.loads(plots.stdout)["data"]["pretrain_loss"]
    assert {revision for plot in loss_plots for revision in plot["revisions"]} == {"HEAD~1", "HEAD"}


KILLS = 20


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["snakemake", "dvc"])
def test_a_killed_chain_goes_on_to_the_same_bytes(
    finished: Path, tmp_path: Path, tool: str
) -> None:
    expected = artifact_hashes(finished)
    folder = copy_clone(finished, tmp_path / "clone")
    for folder_name in ("results", ".dvc/cache", ".dvc/tmp", ".snakemake", "records", "work"):
        shutil.rmtree(folder / folder_name, ignore_errors=True)
    (folder / "dvc.lock").unlink()
    command = {
        "snakemake": ["snakemake", "--profile", "local", "--cores", "2"],
        "dvc": ["dvc", "repro"],
    }[tool]
    draw = random.Random(tool)
    for _ in range(KILLS // 2):
        job = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(draw.uniform(2, 40))
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        for path, sha256 in artifact_hashes(folder).items():
            if ".writing-" not in path:
                assert expected[path] == sha256, path
    ran = run_in(folder, *command)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert run_in(folder, "t5repro", "seal").returncode == 0
    assert artifact_hashes(folder) == expected
    assert "up to date" in run_in(folder, "dvc", "status").stdout
    assert NOTHING in snakemake(folder, "-n").stdout
