"""The committed results of studies: hashes lead from each of them to the files of its run file."""

from pathlib import Path

import pytest
from checkout import ROOT
from run_files import load_committed
from studies import STUDIES, unpacked

from t5repro.lineage.evidence import evidence_of
from t5repro.lineage.findings import NOT_ARCHIVED, SETTINGS, UNSIGNED
from t5repro.lineage.git import blob_hash, blobs_below, try_git
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import trace
from t5repro.lineage.verify_other_code import check_other_code
from t5repro.lineage.verify_study import verify_study

# The last commit with the files of the studies in folders, before they were packed.
IN_FOLDERS = "ac72e2fac323d846e00d3531bea856384aa50d91"
RUN_AGAIN = ("systems", "desk_study", "desk_systems", "desk_recipes")  # since that commit
MAX_FILES, MEAN_BYTES = 40, 600_000  # of all studies; of one


@pytest.fixture(scope="module", params=[study.name for study in STUDIES])
def name(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture(scope="module")
def study(name: str) -> Path:
    return unpacked(name)


@pytest.fixture(scope="module")
def graph(study: Path) -> Graph:
    return load_graph(Folder(study))


def committed_results(study: Path) -> list[Path]:
    files = (path for path in (study / "results").rglob("*") if path.is_file())
    return sorted(path for path in files if path.name != "manifest.json")


def declared_hashes(name: str) -> set[str]:
    data = load_committed(name).data
    return {sha256 for source in data.sources for sha256 in source.files.values()}


def test_the_studies_are_few_and_small_files() -> None:
    files = [path for path in (ROOT / "studies").rglob("*") if path.is_file()]
    assert len(files) <= MAX_FILES
    assert sum(path.stat().st_size for path in files) <= MEAN_BYTES * len(STUDIES)


def test_an_archive_has_the_files_of_the_folder_that_it_replaces(name: str, study: Path) -> None:
    if name in RUN_AGAIN:
        pytest.skip("a study that was run again")
    commit = try_git(ROOT, "rev-parse", "--verify", "--quiet", f"{IN_FOLDERS}^{{commit}}")
    if commit is None:
        pytest.skip("a shallow clone has no earlier commits")
    folder = f"studies/{name}/"
    blobs = blobs_below(ROOT, commit.decode().strip(), folder)
    if not blobs:
        pytest.skip("a study that never was in a folder")
    like = next(iter(blobs.values()))
    files = {
        f"{folder}{path.relative_to(study).as_posix()}": blob_hash(path.read_bytes(), like)
        for path in study.rglob("*")
        if path.is_file()
    }
    assert files == blobs


def test_a_study_agrees_with_its_manifests_records_and_lock(name: str, tmp_path: Path) -> None:
    verdict = verify_study(ROOT / "studies" / name, tmp_path)
    assert verdict.findings == ()
    assert {finding.kind for finding in verdict.warnings} >= {NOT_ARCHIVED, UNSIGNED}
    assert verdict.sealed


def test_each_result_has_the_hash_that_its_job_recorded(study: Path, graph: Graph) -> None:
    results = committed_results(study)
    assert results
    for path in results:
        artifact = graph.find(path.relative_to(study).as_posix())
        assert artifact.sha256 == hash_file(path).sha256, path


def test_each_score_and_loss_leads_to_raw_files_of_the_run_file(
    name: str, study: Path, graph: Graph
) -> None:
    declared = declared_hashes(name)
    results = ("scores.json", "history.csv")  # of some studies only the pre-trainings were run
    paths = [path for path in committed_results(study) if path.name in results]
    assert paths
    for path in paths:
        answer = trace(graph, Folder(study), path.relative_to(study).as_posix())
        assert answer.broken == ()
        assert {artifact.sha256 for artifact in answer.raw} <= declared
        assert answer.raw


def test_the_record_of_each_job_is_attested_by_index_and_lock(
    name: str, study: Path, graph: Graph
) -> None:
    jobs = [job for job in graph.jobs.values() if job.record]
    assert len(jobs) == len(graph.jobs)
    for job, evidence in evidence_of(Folder(study), jobs).items():
        assert f"records/{name}.index.json" in " ".join(evidence.attested), job
        assert "dvc.lock" in " ".join(evidence.attested), job
        assert evidence.refuted == (), job


def test_each_job_had_the_settings_of_the_run_file(graph: Graph) -> None:
    # The rule `report` receives all settings, of which some were recipes before there were presets.
    jobs = [job for job in graph.jobs.values() if job.rule != "report"]
    findings = [item for item in check_other_code(ROOT, jobs) if item.kind == SETTINGS]
    assert findings == []
