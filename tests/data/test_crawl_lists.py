"""The division of a crawl into jobs is the same for every way to list its files."""

import gzip
import shutil
from pathlib import Path

import pytest

from t5repro.data.crawl_lists import (
    CrawlFiles,
    evenly_spaced,
    files_of_shard,
    local_copies,
    read_path_list,
    sample_of_crawl,
    shard_of_crawl,
)
from t5repro.errors import RawDataError
from t5repro.lineage.sources import source_files


def write_list(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "wet.paths"
    path.write_text("".join(f"{name}\n" for name in names))
    return path


def shard(path_list: Path, number: int, shards: int, prefix: str = "crawl") -> CrawlFiles:
    return shard_of_crawl((), path_list, prefix=prefix, shard=number, shards=shards)


def test_each_cleaning_job_reads_its_part_of_the_path_list(tmp_path: Path) -> None:
    path_list = write_list(tmp_path, *map(str, range(7)))
    assert shard(path_list, 1, 3).paths == (Path("crawl/1"), Path("crawl/4"))
    parts = [shard(path_list, number, 3).paths for number in range(3)]
    assert sorted(path.name for part in parts for path in part) == list("0123456")
    assert [list(files_of_shard("0123456", number, 3)) for number in range(3)] == [
        [path.name for path in part] for part in parts
    ]


def test_a_path_that_leaves_the_crawl_is_refused_and_moves_no_other(tmp_path: Path) -> None:
    path_list = write_list(tmp_path, "a", "../b", "/c", "d")
    crawl = shard(path_list, 0, 1)
    assert (crawl.paths, crawl.refused) == ((Path("crawl/a"), Path("crawl/d")), ("../b", "/c"))
    crawl = shard(path_list, 0, 2)
    assert (crawl.paths, crawl.refused) == ((Path("crawl/a"),), ("/c",))


def test_a_list_may_be_compressed_and_an_unusable_one_is_named(tmp_path: Path) -> None:
    path_list = tmp_path / "wet.paths.gz"
    path_list.write_bytes(gzip.compress(b"a\n\n b \n"))
    assert read_path_list(path_list) == ["a", "b"]
    path_list.write_bytes(b"a\n")
    with pytest.raises(RawDataError, match=r"wet\.paths\.gz cannot be read as a list"):
        read_path_list(path_list)
    with pytest.raises(RawDataError, match="lists no WET path"):
        read_path_list(write_list(tmp_path, ""))


def test_the_sample_of_punkt_is_evenly_spaced(tmp_path: Path) -> None:
    assert evenly_spaced("0123456789", 3) == ["0", "3", "6"]
    assert evenly_spaced("01", 5) == ["0", "1"]
    assert evenly_spaced("", 5) == []
    path_list = write_list(tmp_path, "../x", *"0123456789")
    crawl = sample_of_crawl((), path_list, prefix="crawl", count=3)
    assert [path.name for path in crawl.paths] == ["0", "3", "6"]


def test_files_without_a_list_are_ordered_by_name() -> None:
    files = [Path("z/a"), Path("b"), Path("a/a")]
    for crawl in (
        shard_of_crawl(files, None, prefix="", shard=1, shards=4),
        sample_of_crawl(files, None, prefix="", count=1),
    ):
        assert crawl == CrawlFiles((Path("a/a"), Path("z/a"), Path("b")), {})


def test_remote_files_are_downloaded_for_the_block_only(tmp_path: Path) -> None:
    (tmp_path / "store/b").mkdir(parents=True)
    for name in ("a", "b/c"):
        (tmp_path / "store" / name).write_text(name)

    def fetch(address: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(address.replace("https://host", str(tmp_path / "store")), path)

    crawl = shard(write_list(tmp_path, "b/c", "a"), 0, 1, prefix="https://host/")
    assert crawl.paths == (Path("a"), Path("b/c"))
    work = tmp_path / "work"
    with local_copies(crawl, work, fetch) as copies:
        assert [path.read_text() for path in copies] == ["a", "b/c"]
        assert tuple(copies.values()) == crawl.paths
    assert list(work.iterdir()) == []
    with local_copies(crawl.only(Path("a")), work, fetch) as copies:
        assert list(copies.values()) == [Path("a")]


def test_local_files_are_read_in_place(tmp_path: Path) -> None:
    crawl = shard(write_list(tmp_path, "a"), 0, 1)
    with local_copies(crawl.only(Path("crawl/a")), tmp_path) as copies:
        assert copies == {Path("crawl/a"): Path("crawl/a")}


@pytest.mark.parametrize("module", ["c4.punkt", "c4.clean"])
def test_the_division_of_the_crawl_is_code_of_the_rules_that_read_it(module: str) -> None:
    assert "src/t5repro/data/crawl_lists.py" in source_files(module)
