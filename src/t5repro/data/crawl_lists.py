"""The WET files of a crawl: division among cleaning jobs, the Punkt sample, download.

A crawl is given by `c4.crawl` (raw files of the run) or by `c4.crawl_paths`, a list of WET paths as
Common Crawl publishes it, with `c4.crawl_prefix` before each. Both are divided by `files_of_shard`
and sampled by `evenly_spaced`, so this module decides which pages a job reads.
"""

import contextlib
import gzip
import io
import os
import queue
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from t5repro.data.paths import leaves_folder, linked_target
from t5repro.data.transfer import ADDRESSES, AbsentError, copy_path, fetch_address
from t5repro.errors import RawDataError
from t5repro.files import by_name, describe_file

MAX_LIST_BYTES = 1 << 28  # the lists of Common Crawl have 10 MB for 72,000 files
File = TypeVar("File")  # a path or its text
Fetch = Callable[[str, Path], Any]  # transfers an address to a file


class CrawlFiles(NamedTuple):
    """The WET files of one job.

    Attributes:
        paths: the files, ordered by name; for a remote crawl the paths of the list.
        addresses: path -> address, for files that are downloaded when they are read.
        refused: listed paths that leave `c4.crawl_prefix`, also by a link, and are not read.
    """

    paths: tuple[Path, ...]
    addresses: Mapping[Path, str]
    refused: tuple[str, ...] = ()

    def only(self, *paths: Path) -> "CrawlFiles":
        """Return a job of some of the files."""
        addresses = {path: self.addresses[path] for path in paths if path in self.addresses}
        return CrawlFiles(paths, addresses)


def files_of_shard(files: Sequence[File], shard: int, shards: int) -> Sequence[File]:
    """Return the files of cleaning job `shard`, counted from 0, of `shards`."""
    return files[shard::shards]


