"""A virtual environment with a wheel and the locked packages, without the checkout."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from clones import clone
from small_venv import site_of

SCRIPTS = {"snakemake": "snakemake.cli", "dvc": "dvc.cli"}


def build_wheel(folder: Path) -> Path:
    """Build a wheel from a clone of this checkout; return its path."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, clone(folder / "clone"))
    (wheel,) = folder.glob("*.whl")
    return wheel


def wheel_venv(folder: Path, wheel: Path) -> Path:
    """Make the environment; return the folder of its scripts.

    A path file adds the packages of the running interpreter. Python ignores the path files among
    them, so the editable installation of this checkout stays unseen.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    scripts = folder / "bin"
    _pip("--python", scripts / "python", "install", "--no-deps", wheel)
    packages = sysconfig.get_path("purelib")
    (site_of(folder) / "locked.pth").write_text(f"{packages}\n", encoding="utf-8")
    for name, module in SCRIPTS.items():
        script = scripts / name
        script.write_text(
            f"#!{scripts / 'python'}\nimport sys\nfrom {module} import main\nsys.exit(main())\n",
            encoding="utf-8",
        )
        script.chmod(0o755)
    return scripts


def run_wheel(
    scripts: Path, folder: Path, *words: str | Path, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment in a folder."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHONPATH", "XDG_", "SNAKEMAKE_", "DVC_", "T5REPRO_"))
    }
    process = subprocess.run(
        words,
        cwd=folder,
        env={
            **inherited,
            "HOME": str(scripts.parent),
            "PATH": f"{scripts}{os.pathsep}{inherited['PATH']}",
        },
        check=False,
        capture_output=True,
        text=True,
    )
    assert not check or process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    return process


def _pip(*words: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(command, check=True)
