"""Bring raw files into `data.folder` and check them against the run file.

Three ways in: copied from `data.source` (the bundled mini crawl), used where they are (a folder
of real data), or fetched from their origin when `data.download` allows the network.
"""

import gzip
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from t5repro.config.sections.data import DataSettings, DataStage, RawFiles
from t5repro.data.download import ARCHIVES, download_once, extract
from t5repro.errors import RawDataError
from t5repro.files import atomic_path, sha256_of, write_manifest
from t5repro.progress import Progress

BY_HAND = "by hand: "


def raw_path(data: DataSettings, name: str) -> Path:
    """Return where a raw file lies.

    Raises:
        RawDataError: the name leaves the folder.
    """
    if leaves_folder(name):
        raise RawDataError(
            f"data.sources names {name!r}, which leaves data.folder; use a path below it"
        )
    return Path(data.folder) / name


def leaves_folder(name: str) -> bool:
    """Tell whether a relative path could point outside the folder it is joined to."""
    pure = PurePosixPath(name)
    return pure.is_absolute() or ".." in pure.parts


def check(settings: DataStage, *, manifest: Path) -> None:
    """Hash every raw file, hold it against the run file, and write the manifest.

    Raises:
        RawDataError: a file is missing or is not the one that the run file names.
    """
    data = settings.data
    paths: list[Path] = []
    with Progress("data", total=_count(data), unit="files") as progress:
        for source, name, expected in _files(data):
            path = raw_path(data, name)
            _check_one(path, expected, source)
            paths.append(path)
            progress.advance()
    write_manifest(
        manifest,
        rule="data",
        settings=settings.model_dump(mode="json"),
        inputs=[],
        outputs=paths,
        counters={
            "files": len(paths),
            "hash_in_run_file": sum(bool(expected) for _, _, expected in _files(data)),
        },
    )


def fetch(settings: DataStage, *, downloads: Path) -> None:
    """Copy or download every raw file that is not in place yet.

    Args:
        settings: the `data` section.
        downloads: folder for archives between runs; an interrupted run keeps what it has.

    Raises:
        RawDataError: a file cannot be had, or is not the one that the run file names.
    """
    data = settings.data
    with Progress("data_fetch", total=_count(data), unit="files") as progress:
        for source, name, expected in _files(data):
            path = raw_path(data, name)
            if _must_be_brought(data, name, expected):
                _bring(data, source, name, path, downloads)
                _check_one(path, expected, source)
            progress.advance()


def files_to_bring(data: DataSettings) -> list[str]:
    """Return the raw files that `fetch` would bring: absent ones, and old copies of bundled ones.

    A file that is in place and is not bundled is left alone, whatever it holds: a person put it
    there, and `check` names it if it is wrong.
    """
    if not (data.source or data.download):
        return []
    return [name for _, name, expected in _files(data) if _must_be_brought(data, name, expected)]


def _must_be_brought(data: DataSettings, name: str, expected: str) -> bool:
    path = raw_path(data, name)
    return not path.is_file() or bool(data.source and expected and sha256_of(path) != expected)


def missing_files(data: DataSettings) -> list[str]:
    """Return one line for each raw file that is absent and that no setting would bring."""
    if data.source or data.download:
        return []
    return [
        f"{raw_path(data, name)}: get it from {source.origin.removeprefix(BY_HAND)} "
        "and put it there"
        for source, name, _ in _files(data)
        if not raw_path(data, name).is_file()
    ]


def _files(data: DataSettings) -> Iterator[tuple[RawFiles, str, str]]:
    for source in data.sources:
        for name, expected in source.files.items():
            yield source, name, expected


def _count(data: DataSettings) -> int:
    return sum(len(source.files) for source in data.sources)


def _check_one(path: Path, expected: str, source: RawFiles) -> None:
    if not path.is_file():
        raise RawDataError(f"{path} is missing; get it from {source.origin} and put it there")
    found = sha256_of(path)
    if expected and found != expected:
        raise RawDataError(
            f"{path} has sha256 {found}, the run file expects {expected}; get the file from "
            f"{source.origin} again, or correct the run file if the new file is meant"
        )


def _bring(data: DataSettings, source: RawFiles, name: str, path: Path, downloads: Path) -> None:
    if data.source:
        _copy(Path(data.source) / name, path)
    elif not data.download:
        raise RawDataError(
            f"{path} is missing; get it from {source.origin} and put it there, "
            "or set data.download to true"
        )
    elif source.origin.startswith(BY_HAND):
        raise RawDataError(
            f"{path} cannot be fetched: its owner wants it taken by hand from "
            f"{source.origin.removeprefix(BY_HAND)}; put it there and run again"
        )
    else:
        # Through a folder of its own: Snakemake deletes what a failed job brought.
        try:
            kept = download_once(source.origin, downloads)
        except RawDataError as error:
            raise RawDataError(
                f"{path} is missing and cannot be fetched: {error}; or get it from "
                f"{source.origin} on another machine and put it there"
            ) from error
        if kept.name.endswith(ARCHIVES):
            extract(kept, name, path)
        else:
            _copy(kept, path)


def _copy(origin: Path, path: Path) -> None:
    if not origin.is_file():
        raise RawDataError(f"{origin} is missing; data.source must hold every file of data.sources")
    with atomic_path(path) as temporary:
        shutil.copyfile(origin, temporary)


def evenly_spaced(names: Sequence[str], count: int) -> list[str]:
    """Return at most `count` of the names, evenly spread over them."""
    chosen = min(count, len(names))
    return [names[at * len(names) // chosen] for at in range(chosen)]


def read_path_list(path: Path, *, shard: int, shards: int) -> tuple[list[str], list[str]]:
    """Return the WET paths of one cleaning job from a crawl's path list, and those to refuse.

    A path is refused that would leave the folder that all of them are below.

    Raises:
        RawDataError: the list is empty or cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as handle:
            names = [line.strip() for line in handle if line.strip()]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RawDataError(f"{path} cannot be read as a list of WET paths: {error}") from error
    if not names:
        raise RawDataError(f"{path} lists no WET path")
    mine = names[shard::shards]
    outside = [name for name in mine if leaves_folder(name)]
    return [name for name in mine if name not in outside], outside
