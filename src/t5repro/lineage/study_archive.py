"""The evidence of a committed study as one archive: what is packed, and how it is unpacked safely.

A study has records, locks, manifests, scores, histories and its report, without weights, corpora
and predictions: hashes lead from its scores to the raw files, and no artifact is needed for that.
Snakemake's measurements of the jobs, which `t5repro cost` reads, are there as well; no hash covers
them.
"""

import lzma
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BufferedIOBase, BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from t5repro.artifacts import CORPUS_PAGE, HISTORY, MANIFEST, REPORT, SCORE_TABLE, SCORES
from t5repro.errors import ArtifactError, LineageError
from t5repro.files import atomic_path, write_bytes
from t5repro.lineage.dvc_lock import LOCK_FILE, PIPELINE_FILE, Lock, parse_lock
from t5repro.lineage.record import LOGS
from t5repro.lineage.sources import RESOLVED
from t5repro.lineage.store import RECORDS, RESULTS, files_below

ARCHIVE = "evidence.tar.xz"
COPIES = (REPORT, SCORE_TABLE)  # files of the report that are next to the archive as well
REPORT_RULE = "report"
EVIDENCE_ENDINGS = (MANIFEST, SCORES, HISTORY)
MEASUREMENTS = ".tsv"  # below the folder of logs
MAX_BYTES = 1 << 28  # the largest study has 9 MB
PRESET = 9 | lzma.PRESET_EXTREME


def is_evidence(path: str) -> bool:
    """Return whether an archive has this file of a run: all but its artifacts and raw files."""
    parts = PurePosixPath(path).parts
    if parts[0] == RESULTS:
        # The page of the corpus shows texts, and those in answers/ predictions.
        is_report = parts[2:-1] == (REPORT_RULE,) and parts[-1] != CORPUS_PAGE
        return is_report or path.endswith(EVIDENCE_ENDINGS)
    if parts[0] == LOGS.name:
        return path.endswith(MEASUREMENTS)
    is_settings = PurePosixPath(path).parent == PurePosixPath(RESOLVED)
    return is_settings or parts[0] == RECORDS or path in (PIPELINE_FILE, LOCK_FILE)


def pack_study(root: Path, run: str, study: Path) -> None:
    """Write the archive of a finished run, and the copies next to it.

    Equal files make equal bytes: names are sorted, and owners, times and modes are constants.

    Args:
        root: a checkout with the run and its sealed records.
        run: name of the run.
        study: folder to write to.

    Raises:
        LineageError: the run has no sealed records.
    """
    single = (
        PIPELINE_FILE,
        LOCK_FILE,
        f"{RESOLVED.as_posix()}/{run}.json",
        f"{RECORDS}/{run}.index.json",
    )
    absent = [name for name in single if not (root / name).is_file()]
    if absent:
        raise LineageError(f"{root / absent[0]} is missing; run t5repro seal after run {run}")
    folders = (root / RECORDS / run, root / RESULTS / run, root / LOGS / run)
    below = (Path(path) for folder in folders for path in files_below(folder))
    names = {*single, *(path.relative_to(root).as_posix() for path in below)}
    with (
        atomic_path(study / ARCHIVE) as temporary,
        lzma.open(temporary, "wb", preset=PRESET) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted(filter(is_evidence, names)):
            data = (root / name).read_bytes()
            member = tarfile.TarInfo(name)  # mode 0644, time 0, no owner
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    for name in COPIES:
        copied = root / RESULTS / run / REPORT_RULE / name
        if copied.is_file():
            write_bytes(study / name, copied.read_bytes())


def unpack_study(study: Path, folder: Path) -> None:
    """Unpack the archive of a study into a new or empty folder.

    Only regular files below the folder are written, and no more than `MAX_BYTES` are read.

    Raises:
        LineageError: the archive is missing, damaged or has another member, or the folder has
            files.
    """
    archive = study / ARCHIVE
    if folder.exists() and any(folder.iterdir()):
        raise LineageError(f"{folder} is not empty; name a new folder to unpack {archive} into")
    try:
        for name, data in read_study(study):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as target:  # a second member of this name is refused
                target.write(data)
    except ValueError as error:  # a name that no file can have
        raise _damaged(archive, error) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise LineageError(f"{archive} has two members named {error.filename}") from error


def read_study(study: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file in the archive of a study; at most `MAX_BYTES` are read.

    Raises:
        LineageError: the archive is missing, damaged or has another member than regular files.
    """
    archive = study / ARCHIVE
    if not archive.is_file():
        raise LineageError(f"{archive} is missing; name a folder of studies/")
    try:
        yield from _members(archive)
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
        raise _damaged(archive, error) from error


def _damaged(archive: Path, error: Exception) -> LineageError:
    return LineageError(f"{archive} is damaged ({error}); restore it with git checkout")


@dataclass(frozen=True)
class Archive:
    """A committed study as a state of a run (`store.Store`), read without unpacking it.

    Attributes:
        study: its folder.
    """

    study: Path

    @property
    def name(self) -> str:
        """The folder of the study."""
        return self.study.as_posix()

    @cached_property
    def _files(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for name, data in read_study(self.study):
            if name in files:
                raise LineageError(f"{self.study / ARCHIVE} has two members named {name}")
            files[name] = data
        return files

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` with names that end with `ending`, sorted."""
        for name in sorted(self._files):
            if name.startswith(f"{folder}/") and name.endswith(ending):
                yield name

    def read(self, name: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            ArtifactError: the archive does not have it.
        """
        if name not in self._files:
            raise ArtifactError(f"{name} is not in {self.study / ARCHIVE}")
        return self._files[name]

    def lock(self) -> Lock:
        """Return the content of its `dvc.lock`."""
        return parse_lock(self._files.get(LOCK_FILE), None)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with (
        lzma.open(archive) as decompressed,
        tarfile.open(fileobj=_Bounded(decompressed, archive), mode="r|") as opened,
    ):
        for member in opened:
            name = PurePosixPath(member.name)
            if not member.isreg() or name.is_absolute() or ".." in name.parts:
                raise LineageError(
                    f"{archive}: {member.name!r} is no regular file below the folder; "
                    "nothing else is unpacked"
                )
            content = opened.extractfile(member)
            yield member.name, content.read() if content else b""


class _Bounded(BufferedIOBase):
    """A decompressed stream that ends with an error after `MAX_BYTES`, however small its file."""

    def __init__(self, stream: IO[bytes], archive: Path) -> None:
        self._stream, self._archive, self._left = stream, archive, MAX_BYTES

    def read(self, count: int | None = -1) -> bytes:
        """Read and count."""
        data = self._stream.read(-1 if count is None else count)
        self._left -= len(data)
        if self._left < 0:
            raise LineageError(f"{self._archive} expands to more than {MAX_BYTES:,} bytes")
        return data
