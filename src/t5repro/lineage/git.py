"""Questions to git about a checkout."""

import subprocess
from pathlib import Path

from t5repro.errors import LineageError


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


def _run(root: Path, arguments: tuple[str, ...]) -> tuple[bytes | None, str]:
    """Return the output and the error message; the output of a failed command is None."""
    try:
        process = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except OSError as error:
        return None, str(error)
    message = process.stderr.decode(errors="replace").strip()
    return (process.stdout if process.returncode == 0 else None), message


def file_at(root: Path, revision: str, path: str) -> bytes | None:
    """Return the content of a file at a revision; None if the revision does not have it."""
    # ls-tree is silent about a missing path, where `git show` fails as it does for other reasons.
    if not try_git(root, "ls-tree", "-z", "--name-only", revision, "--", path):
        return None
    return git(root, "show", f"{revision}:{path}")


def commit_of(root: Path, revision: str) -> str:
    """Return the full hash of a revision.

    Raises:
        LineageError: git does not know the revision.
    """
    # --end-of-options: a revision that starts with a dash must not be read as an option.
    commit = try_git(
        root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None:
        raise LineageError(
            f"{revision!r} is neither a revision of this repository nor a folder with results; "
            "git log shows revisions"
        )
    return commit.decode().strip()
