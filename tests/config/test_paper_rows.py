"""The paper's rows as experiments, and published sizes by name."""

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.own_text import text_files
from t5repro.config.presets.sizes import SIZES
from t5repro.config.schema import Settings
from t5repro.config.task_files import check_listed_files, raw_files
from t5repro.config.tree import merge
from t5repro.plan.run_plan import RunPlan
from t5repro.report.published_scores import published_rows, rows_named
from t5repro.task_groups import RELEASED_GROUPS


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def run() -> Settings:
    values: dict[str, object] = {}
    for name in ("base.yaml", "paper_rows.yaml"):  # as Snakemake merges them
        merge(values, yaml.safe_load((ROOT / "configs" / name).read_text(encoding="utf-8")))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_settings(values)


# Models that other experiments start from or combine; no row of the paper by themselves.
PARTS_OF_ROWS = {"multi_pretrained", "supervised", "finetuned_2", "finetuned_3", "finetuned_4"}
PARTS_OF_ROWS |= {f"without_{group}" for group in RELEASED_GROUPS}
TRAINED_TOGETHER = {"equal", "k16", "k17", "k18", "k19", "k20", "k21", "t2", "t4", "t8"}


def test_every_experiment_of_the_paper_is_possible_and_names_a_published_row(run: Settings) -> None:
    assert len(run.experiments) == 78
    for experiment in run.experiments:
        settings_of_experiment(run, experiment.name)
        is_row = experiment.name not in PARTS_OF_ROWS
        assert bool(rows_named(experiment.row)) is is_row, experiment.name


def test_a_row_is_fine_tuned_on_seven_groups_or_trained_on_all_tasks_together(
    run: Settings,
) -> None:
    groups = list(RELEASED_GROUPS)
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
        for group in RELEASED_GROUPS
    }
    assert starts == {group: f"without_{group}" for group in RELEASED_GROUPS}


def test_experiments_share_what_they_have_in_common(run: Settings) -> None:
    assert set(RunPlan(run).nodes_of("c4").values()) == set(CORPORA)
    assert set(RunPlan(run).nodes_of("vocab").values()) == {"baseline"}
    trained = set(RunPlan(run).nodes_of("pretrain").values())
    # Nine repetitions of the baseline; supervised experiments share the fresh weights of
    # `no_pretraining`; prefix language modeling stands in tables 2 and 4 with the same settings.
    assert len(trained) == 45
    # 56 experiments on seven groups, three of which repeat fine-tuning alone; ten multi-task rows
    # and nine models that rows of table 12 start from. The others share theirs.
    assert len(set(RunPlan(run).nodes_of("finetune").values())) == 411


CORPORA = (
    "baseline",
    "c4_unfiltered",
    "realnews_like",
    "webtext_like",
    "wikipedia",
    "wikipedia_books",
)


def test_the_corpora_of_table_8_are_the_papers(run: Settings) -> None:
    corpora = {name: settings_of_experiment(run, name) for name in CORPORA}
    rows = {entry.name: entry.row for entry in run.experiments if entry.name in CORPORA[1:]}
    table = [row.name for row in published_rows() if row.table == 8]
    assert list(rows.values()) == table[1:]
    # All have the vocabulary of the baseline and train on English for the same steps.
    for settings in corpora.values():
        assert settings.tokens.languages == ["en"]
        assert settings.vocab.language_parts == {"en": 10, "de": 1, "fr": 1, "ro": 1}
        assert settings.pretrain == corpora["baseline"].pretrain
    # Unfiltered: of C4's rules the language alone.
    unfiltered = corpora["c4_unfiltered"].c4
    assert (unfiltered.clean.enabled, unfiltered.clean.bad_words) == (False, "off")
    assert (unfiltered.dedup.unit, unfiltered.dedup.min_sentences) == ("off", 0)
    assert (unfiltered.languages, unfiltered.min_language_probability) == (["en"], 0.99)
    for name, select in (("realnews_like", "domains"), ("webtext_like", "urls")):
        c4 = corpora[name].c4
        assert c4.clean == corpora["baseline"].c4.clean
        assert getattr(c4.select, select) in raw_files(run)
    assert corpora["webtext_like"].c4.crawl_paths in raw_files(run)


def test_wikipedia_has_all_its_files_and_the_books_only_in_one_corpus(run: Settings) -> None:
    listed = set(raw_files(run))
    wikipedia, both = (
        text_files(settings_of_experiment(run, name).corpus, listed)[0]
        for name in ("wikipedia", "wikipedia_books")
    )
    assert len(wikipedia) == 41
    assert set(both) - set(wikipedia) == {"text/bookcorpusopen.jsonl"}


def test_the_run_file_lists_what_the_baseline_and_its_rows_read(run: Settings) -> None:
    check_listed_files(run)
    base = yaml.safe_load((ROOT / "configs/base.yaml").read_text(encoding="utf-8"))
    assert set(raw_files(load_settings(base))) <= set(raw_files(run))


def test_a_published_size_sets_the_shape_except_for_settings_of_the_run_file() -> None:
    large = load_settings({"use": ["sizes/v1_1_large"]})
    assert large.model.model_copy(update={"published": ""}) == SIZES["v1_1_large"]
    small = load_settings({"use": ["sizes/small"], "model.num_encoder_layers": 2})
    assert (small.model.d_model, small.model.num_heads) == (512, 8)
    assert (small.model.num_encoder_layers, small.model.num_decoder_layers) == (2, 6)


def test_an_experiment_may_choose_another_size() -> None:
    experiments = [{"name": "a", "change": {"use": ["sizes/2x"], "model.d_ff": 8}}]
    run = load_settings({"use": ["sizes/v1_1_base"], "experiments": experiments})
    model = settings_of_experiment(run, "a").model
    assert (model.num_encoder_layers, model.d_model, model.d_ff) == (16, 1024, 8)
    assert (model.feed_forward, model.tie_embeddings) == ("relu", True)
