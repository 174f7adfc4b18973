"""Greedy answers repeated on an engine, and how nearly two engines' answers tie where they differ.

An engine takes the id with the largest logit. Where two ids have the same logit up to rounding, two
engines may take different ones, and all later ids follow from that. So at the first id in which two
answers to a row differ, the logits of both ids are compared: their difference is the margin.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.artifacts import REPEATED_ANSWERS
from t5repro.config.sections.evaluate import PredictStage
from t5repro.engines.devices import prepare
from t5repro.files import read_json, write_text
from t5repro.inputs.batches import FlatSegments, encoder_decoder_batch, joined_batch
from t5repro.jobs.predict import PredictJob
from t5repro.model.decode_inputs import EncodedInputs, encode, pad_batch, read_examples
from t5repro.progress import Progress
from t5repro.systems.text_answers import decode
from t5repro.vocab.special_ids import PAD_ID
from t5repro.vocab.vocabulary import Vocabulary


def repeat_answers(job: PredictJob, folder: Path, reference: Path | None = None) -> None:
    """Write the ids of all answers, and logits where greedy ones of a reference are others.

    Args:
        job: of the prediction, on the engine that repeats it.
        folder: receives `REPEATED_ANSWERS`; answers that are there are not computed again.
        reference: folder of the other engine's repetition.
    """
    prepare(job.settings.devices)
    pieces = Vocabulary.load(job.vocabulary)
    limits = job.settings.evaluate
    rows = {
        task: read_examples(path, limit=limits.max_examples) for task, path in job.examples.items()
    }
    inputs = encode(rows, pieces, model=job.settings.model, inputs_length=limits.inputs_length)
    models = _models(job)
    path = folder / REPEATED_ANSWERS
    if path.is_file():
        answers = read_json(path)["answers"]
    else:
        answers = _answers(job.settings, inputs, models, pieces)
    others = read_json(reference / REPEATED_ANSWERS)["answers"] if reference else answers
    logits = _logits_of_others(job.settings, inputs, models, answers, others)
    write_text(path, json.dumps({"answers": answers, "logits": logits}))


def _models(job: PredictJob) -> list[Any]:
    """Return the network of a prediction, or the members of an ensemble."""
    # The engine reads its environment when it is imported: after `prepare`.
    from t5repro.evaluate.predict import weights_next_to
    from t5repro.model.checkpoints import load_weights
    from t5repro.systems.answering import build_network

    models = []
    for manifest in job.weights:
        models.append(build_network(job.settings))
        load_weights(weights_next_to(manifest), models[-1])
    return models


def _answers(
    settings: PredictStage,
    inputs: Sequence[EncodedInputs],
    models: Sequence[Any],
    pieces: Vocabulary,
) -> dict[str, list[dict[str, Any]]]:
    """Return task -> ids and text of each answer, decoded in the batches of the prediction."""
    with Progress("predict", total=len(inputs), unit="examples", begins="compiling") as progress:
        ids = decode(settings, inputs, models, progress)
    answers = defaultdict(list)
    for task, row in sorted(ids):
        answers[task].append({"ids": ids[task, row], "text": pieces.decode(ids[task, row])})
    return answers


def _logits_of_others(
    settings: PredictStage,
    inputs: Sequence[EncodedInputs],
    models: Sequence[Any],
    answers: Mapping[str, Any],
    others: Mapping[str, Any],
) -> dict[str, dict[int, list[float]]]:
    """Return task -> row -> the logits of the two first other ids, of greedy answers."""
    by_length: dict[int, list[EncodedInputs]] = defaultdict(list)
    for example in inputs:
        ids, rivals = (side[example.task][example.row]["ids"] for side in (answers, others))
        if ids != rivals and example.task not in settings.evaluate.beam_tasks:
            by_length[example.padded_length].append(example)
    logits: dict[str, dict[int, list[float]]] = defaultdict(dict)
    for examples in by_length.values():
        ids, rivals = (
            np.array([side[row.task][row.row]["ids"] for row in examples], np.int32)
            for side in (answers, others)
        )
        encoder_ids = pad_batch(examples, batch_size=len(examples))
        pairs = logits_of_first_others(models, encoder_ids, ids, rivals)
        for example, pair in zip(examples, pairs.tolist(), strict=True):
            logits[example.task][example.row] = pair
    return logits


def logits_of_first_others(
    models: Sequence[Any], encoder_ids: np.ndarray, ids: np.ndarray, rivals: np.ndarray
) -> np.ndarray:
    """Return the logits of the first ids in which two answers to a row differ.

    Args:
        models: one network, or the members of an ensemble; their logits are averaged.
        encoder_ids: int32 (rows, inputs_length), 0 is padding.
        ids: int32 (rows, steps), the answers.
        rivals: int32 (rows, steps), the other answers; each differs from its answer.

    Returns:
        float (rows, 2): the logit of the answer's id and of the rival's, both after the ids before.
    """
    rows = np.arange(len(ids))
    steps = np.argmax(ids != rivals, axis=1)
    logits = np.mean([_logits_at(model, encoder_ids, ids, steps) for model in models], axis=0)
    return np.stack([logits[rows, side[rows, steps]] for side in (ids, rivals)], axis=1)


def _logits_at(
    model: Any, encoder_ids: np.ndarray, ids: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """Return the logits of the id of a step of each row, (rows, ids)."""
    from keras import ops

    filled = encoder_ids != PAD_ID
    inputs = FlatSegments(encoder_ids[filled], filled.sum(axis=1))
    answers = FlatSegments(ids.reshape(-1), np.full(len(ids), ids.shape[1]))
    joined = model.settings.family.joined
    make_batch = joined_batch if joined else encoder_decoder_batch
    # A row has one example, as in decoding.
    features, _ = make_batch(
        inputs,
        answers,
        np.ones(len(ids), np.int32),
        inputs_length=encoder_ids.shape[1],
        targets_length=ids.shape[1],
    )
    positions = steps + inputs.lengths if joined else steps
    logits = ops.convert_to_numpy(model(features, training=False))
    return np.asarray(logits)[np.arange(len(ids)), positions]
