"""A study is one archive: equal files make equal bytes, and only its folder is written to."""

import io
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import ROOT
from studies import unpacked

from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.lineage import study_archive
from t5repro.lineage.findings import ALTERED, CODE, CONTRADICTED, EXTRA, LINK, MISSING, NOT_ARCHIVED
from t5repro.lineage.study_archive import ARCHIVE, is_evidence, pack_study, unpack_study
from t5repro.lineage.verify_study import verify_study

RUN = "desk_recipes"
HISTORY = "results/desk_recipes/pretrain/rotary/history.csv"


@pytest.fixture(autouse=True)
def fast_compression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_archive, "PRESET", 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the files of a study, to be altered."""
    return Path(shutil.copytree(unpacked(RUN), tmp_path / "run"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study"


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write_archive(study: Path, *members: tarfile.TarInfo) -> None:
    study.mkdir()
    with tarfile.open(study / ARCHIVE, "w:xz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"a" * member.size))


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, 1 if kind == tarfile.REGTYPE else 0
    return info


def test_an_unpacked_archive_has_the_bytes_of_the_files(
    run: Path, study: Path, tmp_path: Path
) -> None:
    pack_study(run, RUN, study)
    unpack_study(study, tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(run)


def test_measurements_of_jobs_are_packed_and_tell_the_processor_time(
    run: Path, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = run / "logs" / RUN
    for job in (path.stem for path in (run / "records" / RUN / "pretrain").glob("*.json")):
        measured = logs / "pretrain" / f"{job}.tsv"
        measured.parent.mkdir(parents=True, exist_ok=True)
        measured.write_text("s\tmax_rss\tcpu_time\n158.2\t987.5\t100.5\n", encoding="utf-8")
    (logs / "pretrain" / "rotary.log").write_text("words of a job", encoding="utf-8")
    pack_study(run, RUN, study)
    unpack_study(study, tmp_path / "again")
    assert not list(tmp_path.glob("again/logs/**/*.log"))
    assert verify_study(study, tmp_path / "verified").findings == ()
    assert main(["cost", str(tmp_path / "again" / "results" / RUN)]) == 0
    (line,) = (row for row in capsys.readouterr().out.splitlines() if row.startswith("pretrain"))
    assert line.split()[3:5] == ["1,809.0", "988"]  # 18 trainings


def test_equal_files_make_an_equal_archive(run: Path, study: Path, tmp_path: Path) -> None:
    pack_study(run, RUN, study)
    for path in run.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    pack_study(run, RUN, tmp_path / "second")
    assert (study / ARCHIVE).read_bytes() == (tmp_path / "second" / ARCHIVE).read_bytes()


def test_report_and_scores_are_next_to_the_archive_too(study: Path, tmp_path: Path) -> None:
    run = unpacked("desk_study")
    pack_study(run, "desk_study", study)
    report = run / "results/desk_study/report"
    assert files_of(study).keys() == {ARCHIVE, "report.html", "scores.csv"}
    assert (study / "report.html").read_bytes() == (report / "report.html").read_bytes()
    (study / "scores.csv").write_text("other")
    (study / "report.html").unlink()
    findings = verify_study(study, tmp_path / "unpacked").findings
    assert [(Path(finding.path).name, finding.kind) for finding in findings] == [
        ("report.html", MISSING),
        ("scores.csv", ALTERED),
    ]
    assert "git checkout restores it" in findings[0].message


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("results/r/c4_clean/t5/00000.manifest.json", True),
        ("results/r/evaluate_score/t5/scores.json", True),
        ("results/r/report/t5.metrics.json", True),
        ("results/r/report/answers/glue_cola.html", False),
        ("results/r/report/corpus.html", False),
        ("results/r/pretrain/t5/weights.safetensors", False),
        ("records/r/report.json", True),
        ("configs/resolved/code/c4.json", False),
        ("data/tasks/glue/CoLA/train.tsv", False),
    ],
)  # fmt: skip
def test_an_archive_has_evidence_and_no_artifacts_or_texts(path: str, expected: bool) -> None:
    assert is_evidence(path) is expected


def test_the_tool_packs_a_run_of_the_checkout(study: Path) -> None:
    tool = [sys.executable, str(ROOT / "tools/pack_study.py"), RUN, str(study)]
    subprocess.run(tool, cwd=unpacked(RUN), check=True)
    committed = (ROOT / "studies" / RUN / ARCHIVE).read_bytes()
    assert lzma.decompress((study / ARCHIVE).read_bytes()) == lzma.decompress(committed)


def test_a_run_without_a_seal_is_not_packed(run: Path, study: Path) -> None:
    (run / "records/desk_recipes.index.json").unlink()
    with pytest.raises(LineageError, match=r"desk_recipes.index.json is missing; run t5repro seal"):
        pack_study(run, RUN, study)
    assert not study.exists()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (member("../escaped"), "'../escaped' is no regular file below the folder"),
        (member("/escaped"), "'/escaped' is no regular file below the folder"),
        (member("a/../../escaped"), "is no regular file below the folder"),
        (member("link", tarfile.SYMTYPE, "/etc"), "'link' is no regular file"),
        (member("link", tarfile.LNKTYPE, "first"), "'link' is no regular file"),
        (member("folder", tarfile.DIRTYPE), "'folder' is no regular file"),
        (member("device", tarfile.CHRTYPE), "'device' is no regular file"),
        (member("first"), "two members named .*first"),
        (member("first/below"), "two members named .*first"),
    ],
)
def test_other_members_than_files_below_the_folder_are_refused(
    bad: tarfile.TarInfo, message: str, study: Path, tmp_path: Path
) -> None:
    write_archive(study, member("first"), bad)
    with pytest.raises(LineageError, match=message):
        unpack_study(study, tmp_path / "a" / "unpacked")
    assert files_of(tmp_path / "a") == {"unpacked/first": b"a"}


def test_no_more_is_read_than_the_limit(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = member("large")
    large.size = 1 << 20
    write_archive(study, large)
    monkeypatch.setattr(study_archive, "MAX_BYTES", 1 << 19)
    with pytest.raises(LineageError, match=r"expands to more than 524,288 bytes"):
        unpack_study(study, tmp_path / "unpacked")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-100] + bytes(100),
        lambda data: b"no archive",
        lambda data: lzma.compress(b"no archive" * 1_000),
    ],
    ids=["cut", "flipped", "another file", "no tar"],
)
def test_a_damaged_archive_is_named_with_the_cure(
    damage: Callable[[bytes], bytes], run: Path, study: Path, tmp_path: Path
) -> None:
    pack_study(run, RUN, study)
    (study / ARCHIVE).write_bytes(damage((study / ARCHIVE).read_bytes()))
    with pytest.raises(LineageError, match=r"evidence.tar.xz is damaged .*git checkout"):
        unpack_study(study, tmp_path / "unpacked")


def test_a_folder_with_files_is_left_alone(run: Path, study: Path) -> None:
    pack_study(run, RUN, study)
    with pytest.raises(LineageError, match="run is not empty; name a new folder"):
        unpack_study(study, run)


def test_a_folder_without_an_archive_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(LineageError, match="is missing; name a folder of studies/"):
        unpack_study(tmp_path, tmp_path / "unpacked")


def append(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def test_altered_lost_and_added_evidence_is_found(run: Path, study: Path, tmp_path: Path) -> None:
    results, records = "results/desk_recipes/pretrain", "records/desk_recipes/pretrain"
    tuned = "records/desk_recipes/finetune"  # their jobs read the manifest as it was
    append(run / results / "rotary/history.csv")
    append(run / results / "swiglu/manifest.json")
    append(run / records / "baseline.json")
    (run / results / "baseline/history.csv").unlink()
    (run / records / "per_layer_bias.json").unlink()
    (run / results / "adamw_cosine/scores.json").touch()
    shutil.rmtree(run / results / "rotary_seed_1")
    pack_study(run, RUN, study)
    findings = verify_study(study, tmp_path / "unpacked").findings
    assert {(finding.path, finding.kind) for finding in findings} == {
        (f"{results}/rotary/history.csv", ALTERED),
        (f"{results}/swiglu/manifest.json", ALTERED),
        *((f"{tuned}/swiglu_{group}.json", CONTRADICTED) for group in ("glue", "wmt_en_de")),
        (f"{records}/baseline.json", ALTERED),
        (f"{results}/baseline/history.csv", MISSING),
        (f"{records}/per_layer_bias.json", MISSING),
        (f"{results}/adamw_cosine/scores.json", EXTRA),
        (f"{results}/rotary_seed_1", MISSING),
        (f"{results}/rotary_seed_1/weights.safetensors", LINK),  # which fine-tunings read
    }


def test_weights_and_raw_files_are_counted_and_no_fault(
    run: Path, study: Path, tmp_path: Path
) -> None:
    pack_study(run, RUN, study)
    verdict = verify_study(study, tmp_path / "unpacked")
    (warning,) = (one for one in verdict.warnings if one.kind == NOT_ARCHIVED)
    assert warning.message.startswith("205 artifacts and raw files are not in it")
    assert verdict.findings == ()
    assert verdict.files == 190


def test_code_that_is_not_that_of_its_commit_is_a_finding(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = "desk_study"  # the checkout has other code
    pack_study(unpacked(earlier), earlier, study)
    from t5repro.lineage.commits import Commits

    monkeypatch.setattr(Commits, "is_known", lambda self, record: True)
    monkeypatch.setattr(Commits, "attests_code", lambda self, record: False)
    folder = unpacked(RUN).parent / tmp_path.name  # inside the checkout
    try:
        findings = verify_study(study, folder).findings
    finally:
        shutil.rmtree(folder)
    assert {finding.kind for finding in findings} == {CODE}


def test_the_command_verifies_a_study_and_unpacks_it_if_asked(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pack_study(unpacked(RUN), RUN, study)
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "--study", str(study)]) == 0
    assert "190 files agree with manifests and dvc.lock" in capsys.readouterr().out
    assert list((tmp_path / "work").iterdir()) == []
    assert main(["verify", "--study", str(study), "--unpack", "unpacked"]) == 0
    assert Path("unpacked", HISTORY).is_file()
    assert main(["verify", "--unpack", "other"]) == 2
    assert "--unpack FOLDER is for a study" in capsys.readouterr().err
    (study / ARCHIVE).write_bytes(b"")
    assert main(["verify", "--study", str(study)]) == 2
