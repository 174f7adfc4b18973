"""What it takes to fetch a crawl, by the sizes that servers state."""

import gzip
from pathlib import Path

import pytest
from servers import BUSY, HERE, Server, origin

from t5repro.data.fetch_plan import ASSUMED_FILE_BYTES, parse_rate, plan_fetch, plan_lines
from t5repro.errors import RawDataError, SettingsError


def write_list(folder: Path, *names: str) -> Path:
    path = folder / "wet.paths.gz"
    path.write_bytes(gzip.compress("".join(f"{name}\n" for name in names).encode()))
    return path


def crawl_of(server: Server, folder: Path, *sizes: int) -> tuple[Path, str]:
    """Serve files of these sizes; return their list and the address before it."""
    names = [f"crawl/{number}.warc.wet.gz" for number in range(len(sizes))]
    server.files.update({f"/{name}": bytes(size) for name, size in zip(names, sizes, strict=True)})
    return write_list(folder, *names), origin(server, "")


def test_all_sizes_are_those_of_the_servers_and_nothing_is_fetched(
    https: Server, tmp_path: Path
) -> None:
    path_list, prefix = crawl_of(https, tmp_path, 1000, 3000, 5000)
    plan = plan_fetch(path_list, prefix, sample=10)
    assert (plan.files, list(plan.kinds[0].sizes), plan.bytes_of(3)) == (
        3,
        [1000, 3000, 5000],
        9000,
    )
    assert https.asked == {}
    assert plan_lines(plan, rate=2.5, shards=2, parts=1, punkt=0) == [
        "files     3 WET files",
        "size      3 kB per file on average, 1 kB to 5 kB, as their servers state for 3 of them",
        "transfer  9 kB, 1.0 hours at 2.5 B/s",
        "disk      6 kB for each cleaning job that runs at a time (2 files; c4.clean_shards 2, "
        "c4.clean_parts 1); on Spark 3 kB for each task; 9 kB to keep all files",
    ]


def test_a_sample_stands_for_a_crawl_and_punkt_fetches_its_files_too(
    https: Server, tmp_path: Path
) -> None:
    path_list, prefix = crawl_of(https, tmp_path, *[2_000_000, 1] * 4)
    plan = plan_fetch(path_list, prefix, sample=4)
    assert list(plan.kinds[0].sizes) == [2_000_000] * 4  # every second file
    files, _, transfer, disk = plan_lines(plan, rate=1e6, shards=2, parts=2, punkt=3)
    assert files == "files     8 WET files, and 3 of them for Punkt"
    assert transfer == "transfer  22 MB, 0.0 hours at 1 MB/s"
    assert disk.startswith("disk      4 MB for each cleaning job that runs at a time (2 files; ")
    assert disk.endswith("; 16 MB to keep all files")


def test_the_wat_files_of_a_run_that_reads_their_signals_are_planned_too(
    https: Server, tmp_path: Path
) -> None:
    path_list, prefix = crawl_of(https, tmp_path, 1000, 3000)
    https.files["/crawl/0.warc.wat.gz"] = bytes(6000)
    plan = plan_fetch(path_list, prefix, sample=2, with_wat=True)
    # One of the two WAT files is absent, so half of them exist.
    assert plan.bytes_of(2) == 2 * 2000 + 6000
    assert plan_lines(plan, rate=2.5, shards=2, parts=1, punkt=1) == [
        "files     2 WET files and the WAT file of each, and 1 of them for Punkt",
        "size      2 kB per WET file on average, 1 kB to 3 kB, as their servers state for 2 of "
        "them",
        "size      6 kB per WAT file on average, 6 kB to 6 kB, as their servers state for 1 of "
        "them",
        "transfer  15 kB, 1.7 hours at 2.5 B/s",
        "disk      8 kB for each cleaning job that runs at a time (1 files; c4.clean_shards 2, "
        "c4.clean_parts 1); on Spark 8 kB for each task; 10 kB to keep all files",
        f"absent    1 of 2 files, such as {prefix}crawl/1.warc.wat.gz",
    ]


def test_absent_busy_and_refused_files_are_told_and_do_not_stop_the_plan(
    https: Server, tmp_path: Path
) -> None:
    path_list, prefix = crawl_of(https, tmp_path, 1000, 1000, 1000, 1000)
    path_list = write_list(tmp_path, *(f"crawl/{n}.warc.wet.gz" for n in range(4)), "../x", "none")
    del https.files["/crawl/1.warc.wet.gz"]
    https.fault = lambda path, number: BUSY if path == "/crawl/2.warc.wet.gz" else None
    plan = plan_fetch(path_list, prefix, sample=4)
    assert plan.bytes_of(plan.files) == 5 * 1000 * 0.75
    assert plan_lines(plan, rate=1, shards=1, parts=1, punkt=0)[4:] == [
        f"absent    1 of 4 files, such as {prefix}crawl/1.warc.wet.gz",
        f"unknown   1 of 4 sizes: {prefix}crawl/2.warc.wet.gz answers with status 503 "
        "Service Unavailable",
        "refused   1 paths of the list, which leave c4.crawl_prefix",
    ]


def test_without_a_stated_size_the_plan_says_that_it_assumes_one(
    https: Server, tmp_path: Path
) -> None:
    path_list, prefix = crawl_of(https, tmp_path, *[1] * 1000)
    plan = plan_fetch(path_list, prefix, sample=0)
    assert plan.bytes_of(1000) == 1000 * ASSUMED_FILE_BYTES["WET"]
    assert plan_lines(plan, rate=100e6, shards=1, parts=1, punkt=0)[1:3] == [
        "size      131 MB per file: an assumption, the mean of CC-MAIN-2019-09; no server stated "
        "a size",
        "transfer  131 GB, 0.4 hours at 100 MB/s",
    ]


def test_a_server_that_is_not_there_gives_a_plan_with_the_assumption(tmp_path: Path) -> None:
    plan = plan_fetch(write_list(tmp_path, "a"), f"https://{HERE}:1/", sample=1)
    assert plan.file_bytes == ASSUMED_FILE_BYTES["WET"]
    assert "does not answer" in plan_lines(plan, rate=1, shards=1, parts=1, punkt=0)[-1]


def test_a_wrong_address_is_refused(https: Server, tmp_path: Path) -> None:
    path_list, prefix = crawl_of(https, tmp_path, 1000, 1000)
    with pytest.raises(
        RawDataError, match=r"other/crawl/0\S* does not exist, nor does any of the 2"
    ):
        plan_fetch(path_list, prefix + "other/", sample=5)
    with pytest.raises(RawDataError, match="c4.crawl_prefix is 'crawl', and only files of an addr"):
        plan_fetch(path_list, "crawl", sample=5)


def test_sizes_of_an_s3_compatible_store_are_asked_for_too(store: Server, tmp_path: Path) -> None:
    store.files["/commoncrawl/a"] = bytes(700)
    plan = plan_fetch(write_list(tmp_path, "a", "b"), "s3://commoncrawl/", sample=2)
    assert (list(plan.kinds[0].sizes), list(plan.kinds[0].absent)) == (
        [700],
        ["s3://commoncrawl/b"],
    )


@pytest.mark.parametrize(
    ("text", "rate"),
    [("100MB/s", 1e8), ("1Gbit/s", 1.25e8), ("2.5 kB/s", 2500), ("8bit/s", 1), ("1TB/s", 1e12)],
)
def test_a_rate_has_a_unit(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["100", "100MB", "0MB/s", "-1MB/s", "fast", "1mb/s"])
def test_another_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError, match=f"--rate '{text}' is no rate; .* such as 100MB/s"):
        parse_rate(text)
