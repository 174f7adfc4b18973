"""All runs of a project: which rows there are, what they know, and which match."""

import csv
import io
import json
import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from clones import commit
from made_graphs import RESULT, lock, record
from made_runs import (
    FINETUNE_STEPS,
    PRETRAIN_STEPS,
    RAW,
    finetuning,
    pretraining,
    scores_of,
    write_job,
    write_run,
)
from studies import ROOT

from t5repro.config.flops import step_flops
from t5repro.errors import LineageError
from t5repro.lineage.study_archive import ARCHIVE
from t5repro.runs.search import search
from t5repro.runs.table import Query, RunTable
from t5repro.runs.terms import parse_term
from t5repro.runs.used_by import wanted_file

RULES = ("data", "tokens", "pretrain", "finetune", "evaluate_predict", "evaluate_score")
FOLDERS = tuple(f"{RESULT}/{rule}" for rule in RULES)


def find(root: Path, *terms: str, sort: str = "", columns: str = "", **options: Any) -> RunTable:
    names = tuple(filter(None, columns.split(",")))
    query = Query(tuple(map(parse_term, terms)), sort, names)
    return search(root, query, **options)


def experiments(table: RunTable) -> list[Any]:
    return [row.get("experiment") for row in table.rows]


def test_each_experiment_is_a_row_with_its_state(checkout: Path) -> None:
    table = find(checkout)
    assert experiments(table) == ["base", "t5.1.1", "trained", "undefined"]
    states = [row.get("state") for row in table.rows]
    assert states == ["finished", "finished", "unscored", "finished"]
    assert [row.get("seed") for row in table.rows] == [0, 1, 3, 2]
    assert table.is_complete


def test_operations_are_those_of_all_trainings_by_their_settings(checkout: Path) -> None:
    (row,) = find(checkout, "experiment:eq:base").rows
    first, second = pretraining(), finetuning()
    flops = [
        step_flops(stage.model, training, embedding_rows=stage.vocab.embedding_rows)
        for stage, training in ((first, first.pretrain), (second, second.finetune))
    ]
    assert row.get("flops") == PRETRAIN_STEPS * flops[0] + FINETUNE_STEPS * flops[1]
    assert row.get("tokens") == PRETRAIN_STEPS * 2 * 16
    assert row.get("parameters") == 1234
    assert row.get("counter.pretrain.final_loss") == 2.5
    (trained,) = find(checkout, "experiment:eq:trained").rows
    assert trained.get("flops") == PRETRAIN_STEPS * flops[0]


def test_scores_settings_and_counters_decide_and_an_undefined_score_never_matches(
    checkout: Path,
) -> None:
    assert experiments(find(checkout, "glue_rte.accuracy:gt:40")) == ["base", "t5.1.1"]
    assert experiments(find(checkout, "score.glue_rte.accuracy:ne:50")) == ["t5.1.1"]
    assert experiments(find(checkout, "glue_rte.accuracy:gt:0", "cb.accuracy:lt:25")) == ["t5.1.1"]
    assert experiments(find(checkout, "experiment:eq:t5.1.1")) == ["t5.1.1"]
    assert len(find(checkout, "pretrain.steps:eq:10").rows) == 4
    assert find(checkout, "counter.pretrain.final_loss:lt:2").rows == ()


def test_a_dot_in_the_name_of_a_task_is_part_of_the_key(tmp_path: Path) -> None:
    write_run(tmp_path, scores={"a": scores_of(1.0, **{"my.task": 60.0})})
    assert len(find(tmp_path, "my.task.accuracy:gt:59").rows) == 1


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("glue_rte.accuracy", ["base", "t5.1.1", "trained", "undefined"]),
        ("glue_rte.accuracy:desc", ["t5.1.1", "base", "trained", "undefined"]),
        ("flops:desc", ["base", "t5.1.1", "undefined", "trained"]),
        ("experiment:desc", ["undefined", "trained", "t5.1.1", "base"]),
    ],
)
def test_rows_are_sorted_with_missing_values_last_in_both_orders(
    checkout: Path, sort: str, expected: list[str]
) -> None:
    assert experiments(find(checkout, sort=sort)) == expected


def test_an_unknown_key_is_refused_with_the_nearest(checkout: Path) -> None:
    for options in ({"sort": "glue_rte.acuracy"}, {"columns": "run,glue_rte.acuracy"}):
        with pytest.raises(LineageError, match=r"no run has .*nearest: 'glue_rte.accuracy'"):
            find(checkout, **options)
    with pytest.raises(LineageError, match="nearest: 'pretrain.steps'"):
        find(checkout, "pretrian.steps:eq:10")


