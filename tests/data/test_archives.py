"""Archives give exactly one member; a damaged one is deleted."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from t5repro.data.archives import extract
from t5repro.errors import RawDataError


def zipped(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"text of {name}")
    return path


def test_a_member_is_found_by_the_end_of_its_path(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", "CoLA/train.tsv", "CoLA/original/raw/train.tsv")
    extract(archive, "tasks/glue/CoLA/train.tsv", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "text of CoLA/train.tsv"
    with pytest.raises(RawDataError, match="contains 0 files that end in 'CoLA/dev.tsv'"):
        extract(archive, "tasks/glue/CoLA/dev.tsv", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_tar_archive_works_as_a_zip_archive_does(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("rows")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "train.csv", "cnn/train.csv")
    extract(tmp_path / "a.tar.gz", "cnn/train.csv", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "rows"


def test_a_damaged_archive_is_deleted_so_that_the_next_run_fetches_it(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"no archive")
    with pytest.raises(RawDataError, match="is damaged"):
        extract(archive, "a/b", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
