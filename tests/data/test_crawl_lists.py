"""The division of a crawl into jobs is the same for every way to list its files."""

import gzip
from pathlib import Path

import pytest

from t5repro.data.crawl_lists import (
    CrawlFiles,
    Fetch,
    evenly_spaced,
    files_of_shard,
    is_wat,
    local_copies,
    read_path_list,
    sample_of_crawl,
    shard_of_crawl,
    wat_name,
    wat_of_crawl,
)
from t5repro.data.transfer import AbsentError, TransferError
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


def test_a_listed_link_out_of_the_folder_is_refused_and_one_inside_it_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    (crawl / "a").write_bytes(b"a")
    (crawl / "b").symlink_to("a")
    (crawl / "c").symlink_to("../secret")
    (crawl / "d").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(crawl)
    path_list = write_list(tmp_path, "a", "b", "c", "d/secret", "absent", "nul\0")
    for prefix in (crawl, tmp_path / "link"):
        read = shard(path_list, 0, 1, prefix=str(prefix))
        assert [path.name for path in read.paths] == ["a", "absent", "b", "nul\0"]
        assert read.refused == ("c", "d/secret")


def test_a_wat_file_has_the_name_that_common_crawl_gives_it(tmp_path: Path) -> None:
    segment = "crawl-data/CC-MAIN-2019-18/segments/1"
    assert wat_name(f"{segment}/wet/a-00000.warc.wet.gz") == f"{segment}/wat/a-00000.warc.wat.gz"
    assert wat_name("a.wet") == "a.wat"
    assert [is_wat(name) for name in ("a.warc.wat.gz", "b.wat", "wat/a.wet", "wat")] == [
        *(True, True),
        *(False, False),
    ]
    with pytest.raises(RawDataError, match="a.warc.gz: c4.signals.source is wat"):
        wat_name("wet/a.warc.gz")


def test_the_wat_files_of_a_job_stand_in_the_order_of_its_wet_files(tmp_path: Path) -> None:
    path_list = write_list(tmp_path, "wet/b.wet.gz", "../c.wet", "wet/a.wet.gz")
    prefix = "https://host/"
    remote = wat_of_crawl(shard(path_list, 0, 1, prefix), (), (), prefix=prefix)
    assert remote.paths == (Path("wat/a.wat.gz"), Path("wat/b.wat.gz"))
    assert remote.addresses[remote.paths[0]] == "https://host/wat/a.wat.gz"
    local = wat_of_crawl(shard(path_list, 0, 1), (), (), prefix="crawl")
    assert local == CrawlFiles((Path("crawl/wat/a.wat.gz"), Path("crawl/wat/b.wat.gz")), {})
    wet, wat = [Path("z/b.wet"), Path("a.wet")], [Path("y/b.wat"), Path("x/a.wat")]
    files = shard_of_crawl(wet, None, prefix="", shard=0, shards=1)
    assert wat_of_crawl(files, wet, wat, prefix="").paths == (Path("x/a.wat"), Path("y/b.wat"))
    with pytest.raises(RawDataError, match="2 WET files and 1 WAT files"):
        wat_of_crawl(files, wet, wat[:1], prefix="")
    (tmp_path / "wat").mkdir()
    (tmp_path / "wat/a.wat.gz").symlink_to("/etc/hostname")
    with pytest.raises(RawDataError, match=r"a\.wat\.gz is a link out of c4\.crawl_prefix"):
        wat_of_crawl(shard(path_list, 0, 1, str(tmp_path)), (), (), prefix=tmp_path.as_posix())


def test_files_without_a_list_are_ordered_by_name() -> None:
    files = [Path("z/a"), Path("b"), Path("a/a")]
    for crawl in (
        shard_of_crawl(files, None, prefix="", shard=1, shards=4),
        sample_of_crawl(files, None, prefix="", count=1),
    ):
        assert crawl == CrawlFiles((Path("a/a"), Path("z/a"), Path("b")), {})


def remote_crawl(folder: Path, **files: str) -> tuple[CrawlFiles, Fetch, list[str]]:
    """Return a crawl of remote files, a function that copies them, and the list of its calls."""
    calls: list[str] = []

    def fetch(address: str, path: Path) -> None:
        name = address.removeprefix("https://host/")
        calls.append(name)
        if name not in files:
            raise AbsentError(f"{address} does not exist")
        if files[name] == "broken":
            raise TransferError(f"{address} broke off")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name])

    return shard(write_list(folder, "b/c", "a", "d"), 0, 1, prefix="https://host/"), fetch, calls


def test_remote_files_are_kept_until_the_block_succeeds(tmp_path: Path) -> None:
    crawl, fetch, _ = remote_crawl(tmp_path, **{"a": "text of a", "b/c": "of c", "d": "of d"})
    assert crawl.paths == (Path("a"), Path("b/c"), Path("d"))
    work = tmp_path / "work"
    with local_copies(crawl, work, fetch) as copies:
        assert [path.read_text() for path in copies.as_they_arrive()] == [
            "text of a",
            "of c",
            "of d",
        ]
        assert tuple(copies.paths.values()) == crawl.paths
        assert [path.name for path in copies.paths] == ["a", "c", "d"]
    assert not work.exists()


def test_a_file_that_cannot_be_transferred_costs_no_other(tmp_path: Path) -> None:
    crawl, fetch, calls = remote_crawl(tmp_path, **{"a": "of a", "b/c": "broken", "d": "of d"})
    with (
        pytest.raises(TransferError, match="b/c broke off"),
        local_copies(crawl, tmp_path / "work", fetch) as copies,
    ):
        copies.join()  # all transfers were tried
        for path in copies.as_they_arrive():
            assert path.read_text() == "of a"
    crawl, fetch, calls = remote_crawl(tmp_path, **{"b/c": "of c"})
    with local_copies(crawl, tmp_path / "work", fetch) as copies:
        assert [path.read_text() for path in copies.as_they_arrive()] == ["of a", "of c", "of d"]
    assert calls == ["b/c"]


def test_a_remote_file_that_does_not_exist_stays_absent(tmp_path: Path) -> None:
    crawl, fetch, _ = remote_crawl(tmp_path, a="of a", d="of d")
    with local_copies(crawl, tmp_path / "work", fetch) as copies:
        assert [path.is_file() for path in copies.as_they_arrive()] == [True, False, True]


def test_local_files_are_read_in_place(tmp_path: Path) -> None:
    crawl = shard(write_list(tmp_path, "a"), 0, 1)
    with local_copies(crawl.only(Path("crawl/a")), tmp_path) as copies:
        assert list(copies.as_they_arrive()) == [Path("crawl/a")]
        assert copies.paths == {Path("crawl/a"): Path("crawl/a")}


@pytest.mark.parametrize("module", ["c4.punkt", "c4.clean"])
def test_the_division_of_the_crawl_is_code_of_the_rules_that_read_it(module: str) -> None:
    assert "src/t5repro/data/crawl_lists.py" in source_files(module)