def test_a_folder_without_runs_is_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(LineageError, match="there is no run: .*run snakemake, or dvc pull, first"):
        find(tmp_path)


def test_a_retrained_model_makes_the_row_of_its_scores_stale(checkout: Path) -> None:
    write_run(checkout, "r", {"base": None}, steps=11)
    states = {row.get("experiment"): [] for row in find(checkout).rows}
    for row in find(checkout).rows:
        states[row.get("experiment")].append((row.get("state"), row.get("flops") is None))
    # The new training is a row of its own, and the operations of the old one are not known.
    assert states["base"] == [("stale", True), ("unscored", False)]
    assert states["t5.1.1"] == [("finished", False)]


def test_fine_tunings_of_groups_that_disagree_have_a_list(checkout: Path) -> None:
    stage = finetuning()
    weights = json.loads((checkout / RESULT / "pretrain/base/manifest.json").read_text())["outputs"]
    answers = []
    for number, group in enumerate(("x", "y")):
        entry = {"path": f"{RESULT}/finetune/g_{group}/w", "bytes": 1, "sha256": f"{number}" * 64}
        settings = stage.model_dump(mode="json")
        settings["finetune"]["steps"] = 5 + number
        write_job(checkout, "r", "finetune", f"g_{group}", weights, [entry], settings)
        answers.append(entry)
    write_job(checkout, "r", "evaluate_score", "g", answers, [])
    (row,) = find(checkout, "experiment:eq:g").rows
    assert row.get("finetune.steps") == "[5, 6]"
    assert experiments(find(checkout, "finetune.steps:has:6")) == ["g"]
    assert experiments(find(checkout, "finetune.steps:le:5")) == ["base", "t5.1.1", "undefined"]


DAMAGED = {
    "results/r/finetune/base/manifest.json": ("{", "is not a manifest"),
    "results/r/tool/x/manifest.json": ('{"name": "of another tool"}', "is not a manifest"),
    "results/manifest.json": ("{}", "it is in no folder of a run"),
    "results/r/evaluate_score/base/scores.json": ("{}", "not the file that its manifest names"),
}


@pytest.mark.parametrize("path", DAMAGED)
def test_a_damaged_or_foreign_file_is_named_and_the_other_rows_are_there(
    checkout: Path, path: str
) -> None:
    text, message = DAMAGED[path]
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).write_text(text, encoding="utf-8")
    for _ in range(2):  # a fault is said again, although rows are kept
        table = find(checkout)
        assert not table.is_complete
        ((place, fault),) = table.faults
        assert place == "results"
        assert fault.startswith(f"{path}: ")
        assert message in fault
        assert {"t5.1.1", "undefined", "trained"} <= set(experiments(table))


@pytest.mark.parametrize(
    "content",
    [
        '{"tasks": {"glue_rte": {"metrics": {"accuracy": NaN}}}}',
        '{"tasks": {"glue_rte": {"metrics": {"accuracy": "high"}}}}',
        '{"tasks": []}',
        '{"tasks": {"glue_rte": 5}}',
        "[]",
    ],
)
def test_scores_that_are_no_numbers_are_named_and_missing(tmp_path: Path, content: str) -> None:
    write_run(tmp_path, scores={"a": content, "b": scores_of(3.0)})
    table = find(tmp_path)
    assert [fault.partition(": no scores")[0] for _, fault in table.faults] == [
        f"{RESULT}/evaluate_score/a/scores.json"
    ]
    assert [row.get("score.glue_rte.accuracy") for row in table.rows] == [None, 3.0]


def test_settings_of_another_version_leave_the_operations_unknown(checkout: Path) -> None:
    path = checkout / RESULT / "pretrain/base/manifest.json"
    values = json.loads(path.read_text())
    values["settings"]["pretrain"]["setting_of_2030"] = 5
    values["counters"]["final_loss"] = 10**400  # no float
    path.write_text(json.dumps(values))
    (row,) = find(checkout, "experiment:eq:base").rows
    assert row.get("flops") is None
    assert row.get("counter.pretrain.final_loss") is None
    assert row.get("pretrain.setting_of_2030") == 5
    assert find(checkout, sort="flops").to_text()


