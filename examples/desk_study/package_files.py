"""Members of a downloaded package: .deb, wheel (.whl, .zip) or source archive (.tar.gz).

A package is input from elsewhere. Members are read into memory and never written under their own
names, links are not followed, and the number of bytes is limited.
"""

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from t5repro.errors import RawDataError

AR_MAGIC = b"!<arch>\n"
AR_HEADER_BYTES = 60
MAX_MEMBER_BYTES = 1 << 26  # the largest page, a book in one HTML file, has 14 MB
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError)


def members(archive: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every regular file that is wanted; ``*.gz`` is decompressed.

    Args:
        archive: the downloaded package.
        is_wanted: whether the file with this path, without a leading ``./``, is to be read.

    Raises:
        RawDataError: the archive is damaged, of another format, or has a member whose path leaves
            its folder or that expands to more than `MAX_MEMBER_BYTES`.
    """
    try:
        for name, content in _members(archive):
            path = name.removeprefix("./")
            if not is_wanted(path):
                continue
            with content:
                source = gzip.GzipFile(fileobj=content) if name.endswith(".gz") else content
                data = source.read(MAX_MEMBER_BYTES + 1)
            if len(data) > MAX_MEMBER_BYTES:
                raise RawDataError(
                    f"{archive.name}: {name} has more than {MAX_MEMBER_BYTES:,} bytes; leave it "
                    "out of the list of packages"
                )
            yield path, data
    except _DAMAGE as error:
        raise RawDataError(
            f"{archive.name}: cannot be read ({error}); delete it and download it again"
        ) from error


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as file:
            for entry in file.infolist():
                _check_path(archive, entry.filename)
                if not entry.is_dir():
                    yield entry.filename, file.open(entry)
        return
    stream = _data_of_deb(archive) if archive.suffix == ".deb" else archive.open("rb")
    with stream, tarfile.open(fileobj=stream, mode="r|*") as file:
        for member in file:
            _check_path(archive, member.name)
            content = file.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content


def _data_of_deb(archive: Path) -> IO[bytes]:
    """Return the tar of a package's files: its data.tar.xz or data.tar.gz."""
    data = archive.read_bytes()
    position = len(AR_MAGIC)
    while data.startswith(AR_MAGIC) and position + AR_HEADER_BYTES <= len(data):
        header = data[position : position + AR_HEADER_BYTES]
        name, length = header[:16].decode("latin-1").rstrip(" /"), header[48:58].strip()
        if not length.isdigit():
            break
        start = position + AR_HEADER_BYTES
        if name in ("data.tar.xz", "data.tar.gz"):
            return io.BytesIO(data[start : start + int(length)])
        position = start + int(length) + int(length) % 2  # members begin at even positions
    raise RawDataError(
        f"{archive.name}: no data.tar.xz or data.tar.gz in it; delete it and download it again"
    )


def _check_path(archive: Path, name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise RawDataError(
            f"{archive.name}: the path {name!r} leaves the folder of the package; do not use it"
        )
