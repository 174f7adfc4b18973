"""The functions that training calls, and that nothing but TensorFlow works between batches."""

from pathlib import Path

import pytest
import tensorflow as tf

from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.inputs.finetuning import load_task_inputs
from t5repro.inputs.pipeline import span_corruption_batches, span_corruption_counters

pytestmark = pytest.mark.keras

PYTHON_OPERATIONS = {"PyFunc", "EagerPyFunc", "PyFuncStateless", "GeneratorDataset"}


def operations(dataset: tf.data.Dataset) -> set[str]:
    """Return the operations of a dataset, those of its functions included."""
    graph = tf.compat.v1.GraphDef.FromString(
        tf.raw_ops.DatasetToGraphV2(
            input_dataset=dataset._variant_tensor,
            external_state_policy=0,
            strip_device_assignment=True,
        ).numpy()
    )
    nodes = [*graph.node, *(node for item in graph.library.function for node in item.node_def)]
    return {node.op for node in nodes}


@pytest.fixture
def pretraining(write_tokens, vocab) -> dict:
    ids, offsets = write_tokens([100, 50, 200])
    settings = PretrainSettings(
        inputs_length=32, targets_length=24, batch_rows=4, noise_mask="random_spans"
    )
    return {"settings": settings, "tokens": ids, "offsets": offsets, "vocab": vocab, "seed": 0}


@pytest.fixture
def finetuning(three_tasks, write_examples, vocabulary: Path, task_vocab) -> dict:
    return {
        "settings": FinetuneSettings(inputs_length=48, targets_length=16, batch_rows=4),
        "examples": write_examples(three_tasks),
        "vocabulary": vocabulary,
        "vocab": task_vocab,
        "seed": 0,
    }


def span_batches(given: dict, first_step: int, steps: int) -> tf.data.Dataset:
    settings = given.pop("settings")
    return span_corruption_batches(settings, **given, first_step=first_step, steps=steps)


def mixed_batches(given: dict, first_step: int, steps: int) -> tf.data.Dataset:
    settings = given.pop("settings")
    return load_task_inputs(settings, **given).batches(first_step=first_step, steps=steps)


def test_batches_of_pretraining_are_made_by_tensorflow_alone(pretraining: dict):
    dataset = span_batches(pretraining, 3, 2)
    assert len(list(dataset)) == 2
    assert not operations(dataset) & PYTHON_OPERATIONS


def test_batches_of_finetuning_are_made_by_tensorflow_alone(finetuning: dict):
    dataset = mixed_batches(finetuning, 3, 2)
    assert len(list(dataset)) == 2
    assert not operations(dataset) & PYTHON_OPERATIONS


@pytest.mark.parametrize("parallel_calls", [1, 5])
def test_batches_do_not_depend_on_parallel_calls(
    pretraining: dict, finetuning: dict, monkeypatch, parallel_calls: int
):
    expected = [
        [targets.numpy().tolist() for _, targets in make(dict(given), 0, 12)]
        for make, given in ((span_batches, pretraining), (mixed_batches, finetuning))
    ]
    monkeypatch.setattr(tf.data, "AUTOTUNE", parallel_calls)
    found = [
        [targets.numpy().tolist() for _, targets in make(dict(given), 0, 12)]
        for make, given in ((span_batches, pretraining), (mixed_batches, finetuning))
    ]
    assert found == expected


def test_counters_are_plain_numbers_for_a_manifest(pretraining: dict, finetuning: dict):
    spans = span_corruption_counters(pretraining.pop("settings"), **pretraining, steps=5)
    assert spans["padding_share"] < 0.4
    assert {type(value) for value in spans.values()} <= {int, float}
    inputs = load_task_inputs(finetuning.pop("settings"), **finetuning)
    tasks = inputs.counters(first_step=0, steps=5)
    assert set(tasks) == {
        "rates_asked",
        "rates_drawn",
        "drawn",
        "examples",
        "truncated_inputs",
        "truncated_targets",
        "padding_share",
    }
    assert {type(value) for value in tasks["drawn"].values()} == {int}
