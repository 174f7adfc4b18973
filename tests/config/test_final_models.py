"""The paper's final models as experiments (section 3.7, table 14)."""

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import names_at, settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.task_files import task_files
from t5repro.config.tree import merge
from t5repro.report.published_scores import published_row

TABLE = 14
CORPUS = {"small": 710e3, "base": 2.62e6, "large": 8.66e6, "3b": 33.5e6, "11b": 133e6}


@pytest.fixture(scope="module")
def experiments() -> dict[str, Settings]:
    files = [ROOT / "configs" / name for name in ("base.yaml", "final_models.yaml")]
    values: dict[str, object] = {}
    for path in files:
        merge(values, yaml.safe_load(path.read_text(encoding="utf-8")))  # as Snakemake does
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        run = load_settings(values)
        rows = {row.row for row in run.experiments if row.row}
        assert rows == {"T5-Small", "T5-Base", "T5-Large", "T5-3B", "T5-11B"}
        return {name: settings_of_experiment(run, name) for name in names_at(run, "finetune")}


def test_each_size_is_trained_on_the_mixture_and_then_on_one_task_at_a_time(
    experiments: dict[str, Settings],
) -> None:
    assert len(experiments) == 5 * (1 + 21)
    for size, examples in CORPUS.items():
        mixed = experiments[f"t5_{size}"].finetune
        assert (mixed.corpus_examples, mixed.corpus_rate) == (examples, "stated")
        assert (mixed.steps, mixed.batch_size) == (1_000_000, 2**11)
        later = [
            experiment
            for experiment in experiments.values()
            if experiment.finetune.start_from == f"t5_{size}"
        ]
        assert len(later) == 21
        assert {experiment.model.published for experiment in later} == {size}
        assert not any(experiment.finetune.corpus_examples for experiment in later)
        rows = {experiment.tasks.names[0]: experiment.finetune.batch_size for experiment in later}
        assert all(rows[name] == (8 if "glue" in name else 128) for name in rows)


def test_the_experiments_have_all_columns_of_the_table(experiments: dict[str, Settings]) -> None:
    scored = {name for experiment in experiments.values() for name in experiment.tasks.names}
    columns = {key.partition(".")[0] for key in published_row(TABLE, "T5-11B").values}
    assert columns - {"glue", "super_glue"} <= scored


def test_only_summaries_and_translations_are_searched_with_a_beam(
    experiments: dict[str, Settings],
) -> None:
    searched = {
        name for experiment in experiments.values() for name in experiment.evaluate.beam_tasks
    }
    assert searched == {"cnn_dailymail", "wmt_en_de", "wmt_en_fr", "wmt_en_ro"}


def test_every_task_of_the_experiments_has_files_in_the_run_file(
    experiments: dict[str, Settings],
) -> None:
    for name, experiment in experiments.items():
        for task in experiment.tasks.names:
            assert task_files(experiment, task), (name, task)
