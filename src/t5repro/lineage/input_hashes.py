"""Verify the inputs of a stage: every file of an earlier stage has the hash of its manifest.

A stage is started only if all its inputs agree, so an altered bit is named before anything is built
on it. A manifest attests the other files of its stage, and its own bytes by a checksum. Checksums
find damage; whoever alters a file on purpose can adapt them, which `verify` is for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from t5repro.artifacts import MANIFEST
from t5repro.errors import ArtifactError, RawDataError
from t5repro.files import read_manifest, sha256_of
from t5repro.lineage.store import files_below


class Expected(NamedTuple):
    """A file that a stage reads, as its manifest describes it.

    Attributes:
        path: the file.
        sha256: hash of the content that was written or, for a raw file, checked.
        manifest: the manifest.
        is_raw: whether it is a raw file, which no stage wrote.
    """

    path: Path
    sha256: str
    manifest: Path
    is_raw: bool = False


def manifest_of(path: Path) -> Path:
    """Return the manifest of a stage's file or folder, or the path if it is a manifest itself."""
    if path.name.endswith(MANIFEST):
        return path
    if (path / MANIFEST).is_file():  # the whole folder of a stage
        return path / MANIFEST
    # A stage with several jobs in a folder has one for each, named like its file or, if there are
    # several, like their names up to the number of the file.
    for job in (path.stem, path.stem.partition("-")[0]):
        if (own := path.with_name(f"{job}.{MANIFEST}")).is_file():
            return own
    return path.with_name(MANIFEST)


def expected_files(path: Path, listed: Sequence[str] = ()) -> Iterator[Expected]:
    """Yield the files to verify before a stage reads `path`.

    Args:
        path: a manifest, or a file or folder that a manifest beside it lists.
        listed: patterns of further files to verify, relative to the folder of the manifest.

    Raises:
        ArtifactError: the manifest is missing, damaged, or does not list the path.
    """
    manifest = manifest_of(path)
    hashes = _relative_hashes(manifest)
    selection = {name for name in hashes for pattern in listed if _matches(name, pattern)}
    if path != manifest:
        name = path.relative_to(manifest.parent).as_posix()
        own = {entry for entry in hashes if name in (".", entry) or entry.startswith(f"{name}/")}
        if not own:
            raise ArtifactError(
                f"{manifest} does not list {name}; rerun the stage that writes them"
            )
        selection |= own
    for name in sorted(selection):
        yield Expected(manifest.parent / name, hashes[name], manifest)


def expected_raw_files(paths: Iterable[Path], manifest: Path) -> Iterator[Expected]:
    """Yield the raw files, and those in raw folders, that the manifest of the rule `data` lists.

    Raises:
        ArtifactError: the manifest is missing or damaged.
    """
    hashes = {entry["path"]: entry["sha256"] for entry in _outputs(manifest)}
    for path in paths:
        for name in files_below(path) if path.is_dir() else [path.as_posix()]:
            if name in hashes:
                yield Expected(Path(name), hashes[name], manifest, is_raw=True)


def written_files(manifest: Path) -> Iterator[Expected]:
    """Yield the files that a manifest lists as written.

    Raises:
        ArtifactError: the manifest is missing or damaged.
    """
    for entry in _outputs(manifest):
        yield Expected(Path(entry["path"]), entry["sha256"], manifest)


HashFiles = Callable[[Sequence[Path]], Iterable[str]]


def verify_inputs(expected: Iterable[Expected], hash_files: HashFiles | None = None) -> None:
    """Compare files with their expected hashes.

    Args:
        expected: the files.
        hash_files: returns the SHA-256 of each file; absent, this process reads them.

    Raises:
        ArtifactError: a file of an earlier stage is missing or differs.
        RawDataError: a raw file differs. One that is absent is left to its reader.
    """
    for file, sha256 in differing_files(expected, hash_files):
        raise _difference(file, sha256)


def differing_files(
    expected: Iterable[Expected], hash_files: HashFiles | None = None
) -> Iterator[tuple[Expected, str]]:
    """Yield the files without their expected hash, with the hash that they have.

    It is empty for a missing file. A raw file that is missing is left out.
    """
    files = {file.path: file for file in expected}
    present = [path for path in files if path.is_file()]
    for path in sorted(files.keys() - set(present)):
        if not files[path].is_raw:
            yield files[path], ""
    for path, sha256 in zip(present, (hash_files or _hash_here)(present), strict=True):
        if sha256 != files[path].sha256:
            yield files[path], sha256


def _hash_here(paths: Sequence[Path]) -> Iterator[str]:
    return map(sha256_of, paths)


def _difference(file: Expected, sha256: str) -> ArtifactError | RawDataError:
    if not sha256:
        return ArtifactError(f"{file.path} is missing; run the stage that writes it")
    message = f"{file.path} has sha256 {sha256}, but {file.manifest} expects {file.sha256}"
    if file.is_raw:
        return RawDataError(f"{message}; get the file again, or run the stage data if it is meant")
    return ArtifactError(
        f"{message}: it was altered after its stage wrote it; restore it with dvc checkout, or "
        "delete it and rerun its stage"
    )


def _outputs(manifest: Path) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = read_manifest(manifest)["outputs"]
    return entries


def _relative_hashes(manifest: Path) -> dict[str, str]:
    """Return name -> SHA-256 of the outputs, relative to the folder of the manifest.

    The folder may have been moved since: the shortest folder of an output is where it was.
    """
    hashes = {PurePosixPath(entry["path"]): entry["sha256"] for entry in _outputs(manifest)}
    recorded = _recorded_folder(list(hashes), manifest)
    return {path.relative_to(recorded).as_posix(): sha256 for path, sha256 in hashes.items()}


def _recorded_folder(paths: Sequence[PurePosixPath], manifest: Path) -> PurePosixPath:
    folder = PurePosixPath(manifest.parent.as_posix())
    if all(path.is_relative_to(folder) for path in paths):
        return folder
    return min((path.parent for path in paths), key=lambda parent: len(parent.parts))


def _matches(name: str, pattern: str) -> bool:
    return name.count("/") == pattern.count("/") and fnmatch(name, pattern)
