"""The answers of networks that write text: greedy decoding, or beam search for some tasks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from t5repro.config.sections.evaluate import PredictStage
from t5repro.errors import VocabularyError
from t5repro.model.decode_inputs import EncodedInputs, Ids, batches, encode, pad_batch
from t5repro.model.span_answers import TaskTexts
from t5repro.progress import Progress
from t5repro.systems.answers import Answers, Rows
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

if TYPE_CHECKING:
    from t5repro.vocab.vocabulary import Vocabulary

PredictedIds = dict[tuple[str, int], list[int]]  # task and row -> token ids


def _count(task: str, inputs: Sequence[EncodedInputs], ids: PredictedIds) -> dict[str, int]:
    task_inputs = [row for row in inputs if row.task == task]
    return {
        "examples": len(task_inputs),
        "truncated_inputs": sum(row.truncated for row in task_inputs),
        "answers_without_eos": sum(EOS_ID not in ids[task, row.row] for row in task_inputs),
    }


def answer_texts(
    settings: PredictStage,
    rows: Mapping[str, Rows],
    weight_sets: Sequence[Sequence[Path]],
    vocabulary: "Vocabulary",
    *,
    make_network: Callable[[], Any],
) -> Answers:
    """Return the texts that a decoder writes, for each set of weights; see `answering.answers`."""
    from t5repro.model.checkpoints import load_weights

    inputs = encode(
        rows, vocabulary, model=settings.model, inputs_length=settings.evaluate.inputs_length
    )
    # Before any model is made: the gather of an id beyond the table would not fail everywhere.
    check_vocabulary(settings, total_ids=vocabulary.total_ids)
    models = [make_network() for _ in weight_sets[0]]
    predicted: list[PredictedIds] = []
    total = len(inputs) * len(weight_sets)
    with Progress("predict", total=total, unit="examples", begins="compiling") as progress:
        for paths in weight_sets:
            for path, model in zip(paths, models, strict=True):
                load_weights(path, model)
            predicted.append(decode(settings, inputs, models, progress))
    return Answers(
        [
            {
                task: TaskTexts(
                    [vocabulary.decode(ids[task, row]) for row in range(len(task_rows))]
                )
                for task, task_rows in rows.items()
            }
            for ids in predicted
        ],
        {task: _count(task, inputs, predicted[0]) for task in rows},
    )


def check_vocabulary(settings: PredictStage, *, total_ids: int) -> None:
    """Raise VocabularyError if the vocabulary has more ids than the network has embeddings."""
    embedding_rows = settings.vocab.embedding_rows
    if total_ids > embedding_rows:
        raise VocabularyError(
            f"the vocabulary has {total_ids} ids, the model only {embedding_rows} embeddings; "
            "vocab.vocab_size must be the one that the vocabulary was trained with"
        )


def decode(
    settings: PredictStage,
    inputs: Sequence[EncodedInputs],
    models: Sequence[Any],
    progress: Progress,
) -> PredictedIds:
    """Return the ids that the models predict together, with their current weights.

    Args:
        settings: settings of the stage; its `beam_tasks` use beam search.
        inputs: inputs of all examples.
        models: one network, or the members of an ensemble.
        progress: advanced by the rows of each batch.
    """
    ids: PredictedIds = {}
    batch_size = settings.evaluate.batch_size
    beam_tasks = set(settings.evaluate.beam_tasks)
    # Two programs, one after the other: a batch has rows of one kind of search.
    for beam in (False, True):
        decode = _decoder(settings, models, beam=beam)
        selected = [row for row in inputs if (row.task in beam_tasks) == beam]
        for batch in batches(selected, batch_size=batch_size):
            encoder_ids = pad_batch(batch, batch_size=batch_size)
            decoder_ids = decode(encoder_ids, (encoder_ids != PAD_ID).astype(np.int32))
            # Rows that fill up the batch are dropped here.
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
        return partial(greedy, model, max_decode_length=max_decode_length, ensemble=tuple(ensemble))
    return partial(
        beam_search,
        model,
        max_decode_length=max_decode_length,
        width=settings.evaluate.beam_width,
        length_penalty=settings.evaluate.length_penalty,
    )
