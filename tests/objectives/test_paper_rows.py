"""The lengths of the paper's rows: every arm's pairs fit the rows that it asks for."""

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.objectives.row_lengths import segment_length


def test_the_pairs_of_every_arm_fit_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arms = (ROOT / "configs/paper_rows.yaml").read_text(encoding="utf-8")
    run = load_settings(yaml.safe_load(arms))
    lengths = {
        arm.name: segment_length(settings_of_experiment(run, arm.name).pretrain)
        for arm in run.experiments
    }
    spans = {"span_2": 552, "span_3": 568, "span_5": 581, "span_10": 591}
    assert {name: lengths.pop(name) for name in spans} == spans
    assert set(lengths.values()) == {511}
