"""Closures: an edit of tasks, metrics or fine-tuning does not rerun pre-training."""

import pytest

from t5repro.lineage.sources import source_files

FINETUNING = (
    "src/t5repro/tasks/",
    "src/t5repro/metrics/",
    "src/t5repro/evaluate/",
    "src/t5repro/publish/",
    "src/t5repro/inputs/finetuning.py",
    "src/t5repro/inputs/task_mixture.py",
    "src/t5repro/inputs/corpus_mixture.py",
    "src/t5repro/config/sections/finetune.py",
    "src/t5repro/config/sections/tasks.py",
    "src/t5repro/train/finetune.py",
    "src/t5repro/vocab/train.py",
)


@pytest.mark.parametrize("part", FINETUNING)
def test_the_closure_of_pretraining_contains_nothing_of_finetuning(part):
    assert not [path for path in source_files("train.pretrain") if path.startswith(part)]


def test_the_closure_of_finetuning_contains_its_inputs_and_not_the_entry_of_pretraining():
    files = source_files("train.finetune")
    assert "src/t5repro/inputs/corpus_mixture.py" in files
    assert "src/t5repro/train/pretrain.py" not in files
    assert "src/t5repro/model/foreign_weights.py" not in files


def test_the_closure_of_preflight_contains_the_step_and_not_the_loop():
    files = source_files("train.preflight")
    assert "src/t5repro/train/step.py" in files
    assert "src/t5repro/train/loop.py" not in files
    assert not [path for path in files if path.startswith("src/t5repro/inputs/")]
