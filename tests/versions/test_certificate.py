"""A certificate holds if stages were compared and none differs; with `strict`, if all were."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from checkout import ROOT
from made_graphs import small_run
from made_records import git

from t5repro.cli.main import main
from t5repro.lineage.dvc_lock import LOCK_FILE, parse_lock
from t5repro.lineage.git import file_at
from t5repro.lineage.tolerance import compare_numbers
from t5repro.versions.certificate import Certificate, Outcome, StageVerdict, _Comparison, _spread_of
from t5repro.versions.committed import CommittedRun
from t5repro.versions.snakemake_graph import resolve


def certificate(*outcomes: Outcome, strict: bool = False) -> Certificate:
    verdicts = (StageVerdict(f"stage-{n}", outcome) for n, outcome in enumerate(outcomes))
    return Certificate("HEAD", tuple(verdicts), strict)


@pytest.mark.parametrize(
    ("outcomes", "holds", "strictly"),
    [
        (("exactly", "exactly"), True, True),
        (("exactly", "within the spread"), True, True),
        (("exactly", "on another engine"), True, True),
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


@pytest.fixture
def demo_on_jax(monkeypatch: pytest.MonkeyPatch) -> _Comparison:
    """The committed demo, and JAX as the engine of the checkout."""
    monkeypatch.chdir(ROOT)
    run_files = [Path("configs/demo.yaml"), Path("configs/engines/demo_jax.yaml")]
    own, stages = resolve(*run_files)
    assert (own.run.name, own.devices.engine) == ("demo_jax", "jax")
    lock = file_at(Path(), "HEAD", LOCK_FILE)
    assert lock is not None
    committed = CommittedRun("HEAD", parse_lock(lock), own.run.name)
    settings = committed.in_its_words(own)
    assert (settings.run.name, settings.devices.engine) == ("demo", "tensorflow")
    spread, why_not = _spread_of(settings, stages, "HEAD")
    assert not why_not
    return _Comparison(committed, settings, "jax", stages, spread, "")


# What three seeds of the demo gave on JAX, and what no seed of either engine did.
@pytest.mark.parametrize(
    ("stage", "number", "on_jax", "agrees"),
    [
        ("pretrain-baseline", "final_validation_loss", 3.88110289, True),
        ("pretrain-baseline", "final_validation_loss", 4.2, False),
        ("pretrain-baseline", "loss_of_step.20", 3.6, False),
        ("pretrain-baseline", "target_tokens", 11020, False),
        ("finetune-baseline", "loss_of_step.5", 3.99530172, True),
        ("evaluate_score-baseline", "tasks.glue_mrpc.metrics.f1", 87.804878, True),
        ("evaluate_score-baseline_seed_1", "tasks.glue_sst2.metrics.accuracy", 98.0, True),
        ("evaluate_score-baseline", "tasks.glue_rte.metrics.accuracy", 20.0, False),
        ("evaluate_score-baseline", "tasks.super_glue_boolq.invalid", 40.0, False),
    ],
)
def test_another_engine_is_judged_by_the_spread_over_the_committed_seeds(
    demo_on_jax: _Comparison, stage: str, number: str, on_jax: float, agrees: bool
) -> None:
    (planned,) = (each for each in demo_on_jax.stages if each.name == stage)
    committed = demo_on_jax.committed.numbers(planned)
    # Without results in the checkout no input differs, as those of a score would.
    kind = replace(demo_on_jax._kind(planned), same_inputs=planned.rule == "pretrain")
    comparisons = compare_numbers(committed, {**committed, number: on_jax}, kind)
    assert [each.name for each in comparisons if not each.agrees] == [number] * (not agrees)
