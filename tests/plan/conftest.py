"""Runs to plan."""

from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.load import load_run_files
from t5repro.config.schema import Settings


def _load(*names: str) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_run_files([Path("configs") / name for name in names])


@pytest.fixture(scope="session")
def demo() -> Settings:
    return _load("demo.yaml")


@pytest.fixture(scope="session")
def paper_rows() -> Settings:
    return _load("base.yaml", "paper_rows.yaml")
