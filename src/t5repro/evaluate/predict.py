"""Predictions of the fine-tuned model for every example of every task (paper section 2.4).

Decoding is greedy, except for the tasks of `evaluate.beam_tasks`, which use beam search. The padded
length of an example depends on its own tokens alone, and all batches have the same number of rows,
so the shapes of its arithmetic do not depend on its neighbours. Its row in the batch does, which on
some devices moves the last bits of a float: a prediction changes only at a tie. Devices that work
in step take equal parts of each batch.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from t5repro.artifacts import MANIFEST, WEIGHTS, step_folder
from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.model import has_label_head
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.evaluate.answers import Answers, Rows
from t5repro.evaluate.predict_labels import predict_labels
from t5repro.files import write_json_lines, write_manifest
from t5repro.model.decode_inputs import (
    EXAMPLE_KEYS,
    EncodedInputs,
    Ids,
    batches,
    encode,
    pad_batch,
    read_examples,
)
from t5repro.model.devices import Devices
from t5repro.progress import Progress
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

if TYPE_CHECKING:
    from t5repro.vocab.vocabulary import Vocabulary

ONE_DEVICE = Devices("cpu", ("CPU:0",))

PredictedIds = dict[tuple[str, int], list[int]]  # task and row -> token ids


def predict(
    settings: PredictStage,
    *,
    weights: Sequence[Path],
    examples: Mapping[str, Path],
    vocabulary: Path,
    folder: Path,
    manifest: Path,
    kept_steps: Sequence[int] = (),
    devices: Devices = ONE_DEVICE,
) -> None:
    """Write ``<task>.jsonl`` with a prediction for every example, in the file's order.

    Predictions of earlier kept checkpoints are written to ``step-<n>/<task>.jsonl``; those of the
    last one are the predictions of the fine-tuned model itself.

    Args:
        settings: settings of the stage.
        weights: manifest of the fine-tuned weights, which are in the same folder; of an ensemble,
            the manifests of all its members.
        examples: task -> JSON lines of the stage `tasks`.
        vocabulary: SentencePiece model.
        folder: output folder.
        manifest: manifest to write; it counts truncated inputs and predictions without EOS.
        kept_steps: steps of fine-tuning whose weights are kept, the last included.
        devices: devices that compute; those of a strategy share each batch.

    Raises:
        ArtifactError: the weights or the examples are missing or damaged.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    from t5repro.vocab.vocabulary import Vocabulary

    members = [weights_next_to(path) for path in weights]
    earlier = {
        step: weights_next_to(weights[0].parent / step_folder(step) / MANIFEST)
        for step in sorted(kept_steps)[:-1]
    }
    pieces = Vocabulary.load(vocabulary)
    rows = {
        task: read_examples(path, limit=settings.evaluate.max_examples)
        for task, path in examples.items()
    }
    # One set of weights per folder of predictions. They are loaded in turn into the same models, so
    # that each shape is compiled once for all checkpoints.
    weight_sets = {folder: members} | {
        folder / step_folder(step): [path] for step, path in earlier.items()
    }
    has_labels = has_label_head(settings.model, settings.finetune)
    answer = predict_labels if has_labels else _predict_texts
    with devices.scope():
        answers = answer(settings, rows, list(weight_sets.values()), pieces, devices.replicas)
    outputs: list[Path] = []
    for target_folder, texts in zip(weight_sets, answers.texts, strict=True):
        for task, task_rows in rows.items():
            outputs.append(target_folder / f"{task}.jsonl")
            _write_predictions(outputs[-1], task_rows, texts[task])
    # Stale: a task that the mixture no longer contains, or a step that is no longer kept.
    for stale in {*folder.glob("*.jsonl"), *folder.glob("step-*/*.jsonl")} - set(outputs):
        stale.unlink()
    write_manifest(
        manifest,
        rule="evaluate_predict",
        settings=settings.model_dump(mode="json"),
        inputs=[*members, *earlier.values(), vocabulary, *examples.values()],
        outputs=outputs,
        counters={"tasks": answers.counts},
    )


def weights_next_to(manifest: Path) -> Path:
    """Return the file of weights in the folder of a manifest of fine-tuning.

    Raises:
        ArtifactError: it is missing.
    """
    path = manifest.parent / WEIGHTS
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the stage finetune, which writes it")
    return path


def _write_predictions(path: Path, rows: Rows, texts: Sequence[str]) -> None:
    examples = ({key: row[key] for key in EXAMPLE_KEYS} for row in rows)
    write_json_lines(
        path, ({**row, "prediction": text} for row, text in zip(examples, texts, strict=True))
    )


