"""Fine-tuning methods, phases, kept checkpoints and ensembles in one real run."""

import csv
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from clones import (
    artifact_hashes,
    clone,
    commit,
    copy_clone,
    environment,
    run_in,
    shrink,
    snakemake,
)

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.keras]

GROUPS = {
    "sst2": {"tasks.names": ["glue_sst2"]},
    "mrpc": {"tasks.names": ["glue_mrpc"], "finetune.targets_length": 24},
}
LATER_STEPS = 40  # long enough to be killed between two checkpoints
LATER, SCORES_OF_LATER = "pretrain/later_phase", "evaluate_score/later_phase/scores.json"
ARMS = {
    "baseline": {},
    "adapters": {"finetune.method": "adapters", "finetune.adapter_width": 8},
    "gradual": {"finetune.method": "gradual_unfreezing"},
    "kept": {"finetune.keep_checkpoints": "all", "evaluate.checkpoints": "all"},
    "then_sst2": {
        "finetune.start_from": "baseline",
        "tasks.names": ["glue_sst2"],
        "finetune.steps": 2,
    },
    "again": {"finetune.repeat": 1},
    "later_phase": {
        "pretrain.from_experiment": "baseline",
        "pretrain.steps": LATER_STEPS,
        "pretrain.inputs_length": 160,
        "pretrain.checkpoint_every_steps": 4,
    },
    "with_corpus": {"finetune.corpus_examples": 2000, "finetune.targets_length": 48},
    "alone": {"evaluate.ensemble": ["baseline"]},
    "both": {"evaluate.ensemble": ["baseline", "again"]},
    "grouped": {
        "finetune.groups": GROUPS,
        "finetune.keep_checkpoints": "all",
        "evaluate.checkpoints": "all",
    },
    "grouped_then": {"finetune.groups": GROUPS, "finetune.start_from": "grouped"},
    "grouped_both": {
        "finetune.groups": GROUPS,
        "finetune.keep_checkpoints": "all",
        "evaluate.ensemble": ["grouped", "grouped_then"],
    },
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a small run with an arm for each method."""
    folder = clone(tmp_path_factory.mktemp("methods") / "clone")
    shrink(folder)
    run_file = folder / "configs/demo.yaml"
    values = yaml.safe_load(run_file.read_text(encoding="utf-8"))
    values["experiments"] = [{"name": name, "change": change} for name, change in ARMS.items()]
    values["tasks"] = {"names": ["glue_sst2", "glue_mrpc"]}
    values["finetune"]["checkpoint_every_steps"] = 3
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    commit(folder, "methods")
    ran = snakemake(folder)
    assert ran.returncode == 0, ran.stdout[-4000:]
    return folder / "results/demo"


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_method_runs_from_the_crawl_to_the_report(results: Path) -> None:
    trained = {path.name for path in (results / "finetune").iterdir()}
    # An ensemble and an arm that only evaluates more train nothing of their own.
    single = {name for name, change in ARMS.items() if "finetune.groups" not in change}
    grouped = {f"{name}_{group}" for name in ("grouped", "grouped_then") for group in GROUPS}
    assert trained == single - {"alone", "both"} | grouped
    record = read(results / "finetune/adapters/manifest.json")["counters"]
    baseline = read(results / "finetune/baseline/manifest.json")["counters"]
    assert record["trained_parameters"] < record["parameters"]
    assert baseline["trained_parameters"] == baseline["parameters"] < record["parameters"]
    with_corpus = read(results / "finetune/with_corpus/manifest.json")
    assert 0 < with_corpus["counters"]["corpus"]["rows"] < 8 * 4
    assert any(file["path"].endswith("tokens/baseline/train.ids") for file in with_corpus["inputs"])
    again = read(results / "finetune/then_sst2/manifest.json")
    assert any("finetune/baseline/weights" in entry["path"] for entry in again["inputs"])
    assert again["counters"]["optimizer_step"] == baseline["optimizer_step"] + 2


def test_a_score_leads_through_both_phases_of_pretraining_to_the_pages(results: Path) -> None:
    later = read(results / "pretrain/later_phase/manifest.json")
    first = read(results / "pretrain/baseline/manifest.json")["counters"]
    assert any("pretrain/baseline/weights" in entry["path"] for entry in later["inputs"])
    assert later["counters"]["optimizer_step"] == first["optimizer_step"] + LATER_STEPS
    folder = results.parents[1]
    score = f"results/demo/{SCORES_OF_LATER}"
    printed = run_in(folder, "t5repro", "pages", score, "--json").stdout
    pages = json.loads(printed[printed.index("{") :])  # after what libraries say
    trainings = {"demo/pretrain/baseline": first["steps"], "demo/pretrain/later_phase": LATER_STEPS}
    assert pages["trainings"] == trainings
    # A page that the first phase read is behind the score, too.
    read_by = {
        job: sum(bool(page["steps"].get(job)) for page in pages["pages"]) for job in trainings
    }
    assert min(read_by.values()) > 0
    report = (results / "report/report.html").read_text(encoding="utf-8")
    assert "Phases of pre-training" in report


@pytest.fixture
def copy(results: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may change."""
    return copy_clone(results.parents[1], tmp_path / "clone")


def answer(folder: Path, *words: str) -> str:
    process = run_in(folder, "t5repro", *words)
    assert process.returncode == 0, process.stdout[-3000:]
    return process.stdout


def test_the_trace_of_a_score_names_the_trainings_of_both_phases(results: Path) -> None:
    traced = answer(results.parents[1], "trace", f"results/demo/{SCORES_OF_LATER}#glue_sst2")
    for phase in ("pretrain/baseline", LATER):
        assert f"─ demo/{phase}" in traced


def test_a_later_phase_that_is_killed_between_two_checkpoints_ends_in_equal_bytes(
    results: Path, copy: Path
) -> None:
    shutil.rmtree(copy / "results/demo" / LATER)
    run = subprocess.Popen(
        ["snakemake", "--profile", "local", "--cores", "2", f"results/demo/{LATER}/manifest.json"],
        cwd=copy,
        env=environment(copy),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    work = copy / "work/demo" / LATER
    try:
        while not any(work.glob("step-*.safetensors")):
            assert run.poll() is None, "the run ended before its first checkpoint"
            time.sleep(0.01)
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert not (copy / "results/demo" / LATER / "manifest.json").exists()
    again = snakemake(copy, f"results/demo/{LATER}/manifest.json")
    assert again.returncode == 0, again.stdout[-3000:]
    assert artifact_hashes(copy) == artifact_hashes(results.parents[1])


def test_a_later_phase_is_rebuilt_byte_for_byte(copy: Path) -> None:
    printed = answer(copy, "rebuild", LATER, "--json")
    outcomes = json.loads(printed[printed.index("{") :])["outcomes"]
    assert {outcome["result"] for outcome in outcomes} == {"same bytes"}
    rebuilt = {Path(outcome["path"]).name for outcome in outcomes}
    assert {"weights.safetensors", "optimizer.safetensors", "manifest.json"} <= rebuilt


def test_a_withdrawn_page_leaves_both_phases(copy: Path) -> None:
    before = artifact_hashes(copy)
    url = "http://www.hill-and-dale.example/en/2016/page-0429.html"
    printed = answer(copy, "withdraw", url, "--reason", "ticket 7", "--json")
    withdrawal = json.loads(printed[printed.index("{") :])
    assert f"results/demo/{SCORES_OF_LATER}" in withdrawal["scores"]
    weights = [
        f"results/demo/{phase}/weights.safetensors" for phase in ("pretrain/baseline", LATER)
    ]
    assert not any((copy / path).exists() for path in weights)
    ran = snakemake(copy, f"results/demo/{LATER}/manifest.json")
    assert ran.returncode == 0, ran.stdout[-3000:]
    after = artifact_hashes(copy)
    assert all(after[path] != before[path] for path in weights)
    read_by_later = {
        entry["path"]: entry["sha256"]
        for entry in read(copy / "results/demo" / LATER / "manifest.json")["inputs"]
    }
    assert read_by_later[weights[0]] == after[weights[0]]


def test_kept_checkpoints_are_answered_and_the_choice_is_traceable(results: Path) -> None:
    folder = results / "evaluate_predict/kept"
    assert {path.name for path in folder.glob("step-*")} == {"step-3", "step-6"}
    chosen = read(results / "evaluate_score/kept/scores.json")["checkpoints"]
    assert set(chosen["scores"]) == {"3", "6", "8"}
    for item in chosen["best"].values():
        assert (results / "finetune/kept" / item["weights"]).is_file()
        assert item["means"][str(item["step"])] == max(item["means"].values())
    with (results / "report/scores.csv").open(encoding="utf-8") as handle:
        names = {row["experiment"] for row in csv.DictReader(handle)}
    assert names == {*ARMS, "kept:best", "grouped:best"}
    assert "Best checkpoints of kept" in (results / "report/report.html").read_text("utf-8")
    # Keeping more weights changes neither the last ones nor their answers.
    for stage, name in (
        ("finetune", "weights.safetensors"),
        ("evaluate_predict", "glue_sst2.jsonl"),
    ):
        baseline_file, kept_file = (results / stage / arm / name for arm in ("baseline", "kept"))
        assert baseline_file.read_bytes() == kept_file.read_bytes()


def test_an_ensemble_of_one_equals_its_member(results: Path) -> None:
    for name in ("glue_sst2.jsonl", "glue_mrpc.jsonl"):
        member, alone = (
            (results / "evaluate_predict" / arm / name).read_bytes()
            for arm in ("baseline", "alone")
        )
        assert member == alone
    weights = [
        item["path"]
        for item in read(results / "evaluate_predict/both/manifest.json")["inputs"]
        if item["path"].endswith("weights.safetensors")
    ]
    assert weights == [
        f"results/demo/finetune/{arm}/weights.safetensors" for arm in ("baseline", "again")
    ]


def test_groups_are_fine_tuned_apart_and_scored_together(results: Path) -> None:
    scores = read(results / "evaluate_score/grouped/scores.json")
    assert set(scores["tasks"]) == {"glue_sst2", "glue_mrpc"}
    assert set(scores["checkpoints"]["best"]) == {"glue_sst2", "glue_mrpc"}
    for task, group in (("glue_sst2", "sst2"), ("glue_mrpc", "mrpc")):
        predicted = results / f"evaluate_predict/grouped_{group}"
        assert [path.name for path in predicted.glob("*.jsonl")] == [f"{task}.jsonl"]
        trained = read(results / f"finetune/grouped_{group}/manifest.json")
        assert trained["settings"]["tasks"]["names"] == [task]
        # The next fine-tuning and the ensemble read the model of the same group.
        then = read(results / f"finetune/grouped_then_{group}/manifest.json")["inputs"]
        assert any(f"finetune/grouped_{group}/weights" in entry["path"] for entry in then)
        both = read(results / f"evaluate_predict/grouped_both_{group}/manifest.json")["inputs"]
        members = [entry["path"] for entry in both if entry["path"].endswith("weights.safetensors")]
        assert members == [
            f"results/demo/finetune/{arm}_{group}/weights.safetensors"
            for arm in ("grouped", "grouped_then")
        ]
    metrics = read(results / "report/grouped.metrics.json")
    assert {"finetune_sst2", "finetune_mrpc", "pretrain"} <= set(metrics["loss"])
    with (results / "report/scores.csv").open(encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["experiment"] == "grouped"]
    assert {row["task"] for row in rows} >= {"glue_sst2", "glue_mrpc"}
