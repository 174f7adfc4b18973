"""A job's record: what it holds, when it may be sealed, and what it must never hold."""

import dataclasses
import json
import resource
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from t5repro.errors import ArtifactError
from t5repro.files import sha256_of, write_manifest
from t5repro.lineage import sources, startup
from t5repro.lineage.record import Record, read_record, read_records, record_path
from t5repro.lineage.recording import recording
from t5repro.lineage.redaction import redact, redact_path
from t5repro.lineage.sources import hashes_of_rule
from t5repro.lineage.store import Folder

LOG = Path("logs/demo/vocab/baseline.log")
RECORD = Path("records/demo/vocab/baseline.json")
SETTINGS = {"seed": 3, "vocab": {"vocab_size": 32, "language_seed": 4}}


CODE = {"__init__.py": "", "vocab/__init__.py": "", "vocab/train.py": "VOCABULARY = 32\n"}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, with a package of the test: the checkout may be edited meanwhile."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "src/t5repro"
    for name, text in CODE.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    for module in (sources, startup):
        monkeypatch.setattr(module, "PACKAGE", package)


def finish(tmp_path: Path, **changes: object) -> Path:
    """Run a block that writes one file and its manifest; return the manifest."""
    sample, model, manifest = Path("sample.txt"), Path("out/model"), Path("out/manifest.json")
    sample.write_text("text")
    arguments = {"log": LOG, "settings": SETTINGS, "files": [sample, model], "manifest": manifest}
    with recording("vocab", **{**arguments, **changes}):
        model.parent.mkdir(exist_ok=True)
        model.write_text("model")
        write_manifest(
            manifest, rule="vocab", settings=SETTINGS, inputs=[sample], outputs=[model], counters={}
        )
    return manifest


def test_a_finished_job_tells_inputs_outputs_code_settings_and_seeds(tmp_path: Path) -> None:
    manifest = finish(tmp_path)
    record = read_record(RECORD)
    assert (record.run, record.rule, record.node) == ("demo", "vocab", "baseline")
    assert record.sealable
    assert record.start.settings == SETTINGS
    assert record.start.seeds == {"seed": 3, "vocab.language_seed": 4}
    assert record.start.attempt == 1
    assert record.start.code == hashes_of_rule("vocab")
    assert record.start.code.keys() == {f"src/t5repro/{name}" for name in CODE}
    assert record.start.machine.libraries["sentencepiece"] == "0.2.1"
    assert record.start.machine.python.split()[1] == ".".join(map(str, sys.version_info[:3]))
    assert record.end is not None
    assert [file.path for file in record.end.inputs] == ["sample.txt"]
    assert {file.path: file.sha256 for file in record.end.outputs} == {
        "out/model": sha256_of(Path("out/model")),
        manifest.as_posix(): sha256_of(manifest),
    }
    assert read_records(Folder(Path())) == {record.job: record}


def test_the_processor_time_of_a_job_counts_the_process_and_its_ended_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = {
        resource.RUSAGE_SELF: SimpleNamespace(ru_utime=1.5, ru_stime=0.25),
        resource.RUSAGE_CHILDREN: SimpleNamespace(ru_utime=2.0, ru_stime=0.5),
    }
    monkeypatch.setattr(resource, "getrusage", spent.__getitem__)
    finish(tmp_path)
    end = read_record(RECORD).end
    assert end is not None
    assert end.cpu_seconds == 4.25


def test_a_failed_job_says_so_and_the_next_attempt_counts(tmp_path: Path) -> None:
    for attempt in (1, 2):
        with (
            pytest.raises(ArtifactError),
            recording("vocab", log=LOG, settings=SETTINGS, manifest=Path("absent")),
        ):
            assert read_record(RECORD).end is None
            raise ArtifactError("sample.txt is missing")
        record = read_record(RECORD)
        assert record.start.attempt == attempt
        assert record.end is not None
        assert record.end.error == "ArtifactError"
        assert not record.sealable
    finish(tmp_path)
    assert read_record(RECORD).start.attempt == 3
    finish(tmp_path)
    assert read_record(RECORD).start.attempt == 1