def _count(task: str, inputs: Sequence[EncodedInputs], ids: PredictedIds) -> dict[str, int]:
    task_inputs = [row for row in inputs if row.task == task]
    return {
        "examples": len(task_inputs),
        "truncated_inputs": sum(row.truncated for row in task_inputs),
        "answers_without_eos": sum(EOS_ID not in ids[task, row.row] for row in task_inputs),
    }


def _predict_texts(
    settings: PredictStage,
    rows: Mapping[str, Rows],
    weight_sets: Sequence[Sequence[Path]],
    vocabulary: "Vocabulary",
    replicas: int,
) -> Answers:
    """Return the texts that a decoder writes, for each set of weights.

    Args:
        settings: settings of the stage.
        rows: task -> examples.
        weight_sets: each the weights of one model, or of all members of an ensemble.
        vocabulary: of the run.
        replicas: devices that share a batch.
    """
    from t5repro.model.checkpoints import load_weights

    inputs = encode(
        rows, vocabulary, model=settings.model, inputs_length=settings.evaluate.inputs_length
    )
    models = build_models(settings, len(weight_sets[0]), total_ids=vocabulary.total_ids)
    predicted: list[PredictedIds] = []
    total = len(inputs) * len(weight_sets)
    with Progress("predict", total=total, unit="examples") as progress:
        for paths in weight_sets:
            for path, model in zip(paths, models, strict=True):
                load_weights(path, model)
            predicted.append(decode(settings, inputs, models, replicas, progress))
    return Answers(
        [
            {
                task: [vocabulary.decode(ids[task, row]) for row in range(len(task_rows))]
                for task, task_rows in rows.items()
            }
            for ids in predicted
        ],
        {task: _count(task, inputs, predicted[0]) for task in rows},
    )


def build_models(settings: PredictStage, count: int, *, total_ids: int) -> list[Any]:
    """Return networks of the run's shape, whose weights are still to be loaded.

    Args:
        settings: settings of the stage.
        count: members of the ensemble; 1 without one.
        total_ids: number of ids of the vocabulary.

    Raises:
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    from t5repro.model.transformer import T5

    embedding_rows = settings.vocab.embedding_rows
    if total_ids > embedding_rows:
        raise VocabularyError(
            f"the vocabulary has {total_ids} ids, the model only {embedding_rows} embeddings; "
            "vocab.vocab_size must be the one that the vocabulary was trained with"
        )
    return [
        T5(
            settings.model,
            embedding_rows=embedding_rows,
            dropout_rate=0.0,
            seed=0,
            dtype=settings.devices.precision,
            adapter_width=settings.finetune.width,
        )
        for _ in range(count)
    ]


def decode(
    settings: PredictStage,
    inputs: Sequence[EncodedInputs],
    models: Sequence[Any],
    replicas: int,
    progress: Progress,
) -> PredictedIds:
    """Return the ids that the models predict together, with their current weights.

    Args:
        settings: settings of the stage; its `beam_tasks` use beam search.
        inputs: inputs of all examples.
        models: one network, or the members of an ensemble.
        replicas: devices that share a batch.
        progress: advanced by the rows of each batch.
    """
    from t5repro.model.distribution import shared_rows

    ids: PredictedIds = {}
    batch_size = settings.evaluate.batch_size
    beam_tasks = set(settings.evaluate.beam_tasks)
    for beam in (False, True):
        decode = _decoder(settings, models, beam=beam)
        selected = [row for row in inputs if (row.task in beam_tasks) == beam]
        for batch in batches(selected, batch_size=batch_size):
            encoder_ids = pad_batch(batch, batch_size=shared_rows(batch_size, replicas))
            decoder_ids = decode(encoder_ids, (encoder_ids != PAD_ID).astype(np.int32))
            for row, example in enumerate(batch):
                ids[example.task, example.row] = decoder_ids[row].tolist()
            progress.advance(len(batch), padded_tokens=batch[0].padded_length)
    return ids


def _decoder(
    settings: PredictStage, models: Sequence[Any], *, beam: bool
) -> Callable[[Ids, Ids], NDArray[Any]]:
    """Return the function from ids and segments to predicted ids: beam search, or greedy."""
    from t5repro.model.beam import beam_search
    from t5repro.model.decode import greedy

    model, *ensemble = models
    max_decode_length = settings.evaluate.max_decode_length
    if not beam:
        return partial(greedy, model, max_decode_length=max_decode_length, others=tuple(ensemble))
    return partial(
        beam_search,
        model,
        max_decode_length=max_decode_length,
        width=settings.evaluate.beam_width,
        length_penalty=settings.evaluate.length_penalty,
    )
