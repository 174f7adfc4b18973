"""A new virtual environment from the committed lock, and the variables that a clean build gets.

Nothing of the environment in use survives: not an edited package, a start file such as
`sitecustomize`, ``PYTHONPATH`` or another variable. Needs the package index that pip is configured
for, and several gigabytes in the temporary folder.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from t5repro.errors import LineageError

REQUIREMENTS = Path("requirements/cpu-gpu.txt")
# How pip reaches its index, beside its configuration file in the home folder.
PIP_VARIABLES = {
    "ALL_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CONFIG_HOME",
}
SYSTEM_FOLDERS = "/usr/local/bin:/usr/bin:/bin"  # git, and what the rules call
LOG_LINES = 15


@dataclass(frozen=True)
class CleanEnvironment:
    """The parts of a clean environment.

    Attributes:
        python: the interpreter; by default the one that made the environment in use.
        requirements: the lock, relative to the clone.
    """

    python: str = getattr(sys, "_base_executable", sys.executable)
    requirements: Path = REQUIREMENTS

    def make(self, clone: Path, folder: Path) -> Path:
        """Install the lock of a clone and the clone itself, as ``make setup`` does.

        Args:
            clone: the clone.
            folder: of the new environment.

        Returns:
            its interpreter.

        Raises:
            LineageError: the clone has no such lock or not this package; a package cannot be
                installed.
        """
        if not (clone / self.requirements).is_file():
            raise LineageError(
                f"{self.requirements} is not committed; name a lock with --requirements"
            )
        if not (clone / "pyproject.toml").is_file():
            raise LineageError(
                "pyproject.toml is not committed: a project of t5repro init runs the installed "
                "package; a clean rebuild needs a checkout of the repository"
            )
        _run([self.python, "-I", "-m", "venv", str(folder)], clone, _installing())
        python = folder / "bin/python"
        pip = [str(python), "-I", "-m", "pip", "install", "--quiet", "--no-deps"]
        # Old releases of pip would run setup.py, which leaves no list of the files of a package.
        lock = ["--require-hashes", "--no-cache-dir", "--use-pep517", "-r", str(self.requirements)]
        _run([*pip, *lock], clone, _installing())
        _run([*pip, "--no-build-isolation", "--editable", "."], clone, _installing())
        return python


def _installing() -> dict[str, str]:
    """Return the variables of an installation: the configuration of pip and little else."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in PIP_VARIABLES or name.startswith("PIP_")
    }
    return {**variables, "PATH": SYSTEM_FOLDERS, "LANG": "C.UTF-8"}


def scrubbed_variables(python: Path, home: Path) -> dict[str, str]:
    """Return all variables of a clean build.

    Args:
        python: the interpreter of the clean environment.
        home: an empty folder.
    """
    return {
        "PATH": f"{python.parent}:{SYSTEM_FOLDERS}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "PYTHONNOUSERSITE": "1",
    }


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> None:
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise LineageError(f"{command[0]}: {error}; name an interpreter with --python") from error
    if process.returncode:
        log = "\n".join(process.stdout.splitlines()[-LOG_LINES:])
        raise LineageError(f"the clean environment cannot be made; the last lines of pip:\n{log}")