def evenly_spaced(files: Sequence[File], count: int) -> list[File]:
    """Return at most `count` of the files at equal distances."""
    size = min(count, len(files))
    return [files[index * len(files) // size] for index in range(size)]


def shard_of_crawl(
    files: Sequence[Path], path_list: Path | None, *, prefix: str, shard: int, shards: int
) -> CrawlFiles:
    """Return the WET files of one cleaning job.

    Args:
        files: WET files of this job, if the caller divided the crawl (`c4.crawl`).
        path_list: list of all WET paths (`c4.crawl_paths`), or None to use `files`.
        prefix: folder or address before each listed path (`c4.crawl_prefix`).
        shard: number of the job, from 0.
        shards: number of jobs (`c4.clean_shards`).

    Raises:
        RawDataError: the list is empty or cannot be read.
    """
    if path_list is None:
        return CrawlFiles(tuple(by_name(files)), {})
    return _resolved(files_of_shard(read_path_list(path_list), shard, shards), prefix)


def sample_of_crawl(
    files: Sequence[Path], path_list: Path | None, *, prefix: str, count: int
) -> CrawlFiles:
    """Return the WET files on which Punkt is trained.

    Args:
        files: the sample, if the caller drew it (`c4.crawl`).
        path_list: list of all WET paths (`c4.crawl_paths`), or None to use `files`.
        prefix: folder or address before each listed path (`c4.crawl_prefix`).
        count: size of the sample (`c4.punkt_sample_files`).

    Raises:
        RawDataError: the list is empty or cannot be read.
    """
    if path_list is None:
        return CrawlFiles(tuple(by_name(files)), {})
    names = [name for name in read_path_list(path_list) if not leaves_folder(name)]
    return _resolved(evenly_spaced(names, count), prefix)


def is_wat(name: str) -> bool:
    """Return whether a raw file is a WAT file, by its name."""
    return ".wat" in PurePosixPath(name).suffixes


def wat_name(name: str) -> str:
    """Return the name of the WAT file beside a WET file, as Common Crawl names both.

    ``wet/part.warc.wet.gz`` -> ``wat/part.warc.wat.gz``

    Raises:
        RawDataError: the name does not say that it is one of a WET file.
    """
    path = PurePosixPath(name)
    if ".wet" not in path.suffixes:
        raise RawDataError(
            f"{name}: c4.signals.source is wat, and the name of a WAT file is made from that of "
            "its WET file, such as part.warc.wet.gz; name the WET file so, or set "
            "c4.signals.source to none or text"
        )
    parts = ["wat" if part == "wet" else part for part in path.parts[:-1]]
    stem, _, ending = path.name.rpartition(".wet")
    return PurePosixPath(*parts, f"{stem}.wat{ending}").as_posix()


def names_of_part(name: str) -> list[str]:
    """Return the names of a WET file and its WAT file; of any other file its name."""
    return [name, wat_name(name)] if ".wet" in PurePosixPath(name).suffixes else [name]


def wat_of_crawl(
    crawl: CrawlFiles, wet: Sequence[Path], wat: Sequence[Path], *, prefix: str
) -> CrawlFiles:
    """Return the WAT file of each WET file of a job, in their order.

    Args:
        crawl: the WET files.
        wet: WET files of the job, if the caller divided the crawl (`c4.crawl`).
        wat: WAT file of each of them.
        prefix: folder or address before each listed path (`c4.crawl_prefix`).

    Raises:
        RawDataError: the files are not pairs, a listed name is not one of a WET file, or a WAT
            file is a link out of the folder.
    """
    if len(wet) != len(wat):
        raise RawDataError(
            f"{len(wet)} WET files and {len(wat)} WAT files: c4.signals.source is wat, so each WET "
            "file needs its WAT file, in the same order"
        )
    if wet:
        of_wet = dict(zip(wet, wat, strict=True))
        return CrawlFiles(tuple(of_wet[path] for path in crawl.paths), {})
    if crawl.addresses:
        names = [Path(wat_name(path.as_posix())) for path in crawl.paths]
        return CrawlFiles(tuple(names), {name: prefix + name.as_posix() for name in names})
    folder = Path(prefix)
    paths = [folder / wat_name(path.relative_to(folder).as_posix()) for path in crawl.paths]
    for path in paths:
        if linked_target(path, folder):
            raise RawDataError(f"{path} is a link out of c4.crawl_prefix; put the file there")
    return CrawlFiles(tuple(paths), {})


def read_path_list(path: Path) -> list[str]:
    """Return the paths of a list with one path per line, plain or gzip.

    Raises:
        RawDataError: the list is empty or cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as handle:
            data = handle.read(MAX_LIST_BYTES + 1)
        if len(data) > MAX_LIST_BYTES:
            raise RawDataError(
                f"{path} has more than {MAX_LIST_BYTES:,} bytes; a list of WET paths has one short "
                "line per file"
            )
        # A path that is listed twice is one file of the crawl.
        lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        names = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RawDataError(f"{path} cannot be read as a list of WET paths: {error}") from error
    if not names:
        raise RawDataError(f"{path} lists no WET path")
    return names


def _resolved(names: Sequence[str], prefix: str) -> CrawlFiles:
    # A path such as ../../etc/passwd in a downloaded list must not be opened.
    refused = tuple(name for name in names if leaves_folder(name))
    allowed = [name for name in names if not leaves_folder(name)]
    if not prefix.startswith(ADDRESSES):
        folder = Path(prefix)
        linked = {name for name in allowed if linked_target(folder / name, folder)}
        paths = [folder / name for name in allowed if name not in linked]
        return CrawlFiles(tuple(by_name(paths)), {}, (*refused, *sorted(linked)))
    addresses = {Path(name): prefix + name for name in allowed}
    return CrawlFiles(tuple(by_name(list(addresses))), addresses, refused)


class LocalCopies(threading.Thread):
    """The files of a job on this machine; remote ones arrive one after another, in their order.

    Attributes:
        paths: local file -> path in the list. A file that its server does not have stays absent.

    Args:
        crawl: the files.
        folder: keeps what arrived until the job is done, by the hash of its address.
        fetch: transfers one file.
    """

    def __init__(self, crawl: CrawlFiles, folder: Path, fetch: Fetch) -> None:
        super().__init__(daemon=True)  # a stopped job need not wait for a transfer
        addresses = crawl.addresses
        self.paths = {
            copy_path(addresses[path], folder) if addresses else path: path for path in crawl.paths
        }
        self._addresses = [addresses[path] for path in crawl.paths if addresses]
        self._folder = folder
        self._fetch = fetch
        self._outcomes: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._ends_early = threading.Event()

    @property
    def are_remote(self) -> bool:
        """Whether the files come from addresses."""
        return bool(self._addresses)

    def run(self) -> None:
        """Transfer the remote files."""
        for address in self._addresses:
            if self._ends_early.is_set():
                return
            self._outcomes.put(self._transfer(address))

    def _transfer(self, address: str) -> Exception | None:
        """Transfer a file that is not there; return the error for the thread that reads it."""
        copy = copy_path(address, self._folder)
        try:
            if not copy.is_file():
                self._fetch(address, copy)
        except AbsentError:
            return None  # counted as a fault of the crawl, as an absent local file
        except Exception as error:
            return error
        return None

    def as_they_arrive(self) -> Iterator[Path]:
        """Yield every local file once it is complete.

        Raises:
            RawDataError: a file cannot be transferred.
        """
        for path in self.paths:
            if self._addresses and (error := self._outcomes.get()):
                raise error
            yield path

    def described(self) -> dict[str, Mapping[str, Any]]:
        """Return path in the list -> description (`files.describe_file`) of each file.

        A missing file is counted as a fault and is no input. `isfile` is also False for a listed
        name that no file can have, such as one with a NUL byte.
        """
        return {
            path.as_posix(): {**describe_file(file), "path": path.as_posix()}
            for file, path in self.paths.items()
            if os.path.isfile(file)
        }

    def stop(self) -> None:
        """Begin no other transfer."""
        self._ends_early.set()


def default_work(manifest: Path) -> Path:
    """Return the folder of downloaded files of a job that was given none."""
    return manifest.with_name(f".fetching-{manifest.name}")


@contextlib.contextmanager
def local_copies(
    crawl: CrawlFiles, folder: Path, fetch: Fetch = fetch_address
) -> Iterator[LocalCopies]:
    """Yield a readable file for every path of a job, while later ones are still transferred.

    Args:
        crawl: the files.
        folder: receives the remote ones. It is deleted when the block succeeds; otherwise the next
            run takes what arrived.
        fetch: transfers one file.
    """
    copies = LocalCopies(crawl, folder, fetch)
    if crawl.addresses:
        copies.start()
    try:
        yield copies
    finally:
        copies.stop()
    shutil.rmtree(folder, ignore_errors=True)
