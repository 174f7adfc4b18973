"""Documents of a run, each read back by the library or validator of its standard."""

import base64
import io
import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import attr
import pytest
from made_exports import CORPUS, MODEL, RUN, SCORES, exported_run
from made_graphs import write

from t5repro.cli.main import main
from t5repro.errors import LineageError, PackageError
from t5repro.export import commands
from t5repro.export.facts import read_run
from t5repro.files import sha256_of

JOBS = 8
FILES = ("prov", "openlineage", "croissant", "cyclonedx")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a recorded run; the current folder."""
    root = exported_run(tmp_path / "checkout")
    monkeypatch.chdir(root)
    return root


def written(name: str, output: Path) -> str:
    assert main(["export", "--format", name, "--output", str(output)]) == 0
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*FILES, "ai-act"])
def test_equal_results_give_equal_bytes_in_another_folder(
    name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(name, Path("out"))
    shutil.copytree(made, tmp_path / "other" / "place")
    monkeypatch.chdir(tmp_path / "other" / "place")
    assert written(name, Path("out")) == first


@pytest.mark.parametrize("name", FILES)
def test_no_secret_and_no_folder_of_the_machine_is_told(name: str, made: Path) -> None:
    text = written(name, Path("out"))
    for secret in ("secret", "token", str(made), str(Path.home()) + "/"):
        assert secret not in text


@pytest.mark.parametrize("name", [*FILES, "ai-act", "ro-crate", "in-toto"])
def test_raw_files_of_another_folder_are_named_by_hash_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere, key = tmp_path / "private_folder", str(tmp_path / "key")
    monkeypatch.chdir(exported_run(tmp_path / "checkout", str(elsewhere)))
    main(["export", "--new-key", key])
    assert main(["export", "--format", name, "--key", key, "--output", "out"]) == 0
    place = Path("out/ro-crate-metadata.json") if name == "ro-crate" else Path("out")
    text = place.read_text(encoding="utf-8")
    if name == "in-toto":
        assert main(["export", "--verify", "out", "--public-key", f"{key}.pub"]) == 0
        assert "2 raw files outside the checkout were not read" in capsys.readouterr().out
        text = "".join(
            base64.b64decode(json.loads(line)["payload"]).decode() for line in text.splitlines()
        )
    assert "private_folder" not in text
    if name not in ("croissant", "ai-act"):
        assert sha256_of(elsewhere / "crawl/0.warc.wet") in text


@pytest.mark.parametrize("name", ["ro-crate", "openlineage"])
def test_a_format_that_needs_times_refuses_a_job_without_a_record(name: str, made: Path) -> None:
    (made / "records/r/finetune/a.json").unlink()
    with pytest.raises(LineageError, match=r"r/finetune/a: no record .* restore records/"):
        commands.export(name, output=Path("out"))


def test_the_record_of_another_run_of_the_job_is_not_believed(made: Path) -> None:
    path = made / RUN / "finetune/a/manifest.json"
    path.write_text(path.read_text().replace("0.1", "0.2"))
    (job,) = read_run(made).of_rule("finetune")
    assert job.record is None


def test_an_artifact_leaves_out_what_it_was_not_made_from(made: Path) -> None:
    names = [
        job.name for job in read_run(made, artifact=f"{RUN}/pretrain/a/weights.safetensors").jobs
    ]
    assert names == ["r/data", "r/c4/a", "r/vocab/a", "r/pretrain/a"]


def test_a_run_must_be_named_where_there_are_several(made: Path) -> None:
    shutil.copytree(made / RUN, made / "results/s")
    with pytest.raises(LineageError, match="several runs; add --run and one of r, s"):
        read_run(made)
    with pytest.raises(LineageError, match="--run t: no such run; results/ contains r, s"):
        read_run(made, "t")
    assert len(read_run(made, "r").jobs) == JOBS


def test_an_empty_checkout_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        LineageError, match="results/ contains no manifest; run snakemake, or dvc pull"
    ):
        read_run(tmp_path)


def test_a_missing_library_names_the_extra(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "t5repro.export.prov", raising=False)
    monkeypatch.setitem(sys.modules, "prov.identifier", None)
    with pytest.raises(
        PackageError, match=r"prov.identifier is not installed; .*t5repro\[export\]"
    ):
        commands.export("prov")


def test_what_was_written_is_said_as_json(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "prov", "--output", "out.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": "prov",
        "run": "r",
        "jobs": JOBS,
        "output": "out.json",
    }


# PROV


def test_prov_is_read_back_equal_and_tells_use_generation_and_code(made: Path) -> None:
    from prov.model import ProvActivity, ProvAssociation, ProvDocument, ProvGeneration, ProvUsage

    from t5repro.export.prov import document

    text = written("prov", Path("prov.json"))
    read = ProvDocument.deserialize(content=text, format="json")
    run = read_run(made)
    assert read == document(run)
    assert len(list(read.get_records(ProvActivity))) == JOBS
    assert len(list(read.get_records(ProvUsage))) == sum(len(job.inputs) for job in run.jobs)
    assert len(list(read.get_records(ProvGeneration))) == sum(len(job.outputs) for job in run.jobs)
    plans = [item.args[2] for item in read.get_records(ProvAssociation)]
    assert len(plans) == JOBS
    assert None not in plans
    (finetune,) = [item for item in read.get_records(ProvActivity) if item.label == "r/finetune/a"]
    assert finetune.get_startTime().isoformat() == "2026-01-02T04:00:00+00:00"


def test_prov_is_written_for_people_where_the_name_asks(made: Path) -> None:
    text = written("prov", Path("run.provn"))
    assert text.startswith("document\n")
    assert f'prov:label="{MODEL}"' in text


# OpenLineage


def test_every_job_starts_and_completes_in_order_of_time(made: Path) -> None:
    events = [json.loads(line) for line in written("openlineage", Path("e")).splitlines()]
    assert len(events) == 2 * JOBS + 2
    assert Counter(event["eventType"] for event in events) == {
        "START": JOBS + 1,
        "COMPLETE": JOBS + 1,
    }
    times = [event["eventTime"] for event in events]
    assert times == sorted(times)
    assert events[0]["job"]["name"] == events[-1]["job"]["name"] == "r"
    whole = events[0]["run"]["runId"]
    assert all(event["run"]["facets"]["parent"]["run"]["runId"] == whole for event in events[1:-1])


def test_events_are_what_the_librarys_own_classes_say_again(made: Path) -> None:
    from openlineage.client import event_v2
    from openlineage.client.generated import (
        dataset_version_dataset,
        execution_parameters_run,
        job_type_job,
        output_statistics_output_dataset,
        parent_run,
        processing_engine_run,
        storage_dataset,
        tags_run,
    )
    from openlineage.client.serde import Serde

    known = {
        schema_of(kind): kind
        for module in (
            dataset_version_dataset,
            execution_parameters_run,
            job_type_job,
            output_statistics_output_dataset,
            parent_run,
            processing_engine_run,
            storage_dataset,
            tags_run,
        )
        for kind in vars(module).values()
        if isinstance(kind, type) and attr.has(kind) and hasattr(kind, "_get_schema")
    }
    for line in written("openlineage", Path("e")).splitlines():
        values = json.loads(line)
        event = event_v2.RunEvent(
            eventTime=values["eventTime"],
            eventType=event_v2.RunState(values["eventType"]),
            run=event_v2.Run(**values["run"]),
            job=event_v2.Job(**values["job"]),
            inputs=[event_v2.InputDataset(**item) for item in values["inputs"]],
            outputs=[event_v2.OutputDataset(**item) for item in values["outputs"]],
            producer=values["producer"],
        )
        assert json.loads(Serde.to_json(event)) == values
        for owner in (values["run"], values["job"], *values["outputs"]):
            for facet in owner["facets"].values():
                kind = known[facet["_schemaURL"]]
                allowed = {field.name.lstrip("_") for field in attr.fields(kind)}
                assert {name.lstrip("_") for name in facet} <= allowed


def schema_of(kind: type) -> str:
    return str(kind._get_schema())  # type: ignore[attr-defined]


# Croissant


def records(document: str, name: str) -> list[dict[str, bytes]]:
    import mlcroissant

    return list(mlcroissant.Dataset(document).records(name))


def test_croissant_loads_and_yields_every_row_of_every_set(made: Path) -> None:
    written("croissant", Path("croissant.json"))
    rows = records("croissant.json", "en-train")  # two shards
    assert sorted(row["en-train/text"] for row in rows) == sorted(
        f"page {row} of en-train-0000{shard}-of-00002".encode()
        for shard, number in ((0, 3), (1, 2))
        for row in range(number)
    )
    assert len(records("croissant.json", "en-validation")) == 1
    assert {row["ro-train/language"] for row in records("croissant.json", "ro-train")} == {b"ro"}


def test_croissants_library_refuses_a_corpus_file_that_was_altered_later(made: Path) -> None:
    written("croissant", Path("croissant.json"))
    shutil.copy(
        made / CORPUS / "en-validation-00000-of-00001.parquet",
        made / CORPUS / "ro-train-00000-of-00001.parquet",
    )
    with pytest.raises(Exception, match="Download.ro-train-00000-of-00001.parquet") as refused:
        records("croissant.json", "ro-train")
    assert "is not identical with the reference" in str(refused.value.__cause__)


@pytest.mark.parametrize("name", ["croissant", "in-toto", "ro-crate"])
def test_an_altered_file_is_not_attested(
    name: str, made: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["export", "--new-key", str(tmp_path / "key")])
    write(made, f"{CORPUS}/ro-train-00000-of-00001.parquet", "altered")
    command = ["export", "--format", name, "--output", "out", "--key", str(tmp_path / "key")]
    assert main(command) == 2
    said = capfd.readouterr().err
    assert "ro-train-00000-of-00001.parquet was altered" in said
    assert not Path("out").exists()


def test_several_shards_are_found_only_below_the_document(made: Path) -> None:
    with pytest.raises(LineageError, match="several only below its document"):
        commands.export("croissant", output=Path("deep/er/croissant.json"))


def test_a_document_that_names_files_relative_to_itself_stays_inside(
    made: Path, tmp_path: Path
) -> None:
    with pytest.raises(LineageError, match="outside the checkout, .* would reveal folders of this"):
        commands.export("croissant", output=tmp_path / "croissant.json")


def test_a_run_without_a_corpus_has_no_croissant(made: Path) -> None:
    shutil.rmtree(made / RUN / "c4")
    with pytest.raises(
        LineageError, match="r: no corpus; Croissant describes the output of the rule c4"
    ):
        commands.export("croissant")


# CycloneDX


def test_the_strict_validator_accepts_the_bill_of_materials(made: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = written("cyclonedx", Path("bom.json"))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    parts = {item["bom-ref"]: item for item in bom["components"]}
    model = parts["job/r/finetune/a"]
    assert model["type"] == "machine-learning-model"
    assert model["modelCard"]["quantitativeAnalysis"]["performanceMetrics"] == [
        {"type": "accuracy", "value": "62.5", "slice": "one"}
    ]
    assert model["modelCard"]["modelParameters"]["datasets"] == [{"ref": "job/r/tasks/one"}]
    hashes = {file["name"]: file["hashes"][0]["content"] for file in model["components"]}
    assert hashes[MODEL] == sha256_of(made / MODEL)
    assert parts["library/keras"]["purl"] == "pkg:pypi/keras@3.15.1"
    needs = {item["ref"]: item.get("dependsOn", []) for item in bom["dependencies"]}
    assert "job/r/c4/a" in needs["job/r/pretrain/a"]
    assert "job/r/data" in needs["job/r/c4/a"]
    assert bom["metadata"]["timestamp"] == "2026-01-02T06:30:00+00:00"


def test_no_clock_enters_a_bill_of_materials_without_records(made: Path) -> None:
    shutil.rmtree(made / "records")
    assert "timestamp" not in json.loads(written("cyclonedx", Path("bom.json")))["metadata"]


def test_a_run_without_a_model_has_no_bill_of_materials(made: Path) -> None:
    with pytest.raises(LineageError, match="r: no model; a bill of materials is about pretrain"):
        commands.export("cyclonedx", f"{CORPUS}/manifest.json")


# RO-Crate


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache for the validator that holds the one page it wants: the context of RO-Crate.

    It is the copy that the library rocrate carries, so that no network is needed.
    """
    import rocrate
    from requests import PreparedRequest, Response
    from requests.adapters import BaseAdapter, HTTPAdapter
    from requests_cache import CachedSession
    from urllib3 import HTTPResponse

    carried = (Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_bytes()

    class Carried(BaseAdapter):
        def send(self, request: PreparedRequest, *_: object, **__: object) -> Response:
            answer = HTTPResponse(
                io.BytesIO(carried),
                status=200,
                headers={"Content-Type": "application/ld+json"},
                preload_content=False,
            )
            return HTTPAdapter().build_response(request, answer)

        def close(self) -> None:
            pass

    place = str(tmp_path_factory.mktemp("contexts") / "cache")
    session = CachedSession(cache_name=place, expire_after=-1)
    session.mount("https://", Carried())
    session.get("https://w3id.org/ro/crate/1.1/context")
    session.close()
    return place


def issues(crate: Path, cache: str) -> list[str]:
    from rocrate_validator.models import Severity
    from rocrate_validator.services import validate

    found = validate(
        {
            "rocrate_uri": str(crate),
            "profile_identifier": "provenance-run-crate",
            "requirement_severity": Severity.REQUIRED,
            "offline": True,
            "cache_path": cache,
        }
    )
    return [f"{item.check.identifier} {item.message}" for item in found.get_issues()]


def test_a_crate_meets_the_profile_of_provenance_run_crates(
    made: Path, tmp_path: Path, offline: str
) -> None:
    crate = tmp_path / "crate"
    assert main(["export", "--format", "ro-crate", "--output", str(crate)]) == 0
    assert sha256_of(crate / MODEL) == sha256_of(made / MODEL)
    assert issues(crate, offline) == []
    (crate / SCORES).unlink()
    assert any("scores.json" in line for line in issues(crate, offline))


def test_a_crate_is_read_back_with_its_actions(made: Path, tmp_path: Path) -> None:
    from rocrate.rocrate import ROCrate

    main(["export", "--format", "ro-crate", "--output", str(tmp_path / "crate")])
    crate = ROCrate(str(tmp_path / "crate"))
    assert crate.mainEntity.id == "Snakefile"
    action = crate.get("#job/r/finetune/a")
    assert action["endTime"] == "2026-01-02T04:30:00+00:00"
    assert {item.id for item in action["result"]} == {MODEL, f"{RUN}/finetune/a/manifest.json"}
    settings = {item["name"]: item["value"] for item in action["object"] if "value" in item}
    assert settings == {"finetune.rate": "0.1", "finetune.steps": "8", "seed": "3"}
    assert crate.get("#run/r")["instrument"] == crate.mainEntity


def test_a_crate_is_written_the_same_twice_and_spares_other_folders(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crate = tmp_path / "crate"
    for _ in range(2):
        assert main(["export", "--format", "ro-crate", "--output", str(crate)]) == 0
        text = (crate / "ro-crate-metadata.json").read_text()
    assert main(["export", "--format", "ro-crate", "--output", "."]) == 0
    assert (made / "ro-crate-metadata.json").read_text() == text
    write(tmp_path, "full/letter.txt", "private")
    with pytest.raises(LineageError, match="contains other files; name an empty folder"):
        commands.export("ro-crate", output=tmp_path / "full")
    with pytest.raises(LineageError, match="a crate is a folder: add --output FOLDER"):
        commands.export("ro-crate")


def test_a_crate_that_was_killed_is_completed_by_the_same_command(
    made: Path, tmp_path: Path
) -> None:
    crate = tmp_path / "crate"
    commands.export("ro-crate", output=crate)
    whole = {path: path.read_bytes() for path in crate.rglob("*") if path.is_file()}
    (crate / "ro-crate-metadata.json").unlink()  # it is written last
    (crate / SCORES).rename((crate / SCORES).with_name(".writing-0123abcd-scores.json"))
    commands.export("ro-crate", output=crate)
    assert {path: path.read_bytes() for path in crate.rglob("*") if path.is_file()} == whole
