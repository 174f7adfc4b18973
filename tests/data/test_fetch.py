"""Raw files are fetched, checked and rejected with a message that names them."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from t5repro.config.sections.data import DataStage
from t5repro.data.check import check
from t5repro.data.fetch import fetch, files_to_fetch, missing_files
from t5repro.data.paths import raw_path
from t5repro.errors import RawDataError
from t5repro.jobs.corpus import DataJob, FetchJob

HASH = hashlib.sha256(b"page").hexdigest()


def stage(tmp_path: Path, sha256: str = HASH, **more: object) -> DataStage:
    source = {"origin": "https://example.org/a.wet", "licence": "none", "files": {"a.wet": sha256}}
    data: dict[str, object] = {"folder": str(tmp_path / "data"), "sources": [source], **more}
    for name, value in (("source", ""), ("download", False)):
        data.setdefault(name, value)
    return DataStage.model_validate({"data": data})


def bundled(tmp_path: Path) -> str:
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini/a.wet").write_bytes(b"page")
    return str(tmp_path / "mini")


def test_bundled_files_are_copied_and_checked(tmp_path: Path) -> None:
    settings = stage(tmp_path, source=bundled(tmp_path))
    fetch(FetchJob(settings, downloads=tmp_path))
    check(DataJob(settings, manifest=tmp_path / "manifest.json"))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert [item["sha256"] for item in manifest["outputs"]] == [HASH]
    assert manifest["counters"] == {"files": 1, "hash_in_run_file": 1}


def test_a_file_that_is_not_the_one_named_stops_the_run(tmp_path: Path) -> None:
    settings = stage(tmp_path, sha256="0" * 64, source=bundled(tmp_path))
    with pytest.raises(RawDataError, match=f"has sha256 {HASH}, the run file expects 0000"):
        fetch(FetchJob(settings, downloads=tmp_path))


@pytest.mark.parametrize("sha256", ["", HASH])
def test_a_pointer_of_git_lfs_is_no_raw_file_with_or_without_a_hash_in_the_run_file(
    tmp_path: Path, sha256: str
) -> None:
    settings = stage(tmp_path, sha256)
    (tmp_path / "data").mkdir()
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n"
    (tmp_path / "data/a.wet").write_text(pointer)
    with pytest.raises(RawDataError, match=r"a\.wet is a pointer of git LFS .* run git lfs pull"):
        check(DataJob(settings, manifest=tmp_path / "manifest.json"))


def test_a_missing_file_says_where_to_get_it_and_where_to_put_it(tmp_path: Path) -> None:
    settings = stage(tmp_path)
    (line,) = missing_files(settings.data)
    assert line == f"{tmp_path}/data/a.wet: get it from https://example.org/a.wet and put it there"
    with pytest.raises(RawDataError, match="or set data.download to true"):
        fetch(FetchJob(settings, downloads=tmp_path))
    with pytest.raises(RawDataError, match="is missing; get it from https://example.org"):
        check(DataJob(settings, manifest=tmp_path / "manifest.json"))
    assert missing_files(stage(tmp_path, source="x").data) == []


def test_a_file_that_a_person_put_in_place_is_left_alone(tmp_path: Path) -> None:
    source = {"origin": "by hand: https://example.org", "licence": "none", "files": {"a.wet": ""}}
    settings = stage(tmp_path, download=True, sources=[source])
    assert files_to_fetch(settings.data) == ["a.wet"]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.wet").write_bytes(b"mine")
    assert files_to_fetch(settings.data) == []
    fetch(FetchJob(settings, downloads=tmp_path))
    assert (tmp_path / "data/a.wet").read_bytes() == b"mine"


def test_a_raw_file_from_the_future_is_refused_before_snakemake_deletes_what_is_made_of_it(
    tmp_path: Path,
) -> None:
    settings = stage(tmp_path)
    missing_files(settings.data)  # a missing file has no date
    path = tmp_path / "data/a.wet"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    missing_files(settings.data)
    os.utime(path, times=(0, time.time() + 200_000))
    with pytest.raises(
        RawDataError, match=rf"^{path} has a date [12]\d\d,\d\d\d s in .*: touch {path}$"
    ):
        missing_files(settings.data)


def test_an_old_copy_of_a_bundled_file_is_brought_again(tmp_path: Path) -> None:
    settings = stage(tmp_path, source=bundled(tmp_path))
    fetch(FetchJob(settings, downloads=tmp_path))
    assert files_to_fetch(settings.data) == []
    (tmp_path / "data/a.wet").write_bytes(b"old")
    assert files_to_fetch(settings.data) == ["a.wet"]


def test_a_path_cannot_leave_the_data_folder(tmp_path: Path) -> None:
    for name in ("../a", "/etc/passwd", "a/../../b"):
        with pytest.raises(RawDataError, match=r"leaves data\.folder"):
            raw_path(stage(tmp_path).data, name)


def test_only_https_is_fetched_and_files_by_hand_are_asked_for(tmp_path: Path) -> None:
    plain = {"origin": "file:///etc/passwd", "licence": "none", "files": {"a": ""}}
    with pytest.raises(RawDataError, match="only https addresses can"):
        fetch(FetchJob(stage(tmp_path, download=True, sources=[plain]), downloads=tmp_path))
    by_hand = {"origin": "by hand: https://example.org", "licence": "none", "files": {"a": ""}}
    with pytest.raises(RawDataError, match="manual download from https://example.org"):
        fetch(FetchJob(stage(tmp_path, download=True, sources=[by_hand]), downloads=tmp_path))


def test_without_a_network_the_file_its_origin_and_its_place_are_said(tmp_path: Path) -> None:
    source = {
        "origin": "https://127.0.0.1:9/QQP.zip",
        "licence": "none",
        "files": {"tasks/glue/QQP/train.tsv": ""},
    }
    settings = stage(tmp_path, download=True, sources=[source])
    with pytest.raises(RawDataError) as caught:
        fetch(FetchJob(settings, downloads=tmp_path / "work"))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/data/tasks/glue/QQP/train.tsv is missing and cannot be")
    assert "https://127.0.0.1:9/QQP.zip does not answer" in message
    assert "get it from https://127.0.0.1:9/QQP.zip on another machine and put it there" in message
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("linked", ["the file", "its folder"])
def test_a_link_out_of_the_data_folder_is_refused_with_its_target(
    tmp_path: Path, linked: str
) -> None:
    files = {"glue/a.wet": ""}
    source = {"origin": "by hand: x", "licence": "none", "files": files}
    settings = stage(tmp_path, sources=[source])
    outside, data = tmp_path / "elsewhere", tmp_path / "data"
    outside.mkdir()
    (outside / "a.wet").write_bytes(b"page")
    data.mkdir()
    if linked == "the file":
        (data / "glue").mkdir()
        (data / "glue/a.wet").symlink_to(outside / "a.wet")
    else:
        (data / "glue").symlink_to(outside)
    with pytest.raises(
        RawDataError,
        match=rf"data/glue/a\.wet is {outside}/a\.wet by a symbolic link, .*move or copy it into",
    ):
        check(DataJob(settings, manifest=tmp_path / "manifest.json"))
    assert not (tmp_path / "manifest.json").exists()


def test_nothing_is_fetched_through_a_link_out_of_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.wet").symlink_to(tmp_path / "elsewhere/a.wet")
    with pytest.raises(RawDataError, match=r"elsewhere/a\.wet by a symbolic link"):
        fetch(FetchJob(stage(tmp_path, source=bundled(tmp_path)), downloads=tmp_path))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("linked", ["data.folder", "a file inside", "an object of DVC's cache"])
def test_other_links_are_followed(tmp_path: Path, linked: str) -> None:
    data, cached = tmp_path / "data", tmp_path / "cache/files/md5/ab" / ("0" * 30)
    folder = tmp_path / "elsewhere" if linked == "data.folder" else data
    folder.mkdir()
    (folder / "b.wet").write_bytes(b"page")
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"page")
    (folder / "a.wet").symlink_to(cached if linked.endswith("cache") else "b.wet")
    if folder != data:
        data.symlink_to(folder)
    check(DataJob(stage(tmp_path), manifest=tmp_path / "manifest.json"))
    outputs = json.loads((tmp_path / "manifest.json").read_text())["outputs"]
    assert [entry["sha256"] for entry in outputs] == [HASH]


def test_a_raw_file_that_is_an_archive_is_kept_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RACE has 28,000 small files, which its task reads from the archive."""
    download = tmp_path / "RACE.tar.gz"
    download.write_bytes(b"any bytes")
    monkeypatch.setattr("t5repro.data.fetch.fetch_once", lambda origin, folder: download)
    files = {"tasks/race/RACE.tar.gz": ""}
    source = {"origin": "https://a.example/RACE.tar.gz", "licence": "none", "files": files}
    settings = stage(tmp_path, download=True, sources=[source])
    fetch(FetchJob(settings, downloads=tmp_path))
    assert (tmp_path / "data/tasks/race/RACE.tar.gz").read_bytes() == b"any bytes"
