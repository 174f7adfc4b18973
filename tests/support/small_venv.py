"""A virtual environment that tests may damage: the few packages that a job of `tasks` needs."""

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "annotated-types",
    "numpy",
    "packaging",
    "pydantic",
    "pydantic-core",
    "PyYAML",
    "tqdm",
    "typing-extensions",
    "typing-inspection",
)


def small_venv(folder: Path) -> Path:
    """Make the environment; return its interpreter. `lock_of` has the versions."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = site_of(folder)
    for package in PACKAGES:
        for file in metadata.distribution(package).files or ():
            source = Path(str(file.locate()))
            if ".." not in file.parts and source.suffix != ".pyc" and source.is_file():
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    return folder / "bin/python"


def site_of(folder: Path) -> Path:
    """Return the folder of the packages of an environment."""
    (site,) = folder.glob("lib/python*/site-packages")
    return site


def lock_of_packages() -> str:
    """Return a lock of the packages."""
    names = (re.sub(r"[-_.]+", "-", package).lower() for package in PACKAGES)
    return "".join(f"{name}=={metadata.version(name)}\n" for name in names)
