"""A study that ran again has the bytes of its first run, whose archive is in the history."""

import json
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.lineage.git import try_git
from t5repro.lineage.study_archive import ARCHIVE, read_study

FIRST_RUNS = {  # study -> the last commit with the archive of its first run
    "desk_study": "56155dfea706cd3f3fc35646fdbca980b69a785b",
    "desk_architectures": "3af45c23009a56c9564692a5193987d3986e49d1",
    "desk_repeats": "f6efd035c682fa2061fc42454def4683db509093",
    "desk_adapters": "ccbe9857ba191103eb1afade4cd69f261343adfd",
}
OTHER_REPORTS = {"desk_study"}  # whose second report has more columns


def outputs_of(study: Path, *, report: bool) -> dict[str, str]:
    """Return path -> hash of each output of the jobs in an archive.

    Args:
        study: folder of the archive.
        report: whether those of the rule `report` count.
    """
    return {
        output["path"]: output["sha256"]
        for path, data in read_study(study)
        if path.endswith("/manifest.json") and (report or "/report/" not in path)
        for output in json.loads(data)["outputs"]
    }


@pytest.mark.parametrize("name", FIRST_RUNS)
def test_weights_predictions_and_scores_are_those_of_the_first_run(
    name: str, tmp_path: Path
) -> None:
    archive = try_git(ROOT, "cat-file", "blob", f"{FIRST_RUNS[name]}:studies/{name}/{ARCHIVE}")
    if archive is None:
        pytest.skip("a shallow clone has no earlier commits")
    (tmp_path / ARCHIVE).write_bytes(archive)
    report = name not in OTHER_REPORTS
    first = outputs_of(tmp_path, report=report)
    assert first == outputs_of(ROOT / "studies" / name, report=report)
    assert any(path.endswith("/weights.safetensors") for path in first)
    assert any("/report/" in path for path in first) == report
