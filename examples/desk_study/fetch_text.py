"""Fetch the text of the desk study: documentation and essays in Debian's packages, as JSON lines.

Run ``python examples/desk_study/fetch_text.py FOLDER`` once. `packages.yaml` names each package
with version, hash and licence; the package's own client (apt-get or pip) downloads it. The folder
then has one file per language, ``en.jsonl`` and so on, equal in every byte on every run;
`configs/sources/desk_text.yaml` has their hashes.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml
from package_files import members
from paragraphs import FORMATS, is_prose
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from t5repro.c4.text.language import detect_languages
from t5repro.errors import RawDataError, T5ReproError
from t5repro.files import sha256_of, write_json_lines

PACKAGES = Path(__file__).parent / "packages.yaml"
MIN_DOCUMENT_WORDS = 60
MAX_DOCUMENT_CHARS = 10_000
MIN_DETECTED_CHARS = 60  # langdetect guesses below
MIN_PROBABILITY = 0.9
FILES_OF_A_CHUNK = 16  # for a process


class Members(BaseModel):
    """Some files of a package: a pattern (``*`` also crosses folders), language and format."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    path: str
    language: Literal["en", "de", "fr", "ro"]
    format: Literal["html", "man", "quotations"]
    without: tuple[str, ...] = ()
    encoding: str = "utf-8"


class Package(BaseModel):
    """A package by exact version, with the hash of its archive."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    client: Literal["apt-get", "pip"]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._-]*$")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9+.:~_-]*$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    licence: str
    kind: str
    alternative: str = "leave the package out of the list; the text then has other hashes"
    members: tuple[Members, ...]


def read_packages(path: Path) -> tuple[Package, ...]:
    """Return the list of packages.

    Raises:
        RawDataError: an entry has a wrong or unknown field.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TypeAdapter(tuple[Package, ...]).validate_python(values)
    except (ValidationError, yaml.YAMLError, OSError) as error:
        raise RawDataError(f"{path}: {error}; correct the list of packages") from error


def download(package: Package, folder: Path) -> Path:
    """Download a package into an empty folder with its client and return the archive.

    Raises:
        RawDataError: the client is absent, does not have this version, or the hash differs.
    """
    requirement = {"apt-get": "{}={}", "pip": "{}=={}"}[package.client].format(
        package.name, package.version
    )
    command = {
        "apt-get": ["apt-get", "-qq", "download", requirement],
        "pip": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                "--only-binary=:all:", requirement],
    }[package.client]  # fmt: skip
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise RawDataError(
            f"{requirement}: {package.client} is not on this machine; run this command on Debian 12"
        ) from error
    archives = sorted(folder.iterdir())
    if result.returncode or len(archives) != 1:
        reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise RawDataError(
            f"{requirement}: {package.client} cannot download it ({reason}). The archive may have "
            "replaced this version: refresh the client's list (apt-get update), fetch this version "
            "by hand from an archive of old versions and name its folder with --archives, or "
            + package.alternative
        )
    return archives[0]


def archive_of(package: Package, archives: Path | None, folder: Path) -> Path:
    """Return the archive of a package: one with its hash in `archives`, else a download.

    Raises:
        RawDataError: it cannot be had, or is another file than the one listed.
    """
    pattern = package.name.replace("-", "[-_]") + "[_-]*"
    for path in sorted(archives.glob(pattern)) if archives else ():
        if sha256_of(path) == package.sha256:
            return path
    path = download(package, folder)
    if (found := sha256_of(path)) != package.sha256:
        raise RawDataError(
            f"{path.name}: SHA-256 is {found}, and {package.sha256} in the list of packages; "
            "the package was changed: do not use it, or correct the list if you trust the new one"
        )
    return path


