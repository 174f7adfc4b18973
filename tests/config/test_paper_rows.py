"""The paper's rows as experiments, and published sizes by name."""

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import nodes_by_experiment, settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.mixtures import GROUPS
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


# Models that other experiments start from or combine; no row of the paper by themselves.
PARTS_OF_ROWS = {"multi_pretrained", "supervised", "finetuned_2", "finetuned_3", "finetuned_4"}
PARTS_OF_ROWS |= {f"without_{group}" for group in GROUPS}
TRAINED_TOGETHER = {"equal", "k16", "k17", "k18", "k19", "k20", "k21", "t2", "t4", "t8"}


def test_every_experiment_of_the_paper_is_possible_and_names_a_published_row(run: Settings) -> None:
    assert len(run.experiments) == 68
    for experiment in run.experiments:
        settings_of_experiment(run, experiment.name)
        is_row = experiment.name not in PARTS_OF_ROWS
        assert bool(rows_named(experiment.row)) is is_row, experiment.name


def test_a_row_is_fine_tuned_on_seven_groups_or_trained_on_all_tasks_together(
    run: Settings,
) -> None:
    groups = list(GROUPS)
    for experiment in run.experiments:
        settings = settings_of_experiment(run, experiment.name)
        is_model = experiment.name in PARTS_OF_ROWS and "finetuned" not in experiment.name
        if is_model or experiment.name.removeprefix("multi_") in TRAINED_TOGETHER:
            assert settings.finetune.groups == {}
        else:
            assert sorted(settings.finetune.groups) == sorted(groups), experiment.name
            assert settings.finetune.steps % 2**18 == 0
    # Section 3.1.3 and the released configurations: lengths of the targets of each group.
    lengths = {
        group: settings_of_experiment(run, f"baseline_{group}").finetune.targets_length
        for group in groups
    }
    assert lengths == dict.fromkeys(groups, 512) | {"glue": 84, "super_glue": 62, "squad": 97}


def test_multi_task_training_draws_c4_and_every_task_once(run: Settings) -> None:
    for name in TRAINED_TOGETHER:
        settings = settings_of_experiment(run, f"multi_{name}")
        assert settings.finetune.corpus_examples == 364_868_892
        assert settings.finetune.steps == 2**19 + 2**18
        assert {"glue_qqp", "dpr", "super_glue_wic", "wmt_en_ro"} <= {*settings.tasks.names}
    left_out = settings_of_experiment(run, "without_super_glue").tasks.names
    assert not [name for name in left_out if name.startswith(("super_glue", "dpr"))]
    starts = {
        group: settings_of_experiment(run, f"leave_one_out_{group}").finetune.start_from
        for group in GROUPS
    }
    assert starts == {group: f"without_{group}" for group in GROUPS}


def test_experiments_share_what_they_have_in_common(run: Settings) -> None:
    corpora = set(nodes_by_experiment(run, "c4").values())
    assert corpora == {"baseline", "c4_unfiltered"}
    trained = set(nodes_by_experiment(run, "pretrain").values())
    # Three repetitions for the ensemble; supervised experiments share the fresh weights of
    # `no_pretraining`; prefix language modeling stands in tables 2 and 4 with the same settings.
    assert len(trained) == 35
    # 43 rows on seven groups; ten multi-task rows; nine models that other rows start from; the
    # rest of 53 rows share theirs.
    assert len(set(nodes_by_experiment(run, "finetune").values())) == 341


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
