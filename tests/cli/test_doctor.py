"""`t5repro doctor`: a line for each check, the faults below it, and the exit code."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.cli.main import main
from t5repro.config.schema import Settings
from t5repro.estimate import start
from t5repro.versions import checkout_faults


def sound(root: Path, settings: Settings) -> Iterator[str]:
    yield from ()


def line_ends(root: Path, settings: Settings) -> Iterator[str]:
    yield f"{settings.run.name}.yaml has line ends of Windows"


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(start, "run_faults", lambda settings: [])


def test_a_checkout_without_faults_exits_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout_faults, "CHECKS", (sound,))
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines() == ["sound           ok", "machine         ok"]


def test_each_fault_is_below_its_check_and_the_exit_code_is_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout_faults, "CHECKS", (sound, line_ends))
    monkeypatch.setattr(start, "run_faults", lambda settings: ["pretrain needs 9 GB: set it lower"])
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "sound           ok",
        "line ends       fault",
        "  demo.yaml has line ends of Windows",
        "machine         fault",
        "  pretrain needs 9 GB: set it lower",
    ]


def test_a_folder_without_a_project_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 2
    assert f"{tmp_path} has no Snakefile; go to a checkout" in capsys.readouterr().err