def documents(
    package: Package, archive: Path, seen: set[bytes], pool: Executor
) -> Iterator[dict[str, str]]:
    """Yield the documents of a package in the order of their paths.

    Args:
        package: which members to read, and how.
        archive: the downloaded file.
        seen: hashes of earlier paragraphs, which are left out; grows.
        pool: reads the files.
    """

    def part_of(path: str) -> Members | None:
        return next((part for part in package.members if _matches(path, part)), None)

    files = members(archive, lambda path: part_of(path) is not None)
    chosen = [(path, part, data) for path, data in files if (part := part_of(path)) is not None]
    unmatched = set(package.members) - {part for _, part, _ in chosen}
    if unmatched:
        raise RawDataError(
            f"{package.name}: no file matches {sorted(part.path for part in unmatched)}; "
            "correct the patterns in the list of packages"
        )
    scheme = "debian" if package.client == "apt-get" else "pypi"
    paths, parts, contents = zip(*sorted(chosen, key=lambda choice: choice[0]), strict=True)
    proses = pool.map(_prose, parts, contents, chunksize=FILES_OF_A_CHUNK)
    for path, part, prose in zip(paths, parts, proses, strict=True):
        kept = [text for text in prose if _is_new(text, seen)]
        for number, text in enumerate(_pieces(kept)):
            if len(text.split()) >= MIN_DOCUMENT_WORDS:
                url = f"{scheme}://{package.name}={package.version}/{path}#{number}"
                yield {"url": url, "language": part.language, "text": text}


def _matches(path: str, part: Members) -> bool:
    return fnmatchcase(path, part.path) and not any(fnmatchcase(path, p) for p in part.without)


def _prose(part: Members, content: bytes) -> list[str]:
    """Return the paragraphs of a file that are prose in the language of `part`."""
    paragraphs = FORMATS[part.format](content.decode(part.encoding, "replace"))
    prose = [paragraph for paragraph in paragraphs if is_prose(paragraph)]
    return [
        paragraph
        for paragraph, detected in zip(prose, detect_languages(prose), strict=True)
        if len(paragraph) < MIN_DETECTED_CHARS
        or detected.language == part.language
        or detected.probability <= MIN_PROBABILITY
    ]


def _is_new(paragraph: str, seen: set[bytes]) -> bool:
    digest = hashlib.sha256(paragraph.encode()).digest()
    known = digest in seen
    seen.add(digest)
    return not known


def _pieces(paragraphs: list[str]) -> Iterator[str]:
    """Yield the paragraphs in pieces of at most `MAX_DOCUMENT_CHARS`, or one paragraph."""
    piece: list[str] = []
    for paragraph in paragraphs:
        if piece and sum(map(len, piece)) + len(paragraph) > MAX_DOCUMENT_CHARS:
            yield "\n".join(piece)
            piece = []
        piece.append(paragraph)
    if piece:
        yield "\n".join(piece)


def write_text_files(packages: tuple[Package, ...], folder: Path, archives: Path | None) -> None:
    """Write ``<language>.jsonl`` below `folder` and print what each package gave."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    seen: set[bytes] = set()
    words: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor() as pool:
        for package in packages:
            with tempfile.TemporaryDirectory() as temporary:
                archive = archive_of(package, archives, Path(temporary))
                for row in documents(package, archive, seen, pool):
                    rows.setdefault(row["language"], []).append(row)
                    words[row["language"], package.kind] += len(row["text"].split())
            total = sum(map(len, rows.values()))
            print(f"{package.name}={package.version}: {total:,} documents so far", flush=True)
    for language, documents_of_language in sorted(rows.items()):
        path = folder / f"{language}.jsonl"
        write_json_lines(path, documents_of_language)
        print(f"{path}: {len(documents_of_language):,} documents, {path.stat().st_size:,} bytes,"
              f" SHA-256 {sha256_of(path)}")  # fmt: skip
    for (language, kind), count in sorted(words.items()):
        print(f"{language} {kind}: {count:,} words")


def main() -> int:
    """Fetch the text of the list of packages."""
    parser = argparse.ArgumentParser(description="fetch the text of the desk study")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the text goes")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="another list of packages")
    parser.add_argument("--archives", type=Path, help="folder of packages downloaded by hand")
    arguments = parser.parse_args()
    try:
        packages = read_packages(arguments.packages)
        write_text_files(packages, arguments.folder, arguments.archives)
    except T5ReproError as error:
        print(f"fetch_text: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