def record_of_a_job_that_edits(code: str) -> Record:
    """Run a job that writes other code meanwhile."""
    with recording("vocab", log=LOG, settings={}, manifest=Path("manifest.json")):
        Path("src/t5repro/vocab/train.py").write_text(code)
        write_manifest(
            Path("manifest.json"), rule="vocab", settings={}, inputs=[], outputs=[], counters={}
        )
    return read_record(RECORD)


def test_a_job_whose_code_changed_while_it_ran_is_not_sealable() -> None:
    record = record_of_a_job_that_edits("VOCABULARY = 33\n")
    assert record.end is not None
    assert record.end.code_changed == ["src/t5repro/vocab/train.py"]
    assert not record.sealable


def test_an_edit_saved_halfway_when_a_job_ends_is_named_and_ends_the_record() -> None:
    record = record_of_a_job_that_edits("def half(:")
    assert record.end is not None
    assert record.end.code_changed[0].endswith("src/t5repro/vocab/train.py")
    assert not record.sealable


def test_nothing_secret_or_personal_is_in_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home/planted_user"
    home.mkdir(parents=True)
    outside = home / "corpus.txt"
    outside.write_text("text")
    for name, value in {
        "HOME": str(home),
        "LOGNAME": "planted_user",
        "USER": "planted_user",
        "AWS_SECRET_ACCESS_KEY": "planted_secret",
        "PLANTED_VARIABLE": "planted_value",
        "HOSTNAME": "planted_host",
    }.items():
        monkeypatch.setenv(name, value)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    monkeypatch.chdir(checkout)
    settings = {
        "data": {
            "source": str(home / "raw"),
            "elsewhere": "/srv/planted_absolute/raw",
            "crawl_prefix": "https://planted_user:planted_token@example.org/crawl?key=planted_key",
            "sources": [{"origin": "by planted_user@example.org", "files": {"a/b.gz": "0" * 64}}],
        }
    }
    finish(checkout, settings=settings, files=[Path("sample.txt"), outside])
    text = RECORD.read_text()
    assert "planted" not in text
    assert str(tmp_path) not in text
    assert '"/' not in text
    record = read_record(RECORD)
    assert record.end is not None
    assert [file.sha256 for file in record.end.inputs][1:] == [sha256_of(outside)]
    assert record.start.settings["data"]["crawl_prefix"] == "https://example.org/crawl"


def test_hidden_values_still_compare() -> None:
    assert redact("/srv/one") == redact("/srv/one") != redact("/srv/two")
    assert redact({"folder": "data", "rate": 1.5, "on": True}) == {
        "folder": "data",
        "rate": 1.5,
        "on": True,
    }
    assert redact("file:///srv/one").startswith("hidden:")
    assert redact_path(Path("results/x")) == redact_path(Path.cwd() / "results/x") == "results/x"


def test_only_jobs_of_the_graph_are_recorded(tmp_path: Path) -> None:
    assert record_path(Path("logs/demo/c4_clean/baseline/00000.log")) == Path(
        "records/demo/c4_clean/baseline/00000.json"
    )
    assert record_path(Path("/elsewhere/other.log")) is None
    assert record_path(Path("logs/../other.log")) is None
    finish(tmp_path, log=Path("by_hand.log"))
    assert not Path("records").exists()


def test_a_broken_record_is_named_with_its_cure(tmp_path: Path) -> None:
    finish(tmp_path)
    values = json.loads(RECORD.read_text())
    del values["start"]
    RECORD.write_text(json.dumps(values))
    with pytest.raises(
        ArtifactError, match=r"baseline.json is not a record \(start: Field required\)"
    ):
        read_record(RECORD)


def test_a_record_survives_writing_and_reading(tmp_path: Path) -> None:
    finish(tmp_path)
    assert dataclasses.asdict(read_record(RECORD)) == json.loads(RECORD.read_text())
