"""A study that ran again has the bytes of its first run, whose archive is in the history."""

import json
from pathlib import Path

import pytest
from checkout import ROOT
from studies import unpacked

from t5repro.lineage.git import try_git
from t5repro.lineage.study_archive import ARCHIVE, read_study

FIRST_RUNS = {  # study -> the last commit with the archive of its first run
    "desk_study": "56155dfea706cd3f3fc35646fdbca980b69a785b",
    "desk_architectures": "3af45c23009a56c9564692a5193987d3986e49d1",
    "desk_repeats": "f6efd035c682fa2061fc42454def4683db509093",
    "desk_adapters": "ccbe9857ba191103eb1afade4cd69f261343adfd",
}
OTHER_REPORTS = {"desk_study"}  # whose second report has more columns


def outputs_of(manifest: bytes) -> dict[str, str]:
    """Return path -> hash of each output of a job."""
    return {entry["path"]: entry["sha256"] for entry in json.loads(manifest)["outputs"]}


@pytest.mark.parametrize("name", FIRST_RUNS)
def test_weights_predictions_and_scores_are_those_of_the_first_run(
    name: str, tmp_path: Path
) -> None:
    archive = try_git(ROOT, "cat-file", "blob", f"{FIRST_RUNS[name]}:studies/{name}/{ARCHIVE}")
    if archive is None:
        pytest.skip("a shallow clone has no earlier commits")
    (tmp_path / ARCHIVE).write_bytes(archive)
    first: dict[str, str] = {}
    for path, data in read_study(tmp_path):
        if path.endswith("/manifest.json"):
            first |= outputs_of(data)
    again: dict[str, str] = {}
    for manifest in (unpacked(name) / "results").rglob("manifest.json"):
        again |= outputs_of(manifest.read_bytes())
    report = f"results/{name}/report/"
    assert any(path.startswith(report) for path in first)
    if name in OTHER_REPORTS:
        first, again = (
            {path: sha256 for path, sha256 in hashes.items() if not path.startswith(report)}
            for hashes in (first, again)
        )
    assert first == again
    assert any(path.endswith("weights.safetensors") for path in first)
