"""Scores, manifests, records and lock forged together: the report still shows the old numbers."""

import json
from pathlib import Path

import pytest
from clones import copy_clone, run_in

from t5repro.files import sha256_of, write_json

pytestmark = pytest.mark.workflow
SCORES = "results/demo/evaluate_score/baseline/scores.json"
OF_SCORES = "results/demo/evaluate_score/baseline/manifest.json"
OF_REPORT = "results/demo/report/manifest.json"


def forge(folder: Path, path: str, known: dict[str, str]) -> None:
    """Replace hashes and lengths of forged files in a manifest or record."""
    text = (folder / path).read_text()
    values = json.loads(text)
    parts = [values, values.get("end") or {}]
    for entry in (
        item for part in parts for kind in ("inputs", "outputs") for item in part.get(kind, [])
    ):
        if entry["path"] in known:
            entry["sha256"] = known[entry["path"]]
            entry["bytes"] = (folder / entry["path"]).stat().st_size
    write_json(folder / path, values)


def test_scores_forged_with_all_their_hashes_are_not_those_of_the_report(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    verified = run_in(folder, "t5repro", "verify")
    assert verified.returncode == 0, verified.stdout
    values = json.loads((folder / SCORES).read_text())
    values["tasks"]["glue_sst2"]["metrics"]["accuracy"] = 99.9
    write_json(folder / SCORES, values)
    known = {SCORES: sha256_of(folder / SCORES)}
    forge(folder, OF_SCORES, known)
    known[OF_SCORES] = sha256_of(folder / OF_SCORES)
    forge(folder, OF_REPORT, known)
    known[OF_REPORT] = sha256_of(folder / OF_REPORT)
    for job in ("evaluate_score/baseline", "report"):
        forge(folder, f"records/demo/{job}.json", known)
    record = folder / "records/demo/evaluate_score/baseline.json"
    values = json.loads(record.read_text())
    values["end"]["numbers"]["tasks.glue_sst2.metrics.accuracy"] = 99.9
    write_json(record, values)
    sealed = run_in(folder, "t5repro", "seal")
    assert sealed.returncode == 0, sealed.stdout
    verified = run_in(folder, "t5repro", "verify")
    assert verified.returncode == 1, verified.stdout
    assert "contradicted  results/demo/report/scores.csv: line " in verified.stdout
    assert "contradicted  results/demo/report/report.html: line " in verified.stdout
