"""Adds to a wheel the files of a project, and addresses; all else about it is in pyproject.toml.

The repository has one copy of each file, in its root. `t5repro init` writes those of the wheel.
Addresses are those of the repository in which a hosted workflow builds; elsewhere there are none.
"""

import os
import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PATTERNS = Path("src/t5repro/config/project_files.txt")
TARGET = Path("t5repro/project")
REPOSITORY = "/".join(
    value for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY") if (value := os.environ.get(name))
)
REVISION = os.environ.get("GITHUB_SHA", "HEAD")
PAGES = {"Source": "", "Documentation": "docs", "Changelog": "CHANGELOG.md"}
DIAGRAM = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def long_description() -> str:
    """Return README as other sites can show it: links are absolute, diagrams are left out."""
    return LINK.sub(_absolute, DIAGRAM.sub("", Path("README.md").read_text(encoding="utf-8")))


def _absolute(link: re.Match[str]) -> str:
    """Return a link to the repository in place of one to its files; its text if there is none."""
    target = link["target"]
    if target.startswith(("https://", "#")):
        return link[0]
    if not REPOSITORY:
        return "" if link["picture"] else link["text"]
    kind = "raw" if link["picture"] else "blob"
    return f"{link['picture']}[{link['text']}]({REPOSITORY}/{kind}/{REVISION}/{target})"


def addresses() -> dict[str, str]:
    """Return name -> address of the pages about the package."""
    pages = {name: f"{REPOSITORY}/blob/HEAD/{path}".rstrip("/") for name, path in PAGES.items()}
    paper = {"Paper": "https://arxiv.org/abs/1910.10683"}
    return paper | (pages | {"Source": REPOSITORY} if REPOSITORY else {})


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


setup(
    cmdclass={"build_py": BuildWithProject},
    long_description=long_description(),
    long_description_content_type="text/markdown",
    project_urls=addresses(),
)
