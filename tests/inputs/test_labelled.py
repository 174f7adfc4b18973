"""Examples with labels: what is read, what a batch has, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.tasks import TaskNames
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError
from t5repro.inputs.labelled import load_labelled_inputs, read_labelled
from t5repro.vocab.special_pieces import special_id

pytestmark = pytest.mark.keras


def example(number: int, targets: str, answer: Any, *segments: str) -> dict[str, Any]:
    return {"inputs": "x", "targets": targets, "idx": number, "answer": answer,
            "segments": segments}  # fmt: skip


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, Path]:
    """A task of labels with pairs, and one of numbers with single texts."""
    labelled = [
        example(n, ("no", "yes")[n % 2], n % 2, "The old mill", f"turns {'slowly ' * n}")
        for n in range(6)
    ]
    numbers = [example(n, f"{n / 2:.1f}", n / 2, "the river " * n) for n in range(4)]
    paths = {}
    for task, task_rows in (("pairs", labelled), ("scores", numbers)):
        paths[task] = tmp_path / f"{task}.jsonl"
        paths[task].write_text("".join(json.dumps(row) + "\n" for row in task_rows))
    return paths


def load(examples, vocabulary, task_vocab, **model: Any):
    return load_labelled_inputs(
        FinetuneStage(
            seed=0,
            vocab=task_vocab,
            model=ModelSettings(**model),
            tasks=TaskNames(names=list(examples)),
            finetune=FinetuneSettings(inputs_length=24, batch_size=5),
            devices=DevicesSettings(),
        ),
        examples=examples,
        vocabulary=vocabulary,
        seed=0,
    )


@pytest.fixture
def inputs(examples, vocabulary, task_vocab):
    return load(examples, vocabulary, task_vocab)


def test_a_decoder_reads_tasks_of_similarity_in_both_orders(examples, vocabulary, task_vocab):
    tasks = {"glue_mrpc": examples["pairs"], "scores": examples["scores"]}
    inputs = load(tasks, vocabulary, task_vocab, architecture="language_model")
    start, classify = (
        special_id(piece, task_vocab.total_ids) for piece in ("_start_", "_classify_")
    )
    kinds = set()
    for features, _ in inputs.batches(first_step=0, steps=12):
        values = {name: array.numpy() for name, array in features.items()}
        ids, last = values["decoder_ids"], values["last_positions"][:, 0]
        assert (ids[:, 0] == start).all()
        assert (ids[np.arange(5), last] == classify).all()
        assert (values["decoder_segments"].sum(axis=1) == last + 1).all()
        for row in range(5):
            swapped = values["swapped_ids"][row]
            is_pair = values["label_columns"][row, 1] == 2
            kinds.add(is_pair)
            assert swapped.any() == is_pair
            assert (values["swapped_segments"][row] == (swapped > 0)).all()
            if is_pair:
                assert sorted(swapped) == sorted(ids[row])
                assert (swapped != ids[row]).any()
                assert swapped[last[row]] == classify
    assert kinds == {True, False}


def test_a_mixture_without_similarity_has_one_order(examples, vocabulary, task_vocab) -> None:
    inputs = load(examples, vocabulary, task_vocab, architecture="language_model")
    features, _ = next(iter(inputs.batches(first_step=0, steps=1)))
    assert set(features) == {
        "decoder_ids", "decoder_segments", "last_positions", "label_columns",
    }  # fmt: skip


def test_each_row_has_one_example_its_columns_and_its_target(inputs, task_vocab: VocabSettings):
    assert inputs.labels == {"pairs": ("no", "yes"), "scores": ()}
    start = special_id("[CLS]", task_vocab.total_ids)
    kinds = set()
    for features, targets in inputs.batches(first_step=0, steps=12):
        ids, segments, types = (
            features[f"encoder_{name}"].numpy() for name in ("ids", "segments", "types")
        )
        assert ids.shape == segments.shape == types.shape == (5, 24)
        assert (ids[:, 0] == start).all()
        assert ((ids != 0) == (segments == 1)).all()
        assert (types <= segments).all()
        for row in range(5):
            kinds.add((tuple(features["label_columns"].numpy()[row]), bool(types[row].any())))
            target = float(targets[row, 0])
            assert target in ((0, 1) if types[row].any() else (0, 0.5, 1, 1.5))
    assert kinds == {((0, 2, 0), True), ((2, 1, 1), False)}


def test_a_step_has_the_same_rows_from_any_first_step(inputs) -> None:
    whole = list(inputs.batches(first_step=0, steps=6))
    later = list(inputs.batches(first_step=4, steps=2))
    for (features, targets), (again, targets_again) in zip(whole[4:], later, strict=True):
        assert np.array_equal(targets, targets_again)
        assert all(np.array_equal(features[name], again[name]) for name in features)


def test_counters_have_the_examples_of_each_task_and_its_labels(inputs) -> None:
    counters = inputs.counters(first_step=0, steps=40)
    assert counters["examples"] == {"pairs": 6, "scores": 4}
    assert sum(counters["drawn"].values()) == 200
    assert counters["labels"] == {"pairs": ["no", "yes"], "scores": []}
    assert counters["rates_drawn"]["pairs"] == pytest.approx(0.6, abs=0.06)
    assert 0 < counters["padding_share"] < 1


def write(path: Path, *task_rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in task_rows))
    return path


@pytest.mark.parametrize(
    ("task_rows", "message"),
    [
        ([example(0, "ein Satz", "ein Satz", "a")], "line 1 has the target 'ein Satz'"),
        ([example(0, "him", 1, "a"), example(1, "her", 1, "a")], "line 2 has the target 'her'"),
        ([{"inputs": "a", "targets": "no", "answer": 0}], "line 1 lacks segments"),
        ([], "no examples to train on"),
    ],
    ids=["text", "Winograd schemas", "no segments", "empty"],
)
def test_what_an_encoder_cannot_learn_is_refused(tmp_path, task_rows, message) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_labelled(write(tmp_path / "train.jsonl", *task_rows))


def test_the_label_of_a_question_with_several_answers_is_taken(tmp_path: Path) -> None:
    answer = {"label": 1, "group": 3}
    read = read_labelled(write(tmp_path / "train.jsonl", example(0, "True", answer, "q", "a", "p")))
    assert read.words == ("", "True")
    assert read.segments == [("q", "a", "p")]
