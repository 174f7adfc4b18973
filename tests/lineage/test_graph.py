"""The graph of jobs and artifacts, and that it is quick."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from made_graphs import RESULT, SCORES, WEIGHTS, large_run, manifest, write

from t5repro.cli.main import main
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import trace


def test_a_link_is_a_hash_that_leaves_one_job_and_enters_another(run: Path) -> None:
    graph = load_graph(Folder(run))
    assert len(graph.jobs) == 9
    assert graph.broken == []
    assert [job.name for job in graph.before(graph.jobs["r/finetune/a"])] == [
        "r/c4/a",
        "r/tasks/one",
        "r/tasks/two",
    ]
    names = [job.name for job in graph.ordered()]
    assert names[0] == "r/data"
    assert names[-1] == "r/evaluate_score/a"


def test_a_list_of_withdrawn_pages_is_an_input_that_no_job_writes(run: Path) -> None:
    path = run / f"{RESULT}/c4/a/manifest.json"
    values = json.loads(path.read_text())
    values["inputs"].append({"path": "withdrawn/pages.yaml", "sha256": "0" * 64, "bytes": 1})
    path.write_text(json.dumps(values))
    store = Folder(run)
    graph = load_graph(store)
    found = trace(graph, store, SCORES)
    assert graph.broken == []
    assert found.broken == ()
    assert "withdrawn/pages.yaml" in [file.path for file in found.raw]


def test_a_stage_moved_to_another_disk_behind_a_link_stays_in_the_graph(run: Path) -> None:
    jobs = load_graph(Folder(run)).jobs.keys()
    elsewhere = run.parent / "elsewhere"
    for name in ("c4", "evaluate_score/a"):  # a folder of nodes, and that of a node
        folder = run / RESULT / name
        shutil.move(folder, elsewhere / name)
        folder.symlink_to(elsewhere / name)
    (elsewhere / "c4/back").symlink_to(elsewhere)  # both lead back: no walk ends in them
    (run / RESULT / "again").symlink_to(run)
    assert load_graph(Folder(run)).jobs.keys() == jobs
    assert "evaluate_score" in {job.rule for job in load_graph(Folder(run)).jobs.values()}


def test_a_moved_file_is_linked_by_its_content(run: Path) -> None:
    path = run / f"{RESULT}/c4/a/manifest.json"
    values = json.loads(path.read_text())
    values["outputs"][0]["path"] = "results/elsewhere/en-train.parquet"
    path.write_text(json.dumps(values))
    graph = load_graph(Folder(run))
    assert "r/c4/a" in [job.name for job in graph.before(graph.jobs["r/finetune/a"])]


def test_a_raw_file_that_another_run_wrote_leads_to_that_run(run: Path) -> None:
    other = "results/a"  # a name before that of the first run
    manifest(run, f"{other}/data/manifest.json", rule="data", outputs=[WEIGHTS])
    write(run, f"{other}/pretrain/x/weights.safetensors", "weights of the other run")
    manifest(
        run,
        f"{other}/pretrain/x/manifest.json",
        rule="pretrain",
        inputs=[WEIGHTS],
        outputs=[f"{other}/pretrain/x/weights.safetensors"],
    )
    store = Folder(run)
    graph = load_graph(store)
    jobs = [job.name for job in trace(graph, store, f"{other}/pretrain/x/weights.safetensors").jobs]
    assert jobs[-2:] == ["r/finetune/a", "a/pretrain/x"]
    assert "r/data" in jobs
    # A result that has changed since is a raw file like any other.
    write(run, WEIGHTS, "other weights")
    manifest(run, f"{RESULT}/finetune/a/manifest.json", rule="finetune", outputs=[WEIGHTS])
    jobs = [
        job.name
        for job in trace(load_graph(store), store, f"{other}/pretrain/x/weights.safetensors").jobs
    ]
    assert jobs == ["a/data", "a/pretrain/x"]


def test_an_input_that_no_job_wrote_is_a_broken_link(run: Path) -> None:
    path = run / f"{RESULT}/tasks/one/manifest.json"
    values = json.loads(path.read_text())
    values["outputs"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(values))
    graph = load_graph(Folder(run))
    assert {name for name, _ in graph.broken} == {
        "r/finetune/a",
        "r/evaluate_predict/a",
        "r/evaluate_score/a",
    }


def test_a_file_whose_manifest_lost_its_outputs_is_no_raw_file(run: Path) -> None:
    path = (run / WEIGHTS).parent / "manifest.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "outputs": []}))
    found = trace(load_graph(Folder(run)), Folder(run), WEIGHTS)
    assert found.raw == ()
    assert {file.path for _, file in found.broken} == {WEIGHTS}


def test_an_artifact_is_found_by_path_end_of_path_and_start_of_hash(run: Path) -> None:
    graph = load_graph(Folder(run))
    artifact = graph.find(WEIGHTS)
    assert graph.find("a/weights.safetensors") == artifact
    assert graph.find(artifact.sha256[:10]) == artifact


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("results/r/finetune/a/weight.safetensors", "nearest: results/r/finetune/a/weights"),
        ("train.jsonl", "2 files match, among them results/r/tasks/one/train.jsonl"),
        ("nothing", "no manifest below results/ names such a file"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(run: Path, query: str, message: str) -> None:
    with pytest.raises(LineageError, match=message):
        load_graph(Folder(run)).find(query)


def test_a_file_that_is_no_manifest_is_named(run: Path) -> None:
    write(run, f"{RESULT}/c4/a/manifest.json", "{}")
    with pytest.raises(ArtifactError, match=r"c4/a/manifest.json is not a manifest \(KeyError"):
        load_graph(Folder(run))


@pytest.mark.parametrize("name", ["lock-manifest.json", "0123abcd-manifest.json"])
def test_a_question_is_answered_while_a_job_runs(run: Path, name: str) -> None:
    before = load_graph(Folder(run)).jobs.keys()
    write(run, f"{RESULT}/finetune/b/.writing-{name}", "")
    assert load_graph(Folder(run)).jobs.keys() == before


def test_jobs_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "results/r/a/x", "x")
    write(tmp_path, "results/r/b/y", "y")
    x, y = "results/r/a/x", "results/r/b/y"
    manifest(tmp_path, "results/r/a/manifest.json", rule="a", inputs=[y], outputs=[x])
    manifest(tmp_path, "results/r/b/manifest.json", rule="b", inputs=[x], outputs=[y])
    with pytest.raises(LineageError, match="in a circle: r/a, r/b"):
        load_graph(Folder(tmp_path)).ordered()


def work_of(arguments: list[str]) -> int:
    """Run a command in this process; return the number of functions that it calls."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        assert main(arguments) == 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return calls


@pytest.mark.parametrize(
    "arguments",
    [
        ["trace", "results/r/evaluate_score/a/scores.json", "--json"],
        ["verify", "--json"],
        ["impact", "data/crawl/0/0.wet", "--json"],
    ],
)
def test_the_work_of_a_question_grows_as_the_number_of_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    work = []
    for artifacts in (100, 1_000, 4_000):  # the first call imports modules
        root = tmp_path / str(artifacts)
        large_run(root, artifacts)
        monkeypatch.chdir(root)
        work.append(work_of(arguments))
    assert work[2] - work[1] > 3_000  # each was looked at
    assert work[2] < 4.4 * work[1]


def test_questions_do_not_wait_for_tensorflow_or_dvc(run: Path) -> None:
    code = (
        "import sys; from t5repro.cli.main import main\n"
        f"for arguments in (['trace', '{SCORES}'], ['verify'], ['impact', 'data/crawl/0.wet']):\n"
        "    assert main(arguments) == 0\n"
        "assert not {'tensorflow', 'keras', 'dvc', 'snakemake'} & set(sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=run, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
