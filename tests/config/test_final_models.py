"""The paper's final models as arms (section 3.7, table 14)."""

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.task_files import task_files
from t5repro.report.published_scores import published_row

TABLE = 14
CORPUS = {"small": 710e3, "base": 2.62e6, "large": 8.66e6, "3b": 33.5e6, "11b": 133e6}


def merged(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Lay one run file over another, as Snakemake does."""
    out = dict(one)
    for key, value in other.items():
        known = out.get(key)
        both = isinstance(value, dict) and isinstance(known, dict)
        out[key] = merged(known, value) if both else value  # type: ignore[arg-type]
    return out


@pytest.fixture(scope="module")
def arms() -> dict[str, Settings]:
    files = [ROOT / "configs" / name for name in ("base.yaml", "final_models.yaml")]
    values = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        run = load_settings(merged(*values))
        assert {row.row for row in run.experiments} == {
            "T5-Small",
            "T5-Base",
            "T5-Large",
            "T5-3B",
            "T5-11B",
        }
        return {arm.name: settings_of_experiment(run, arm.name) for arm in run.experiments}


def test_each_size_is_trained_on_the_mixture_and_then_on_one_task_at_a_time(
    arms: dict[str, Settings],
) -> None:
    assert len(arms) == 5 * (1 + 21)
    for size, examples in CORPUS.items():
        mixed = arms[f"t5_{size}"].finetune
        assert (mixed.corpus_examples, mixed.corpus_rate) == (examples, "stated")
        assert (mixed.steps, mixed.batch_rows) == (1_000_000, 2**11)
        later = [arm for arm in arms.values() if arm.finetune.start_from == f"t5_{size}"]
        assert len(later) == 21
        assert {arm.model.published for arm in later} == {size}
        assert not any(arm.finetune.corpus_examples for arm in later)
        rows = {arm.tasks.names[0]: arm.finetune.batch_rows for arm in later}
        assert all(rows[name] == (8 if "glue" in name else 128) for name in rows)


def test_the_arms_have_all_columns_of_the_table(arms: dict[str, Settings]) -> None:
    scored = {name for arm in arms.values() for name in arm.tasks.names}
    columns = {key.partition(".")[0] for key in published_row(TABLE, "T5-11B").values}
    assert columns - {"glue", "super_glue"} <= scored


def test_only_summaries_and_translations_are_searched_with_a_beam(
    arms: dict[str, Settings],
) -> None:
    searched = {name for arm in arms.values() for name in arm.evaluate.beam_tasks}
    assert searched == {"cnn_dailymail", "wmt_en_de", "wmt_en_fr", "wmt_en_ro"}


def test_every_task_of_the_arms_has_files_in_the_run_file(arms: dict[str, Settings]) -> None:
    for name, arm in arms.items():
        for task in arm.tasks.names:
            assert task_files(arm, task), (name, task)
