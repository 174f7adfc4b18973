"""The rule `data`: check every raw file against its SHA-256 in the run file."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from t5repro.config.sections.data import DataSettings, RawFiles
from t5repro.config.withdrawn import FILES, read_files
from t5repro.data.paths import check_links, raw_path
from t5repro.errors import RawDataError
from t5repro.files import refuse_other_form, sha256_of, write_manifest
from t5repro.jobs.corpus import DataJob
from t5repro.progress import Progress


class RawFile(NamedTuple):
    """One raw file of the run file.

    Attributes:
        source: the entry of `data.sources` that lists it.
        name: path relative to `data.folder`.
        path: path on this machine.
        sha256: expected hash; empty if the run file states none.
    """

    source: RawFiles
    name: str
    path: Path
    sha256: str


def check(job: DataJob) -> None:
    """Hash every raw file, compare it with the run file, and write the manifest.

    Raises:
        RawDataError: a file is missing, its hash differs, its bytes are withdrawn, or it is a link
            out of `data.folder`.
    """
    files = list(raw_files(job.settings.data))
    withdrawn = read_files().sha256
    with Progress("data", total=len(files), unit="files") as progress:
        for file in files:
            check_links(job.settings.data, file.path)
            if reason := withdrawn.get(check_hash(file)):
                raise RawDataError(
                    f"{file.path} has the bytes of a file that {FILES} withdraws ({reason}); "
                    "remove it from the run file"
                )
            progress.advance()
    write_manifest(
        job.manifest,
        rule="data",
        settings=job.settings.model_dump(mode="json"),
        inputs=[],
        outputs=[file.path for file in files],
        counters={
            "files": len(files),
            "hash_in_run_file": sum(bool(file.sha256) for file in files),
        },
    )


def raw_files(data: DataSettings) -> Iterator[RawFile]:
    """Yield the files of `data.sources` in the order of the run file.

    Raises:
        RawDataError: a name leaves `data.folder`.
    """
    for source in data.sources:
        for name, sha256 in source.files.items():
            yield RawFile(source, name, raw_path(data, name), sha256)


def check_hash(file: RawFile) -> str:
    """Return the hash of a raw file, after checking that it is the expected one, if there is one.

    Raises:
        RawDataError: it is missing, has another form than its name says, or its hash differs.
    """
    origin = file.source.origin
    if not file.path.is_file():
        raise RawDataError(f"{file.path} is missing; get it from {origin} and put it there")
    # Readers of lists would take its lines for words or addresses.
    refuse_other_form(file.path)
    actual = sha256_of(file.path)
    if file.sha256 and actual != file.sha256:
        raise RawDataError(
            f"{file.path} has sha256 {actual}, the run file expects {file.sha256}; get the file "
            f"from {origin} again, or correct the run file if the new file is the intended one"
        )
    return actual
