"""DVC's local cache: objects by MD5, and the file lists of tracked folders.

Its location is a setting of DVC with four levels (system, global, repository, local), so DVC itself
is asked for it. DVC is imported only then: most questions never read the cache.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.dvc_lock import TrackedPath, folder_md5
from t5repro.strict_json import parse_json

OBJECTS = Path("files/md5")  # below the cache folder, and below a remote
DVC_FOLDER = ".dvc"


def objects_folder(root: Path) -> Path:
    """Return the folder that contains the objects of a checkout's cache.

    Raises:
        LineageError: a configuration file of DVC is not valid.
    """
    # Remembered by absolute path, because the current folder may change.
    return _configured_folder(root.absolute() / DVC_FOLDER)


@cache
def _configuration(dvc_folder: Path) -> Any:
    """Return DVC's configuration, all levels merged."""
    from dvc.config import Config, ConfigError

    try:
        # `Config` merges all levels and resolves relative folders. `Repo` would do so as well, but
        # takes seconds to import and needs a git repository.
        return Config(dvc_dir=str(dvc_folder))
    except ConfigError as error:
        raise LineageError(f"DVC cannot read its configuration: {error}") from error


def has_remote(root: Path) -> bool:
    """Return whether any remote of DVC is configured."""
    dvc_folder = root.absolute() / DVC_FOLDER
    return dvc_folder.is_dir() and bool(_configuration(dvc_folder)["remote"])


def md5_of(name: str) -> str:
    """Return the hash of an object by its path in a cache or remote."""
    return "".join(Path(name).parts[-2:])


def delete_remote_objects(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Delete objects from every remote of DVC; return remote -> what became of them.

    Args:
        root: the checkout.
        names: of objects, as `impact.remote_objects` returns them.
    """
    md5s = [md5_of(name) for name in names]
    return _on_remotes(root, lambda odb: _deleted(odb, md5s)) if md5s else {}


def left_on_remotes(root: Path, md5s: Iterable[str]) -> dict[str, str]:
    """Return remote -> which of some objects it has; empty text for none."""
    remaining = list(md5s)
    return _on_remotes(root, lambda odb: ", ".join(_present(odb, remaining))) if remaining else {}


def _on_remotes(root: Path, ask: Callable[[Any], str]) -> dict[str, str]:
    if not has_remote(root):
        return {}
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    answers = {}
    with Repo(str(root)) as repo:
        for name in sorted(_configuration(root.absolute() / DVC_FOLDER)["remote"]):
            try:
                answers[name] = ask(repo.cloud.get_remote_odb(name))
            # Any library of a storage may raise its own; what cannot be reached is named.
            except (DvcException, OSError, ValueError) as error:
                answers[name] = f"not reached: {error}"
    return answers


def _present(odb: Any, md5s: Iterable[str]) -> list[str]:
    return [md5 for md5 in md5s if odb.fs.exists(odb.oid_to_path(md5))]


def _deleted(odb: Any, md5s: Sequence[str]) -> str:
    present = _present(odb, md5s)
    for md5 in present:
        odb.fs.remove(odb.oid_to_path(md5))
    left = _present(odb, md5s)
    return f"{len(left)} objects left" if left else f"none of {len(md5s)} objects left"


def cure_of_absence(root: Path) -> str:
    """Return how an object that DVC's cache does not have can be got."""
    dvc_folder = root.absolute() / DVC_FOLDER
    if dvc_folder.is_dir() and _configuration(dvc_folder)["core"].get("remote"):
        return "get it with dvc fetch --all-commits"
    return (
        "no remote of DVC is configured to fetch it from: add one (dvc remote add -d), or check "
        "out the revision and build it again with snakemake --profile local"
    )


@cache
def _configured_folder(dvc_folder: Path) -> Path:
    if not dvc_folder.is_dir():  # no repository of DVC, such as a copy of the results
        return dvc_folder / "cache" / OBJECTS
    settings = _configuration(dvc_folder)
    remote = settings["cache"].get("local")  # the cache may be a remote of the local disk
    location = settings["remote"][remote]["url"] if remote else settings["cache"].get("dir")
    return Path(location or dvc_folder / "cache") / OBJECTS


def object_path(root: Path, md5: str) -> Path:
    """Return the path in the cache of the object with this hash."""
    return objects_folder(root) / md5[:2] / md5[2:]


def read_object(root: Path, md5: str, name: str) -> bytes:
    """Return an object of the cache.

    Args:
        root: the checkout.
        md5: of the object.
        name: of the tracked file, for the error message.

    Raises:
        ArtifactError: the cache does not have the object.
    """
    try:
        return object_path(root, md5).read_bytes()
    except OSError as error:
        raise ArtifactError(
            f"{name} (md5 {md5}) is not in DVC's cache; {cure_of_absence(root)}"
        ) from error


def folder_files(root: Path, folder: TrackedPath) -> dict[str, str]:
    """Return relative path -> MD5 of the files in a tracked folder.

    Raises:
        ArtifactError: the file list is not in the cache, or does not have the tracked hash.
    """
    data = read_object(root, folder.md5, folder.path)
    try:
        files = {str(entry["relpath"]): str(entry["md5"]) for entry in parse_json(data)}
    except (ValueError, KeyError, TypeError):
        files = {}
    if folder_md5(files) != folder.md5:
        raise ArtifactError(
            f"{object_path(root, folder.md5)}: the file list of {folder.path} in DVC's cache is "
            f"not the one with the hash in {folder.source}; delete it and run dvc fetch"
        )
    return files


def tracked_files(root: Path, outputs: Iterable[TrackedPath]) -> Iterator[tuple[str, str]]:
    """Yield path and MD5 of every tracked file, folders expanded by their file lists.

    Raises:
        ArtifactError: the file list of a folder is not in the cache.
    """
    for output in outputs:
        if output.is_folder:
            for name, md5 in folder_files(root, output).items():
                yield f"{output.path}/{name}", md5
        else:
            yield output.path, output.md5
