"""Adds the files of a project to a wheel; everything else about the package is in pyproject.toml.

The repository has one copy of each file, in its root. `t5repro init` writes those of the wheel.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PATTERNS = Path("src/t5repro/config/project_files.txt")
TARGET = Path("t5repro/project")


def project_files() -> list[Path]:
    """Return the files of a project, relative to the root of the repository."""
    patterns = PATTERNS.read_text(encoding="utf-8").splitlines()
    return sorted(path for pattern in patterns for path in Path().glob(pattern))


class BuildWithProject(build_py):
    """The build of the package, with the files of a project below `TARGET`."""

    def run(self) -> None:
        """Copy the package, then the files; an editable installation finds them in the checkout."""
        super().run()
        if not self.editable_mode:
            for path in project_files():
                target = Path(self.build_lib) / TARGET / path
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))

    def get_source_files(self) -> list[str]:
        """Return the files of a source distribution."""
        return [*super().get_source_files(), *map(str, project_files())]


setup(cmdclass={"build_py": BuildWithProject})
