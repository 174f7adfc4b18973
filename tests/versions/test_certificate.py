"""A certificate holds if stages were compared and none differs; with `strict`, if all were."""

import os
from pathlib import Path

import pytest
from made_graphs import small_run
from made_records import git

from t5repro.cli.main import main
from t5repro.versions.certificate import Certificate, Outcome, StageVerdict


def certificate(*outcomes: Outcome, strict: bool = False) -> Certificate:
    verdicts = (StageVerdict(f"stage-{n}", outcome) for n, outcome in enumerate(outcomes))
    return Certificate("HEAD", tuple(verdicts), strict)


@pytest.mark.parametrize(
    ("outcomes", "holds", "strictly"),
    [
        (("exactly", "exactly"), True, True),
        (("exactly", "within the spread"), True, True),
        (("exactly", "not built"), True, False),
        (("exactly", "not committed"), True, False),
        (("exactly", "differently"), False, False),
        (("not built", "not built"), False, False),
        ((), False, False),
    ],
)
def test_nothing_compared_is_no_pass(
    outcomes: tuple[Outcome, ...], holds: bool, strictly: bool
) -> None:
    assert certificate(*outcomes).holds is holds
    assert certificate(*outcomes, strict=True).holds is strictly


def test_the_text_has_the_number_of_compared_stages() -> None:
    assert certificate("exactly", "not built").to_text().splitlines()[-2:] == [
        "1 of 2 stages compared",
        "no stage came out differently",
    ]
    text = certificate("exactly", "not built", strict=True).to_text()
    assert text.endswith("--strict requires that every stage is built and committed")
    assert certificate("not built").to_text().splitlines()[-2:] == [
        "0 of 1 stages compared",
        "nothing was compared: build the run, or commit its dvc.lock",
    ]


def test_a_revision_that_git_does_not_know_is_named_and_has_no_absent_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path)
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["certificate", "--rev", "nonsense"]) != 0
    printed = capsys.readouterr()
    assert "'nonsense'" in printed.err
    assert "no certificate" not in printed.out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_checkout_of_another_user_is_named_with_gits_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path)
    (tmp_path / "Snakefile").touch()
    git(tmp_path, "init", "--quiet")
    for path in (tmp_path, tmp_path / ".git"):
        os.chown(path, 12345, 12345)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.chdir(tmp_path)
    for words in (["certificate"], ["verify", "HEAD"]):
        assert main(words) != 0
        printed = capsys.readouterr().err
        assert "git config --global --add safe.directory" in printed
