"""ELECTRA from ids to answers: both networks are pre-trained, the detector is fine-tuned."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.artifacts import WEIGHTS
from t5repro.config.presets.sizes import SIZES
from t5repro.config.presets.systems import PRESETS
from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.engines.devices import Devices
from t5repro.errors import ArtifactError
from t5repro.files import read_json_lines
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.finetune import FinetuneJob
from t5repro.jobs.predict import PredictJob
from t5repro.jobs.pretrain import PretrainJob
from t5repro.vocab.train import make_vocabulary

pytestmark = pytest.mark.keras

VOCAB = {"vocab_size": 28, "extra_ids": 8}
SHAPE = SIZES["electra_tiny"].model_copy(
    update={"num_encoder_layers": 1, "d_model": 32, "d_ff": 64, "d_kv": 16, "embedding_width": 16}
)
SECTIONS = PRESETS["electra"].values
SIZE = {"batch_size": 8, "inputs_length": 16, "log_every_steps": 5, "checkpoint_every_steps": 10}
PRETRAINING = {
    **SECTIONS["pretrain"],
    **SIZE,
    "targets_length": 4,
    "steps": 20,
    "validation_every_steps": 10,
    "validation_batches": 2,
    "learning_rate": {"schedule": "constant", "factor": 1e-3},
}
TUNING = {
    **SECTIONS["finetune"],
    **SIZE,
    "steps": 160,
    "batch_size": 16,
    "dropout_rate": 0.0,
    "layer_decay": 1.0,  # one block learns little below a head that turns first
    "learning_rate": {"schedule": "constant", "factor": 3e-3},
}
COMMON: dict[str, Any] = {"seed": 1, "vocab": VOCAB, "model": SHAPE, "devices": {}}
PAIRS, NUMBERS = "glue_mrpc", "glue_stsb"
NOUNS = ("mill", "river", "grain", "wheel")


@pytest.fixture(autouse=True)
def on_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from t5repro.train import finetune, pretrain

    for module in (pretrain, finetune):
        monkeypatch.setattr(module, "prepare", lambda settings: Devices("cpu", ("CPU:0",)))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    lines = [f"the {a} and the {b} or some {a}" for a in NOUNS for b in NOUNS]
    (folder / "sample.txt").write_text("\n".join(lines * 9), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {**VOCAB, "character_coverage": 1.0}}),
            sample=folder / "sample.txt",
            model=folder / "vocab.model",
            pieces=folder / "vocab.pieces",
            manifest=folder / "vocab.json",
        )
    )
    return folder / "vocab.model"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Documents of sentences of 5 ids; the validation split has the same ones."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("tokens", "sentences")}
    for split in ("train", "validation"):
        ids = np.random.default_rng(0).integers(3, 28, 3000)
        ids.astype("<u2").tofile(folders["tokens"] / f"{split}.ids")
        np.arange(0, 3001, 60).astype("<i8").tofile(folders["tokens"] / f"{split}.offsets")
        np.arange(0, 3000, 5).astype("<i8").tofile(folders["sentences"] / f"{split}.sentences")
    np.ones(36, np.uint8).tofile(folders["sentences"] / "word_starts")
    manifests = {name: folder / "manifest.json" for name, folder in folders.items()}
    for manifest in manifests.values():
        manifest.write_text("{}", encoding="utf-8")
    return manifests


def pretrain(
    tmp_path: Path, corpus: dict[str, Path], name: str = "pretrain", **change: Any
) -> Path:
    from t5repro.train.pretrain import pretrain as stage

    settings = {**COMMON, "pretrain": {**PRETRAINING, **change}}
    manifest = tmp_path / name / "manifest.json"
    stage(
        PretrainJob(
            PretrainStage.model_validate(settings),
            **corpus,
            folder=manifest.parent,
            work=tmp_path / f"{name}_work",
            manifest=manifest,
        ),
        code={},
    )
    return manifest


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, Path]:
    """Pairs with one of the nouns or without it, as a label and as a number."""
    files = {}
    for task in (PAIRS, NUMBERS):
        rows = []
        for number in range(64):
            first, second = NOUNS[number % 4], NOUNS[number // 4 % 4]
            has_mill = NOUNS[0] in (first, second)
            answer = 5.0 * has_mill if task == NUMBERS else int(has_mill)
            targets = f"{answer:.1f}" if task == NUMBERS else ("no", "yes")[has_mill]
            row = {"inputs": "x", "targets": targets, "idx": number, "answer": answer}
            rows.append(row | {"segments": [f"the {first}", f"some {second}"]})
        files[task] = tmp_path / task / "examples.jsonl"
        files[task].parent.mkdir()
        text = "".join(json.dumps(row) + "\n" for row in rows)
        files[task].write_text(text, encoding="utf-8")
    return files


def test_a_tiny_electra_trains_and_answers(
    tmp_path: Path, corpus: dict[str, Path], vocabulary: Path, examples: dict[str, Path]
) -> None:
    from t5repro.evaluate.predict import predict
    from t5repro.model.checkpoints import read_arrays
    from t5repro.train.finetune import finetune

    first = pretrain(tmp_path, corpus)
    counters = json.loads(first.read_text(encoding="utf-8"))["counters"]
    assert counters["random_tokens"] == 0
    assert counters["masked_tokens"] > 0
    accuracies = counters["final_validation_accuracies"]
    assert set(accuracies) == {"masked_pieces", "replaced_pieces"}
    assert 0.5 < accuracies["replaced_pieces"] < 1
    second = tmp_path / "finetune" / "manifest.json"
    finetune(
        FinetuneJob(
            FinetuneStage.model_validate(
                {**COMMON, "finetune": TUNING, "tasks": {"names": [PAIRS, NUMBERS]}}
            ),
            weights=first,
            examples=examples,
            vocabulary=vocabulary,
            folder=second.parent,
            work=tmp_path / "work",
            manifest=second,
        ),
        code={},
    )
    # Both orders of each pair are rows of the mixture.
    counters = json.loads(second.read_text(encoding="utf-8"))["counters"]
    assert counters["examples"] == {PAIRS: 128, NUMBERS: 128}
    names = read_arrays(second.with_name(WEIGHTS)).keys()
    assert {"label_head/matrix", "embedding", "encoder/positions/table"} <= names
    assert not [n for n in names if n.startswith(("generator", "masked_lm", "detector", "pooler"))]
    tree = stage_settings(Settings(), "evaluate_predict")
    tree |= {"model": SHAPE.model_dump(mode="json")}
    tree["vocab"] |= VOCAB
    tree["evaluate"] |= {"batch_size": 16, "inputs_length": 16}
    predict(
        PredictJob(
            PredictStage.model_validate(tree),
            weights=[second],
            examples=examples,
            vocabulary=vocabulary,
            folder=tmp_path / "predictions",
            manifest=tmp_path / "predictions" / "manifest.json",
        )
    )
    answers = {
        task: list(read_json_lines(tmp_path / "predictions" / f"{task}.jsonl")) for task in examples
    }
    right = [row["prediction"] == row["targets"] for row in answers[PAIRS]]
    assert np.mean(right) > 0.75  # of which the commoner label has 0.56
    # A fifth of the number is trained on, the prediction is on the scale of the file.
    predicted, expected = (
        np.array([float(row[name]) for row in answers[NUMBERS]])
        for name in ("prediction", "targets")
    )
    assert np.corrcoef(predicted, expected)[0, 1] > 0.5
    assert np.abs(predicted - expected).mean() < 2


def test_a_second_phase_continues_both_networks(tmp_path: Path, corpus: dict[str, Path]) -> None:
    from t5repro.model.checkpoints import read_arrays
    from t5repro.train.pretrain import pretrain as stage

    first = pretrain(tmp_path, corpus, steps=5)
    settings = {
        **COMMON,
        "pretrain": {
            **PRETRAINING, "steps": 0, "from_experiment": "first", "validation_every_steps": 0,
        },
    }  # fmt: skip
    manifest = tmp_path / "second" / "manifest.json"
    stage(
        PretrainJob(
            PretrainStage.model_validate(settings),
            **corpus,
            weights=first,
            folder=manifest.parent,
            work=tmp_path / "second_work",
            manifest=manifest,
        ),
        code={},
    )
    before, after = (read_arrays(path.with_name(WEIGHTS)) for path in (first, manifest))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("task", ["detection", "masked_detection", "masked_pieces", "all_pieces"])
def test_a_batch_of_padding_has_the_features_of_a_step(corpus: dict[str, Path], task: str) -> None:
    """`preflight` compiles it; each task has a network with one loss."""
    import tensorflow as tf

    from t5repro.model.labels import NO_COLUMNS
    from t5repro.systems.pretraining import open_rows, pretraining_of
    from t5repro.train.fresh_model import fresh_model, padding_batch

    change = {"replaced_tokens": {"task": task}}
    settings = PretrainStage.model_validate({**COMMON, "pretrain": {**PRETRAINING, **change}})
    files = {
        "ids": corpus["tokens"].with_name("train.ids"),
        "offsets": corpus["tokens"].with_name("train.offsets"),
        "sentences": corpus["sentences"].with_name("train.sentences"),
        "word_starts": corpus["sentences"].with_name("word_starts"),
    }
    rows = open_rows(settings, seed=1, **files)
    features, targets = next(iter(rows.batches(first_step=0, steps=1)))
    padding, padding_targets = padding_batch(settings, 8)
    assert padding.keys() == features.keys()
    assert {name: a.shape for name, a in padding.items()} == {
        name: a.shape for name, a in features.items()
    }
    assert padding_targets.shape == targets.shape
    model = fresh_model(settings, seed=1)
    assert pretraining_of(settings.model).heads(settings, NO_COLUMNS).replaced_tokens == task
    constants = {name: tf.constant(array) for name, array in features.items()}
    loss, gradients = model.loss_and_gradients(constants, tf.constant(targets))
    assert np.isfinite(float(loss))
    assert len(gradients) == len(model.trainable_variables)


def test_rows_without_two_segments_cannot_be_doubled(tmp_path: Path) -> None:
    from t5repro.inputs.labelled_examples import read_labelled

    path = tmp_path / "examples.jsonl"
    row = {"inputs": "x", "targets": "yes", "answer": 1, "segments": ["a mill"]}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match="take the task out of finetune.doubled_tasks"):
        read_labelled(path, predicts_spans=True).doubled(path)
