"""The certificate: exactly, within the measured spread, or differently and where first."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from clones import commit, copy_clone, run_in

from t5repro.files import sha256_of

pytestmark = pytest.mark.workflow
RESULTS = Path("results/demo")
SPREAD = Path("configs/spread/demo.json")
PRETRAIN = RESULTS / "pretrain/baseline"
RECORD = Path("records/demo/pretrain/baseline.json")
INDEX = Path("records/demo.index.json")
# A spread without twins: the settings of the run, and deviations of 1 % of a loss and 1 point.
MAKE_SPREAD = """
from dataclasses import asdict
from t5repro.files import write_json
from t5repro.lineage.record import read_record
from t5repro.lineage.spread import Spread, spread_path
from t5repro.lineage.tolerance import depends_on_rounding
from t5repro.versions.dvc_pipeline import leaves_of
from t5repro.versions.snakemake_graph import resolve
settings, stages = resolve()
chain = [s for s in stages if s.rule.startswith(("pretrain", "finetune", "evaluate"))]
write_json(spread_path("demo"), asdict(Spread(
    run="demo", experiment="baseline", twins=2, machine={}, code={},
    settings={s.name: leaves_of(settings, s) for s in chain if s.node == "baseline"},
    deviations={
        s.rule: {
            # Twins of a pre-training have equal inputs: rounding has hardly grown at first.
            name: value * (1e-7 if s.rule == "pretrain" and "step" in name else 0.01)
            if "loss" in name else 1.0
            for name, value in read_record(s.jobs[0].record).end.numbers.items()
            if depends_on_rounding(name)
        }
        for s in chain if s.node == "baseline"
    },
)))
"""
COMMANDS = """
import json, shlex, sys
sys.path.insert(0, "benchmarks")
import spread
from t5repro.versions.snakemake_graph import RUN_FILE, planned, stage_name
with planned(RUN_FILE) as workflow:
    jobs = [job for job in workflow.dag.jobs if job.rule.name in (*spread.RULES, "report")]
    print(json.dumps({stage_name(job): shlex.split(job.shellcmd) for job in jobs}))
"""
RUN_TWIN = """
import sys
sys.path.insert(0, "benchmarks")
from pathlib import Path
import spread
from t5repro.versions.snakemake_graph import RUN_FILE
spread.run_twin(spread.commands_of(RUN_FILE, "baseline"), Path(), 7)
"""
WITH_PATCH = """
{patch}
import sys
from t5repro.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
ROOT_OF_ANOTHER_MAKER = """
import t5repro.model.layers
from keras import ops
t5repro.model.layers.inverse_root = ops.rsqrt
"""
COARSE_ROOT = ROOT_OF_ANOTHER_MAKER.replace(
    "ops.rsqrt", "lambda x: ops.cast(ops.cast(ops.rsqrt(x), 'bfloat16'), 'float32')"
)


