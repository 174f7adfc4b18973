"""The rule `data_fetch`: copy or download the raw files that are missing from `data.folder`.

A raw file is copied from `data.source` (the bundled mini crawl) or, if `data.download` allows it,
downloaded from its origin. Files that the user put into `data.folder` are never replaced.
"""

import shlex
import shutil
import time
from pathlib import Path

from t5repro.config.hub_address import hub_origin
from t5repro.config.sections.data import DataSettings
from t5repro.data.archives import ARCHIVES, extract
from t5repro.data.check import RawFile, check_hash, raw_files
from t5repro.data.hub_access import fetch_from_hub
from t5repro.data.paths import check_links
from t5repro.data.transfer import fetch_once
from t5repro.errors import RawDataError
from t5repro.files import atomic_path, sha256_of
from t5repro.jobs.corpus import FetchJob
from t5repro.progress import Progress

MAX_AHEAD = 60  # seconds; clocks of machines differ a little
BY_HAND = "by hand: "  # prefix of an origin that only the user may download


def fetch(job: FetchJob) -> None:
    """Copy or download every raw file that is missing.

    Raises:
        RawDataError: a file cannot be fetched, its hash differs from the run file, or its folder
            is a link out of `data.folder`.
    """
    files = list(raw_files(job.settings.data))
    with Progress("data_fetch", total=len(files), unit="files") as progress:
        for file in files:
            if _is_missing_or_outdated(job.settings.data, file):
                check_links(job.settings.data, file.path)
                _fetch_file(job.settings.data, file, job.downloads)
                check_hash(file)
            progress.advance()


def files_to_fetch(data: DataSettings) -> list[str]:
    """Return the names of the raw files that `fetch` would write.

    These are missing files and outdated copies of bundled ones. Any other existing file is kept
    whatever its content, because the user put it there; `check` reports it if its hash differs.
    """
    if not (data.source or data.download):
        return []
    return [file.name for file in raw_files(data) if _is_missing_or_outdated(data, file)]


def missing_files(data: DataSettings, *, check_dates: bool = True) -> list[str]:
    """Return one line for each missing raw file if the settings allow no way to fetch it.

    Args:
        data: the section.
        check_dates: whether to refuse dates in the future.

    Raises:
        RawDataError: a file has a date in the future, as from a machine with another clock.
    """
    lines = []
    for file in raw_files(data):
        if not file.path.is_file():
            origin = file.source.origin.removeprefix(BY_HAND)
            lines.append(f"{file.path}: get it from {origin} and put it there")
        elif check_dates:
            check_date(file.path)
    return [] if data.source or data.download else lines


def check_date(path: Path) -> None:
    """Refuse a date in the future: Snakemake would delete all results of the file.

    Raises:
        RawDataError: the file has such a date.
    """
    if (ahead := path.stat().st_mtime - time.time()) > MAX_AHEAD:
        raise RawDataError(
            f"{path} has a date {ahead:,.0f} s in the future, so Snakemake would delete what is "
            f"made of it as outdated; set it to now: touch {shlex.quote(path.as_posix())}"
        )


def _is_missing_or_outdated(data: DataSettings, file: RawFile) -> bool:
    if not file.path.is_file():
        return True
    return bool(data.source and file.sha256 and sha256_of(file.path) != file.sha256)


def _fetch_file(data: DataSettings, file: RawFile, downloads: Path) -> None:
    origin = file.source.origin
    if data.source:
        _copy(Path(data.source) / file.name, file.path)
    elif not data.download:
        raise RawDataError(
            f"{file.path} is missing; get it from {origin} and put it there, "
            "or set data.download to true"
        )
    elif origin.startswith(BY_HAND):
        raise RawDataError(
            f"{file.path} cannot be downloaded automatically: its owner requires a manual "
            f"download from {origin.removeprefix(BY_HAND)}; put it there and run again"
        )
    else:
        # Snakemake deletes the outputs of a failed job, so downloads have a folder of their own.
        hub = hub_origin(origin)
        try:
            archive = (
                fetch_from_hub(origin, hub, downloads) if hub else fetch_once(origin, downloads)
            )
        except RawDataError as error:
            raise RawDataError(
                f"{file.path} is missing and cannot be fetched: {error}; or get it from "
                f"{origin} on another machine and put it there"
            ) from error
        # A raw file may be an archive itself, whose thousands of members its task reads.
        if archive.name.endswith(ARCHIVES) and not file.name.endswith(ARCHIVES):
            extract(archive, file.name, file.path)
        else:
            _copy(archive, file.path)


def _copy(source: Path, path: Path) -> None:
    if not source.is_file():
        raise RawDataError(
            f"{source} is missing; data.source must contain every file of data.sources"
        )
    with atomic_path(path) as temporary:
        shutil.copyfile(source, temporary)
