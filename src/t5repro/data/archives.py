"""Members of archives, with limits on their expanded size: one of a download, or all of a folder.

An archive is input from elsewhere: it may be damaged, contain links or names that leave its folder,
or expand to far more than it is ("zip bomb"). Only the bytes of one regular file are read, they go
to a path that the caller chooses, and their number is limited by the size of the archive.
"""

import errno
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from t5repro.errors import RawDataError
from t5repro.files import HASH_BLOCK_BYTES, atomic_path

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")
# Text compresses 3 to 20 times; the largest file of the paper, French of the Giga corpus, has 4 GB.
MAX_EXPANSION = 200
MIN_CHECKED_BYTES = 1 << 24  # below, no ratio is a danger
MAX_MEMBER_BYTES = 1 << 35
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
SYMLINK_MODE = 0o120000
FILE_TYPE_MASK = 0o170000
# What the two libraries raise on damage; fuzzed headers reach the builtin ones.
_READ_ERRORS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    RuntimeError,
    ArithmeticError,
    LookupError,
    ValueError,
)


def extract(archive: Path, name: str, path: Path) -> None:
    """Extract the only archive member with the last two parts of `name` as the end of its path.

    Args:
        archive: zip or tar file.
        name: path relative to `data.folder`.
        path: file to write.

    Raises:
        RawDataError: not exactly one member matches, it expands beyond the limits, or the archive
            is damaged. A damaged archive is deleted, so that the next run downloads it again.
    """
    tail = "/".join(PurePosixPath(name).parts[-2:])
    with atomic_path(path) as temporary, temporary.open("wb") as target:
        for block in _within_limits(_blocks(archive, tail), archive):
            target.write(block)


def tar_members(
    handle: IO[bytes], name: str, folders: tuple[str, ...]
) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of each file below some folders of a tar archive, in its order.

    Args:
        handle: the archive, compressed by gzip.
        name: its name, for errors.
        folders: beginnings of the paths.

    Raises:
        RawDataError: it is damaged, or expands beyond the limits.
    """
    packed = os.fstat(handle.fileno()).st_size
    try:
        with tarfile.open(fileobj=handle, mode="r:gz") as opened:
            for entry in opened:
                _check_expansion(name, packed, entry.offset_data + entry.size)
                path = entry.name.removeprefix("./")
                if entry.isfile() and path.startswith(folders):  # neither links nor devices
                    member = opened.extractfile(entry)
                    yield path, member.read() if member else b""
    except (*_READ_ERRORS, OSError) as error:
        raise RawDataError(
            f"{name} is damaged ({error or type(error).__name__}); download it again"
        ) from error


def _within_limits(blocks: Iterator[bytes], archive: Path) -> Iterator[bytes]:
    packed, size = archive.stat().st_size, 0
    for block in blocks:
        size += len(block)
        _check_expansion(archive, packed, size)
        yield block


def _check_expansion(archive: Path | str, packed: int, size: int) -> None:
    limit = min(max(packed * MAX_EXPANSION, MIN_CHECKED_BYTES), MAX_MEMBER_BYTES)
    if size > limit:
        raise RawDataError(
            f"{archive} expands from {packed:,} to more than {limit:,} bytes, as no data set does "
            f"(the limits are {MAX_EXPANSION} times as many, and {MAX_MEMBER_BYTES:,}); check its "
            "origin, or extract it by hand and put the files into data.folder"
        )


def _blocks(archive: Path, tail: str) -> Iterator[bytes]:
    """Yield the bytes of a member; only errors of reading are caught, not the consumer's."""
    try:
        if archive.suffix == ".zip":
            yield from _zip_member(archive, tail)
        else:
            yield from _tar_member(archive, tail)
    except (*_READ_ERRORS, OSError) as error:
        # A forged offset before the start of the file is EINVAL; any other fault is the disk's.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        archive.unlink()
        raise RawDataError(
            f"{archive} is damaged ({error or type(error).__name__}); it was deleted, run again"
        ) from error


def _zip_member(archive: Path, tail: str) -> Iterator[bytes]:
    with zipfile.ZipFile(archive) as opened:
        infos = {info.filename: info for info in opened.infolist()}
        info = infos[_only([info.filename for info in opened.infolist()], tail, archive)]
        if info.external_attr >> 16 & FILE_TYPE_MASK == SYMLINK_MODE:
            raise RawDataError(f"{archive}: {info.filename} is a link; only files are extracted")
        if info.flag_bits & 1:
            raise RawDataError(f"{archive}: {info.filename} is encrypted; extract it by hand")
        if info.compress_type not in ZIP_METHODS:
            raise RawDataError(
                f"{archive}: {info.filename} is compressed by method {info.compress_type}; "
                "only deflate is read, extract it by hand"
            )
        with opened.open(info) as member:
            yield from _read(member)


def _tar_member(archive: Path, tail: str) -> Iterator[bytes]:
    packed = archive.stat().st_size
    with tarfile.open(archive, "r:" if archive.suffix == ".tar" else "r:gz") as opened:
        files: dict[str, tarfile.TarInfo] = {}
        names: list[str] = []
        for entry in opened:
            # Members before the one that matches are decompressed too.
            _check_expansion(archive, packed, entry.offset_data)
            if entry.isfile():  # neither links nor devices
                files[entry.name] = entry
                names.append(entry.name)
        member = opened.extractfile(files[_only(names, tail, archive)])
        if member is not None:  # always true for a regular file
            yield from _read(member)


def _read(member: IO[bytes]) -> Iterator[bytes]:
    with member:
        while block := member.read(HASH_BLOCK_BYTES):
            yield block


def _only(members: list[str], tail: str, archive: Path) -> str:
    matches = [member for member in members if f"/{member}".endswith(f"/{tail}")]
    if len(matches) != 1:
        raise RawDataError(
            f"{archive} contains {len(matches)} files that end in {tail!r}; expected one"
        )
    return matches[0]
