"""The run files of configs/, each with those that the command in its head names before it."""

import re
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.load import load_run_files
from t5repro.config.schema import Settings

COMMAND = re.compile(r"^#   snakemake .*--configfile((?: configs/\w+\.yaml)+)", re.MULTILINE)


def run_files(name: str) -> list[Path]:
    """Return the paths, below the root, of the run files that `configs/NAME.yaml` is run with."""
    path = Path(f"configs/{name}.yaml")
    command = COMMAND.search((ROOT / path).read_text(encoding="utf-8"))
    return [Path(file) for file in command[1].split()] if command else [path]


def load_committed(name: str) -> Settings:
    """Return the settings of a run file of the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_run_files(run_files(name))
