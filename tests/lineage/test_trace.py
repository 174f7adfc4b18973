"""The way from a score to the raw files: as a value, as a tree and as JSON."""

import json
from pathlib import Path

import pytest
from made_graphs import RESULT, SCORES, record, two_phases
from made_records import write_records
from whole_records import MACHINE

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import Trace, to_json, to_text, trace


def traced(run: Path, query: str) -> tuple[Trace, Graph]:
    graph = load_graph(Folder(run))
    return trace(graph, Folder(run), query), graph


def test_a_score_leads_to_every_raw_file(run: Path) -> None:
    provenance, _ = traced(run, SCORES)
    assert [artifact.path for artifact in provenance.raw] == [
        "data/crawl/0.wet",
        "data/crawl/1.wet",
        "data/tasks/one.tsv",
        "data/tasks/two.tsv",
    ]
    assert provenance.broken == ()
    assert [job.rule for job in provenance.jobs][-2:] == ["evaluate_predict", "evaluate_score"]


def test_the_score_of_a_task_needs_no_other_tasks_predictions(run: Path) -> None:
    provenance, _ = traced(run, f"{SCORES}#one")
    assert provenance.value == {"metrics": {"accuracy": 50.0}}
    names = {artifact.path for artifact in provenance.inputs["r/evaluate_score/a"]}
    assert names == {f"{RESULT}/evaluate_predict/a/one.jsonl", f"{RESULT}/tasks/one/train.jsonl"}
    # the mixture saw both
    assert len(provenance.inputs["r/finetune/a"]) == 3


def test_a_corpus_file_leads_to_its_crawl_only(run: Path) -> None:
    provenance, _ = traced(run, f"{RESULT}/c4_clean/a/1.parquet")
    assert [artifact.path for artifact in provenance.raw] == ["data/crawl/1.wet"]


def test_an_unknown_task_is_answered_with_those_there_are(run: Path) -> None:
    with pytest.raises(LineageError, match=r"#three: no such task; the file scores \['one', 'two'"):
        traced(run, f"{SCORES}#three")
    with pytest.raises(LineageError, match="has no scores by task; leave #x out"):
        traced(run, "finetune/a/manifest.json#x")


def test_each_step_says_settings_code_and_machine(run: Path) -> None:
    record(
        run,
        "r/finetune/a",
        at="2026-01-01T00:00:00+00:00",
        attempt=1,
        commit="c" * 40,
        uncommitted=None,
        code={"src/x.py": "1" * 64},
        machine={**MACHINE, "libraries": {"keras": "3.15.1"}, "processor": None},
    )
    text = to_text(*traced(run, SCORES))
    assert 'settings  devices.kind="cpu", finetune.rate=0.1' in text
    assert "code      1 files of cccccccccccc" in text
    assert "machine   CPython 3.11.7, keras 3.15.1, Linux x86_64" in text
    assert text.count("code      not recorded") == 8  # nothing is made up for the others


def test_the_trace_of_a_later_phase_names_both_trainings_with_their_steps_and_text(
    tmp_path: Path,
) -> None:
    traced_score = traced(tmp_path, f"{two_phases(tmp_path)}#one")
    lines = [line.strip() for line in to_text(*traced_score).splitlines()]
    shown = [line for line in lines if line.startswith(("└─", "steps"))]
    assert shown == [
        "└─ r/evaluate_score/phases",
        "└─ r/pretrain/second",
        "steps     1,100, after which the optimizer counts 2,000",
        "└─ r/tokens/second",
        "└─ r/c4/second",
        "└─ r/pretrain/first",
        "steps     900, after which the optimizer counts 900",
        "└─ r/tokens/first",
        "└─ r/c4/first",
    ]
    steps = {step["job"]: step["counters"] for step in to_json(traced_score[0])["steps"]}
    assert steps["r/pretrain/second"] == {"steps": 1100, "optimizer_step": 2000}
    assert steps["r/pretrain/first"]["steps"] == 900


def test_a_record_of_another_run_with_the_same_bytes_is_named_as_such(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(run, "c" * 40)
    committed = run / "records/r/finetune/a.json"
    values = json.loads(committed.read_text())
    values["start"] |= {"at": "2026-02-03T04:05:06+00:00", "commit": "d" * 40}
    repetition = run / "work/records/r/finetune/a.json"
    repetition.parent.mkdir(parents=True)
    repetition.write_text(json.dumps(values))
    monkeypatch.chdir(run)
    main(["trace", SCORES])
    repeated = [line.strip() for line in capsys.readouterr().out.splitlines() if "repeated" in line]
    assert repeated == [
        "repeated  this copy was made at 2026-02-03T04:05:06+00:00 by dddddddddddd with Python "
        f"{values['start']['machine']['python']} (work/records/r/finetune/a.json); the record is "
        "of another run with the same bytes"
    ]
    # A repetition of results that were replaced since then is not of this copy.
    values["end"]["outputs"][0]["sha256"] = "0" * 64
    repetition.write_text(json.dumps(values))
    main(["trace", SCORES])
    assert "repeated" not in capsys.readouterr().out


def test_a_broken_way_is_said_and_has_an_exit_code(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    assert main(["trace", SCORES, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] == []
    path = run / f"{RESULT}/c4_clean/a/0.manifest.json"
    values = json.loads(path.read_text())
    values["outputs"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(values))
    assert main(["trace", SCORES]) == 1
    assert "0.parquet: read by r/c4/a, but no job or raw file" in capsys.readouterr().out
    assert main(["trace", "nothing"]) == 2


def test_json_has_every_step_with_hashes(run: Path) -> None:
    values = to_json(traced(run, SCORES)[0])
    assert values["steps"][0]["job"] == "r/evaluate_score/a"
    assert len(values["raw"]) == 4
    assert all(len(file["sha256"]) == 64 for file in values["raw"])
