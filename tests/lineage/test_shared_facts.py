"""Facts that many records share are kept once, and whoever attests a record attests them."""

import json
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from made_records import commit, sealed_run, write_index

from t5repro.errors import ArtifactError
from t5repro.files import read_json, write_json
from t5repro.lineage.diff import compare, load_side
from t5repro.lineage.findings import Finding
from t5repro.lineage.graph import load_graph
from t5repro.lineage.record import FORMAT, read_record, read_records
from t5repro.lineage.record_index import index_path, parse_index, records_in
from t5repro.lineage.shared_facts import (
    hashes_in,
    is_shared,
    put_back,
    share,
    shared_path,
    take_out,
)
from t5repro.lineage.store import Folder, Revision
from t5repro.lineage.trace import to_json, trace
from t5repro.lineage.verify import verify_tree
from t5repro.versions.seal_records import seal_records

RECORD = "records/r/finetune/a.json"


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A sealed and committed run whose records share their facts, as `seal` leaves them."""
    root = sealed_run(tmp_path / "checkout")
    for path in sorted((root / "records/r").rglob("*.json")):
        share(path)
    write_index(root)
    commit(root, "shared")
    return root


def shared_files(root: Path) -> list[Path]:
    return sorted((root / "records/r/shared").glob("*.json"))


def findings(root: Path) -> tuple[Finding, ...]:
    return verify_tree(root).findings


def test_a_shared_record_is_the_whole_one(tmp_path: Path) -> None:
    whole = read_records(Folder(sealed_run(tmp_path / "checkout")))
    for path in sorted((tmp_path / "checkout/records/r").rglob("*.json")):
        share(path)
    assert read_records(Folder(tmp_path / "checkout")) == whole
    assert len(whole) == 9


def test_records_of_one_environment_name_one_file(sealed: Path) -> None:
    records = [
        path for path in (sealed / "records/r").rglob("*.json") if path.parent.name != "shared"
    ]
    environments = {read_json(path)["start"]["environment"] for path in records}
    assert (len(records), len(environments)) == (9, 1)
    assert findings(sealed) == ()


def test_the_reference_takes_a_third_of_the_bytes_of_its_whole_records(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "records/demo", tmp_path / "records/demo")
    folder = tmp_path / "records/demo"
    whole = 0
    for path in sorted(folder.rglob("*.json")):
        if path.parent.name != "shared":
            whole += len(json.dumps(read_record(path).to_json(), indent=2))
            share(path)
    assert sum(path.stat().st_size for path in folder.rglob("*.json")) < whole / 3


def test_sharing_again_changes_nothing(sealed: Path) -> None:
    before = {path: path.read_bytes() for path in (sealed / "records").rglob("*.json")}
    share(sealed / RECORD)
    assert {path: path.read_bytes() for path in (sealed / "records").rglob("*.json")} == before


@pytest.mark.parametrize("part", ["environment", "sources", "modules"])
def test_an_altered_file_of_shared_facts_is_named_once(sealed: Path, part: str) -> None:
    record = read_json(sealed / RECORD)
    sha256 = {**record["start"], **record["end"]}[part]
    path = sealed / shared_path("r", sha256)
    path.write_bytes(path.read_bytes().replace(b"{", b"{ ", 1))
    (finding,) = [f for f in findings(sealed) if f.kind != "code changed"]
    assert (finding.kind, finding.path) == ("altered", shared_path("r", sha256))
    assert "its records say" in finding.message


def test_an_altered_file_is_named_without_an_index_as_well(sealed: Path) -> None:
    path = sealed / shared_path("r", read_json(sealed / RECORD)["start"]["environment"])
    path.write_bytes(path.read_bytes().replace(b"2.4.6", b"2.4.7"))
    (sealed / index_path("r")).unlink()
    messages = {f.path: f.message for f in findings(sealed)}
    assert "its records say" in messages[path.relative_to(sealed).as_posix()]


def test_a_missing_file_of_shared_facts_is_named(sealed: Path) -> None:
    name = shared_path("r", read_json(sealed / RECORD)["start"]["sources"])
    (sealed / name).unlink()
    found = {(f.kind, f.path) for f in findings(sealed)}
    assert ("missing", name) in found
    with pytest.raises(ArtifactError, match="missing, and records name it"):
        read_record(sealed / RECORD)


def test_a_file_that_no_record_names_is_named(sealed: Path) -> None:
    name = shared_path("r", "0" * 64)
    write_json(sealed / name, {})
    (finding,) = findings(sealed)
    assert (finding.kind, finding.path) == ("extra", name)


def test_an_exchanged_hash_is_an_altered_record(sealed: Path) -> None:
    record = read_json(sealed / RECORD)
    record["start"]["environment"] = record["start"]["sources"]
    write_json(sealed / RECORD, record)
    assert ("altered", RECORD) in {(f.kind, f.path) for f in findings(sealed)}


def test_the_index_covers_the_shared_files(sealed: Path) -> None:
    index = parse_index((sealed / index_path("r")).read_bytes(), "index")
    listed = {path for path in records_in(index) if is_shared(path)}
    assert listed == {path.relative_to(sealed).as_posix() for path in shared_files(sealed)}


def test_a_revision_a_trace_and_a_comparison_read_shared_records(sealed: Path) -> None:
    head = load_graph(Revision(sealed, "HEAD"))
    job = head.jobs["r/finetune/a"]
    assert job.record == read_record(sealed / RECORD)
    traced = trace(load_graph(Folder(sealed)), Folder(sealed), "weights.safetensors")
    assert (
        to_json(traced)["steps"][0]["record"]["start"]["machine"]["libraries"]["numpy"] == "2.4.6"
    )
    assert compare(load_side(sealed, "HEAD"), load_side(sealed, str(sealed))).divergences == ()


def test_a_seal_takes_out_shared_facts_and_deletes_those_that_no_record_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sealed_run(tmp_path / "checkout")
    monkeypatch.chdir(root)
    write_json(root / shared_path("r", "0" * 64), {})
    assert seal_records("r", [], {}, "data")
    assert shared_files(root) == []
    share(root / RECORD)
    assert seal_records("r", [], {}, "data")
    index = parse_index((root / index_path("r")).read_bytes(), "index")
    assert len(index["shared"].records) == 3


@pytest.mark.parametrize("value", [None, 3, "0" * 64, "../../x", []])
def test_a_record_with_another_value_in_place_of_a_hash_is_no_record(
    sealed: Path, value: object
) -> None:
    record = read_json(sealed / RECORD)
    record["start"]["environment"] = value
    write_json(sealed / RECORD, record)
    with pytest.raises(ArtifactError, match=r"machine: Field required|missing, and records"):
        read_record(sealed / RECORD)


def test_a_record_of_a_later_format_is_refused_with_a_cure(sealed: Path) -> None:
    record = read_json(sealed / RECORD)
    write_json(sealed / RECORD, {**record, "format": FORMAT + 1})
    with pytest.raises(ArtifactError, match=rf"has format {FORMAT + 1}; this version reads 1 to"):
        read_record(sealed / RECORD)


def test_taking_out_and_putting_back_keeps_what_a_killed_job_recorded() -> None:
    values = {"start": {"machine": {"a": 1}, "code": {"x": "1"}, "at": "t"}, "end": None}
    record, files = take_out(values)
    assert len(files) == 2
    assert hashes_in(record) == set(files)
    assert put_back(record, files.__getitem__) == values
