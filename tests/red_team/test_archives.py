"""Archives and compressed lists that expand without limit, leave their folder or are damaged."""

import contextlib
import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from t5repro.data import archives, crawl_lists
from t5repro.data.archives import extract
from t5repro.data.crawl_lists import read_path_list
from t5repro.errors import RawDataError

BOMB_BYTES = 24 << 20  # expands from about 24 kB
NAME = "tasks/glue/CoLA/train.tsv"


def zip_bomb(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("CoLA/train.tsv", bytes(BOMB_BYTES))
    return path


def tar_bomb(path: Path, *names: str) -> Path:
    info = tarfile.TarInfo()
    info.size = BOMB_BYTES
    with tarfile.open(path, "w:gz") as archive:
        for info.name in names:
            archive.addfile(info, io.BytesIO(bytes(BOMB_BYTES)))
    return path


def sparse_bomb(path: Path) -> Path:
    """A tar file of one sparse member: 1 TB of zeros, of which none is stored."""
    info = tarfile.TarInfo("CoLA/train.tsv")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    # Of the old GNU format: the number of stored bytes, then the size of the whole file.
    header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(bytes(header) + bytes(1024))
    return path


@pytest.mark.parametrize("kind", ["zip", "tar", "tar before the member", "sparse"])
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, kind: str) -> None:
    if kind == "zip":
        archive = zip_bomb(tmp_path / "a.zip")
    elif kind == "sparse":
        archive = sparse_bomb(tmp_path / "a.tar")
    else:
        # The second one is behind a bomb, which is decompressed to reach it.
        names = ["CoLA/train.tsv"] if kind == "tar" else ["other", "CoLA/train.tsv"]
        archive = tar_bomb(tmp_path / "a.tar.gz", *names)
    with pytest.raises(RawDataError, match=r"expands from [\d,]+ to more than [\d,]+ bytes"):
        extract(archive, NAME, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]


def test_a_member_of_more_than_the_absolute_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("CoLA/train.tsv", os.urandom(1001))
    with pytest.raises(RawDataError, match="to more than 1,000 bytes"):
        extract(tmp_path / "a.zip", NAME, tmp_path / "out")


def test_a_file_of_equal_rows_is_extracted_although_it_compresses_well(tmp_path: Path) -> None:
    rows = b"unacceptable\t0\t\tThe same sentence.\n" * 400_000  # 14 MB
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("CoLA/train.tsv", rows)
    assert (tmp_path / "a.zip").stat().st_size * 200 < len(rows)
    extract(tmp_path / "a.zip", NAME, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == rows


@pytest.mark.parametrize(
    "member", ["../CoLA/train.tsv", "/CoLA/train.tsv", "a/../../../CoLA/train.tsv"]
)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_name_that_leaves_the_folder_is_written_to_the_path_that_was_asked_for(
    tmp_path: Path, member: str, kind: str
) -> None:
    folder = tmp_path / "in" / "side"
    folder.mkdir(parents=True)
    archive = folder / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr(member, "rows")
    else:
        with tarfile.open(archive, "w:gz") as opened_tar:
            info = tarfile.TarInfo(member)
            info.size = 4
            opened_tar.addfile(info, io.BytesIO(b"rows"))
    extract(archive, NAME, folder / "out")
    assert (folder / "out").read_text() == "rows"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        archive.name,
        "out",
    ]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_a_link_or_device_in_a_tar_file_is_not_a_file(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("CoLA/train.tsv")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(RawDataError, match="contains 0 files"):
        extract(tmp_path / "a.tar", NAME, tmp_path / "out")


def test_a_link_in_a_zip_file_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("CoLA/train.tsv")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(RawDataError, match="is a link"):
        extract(tmp_path / "a.zip", NAME, tmp_path / "out")


def test_an_encrypted_member_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("CoLA/train.tsv", "rows")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(bytes(data))
    with pytest.raises(RawDataError, match="is encrypted"):
        extract(tmp_path / "a.zip", NAME, tmp_path / "out")


def test_a_method_that_could_claim_gigabytes_of_memory_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("CoLA/train.tsv", "rows")
    with pytest.raises(RawDataError, match="compressed by method 14"):
        extract(tmp_path / "a.zip", NAME, tmp_path / "out")


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("CoLA/train.tsv", "rows")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("CoLA/train.tsv", "other rows")
    with pytest.raises(RawDataError, match="contains 2 files"):
        extract(tmp_path / "a.zip", NAME, tmp_path / "out")


def honest_archive(kind: str) -> bytes:
    target = io.BytesIO()
    rows = "".join(f"{number}\trow\n" for number in range(200)).encode()
    if kind == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("CoLA/train.tsv", rows)
    else:
        with tarfile.open(fileobj=target, mode="w:gz" if kind == "tar.gz" else "w") as tar:
            info = tarfile.TarInfo("CoLA/train.tsv")
            info.size = len(rows)
            tar.addfile(info, io.BytesIO(rows))
    return target.getvalue()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    kind=st.sampled_from(["zip", "tar.gz", "tar"]),
    place=st.floats(0, 1, exclude_max=True),
    value=st.integers(0, 255),
    cut=st.booleans(),
)
@example(kind="zip", place=127 / 128, value=2, cut=False)  # an offset before the start of the file
def test_any_damage_is_a_message_or_harmless(
    tmp_path: Path, kind: str, place: float, value: int, *, cut: bool
) -> None:
    data = bytearray(honest_archive(kind))
    index = int(place * len(data))
    if cut:
        del data[index:]
    else:
        data[index] = value
    archive = tmp_path / f"a.{kind}"
    archive.write_bytes(bytes(data))
    with contextlib.suppress(RawDataError):  # any other error fails the test
        extract(archive, NAME, tmp_path / "out")
    assert not list(tmp_path.glob(".writing-*"))


def test_a_list_of_wet_paths_that_is_a_gzip_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_lists, "MAX_LIST_BYTES", 1 << 20)
    path = tmp_path / "wet.paths.gz"
    path.write_bytes(gzip.compress(bytes(BOMB_BYTES)))
    with pytest.raises(RawDataError, match="has more than 1,048,576 bytes"):
        read_path_list(path)
