"""Runs and records for tests of the estimate."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from checkout import CASES, ROOT
from whole_records import whole_record

from t5repro.config.load import load_run_files
from t5repro.config.schema import Settings
from t5repro.lineage.record import Record, record_of


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


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


@pytest.fixture(scope="session")
def records() -> dict[str, Record]:
    """Records of the demo and of a fine-tuning of its model, without code and machine.

    They were written on two vCPU AMD EPYC with other work: equal trainings took 55 to 97 seconds.
    """
    values: dict[str, dict[str, Any]] = json.loads(
        (CASES / "estimate_records.json").read_text(encoding="utf-8")
    )
    return {job: _record(job, facts) for job, facts in values.items()}


def _record(job: str, facts: Mapping[str, Any]) -> Record:
    end = facts["end"]
    files = {
        part: [{"path": str(number), "sha256": "", **file} for number, file in enumerate(end[part])]
        for part in ("inputs", "outputs")
    }
    return record_of(whole_record(job, facts["start"], {**end, **files}), job)
