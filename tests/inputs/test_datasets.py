"""The datasets of pre-training and fine-tuning consist of TensorFlow operations only."""

from pathlib import Path

import pytest
import tensorflow as tf

from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.inputs.finetuning import TaskInputs, load_task_inputs
from t5repro.inputs.pretraining import CorpusInputs, load_corpus_inputs

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
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    return {node.op for node in nodes}


@pytest.fixture
def corpus(write_tokens, vocab) -> CorpusInputs:
    ids, offsets = write_tokens([100, 50, 200])
    settings = PretrainSettings(
        inputs_length=32, targets_length=24, batch_size=4, noise_mask="random_spans"
    )
    return load_corpus_inputs(settings, ids=ids, offsets=offsets, vocab=vocab, seed=0)


@pytest.fixture
def tasks(three_tasks, write_examples, vocabulary: Path, task_vocab) -> TaskInputs:
    return load_task_inputs(
        FinetuneSettings(inputs_length=48, targets_length=16, batch_size=4),
        examples=write_examples(three_tasks),
        vocabulary=vocabulary,
        vocab=task_vocab,
        seed=0,
    )


@pytest.mark.parametrize("source", ["corpus", "tasks"])
def test_batches_are_made_by_tensorflow_alone(source: str, request: pytest.FixtureRequest):
    dataset = request.getfixturevalue(source).batches(first_step=3, steps=2)
    assert len(list(dataset)) == 2
    assert not operations(dataset) & PYTHON_OPERATIONS


@pytest.mark.parametrize("parallel_calls", [1, 5])
def test_batches_do_not_depend_on_parallel_calls(
    corpus: CorpusInputs, tasks: TaskInputs, monkeypatch, parallel_calls: int
):
    def batches() -> list[list[list[int]]]:
        return [
            [targets.numpy().tolist() for _, targets in inputs.batches(first_step=0, steps=12)]
            for inputs in (corpus, tasks)
        ]

    expected = batches()
    monkeypatch.setattr(tf.data, "AUTOTUNE", parallel_calls)
    assert batches() == expected


def test_counters_are_plain_numbers_for_a_manifest(corpus: CorpusInputs, tasks: TaskInputs):
    corpus_counters = corpus.counters(steps=5)
    assert corpus_counters["padding_share"] < 0.4
    assert {type(value) for value in corpus_counters.values()} <= {int, float}
    task_counters = tasks.counters(first_step=0, steps=5)
    assert set(task_counters) == {
        "rates_asked",
        "rates_drawn",
        "drawn",
        "examples",
        "truncated_inputs",
        "truncated_targets",
        "padding_share",
    }
    assert {type(value) for value in task_counters["drawn"].values()} == {int}
