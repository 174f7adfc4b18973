"""The committed results of studies: hashes lead from each of them to the files of its run file."""

from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.estimate.run_files import load_run_files
from t5repro.lineage.evidence import evidence_of
from t5repro.lineage.findings import SETTINGS
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import trace
from t5repro.lineage.verify_other_code import check_other_code


@pytest.fixture(scope="module", params=sorted((ROOT / "studies").iterdir()), ids=lambda p: p.name)
def study(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture(scope="module")
def graph(study: Path) -> Graph:
    return load_graph(Folder(study))


def committed_results(study: Path) -> list[Path]:
    files = (path for path in (study / "results").rglob("*") if path.is_file())
    return sorted(path for path in files if path.name != "manifest.json")


def declared_hashes(study: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.chdir(ROOT)
    data = load_run_files([Path(f"configs/{study.name}.yaml")]).data
    return {sha256 for source in data.sources for sha256 in source.files.values()}


def test_each_result_has_the_hash_that_its_job_recorded(study: Path, graph: Graph) -> None:
    results = committed_results(study)
    assert results
    for path in results:
        artifact = graph.find(path.relative_to(study).as_posix())
        assert artifact.sha256 == hash_file(path).sha256, path


def test_each_score_and_loss_leads_to_raw_files_of_the_run_file(
    study: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = declared_hashes(study, monkeypatch)
    found_in = ("scores.json", "history.csv")  # of some studies only the pre-trainings were run
    ends = [path for path in committed_results(study) if path.name in found_in]
    assert ends
    for path in ends:
        found = trace(graph, Folder(study), path.relative_to(study).as_posix())
        assert found.broken == ()
        assert {artifact.sha256 for artifact in found.raw} <= declared
        assert found.raw


def test_the_record_of_each_job_is_attested_by_index_and_lock(study: Path, graph: Graph) -> None:
    jobs = [job for job in graph.jobs.values() if job.record]
    assert len(jobs) == len(graph.jobs)
    for name, evidence in evidence_of(Folder(study), jobs).items():
        assert f"records/{study.name}.index.json" in " ".join(evidence.attested), name
        assert "dvc.lock" in " ".join(evidence.attested), name
        assert evidence.refuted == (), name


def test_each_job_had_the_settings_of_the_run_file(graph: Graph) -> None:
    findings = check_other_code(ROOT, graph.jobs.values())
    assert [finding for finding in findings if finding.kind == SETTINGS] == []