def test_time_and_machine_come_from_records_and_only_if_all_are_known(checkout: Path) -> None:
    jobs = ("pretrain", "finetune", "evaluate_predict", "evaluate_score")
    for rule in jobs:
        record(checkout, f"r/{rule}/base", commit="abc")
        record(checkout, f"r/{rule}/t5.1.1")
    (checkout / "records/r/pretrain/t5.1.1.json").write_text("{")
    table = find(checkout, columns="date,seconds,commit,machine")
    known, damaged, *_ = table.rows
    assert known.get("date") == "2100-01-02T03:04:08+00:00"
    assert known.get("commit") == "abc"
    assert isinstance(known.get("seconds"), float)
    assert damaged.get("seconds") is None
    assert damaged.get("date") is not None
    assert find(checkout).rows[0].get("date") is None  # not read
    assert len(find(checkout, "date:ge:2100", "commit:eq:abc").rows) == 1


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep rows of files that have just been written."""
    monkeypatch.setattr("t5repro.runs.cache.SETTLED_NANOSECONDS", -(10**18))


@pytest.mark.usefixtures("kept")
def test_kept_rows_are_the_rows_and_a_changed_run_is_read_again(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(checkout, "other", {"x": scores_of(5.0)})
    first = find(checkout)
    read: list[str] = []
    monkeypatch.setattr(
        "t5repro.runs.states.read_run", lambda store, run, *_: read.append(run) or ()
    )
    assert find(checkout) == first
    assert read == []
    write_run(checkout, "other", {"x": scores_of(6.0)})
    assert len(find(checkout).rows) == 4
    assert read == ["other"]


@pytest.mark.usefixtures("kept")
def test_kept_records_are_read_again_once_one_has_changed(checkout: Path) -> None:
    record(checkout, "r/evaluate_score/base", commit="abc")
    for _ in range(2):
        assert experiments(find(checkout, "commit:eq:abc")) == ["base"]
    record(checkout, "r/evaluate_score/base", commit="def0")
    record(checkout, "r/evaluate_score/t5.1.1", commit="abc")
    assert experiments(find(checkout, "commit:eq:abc")) == ["t5.1.1"]


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 5}', '{"entries": 3}'])
def test_a_damaged_cache_is_ignored(checkout: Path, text: str) -> None:
    first = find(checkout)
    (checkout / "work/lineage/runs.json").write_text(text)
    assert find(checkout) == first


@pytest.mark.usefixtures("kept")
def test_an_entry_of_the_cache_that_somebody_else_wrote_is_ignored(checkout: Path) -> None:
    first = find(checkout)
    path = checkout / "work/lineage/runs.json"
    values = json.loads(path.read_text())
    for entry in values["entries"].values():
        entry[1] = {"rows": [5]}
    path.write_text(json.dumps(values))
    assert find(checkout) == first


def test_rows_of_files_that_changed_just_now_are_not_kept(checkout: Path) -> None:
    find(checkout)
    assert not (checkout / "work/lineage/runs.json").exists()


def test_a_committed_study_is_read_from_its_archive(checkout: Path) -> None:
    study = checkout / "studies/desk_study"
    study.mkdir(parents=True)
    shutil.copy(ROOT / "studies/desk_study" / ARCHIVE, study)
    (checkout / "studies/damaged").mkdir()
    (checkout / f"studies/damaged/{ARCHIVE}").write_bytes(b"no archive")
    table = find(checkout, "run:eq:desk_study", "experiment:eq:baseline")
    (row,) = table.rows
    assert row.places == ("studies/desk_study",)
    # `scores.json` of the study, and 5,000 steps of 16 rows of 128 tokens.
    assert row.get("score.glue_sst2.accuracy") == 72.59174311926606
    assert row.get("tokens") == 5000 * 16 * 128
    ((place, fault),) = table.faults
    assert place == "studies/damaged"
    assert "is damaged" in fault


def test_an_archive_with_two_members_of_one_name_is_refused(checkout: Path) -> None:
    study = checkout / "studies/forged"
    study.mkdir(parents=True)
    with lzma.open(study / ARCHIVE, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for _ in range(2):
            tar.add(checkout / RESULT / "data/manifest.json", f"{RESULT}/data/manifest.json")
    ((place, fault),) = find(checkout).faults
    assert place == "studies/forged"
    assert f"has two members named {RESULT}/data/manifest.json" in fault


def test_two_runs_of_one_name_at_two_revisions_are_two_rows(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("results\n.dvc\nwork\n")
    for score in (50.0, 60.0):
        write_run(tmp_path, "r", {"a": scores_of(score)})
        lock(tmp_path, folders=FOLDERS)
        commit(tmp_path, f"score {score}")
    write_run(tmp_path, "r", {"a": scores_of(60.0)})
    table = find(tmp_path, all_revisions=True)
    found = {row.get("score.glue_rte.accuracy"): row.places for row in table.rows}
    assert found.keys() == {50.0, 60.0}
    # The run of the working tree is the one of the newer revision: one row in two places.
    assert len(found[60.0]) == 2
    assert found[60.0][0] == "results"
    assert all(place.startswith("revision ") for place in (*found[50.0], found[60.0][1]))
    shutil.rmtree(tmp_path / ".dvc/cache")
    # A commit never changes, so its rows are known without the objects, but not to a new clone.
    assert find(tmp_path, all_revisions=True) == table
    shutil.rmtree(tmp_path / "work")
    table = find(tmp_path, all_revisions=True)
    assert [place[:8] for place, _ in table.faults] == ["revision"] * 2
    assert [row.places for row in table.rows] == [("results",)]


def test_a_model_finds_the_rows_made_from_it(checkout: Path) -> None:
    write_run(checkout, "other", {"x": scores_of(5.0)})
    path = f"{RESULT}/pretrain/t5.1.1/weights.safetensors"
    manifest = json.loads((checkout / RESULT / "pretrain/t5.1.1/manifest.json").read_text())
    sha256 = manifest["outputs"][0]["sha256"]
    for name in (path, "t5.1.1/weights.safetensors", sha256, sha256[:12].upper()):
        wanted = wanted_file(checkout, name)
        expected = ["t5.1.1"]
        assert experiments(find(checkout, wanted=[wanted])) == expected, name
    trained = f"{RESULT}/pretrain/trained/weights.safetensors"
    assert experiments(find(checkout, wanted=[wanted_file(checkout, trained)])) == ["trained"]
    with pytest.raises(LineageError, match="no manifest of a run names such a file"):
        find(checkout, wanted=[wanted_file(checkout, "no/such/file")])
    with pytest.raises(LineageError, match="is no file"):
        wanted_file(checkout, "")


def test_a_raw_file_finds_the_runs_that_read_its_content(checkout: Path) -> None:
    write_run(checkout, "other", {"x": scores_of(5.0)}, raw="another crawl")
    (checkout / RAW).parent.mkdir(parents=True)
    (checkout / RAW).write_text("another crawl")
    assert experiments(find(checkout, wanted=[wanted_file(checkout, RAW)])) == ["x"]
    (checkout / RAW).unlink()
    both = find(checkout, wanted=[wanted_file(checkout, RAW)])  # by path in both manifests
    assert {row.get("run") for row in both.rows} == {"r", "other"}


def test_a_table_is_text_csv_and_json(checkout: Path) -> None:
    table = find(checkout, "state:eq:finished")
    lines = table.to_text().splitlines()
    assert lines[0].split()[:5] == ["run", "experiment", "seed", "state", "flops"]
    assert lines[1].split() == ["r", "base", "0", "finished", "8.71e+06", "30.00", "50.00"]
    assert lines[-1] == "3 of 4 rows"
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["score.glue_rte.accuracy"] for row in rows] == ["50.0", "75.5", ""]
    answer = table.to_json()
    assert answer["total"] == 4
    assert answer["rows"][1]["score.glue_rte.accuracy"] == 75.5
    assert answer["rows"][1]["places"] == ["results"]
    chosen = find(checkout, columns="experiment,cb.accuracy").to_json()
    assert chosen["rows"][0] == {"experiment": "base", "score.cb.accuracy": 30.0}


def test_a_name_cannot_add_a_line_or_act_on_the_terminal(tmp_path: Path) -> None:
    write_run(tmp_path, scores={"a\x1b[2J\u202e\tb": scores_of(1.0)})
    write_run(tmp_path, "q", {"a\nr  forged": scores_of(1.0)})  # no manifest may name such a file
    text = find(tmp_path).to_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\nr  forged" not in text
    assert text.splitlines()[1].startswith(r"r    a\x1b[2J\u202e\tb")
    assert text.splitlines()[2] == "1 of 1 rows"


def test_many_faults_are_counted(tmp_path: Path) -> None:
    write_run(tmp_path)
    for number in range(30):
        path = tmp_path / f"results/r/c4/{number}/manifest.json"
        path.parent.mkdir(parents=True)
        path.write_text("{")
    text = find(tmp_path).to_text()
    assert text.count("not read: results: ") == 20
    assert text.endswith("and 10 more not read (--json lists all)\n")
