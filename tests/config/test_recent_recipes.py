"""The run file of recent recipes: each experiment changes what its name says, and nothing else."""

from pathlib import Path

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_run_files, load_settings
from t5repro.config.schema import Settings
from t5repro.model.sizes import parameter_count
from t5repro.objectives.row_lengths import segment_length
from t5repro.plan.run_plan import RunPlan


@pytest.fixture(scope="module")
def run() -> Settings:
    values = {
        **yaml.safe_load((ROOT / "configs/base.yaml").read_text(encoding="utf-8")),
        **yaml.safe_load((ROOT / "configs/recent_recipes.yaml").read_text(encoding="utf-8")),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_settings(values)


def test_the_recipes_of_the_demo_are_two_trainings_of_as_many_steps() -> None:
    settings = load_run_files([Path("configs/demo.yaml"), Path("configs/demo_recipes.yaml")])
    assert len(set(RunPlan(settings).nodes_of("pretrain").values())) == 3
    denoisers, cosine = (
        settings_of_experiment(settings, name).pretrain
        for name in ("mixture_of_denoisers", "adamw_cosine")
    )
    assert (denoisers.steps, denoisers.targets_length, len(denoisers.denoisers)) == (400, 128, 7)
    assert (cosine.optimizer, cosine.learning_rate.warmup_of(cosine.steps)) == ("adamw", 40)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_recipe_is_a_training_of_its_own_on_the_same_text(run: Settings) -> None:
    assert len(set(RunPlan(run).nodes_of("pretrain").values())) == len(run.experiments)
    assert set(RunPlan(run).nodes_of("tokens").values()) == {"baseline"}


def test_the_mixture_is_table_1_of_the_article(run: Settings) -> None:
    pretrain = settings_of_experiment(run, "mixture_of_denoisers").pretrain
    assert [
        (one.mode_token, one.objective, one.noise_density, one.mean_noise_span_length, one.weight)
        for one in pretrain.denoisers
        if one.objective == "replace_spans"
    ] == [
        ("NLU", "replace_spans", 0.15, 3, 1),
        ("NLU", "replace_spans", 0.15, 8, 1),
        ("NLG", "replace_spans", 0.5, 3, 1),
        ("NLG", "replace_spans", 0.5, 8, 1),
        ("NLG", "replace_spans", 0.15, 64, 1),
        ("NLG", "replace_spans", 0.5, 64, 1),
    ]
    (prefix,) = (one for one in pretrain.denoisers if one.objective == "prefix_lm")
    assert (prefix.mode_token, prefix.noise_density, prefix.weight) == ("S2S", 0.25, 1)
    assert segment_length(pretrain) == 510


def test_adamw_has_the_settings_of_nanot5(run: Settings) -> None:
    settings = settings_of_experiment(run, "adamw_cosine")
    rate = settings.pretrain.learning_rate
    assert (settings.pretrain.optimizer, settings.finetune.optimizer) == ("adamw", "adafactor")
    assert (rate.factor, rate.final_factor, rate.warmup_steps) == (0.02, 1e-5, 10_000)
    assert settings.pretrain.weight_decay == 0


@pytest.mark.parametrize(
    ("experiment", "parameters"),
    [
        ("baseline", 222_903_552),
        ("swiglu", 222_903_552),
        ("per_layer_bias", 222_912_000),
        ("rotary", 222_902_784),
    ],
)
def test_layers_have_the_parameters_that_the_page_says(
    run: Settings, experiment: str, parameters: int
) -> None:
    assert parameter_count(settings_of_experiment(run, experiment).model) == parameters
