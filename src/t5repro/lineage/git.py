"""Questions to git about a checkout.

Answers are about the objects of the repository in the folder: what variables of the environment or
replacement refs would show in their place is ignored.
"""

import hashlib
import os
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

from t5repro.config.project_files import is_project
from t5repro.errors import LineageError

# Of git's variables, those that do not say which repository or objects are read.
HARMLESS = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
REPLACEMENTS = "refs/replace/"
GRAFTS = "info/grafts"


def git(root: Path, *arguments: str) -> bytes:
    """Run git in a checkout and return its output.

    Raises:
        LineageError: git failed, or is not installed.
    """
    output, message = _run(root, arguments)
    if output is None:
        raise LineageError(f"git {' '.join(arguments[:2])}: {message}")
    return output


def try_git(root: Path, *arguments: str) -> bytes | None:
    """Run git in a checkout and return its output; None without git or a repository."""
    return _run(root, arguments)[0]


def is_shallow(root: Path) -> bool:
    """Return whether a checkout has only the last commits of its history."""
    return (try_git(root, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true"


def _run(
    root: Path, arguments: tuple[str, ...], text: bytes | None = None
) -> tuple[bytes | None, str]:
    """Return the output and the error message; the output of a failed command is None."""
    try:
        process = subprocess.run(
            ["git", *arguments],
            cwd=root,
            capture_output=True,
            check=False,
            input=text,
            env=environment(),
        )
    except OSError as error:
        return None, str(error)
    message = process.stderr.decode(errors="replace").strip()
    return (process.stdout if process.returncode == 0 else None), message


def environment() -> dict[str, str]:
    """Return this process's environment without what changes the answers of git."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in HARMLESS
    }
    return {**variables, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}


def project_prefix(root: Path) -> str:
    """Return the path in the repository of the project that has a folder: empty, or with a slash.

    The folder may be an unpacked study below it; the paths in records are of the project.
    """
    for folder in (root, *root.resolve().parents):
        if is_project(folder):
            return (try_git(folder, "rev-parse", "--show-prefix") or b"").decode().strip()
    return ""


def untrusted_owner(root: Path) -> str:
    """Return git's cure where it answers nothing, as another user owns the folder; else nothing."""
    output, message = _run(root, ("rev-parse", "--git-dir"))
    if output is not None or "safe.directory" not in message:
        return ""
    folder = root.resolve().as_posix()
    return (
        "git answers no question about this folder, because another user owns it; git config "
        f"--global --add safe.directory {shlex.quote(folder)} says that it may"
    )


def replaced_objects(root: Path) -> list[str]:
    """Return what would show other objects to a reader with git's defaults; none is normal."""
    refs = try_git(root, "for-each-ref", "--format=%(refname)", REPLACEMENTS) or b""
    folder = try_git(root, "rev-parse", "--git-common-dir")
    grafts = root / (folder or b".git").decode().strip() / GRAFTS
    return [*refs.decode().split(), *([str(grafts)] if grafts.is_file() else [])]


def file_at(root: Path, revision: str, path: str) -> bytes | None:
    """Return the content of a file at a revision; None without such a revision or file."""
    if try_git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
        return None
    return files_at(root, revision, [path]).get(path)


def files_at(root: Path, revision: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return path -> content of the files, or of all files of folders, that a revision has.

    Raises:
        LineageError: git failed, or does not know the revision.
    """
    blobs = blobs_below(root, revision, *paths)
    data = contents(root, blobs.values())
    return {path: content for path, blob in blobs.items() if (content := data[blob]) is not None}


def commit_of(root: Path, revision: str) -> str:
    """Return the full hash of a revision.

    Raises:
        LineageError: git does not know the revision, or does not trust the owner of the folder.
    """
    # --end-of-options: a revision that starts with a dash must not be read as an option.
    question = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit, message = _run(root, question)
    if commit is None and message:  # no repository, or one of another user
        raise LineageError(f"git cannot read {revision!r}: {message}")
    if commit is None:
        raise LineageError(
            f"{revision!r} is neither a revision of this repository nor a folder with results; "
            "git log shows revisions"
        )
    return commit.decode().strip()


def contents(root: Path, names: Iterable[str]) -> dict[str, bytes | None]:
    """Return name -> content of objects, asked for in one process; None for unknown objects.

    Args:
        root: the checkout.
        names: as git spells them, such as ``REVISION:path`` or ``REVISION^{commit}``.

    Raises:
        LineageError: git is not installed, or `root` is in no repository.
    """
    valid_names = [name for name in dict.fromkeys(names) if "\n" not in name]
    contents_by_name: dict[str, bytes | None] = dict.fromkeys(names)
    if not valid_names:
        return contents_by_name
    questions = "".join(f"{name}\n" for name in valid_names).encode()
    output, message = _run(root, ("cat-file", "--batch"), questions)
    if output is None:
        raise LineageError(f"git cat-file: {message}")
    position = 0
    for name in valid_names:
        end = output.index(b"\n", position)
        header, position = output[position:end], end + 1
        words = header.split(b" ")
        # "<hash> <type> <bytes>" and the content, or "<name> missing"
        if len(words) == 3 and words[2].isdigit() and words[1] in (b"blob", b"commit", b"tree"):
            length = int(words[2])
            contents_by_name[name] = output[position : position + length]
            position += length + 1
    return contents_by_name


def blobs_below(root: Path, revision: str, *paths: str) -> dict[str, str]:
    """Return path -> hash of the blob of each file below some paths at a revision."""
    output = git(root, "ls-tree", "-r", "-z", revision, "--", *paths)
    entries = (entry.split("\t", 1) for entry in filter(None, output.decode().split("\0")))
    return {path: facts.split(" ")[2] for facts, path in entries}


def blob_hash(data: bytes, like: str) -> str:
    """Return git's hash of a file with this content, by the algorithm of another blob's hash."""
    algorithm = "sha1" if len(like) == 40 else "sha256"
    return hashlib.new(
        algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False
    ).hexdigest()