@pytest.fixture(scope="module")
def committed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished clone whose lock, records and spread are committed."""
    folder = copy_clone(finished, tmp_path_factory.mktemp("committed") / "clone")
    ran = run_in(folder, sys.executable, "-c", MAKE_SPREAD)
    assert ran.returncode == 0, ran.stdout
    commit(folder, "results")
    return folder


@pytest.fixture
def machine(committed: Path, tmp_path: Path) -> Path:
    """Another machine that has run the chain: a copy to change."""
    return copy_clone(committed, tmp_path / "clone")


def certificate(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_in(folder, "t5repro", "certificate", *options)


def verdicts(folder: Path, *options: str) -> dict[str, dict[str, str]]:
    ran = certificate(folder, "--json", *options)
    values, _ = json.JSONDecoder().raw_decode(ran.stdout[ran.stdout.index("{\n") :])
    has_fault = any(verdict["outcome"] == "differently" for verdict in values["verdicts"])
    assert ran.returncode == (2 if has_fault else 0)
    return {verdict["stage"]: verdict for verdict in values["verdicts"]}


def edit(path: Path, change: Callable[[Any], None]) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def rewrite(folder: Path, name: Path, **counters: Any) -> None:
    """Add a line to an output, and let its manifest say that the job wrote it, with counters."""
    path = folder / name
    path.write_bytes(path.read_bytes() + b"\n")

    def change(manifest: Any) -> None:
        (entry,) = (output for output in manifest["outputs"] if output["path"] == str(name))
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest["counters"] |= counters

    edit(path.parent / "manifest.json", change)


def counters(folder: Path, stage: str = "pretrain") -> dict[str, Any]:
    manifest = folder / RESULTS / stage / "baseline/manifest.json"
    values: dict[str, Any] = json.loads(manifest.read_text())["counters"]
    return values


def test_equal_bytes_are_reproduced_exactly(committed: Path) -> None:
    assert {verdict["outcome"] for verdict in verdicts(committed).values()} == {"exactly"}
    ran = certificate(committed, "--strict")
    assert ran.returncode == 0
    assert ran.stdout.endswith("no stage came out differently\n")


def test_a_loss_within_the_spread_is_no_fault_and_one_beyond_it_is(machine: Path) -> None:
    loss = counters(machine)["final_loss"]
    rewrite(machine, PRETRAIN / "history.csv", final_loss=loss * 1.04)
    ran = certificate(machine)
    assert ran.returncode == 0
    assert "no stage came out differently\nrounding on this machine differs from " in ran.stdout
    assert "pretrain-baseline on; every loss and score is within the measured" in ran.stdout
    rewrite(machine, PRETRAIN / "history.csv", final_loss=loss * 1.05)
    verdict = verdicts(machine)["pretrain-baseline"]
    assert verdict["outcome"] == "differently"
    assert f"history.csv; final_loss is {loss * 1.05:.9g}, committed is" in verdict["why"]


def test_early_losses_and_counts_are_faults_of_the_calculation(machine: Path) -> None:
    count = counters(machine)["target_tokens"]
    rewrite(machine, PRETRAIN / "history.csv", target_tokens=count + 1)
    why = verdicts(machine)["pretrain-baseline"]["why"]
    assert f"target_tokens is {count + 1}, committed is {count}, must be equal" in why
    losses = counters(machine)["loss_of_step"]
    rewrite(
        machine, PRETRAIN / "history.csv", loss_of_step={**losses, "5": losses["5"] * (1 + 2e-5)}
    )
    ran = certificate(machine)
    assert ran.returncode == 2
    *_, last = ran.stdout.splitlines()
    assert last.startswith("first difference: pretrain-baseline, results/demo/pretrain/baseline/")
    assert "loss_of_step.5 is" in last
    assert "same code, settings and inputs: this machine computes different bytes" in last


def test_strict_asks_for_bytes(machine: Path) -> None:
    rewrite(machine, PRETRAIN / "history.csv")
    assert verdicts(machine)["pretrain-baseline"]["outcome"] == "within the spread"
    verdict = verdicts(machine, "--strict")["pretrain-baseline"]
    assert verdict["outcome"] == "differently"
    assert verdict["why"].endswith("--strict requires equal bytes")


def test_other_texts_with_the_same_scores_are_within_the_spread(machine: Path) -> None:
    path = RESULTS / "evaluate_predict/baseline/squad.jsonl"
    rewrite(machine, path)
    verdict = verdicts(machine)["evaluate_predict-baseline"]
    assert verdict["outcome"] == "within the spread"
    scores = machine / RESULTS / "evaluate_score/baseline/scores.json"
    edit(scores, lambda values: values["tasks"]["squad"].update(examples=5))
    edit(
        scores.with_name("manifest.json"),
        lambda values: values["outputs"][0].update(
            sha256=hashlib.sha256(scores.read_bytes()).hexdigest()
        ),
    )
    found = verdicts(machine)
    assert "tasks.squad.examples is 5, committed is 6" in found["evaluate_score-baseline"]["why"]
    why = found["evaluate_predict-baseline"]["why"]
    assert why == f"{path}; evaluate_score-baseline came out differently"


def test_a_file_that_its_job_did_not_write_is_no_result(machine: Path) -> None:
    with (machine / PRETRAIN / "history.csv").open("a") as handle:
        handle.write("\n")
    verdict = verdicts(machine)["pretrain-baseline"]
    assert verdict["outcome"] == "differently"
    assert "history.csv is not the file that its job wrote; rerun" in verdict["why"]


def test_without_a_measured_spread_bytes_are_required(machine: Path) -> None:
    edit(machine / SPREAD, lambda values: values["settings"]["finetune-baseline"].update(seed=9))
    commit(machine, "another spread")
    rewrite(machine, PRETRAIN / "history.csv")
    why = verdicts(machine)["pretrain-baseline"]["why"]
    assert "configs/spread/demo.json was measured with another finetune-baseline.seed" in why
    (machine / SPREAD).unlink()
    commit(machine, "no spread")
    verdict = verdicts(machine)["pretrain-baseline"]
    assert verdict["outcome"] == "differently"
    assert "losses and scores cannot be judged without a measured spread" in verdict["why"]
    rewrite(machine, PRETRAIN / "history.csv", loss_of_step={"1": 9.0})
    assert "loss_of_step.1 is 9, committed is" in verdicts(machine)["pretrain-baseline"]["why"]


def test_a_record_that_is_not_of_the_committed_lock_judges_nothing(machine: Path) -> None:
    rewrite(machine, PRETRAIN / "history.csv")
    original = (machine / RECORD).read_text()

    def why(change: Callable[[Any], None]) -> str:
        (machine / RECORD).write_text(original)
        edit(machine / RECORD, change)
        commit(machine, "forged")
        verdict = verdicts(machine)["pretrain-baseline"]
        assert verdict["outcome"] == "differently"
        assert "its numbers cannot be judged, so bytes must be equal" in verdict["why"]
        return verdict["why"]

    def better_loss(values: Any) -> None:
        values["end"]["numbers"]["final_loss"] /= 2

    assert f"{RECORD} at HEAD is not the record of {INDEX}" in why(better_loss)
    (machine / RECORD).unlink()
    commit(machine, "no record")
    assert f"{RECORD} at HEAD is not the record" in verdicts(machine)["pretrain-baseline"]["why"]
    (machine / RECORD).write_text(original)
    edit(machine / INDEX, lambda values: values["stages"]["pretrain-baseline"].update(md5="0"))
    commit(machine, "another lock")
    assert (
        f"{INDEX} at HEAD is of another dvc.lock" in verdicts(machine)["pretrain-baseline"]["why"]
    )
    (machine / INDEX).unlink()
    commit(machine, "no index")
    why_without = verdicts(machine)["pretrain-baseline"]["why"]
    assert f"{INDEX} at HEAD has no stage pretrain-baseline; its numbers" in why_without


def test_a_difference_of_an_input_is_not_attributed_to_the_machine(machine: Path) -> None:
    corpus = RESULTS / "c4/baseline/en-train-00000-of-00001.parquet"
    sample = RESULTS / "vocab_sample/baseline/manifest.json"
    for path in (corpus, sample):
        with (machine / path).open("ab") as handle:
            handle.write(b" ")
    why = verdicts(machine)["vocab_sample-baseline"]["why"]
    assert why == f"{sample}; its input {corpus} differs already"


def test_the_first_difference_is_named_with_its_cause(machine: Path) -> None:
    path = RESULTS / "c4/baseline/en-train-00000-of-00001.parquet"
    with (machine / path).open("ab") as handle:
        handle.write(b"x")
    ran = certificate(machine)
    assert ran.returncode == 2
    assert f"first difference: c4-baseline, {path}; same code, settings and inputs" in ran.stdout
    code = machine / "src/t5repro/c4/write.py"
    code.write_text(code.read_text() + "EDITED = True\n")
    ran = certificate(machine)
    assert "src/t5repro/c4/write.py is not the committed one" in ran.stdout


def test_without_a_committed_lock_it_says_so(machine: Path) -> None:
    (machine / "dvc.lock").unlink()
    commit(machine, "no lock")
    ran = certificate(machine)
    assert ran.returncode == 2
    assert "no certificate: HEAD has no dvc.lock to compare with" in ran.stdout


def is_manifest(path: Path) -> bool:
    return path.name == "manifest.json"


def rename(folder: Path) -> list[str]:
    """Give a finished run another name, as if it had run under it; return the run files."""
    for part in ("results", "records"):
        (folder / part / "demo").rename(folder / part / "demo_jax")
    hashes = {}
    for path in sorted((folder / "results/demo_jax").rglob("*.json"), key=is_manifest):
        before = sha256_of(path)
        text = path.read_text().replace("results/demo/", "results/demo_jax/")
        if is_manifest(path):  # after the files whose hashes it has
            text = reduce(lambda words, pair: words.replace(*pair), hashes.items(), text)
        path.write_text(text)
        hashes[before] = sha256_of(path)
    return ["--run-file", "configs/demo.yaml", "configs/engines/demo_jax.yaml"]


def test_a_run_of_another_name_is_compared_without_its_name(machine: Path) -> None:
    run_files = rename(machine)
    assert {verdict["outcome"] for verdict in verdicts(machine, *run_files).values()} == {"exactly"}
    corpus = machine / "results/demo_jax/c4/baseline/en-train-00000-of-00001.parquet"
    with corpus.open("ab") as handle:
        handle.write(b" ")
    outcomes = verdicts(machine, *run_files)
    assert outcomes["c4-baseline"]["outcome"] == "differently"
    assert outcomes["c4-baseline"]["why"].startswith("results/demo_jax/c4/baseline/en-train")
    assert outcomes["c4_dedup-baseline"]["outcome"] == "exactly"


def test_without_two_seeds_the_numbers_of_another_engine_are_not_judged(machine: Path) -> None:
    run_file = machine / "configs/demo.yaml"
    run_file.write_text(run_file.read_text() + "devices.engine: jax\n")
    rewrite(machine, PRETRAIN / "history.csv")
    found = verdicts(machine)
    assert found["tokens-baseline"]["outcome"] == "exactly"
    verdict = found["pretrain-baseline"]
    assert verdict["outcome"] == "differently"
    assert "history.csv; computed with JAX in place of TensorFlow; losses" in verdict["why"]
    assert "no committed experiment has two; certificate --engine compares" in verdict["why"]


def commands(folder: Path) -> dict[str, list[str]]:
    """Return stage -> command line of its job, as Snakemake would run it."""
    ran = run_in(folder, sys.executable, "-c", COMMANDS)
    assert ran.returncode == 0, ran.stdout
    words: dict[str, list[str]] = json.loads(ran.stdout.splitlines()[-1])
    return words


def with_setting(words: list[str], section: str, leaf: str, value: Any) -> list[str]:
    """Return a command line with another setting, of which the run file says nothing."""
    position = words.index("--settings") + 1
    settings = json.loads(words[position])
    (settings[section] if section else settings)[leaf] = value
    return [*words[:position], json.dumps(settings), *words[position + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "patch", "number"),
    [
        (("pretrain", "learning_rate", {"factor": 1.01, "warmup_steps": 10000}), "", "step.5"),
        (("", "seed", 1), "", "step.1"),
        (None, COARSE_ROOT, "step.1"),
        (None, ROOT_OF_ANOTHER_MAKER, ""),
    ],
    ids=["learning rate 1 % higher", "another seed", "coarse root", "root of another maker"],
)
def test_another_calculation_is_found_by_an_early_loss_and_another_rounding_is_not(
    machine: Path, changed: tuple[str, str, Any] | None, patch: str, number: str
) -> None:
    words = commands(machine)["pretrain-baseline"]
    if changed:
        words = with_setting(words, *changed)
    code = WITH_PATCH.format(patch=patch)
    ran = run_in(machine, sys.executable, "-c", code, *words[1:])
    assert ran.returncode == 0, ran.stdout
    verdict = verdicts(machine)["pretrain-baseline"]
    # On a CPU whose own RSQRTPS is exact the bytes are equal.
    assert verdict["outcome"] in ({"differently"} if number else {"within the spread", "exactly"})
    assert f"loss_of_{number} is" in verdict["why"] or not number


@pytest.mark.slow
def test_a_run_with_one_weight_moved_by_an_ulp_is_within_the_spread_of_two_such(
    machine: Path,
) -> None:
    ran = run_in(machine, sys.executable, "benchmarks/spread.py", "--twins", "2")
    assert ran.returncode == 0, ran.stdout
    commit(machine, "spread")
    ran = run_in(machine, sys.executable, "-c", RUN_TWIN)
    assert ran.returncode == 0, ran.stdout
    report = run_in(machine, sys.executable, "-m", *commands(machine)["report"])
    assert report.returncode == 0, report.stdout
    ran = certificate(machine)
    assert ran.returncode == 0, ran.stdout
    outcomes = {stage: verdict["outcome"] for stage, verdict in verdicts(machine).items()}
    trained = ("pretrain-baseline", "finetune-baseline", "report")
    assert {outcomes[stage] for stage in trained} == {"within the spread"}
    assert "differently" not in outcomes.values()
