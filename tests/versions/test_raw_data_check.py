"""The raw files are compared with `data.dvc` without DVC, which is started for the rest."""

import hashlib
from pathlib import Path

import pytest

from t5repro.errors import RawDataError
from t5repro.lineage.dvc_cache import object_path
from t5repro.lineage.dvc_lock import folder_md5, read_lock
from t5repro.versions.raw_data_check import check_raw_data, raw_data_agrees

FILES = {"crawl/a.warc": b"first", "lists/words.txt": b"second"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with raw files, their `data.dvc` and their objects in DVC's cache."""
    monkeypatch.chdir(tmp_path)
    hashes = {}
    for name, data in FILES.items():
        path = Path("data") / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        hashes[name] = hashlib.md5(data, usedforsecurity=False).hexdigest()
    md5 = folder_md5(hashes)
    for digest in (md5, *hashes.values()):
        path = object_path(Path(), digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"an object")
    Path("data.dvc").write_text(f"outs:\n- md5: {md5}\n  path: data\n")
    return tmp_path


def test_recorded_raw_files_with_their_objects_agree(checkout: Path) -> None:
    assert raw_data_agrees(read_lock())


def test_a_changed_a_missing_and_an_additional_raw_file_do_not_agree(checkout: Path) -> None:
    path = checkout / "data/crawl/a.warc"
    path.write_bytes(b"other")
    assert not raw_data_agrees(read_lock())
    path.unlink()
    assert not raw_data_agrees(read_lock())
    path.write_bytes(FILES["crawl/a.warc"])
    assert raw_data_agrees(read_lock())
    (checkout / "data/additional.txt").write_bytes(b"")
    assert not raw_data_agrees(read_lock())


@pytest.mark.parametrize("missing", ["file", "list of files"])
def test_raw_files_without_an_object_in_the_cache_do_not_agree(
    checkout: Path, missing: str
) -> None:
    lock = read_lock()
    file_md5 = hashlib.md5(FILES["crawl/a.warc"], usedforsecurity=False).hexdigest()
    object_path(Path(), file_md5 if missing == "file" else lock.outputs[0].md5).unlink()
    assert not raw_data_agrees(lock)


def test_another_file_than_that_of_raw_data_is_named(checkout: Path) -> None:
    with pytest.raises(RawDataError, match="dvc.lock is no .dvc file of raw data"):
        check_raw_data(Path("dvc.lock"))
