"""The paper's rows as experiments, and published sizes by name."""

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import nodes_by_experiment, settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.published_sizes import SIZES
from t5repro.config.schema import Settings
from t5repro.errors import SettingsError
from t5repro.report.published_scores import rows_named


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def run() -> Settings:
    values = {
        **yaml.safe_load((ROOT / "configs/base.yaml").read_text(encoding="utf-8")),
        **yaml.safe_load((ROOT / "configs/paper_rows.yaml").read_text(encoding="utf-8")),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_settings(values)


def test_every_experiment_of_the_paper_is_possible_and_names_a_published_row(run: Settings) -> None:
    assert len(run.experiments) == 86
    for experiment in run.experiments:
        settings_of_experiment(run, experiment.name)
        assert rows_named(experiment.row), experiment.row


def test_experiments_share_what_they_have_in_common(run: Settings) -> None:
    corpora = set(nodes_by_experiment(run, "c4").values())
    assert corpora == {"baseline", "c4_unfiltered"}
    trained = set(nodes_by_experiment(run, "pretrain").values())
    # Three repetitions for the ensemble; supervised experiments share the fresh weights of
    # `no_pretraining`; prefix language modeling stands in tables 2 and 4 with the same settings.
    assert len(trained) == 35


def test_a_published_size_sets_the_shape_except_for_settings_of_the_run_file() -> None:
    large = load_settings({"model.published": "v1_1_large"})
    assert large.model.model_copy(update={"published": ""}) == SIZES["v1_1_large"]
    small = load_settings({"model": {"published": "small", "num_encoder_layers": 2}})
    assert (small.model.d_model, small.model.num_heads) == (512, 8)
    assert (small.model.num_encoder_layers, small.model.num_decoder_layers) == (2, 6)


def test_an_experiment_may_choose_another_size() -> None:
    experiments = [{"name": "a", "change": {"model.published": "2x", "model.d_ff": 8}}]
    run = load_settings({"model.published": "v1_1_base", "experiments": experiments})
    model = settings_of_experiment(run, "a").model
    assert (model.num_encoder_layers, model.d_model, model.d_ff) == (16, 1024, 8)
    assert (model.feed_forward, model.tie_embeddings) == ("relu", True)


def test_an_unknown_size_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"model.published is 'smal'; .* nearest: 'small'"):
        load_settings({"model.published": "smal"})
