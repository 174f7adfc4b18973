"""The certificate: exactly, within tolerance, or differently and where first."""

import json
import shutil
from pathlib import Path

import pytest
from clones import commit, run_in

pytestmark = pytest.mark.workflow
RESULTS = Path("results/demo")


@pytest.fixture(scope="module")
def committed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished clone whose lock and records are committed."""
    folder = tmp_path_factory.mktemp("committed") / "clone"
    shutil.copytree(finished, folder, symlinks=True)
    commit(folder, "results")
    return folder


@pytest.fixture
def machine(committed: Path, tmp_path: Path) -> Path:
    """Another machine that has run the chain: a copy to change."""
    return Path(shutil.copytree(committed, tmp_path / "clone", symlinks=True))


def verdicts(folder: Path) -> dict[str, dict[str, str]]:
    ran = run_in(folder, "t5repro", "certificate", "--json")
    # messages about a difference may precede or follow the document
    values, _ = json.JSONDecoder().raw_decode(ran.stdout[ran.stdout.index("{\n") :])
    assert bool(ran.returncode) == any(
        verdict["outcome"] == "differently" for verdict in values["verdicts"]
    )
    return {verdict["stage"]: verdict for verdict in values["verdicts"]}


def test_equal_bytes_are_reproduced_exactly(committed: Path) -> None:
    assert {verdict["outcome"] for verdict in verdicts(committed).values()} == {"exactly"}
    ran = run_in(committed, "t5repro", "certificate")
    assert ran.returncode == 0
    assert "no stage came out differently" in ran.stdout


def test_other_texts_with_the_same_scores_are_within_tolerance(machine: Path) -> None:
    path = RESULTS / "evaluate_predict/baseline/squad.jsonl"
    with (machine / path).open("a") as handle:
        handle.write("\n")
    verdict = verdicts(machine)["evaluate_predict-baseline"]
    assert verdict["outcome"] == "within tolerance"
    assert verdict["why"] == f"{path}; its scores agree"


def test_losses_near_the_committed_ones_are_within_tolerance_and_far_ones_not(
    machine: Path,
) -> None:
    with (machine / RESULTS / "pretrain/baseline/history.csv").open("a") as handle:
        handle.write("\n")
    record = machine / "records/demo/pretrain/baseline.json"
    values = json.loads(record.read_text())
    loss = values["end"]["numbers"]["final_loss"]
    for factor, outcome in ((1.04, "within tolerance"), (1.06, "differently")):
        values["end"]["numbers"]["final_loss"] = loss * factor
        record.write_text(json.dumps(values))
        verdict = verdicts(machine)["pretrain-baseline"]
        assert verdict["outcome"] == outcome, verdict
    assert f"final_loss is {loss * 1.06}, committed is {loss}" in verdict["why"]


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
    (machine / RESULTS / "report/report.html").write_text("other")
    ran = run_in(machine, "t5repro", "certificate")
    assert ran.returncode == 1
    assert f"first difference: c4-baseline, {path}; same code, settings and inputs" in ran.stdout
    code = machine / "src/t5repro/c4/write.py"
    code.write_text(code.read_text() + "EDITED = True\n")
    ran = run_in(machine, "t5repro", "certificate")
    assert "src/t5repro/c4/write.py is not the committed one" in ran.stdout


def test_without_a_committed_lock_it_says_so(machine: Path) -> None:
    (machine / "dvc.lock").unlink()
    commit(machine, "no lock")
    ran = run_in(machine, "t5repro", "certificate")
    assert ran.returncode == 0
    assert "no certificate: HEAD has no dvc.lock to compare with" in ran.stdout
