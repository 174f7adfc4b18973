"""What the fine-tuned model answers to every example of every task (paper section 2.4).

Answers are greedy, the most probable token until EOS, but for the tasks of `evaluate.beam_tasks`,
whose answers beam search finds. An example's padded length depends on its
own tokens alone and every batch has the same number of rows, so the shapes it is computed in,
and with them the arithmetic, do not depend on its neighbours; which row of a batch it takes does,
and may move the last bits of a float on some devices, an answer only at a tie. Devices that work in
step take equal parts of a batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t5repro.config.sections.evaluate import PredictStage
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json_lines, write_json_lines, write_manifest
from t5repro.model.devices import Devices
from t5repro.progress import Progress
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

WEIGHTS_FILE = "weights.safetensors"
SHORTEST_BUCKET = 32  # tokens; below it, padding costs less than one more compilation
ONE_DEVICE = Devices("cpu", ("CPU:0",))

Ids = NDArray[np.int32]
Answers = dict[tuple[str, int], list[int]]  # task and position -> ids


@dataclass(frozen=True)
class Question:
    """An example on its way through the model.

    Attributes:
        task: name of its task.
        position: its place in the task's file.
        tokens: its inputs, cut to the longest length, with EOS.
        truncated: whether tokens were cut off.
        bucket: padded length; a function of the number of tokens.
    """

    task: str
    position: int
    tokens: tuple[int, ...]
    truncated: bool
    bucket: int


def predict(
    settings: PredictStage,
    *,
    weights: Path,
    examples: Mapping[str, Path],
    vocabulary: Path,
    folder: Path,
    manifest: Path,
    others: Sequence[Path] = (),
    kept_steps: Sequence[int] = (),
    devices: Devices = ONE_DEVICE,
) -> None:
    """Write ``<task>.jsonl`` with the model's answer to every example, in the file's order.

    The answers of kept checkpoints go to ``step-<n>/<task>.jsonl``; those of the last step are the
    answers of the fine-tuned model itself.

    Args:
        settings: settings of the stage.
        weights: manifest of the fine-tuned weights, which lie beside it.
        examples: task -> JSON lines to answer.
        vocabulary: SentencePiece model.
        folder: where the answers go.
        manifest: manifest to write; it counts cut inputs and answers without an end.
        others: manifests of further models that answer together with the first.
        kept_steps: steps of fine-tuning whose weights are kept beside the last.
        devices: what computes; those of a strategy share each batch.

    Raises:
        ArtifactError: the weights or the examples are missing or damaged.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    from t5repro.vocab.vocabulary import Vocabulary, target_marker_ids

    members = [weights_beside(path) for path in (weights, *others)]
    earlier = {
        step: weights_beside(weights.parent / f"step-{step}" / "manifest.json")
        for step in sorted(kept_steps)[:-1]
    }
    words = Vocabulary.load(vocabulary)
    rows = {
        task: read_examples(path, limit=settings.evaluate.max_examples)
        for task, path in examples.items()
    }
    length = settings.evaluate.inputs_length
    end = target_marker_ids(words, settings.model, inputs_length=length)
    questions = [
        question
        for task in rows
        for question in make_questions(
            task,
            words.encode_batch([row["inputs"] for row in rows[task]]),
            inputs_length=length,
            end=end,
        )
    ]
    batches_of_weights = [members, *([path] for path in earlier.values())]
    with devices.scope():
        answers, *answers_before = _answer(
            settings,
            questions,
            weights=batches_of_weights,
            total_ids=words.total_ids,
            replicas=devices.replicas,
        )
    counters = {}
    outputs = []
    for task, task_rows in rows.items():
        own = [question for question in questions if question.task == task]
        ids = [answers[task, question.position] for question in own]
        outputs.append(folder / f"{task}.jsonl")
        _write_answers(outputs[-1], task, task_rows, answers, words)
        counters[task] = {
            "examples": len(own),
            "truncated_inputs": sum(question.truncated for question in own),
            "answers_without_eos": sum(EOS_ID not in answer for answer in ids),
        }
    for step, before in zip(earlier, answers_before, strict=True):
        for task, task_rows in rows.items():
            outputs.append(folder / f"step-{step}" / f"{task}.jsonl")
            _write_answers(outputs[-1], task, task_rows, before, words)
    for stale in {*folder.glob("*.jsonl"), *folder.glob("step-*/*.jsonl")} - set(outputs):
        stale.unlink()  # of a task that the mixture no longer has, or a step that is not kept
    write_manifest(
        manifest,
        rule="evaluate_predict",
        settings=settings.model_dump(mode="json"),
        inputs=[*members, *earlier.values(), vocabulary, *examples.values()],
        outputs=outputs,
        counters={"tasks": counters},
    )


def weights_beside(manifest: Path) -> Path:
    """Return the file of weights beside a manifest of fine-tuning.

    Raises:
        ArtifactError: there is none.
    """
    path = manifest.parent / WEIGHTS_FILE
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the stage finetune, which writes it")
    return path


def _write_answers(
    path: Path, task: str, rows: Sequence[Mapping[str, Any]], answers: Answers, words: Any
) -> None:
    """Write a task's rows with what was answered to each."""
    write_json_lines(
        path,
        (
            {**row, "prediction": words.decode(answers[task, number])}
            for number, row in enumerate(rows)
        ),
    )


def read_examples(path: Path, *, limit: int) -> list[dict[str, Any]]:
    """Read a task's examples.

    Args:
        path: JSON lines of the stage `tasks`.
        limit: how many to keep, from the first; 0: all.

    Raises:
        ArtifactError: there are none, or a row lacks what an example has; the line is named.
    """
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(read_json_lines(path), start=1):
        if limit and len(rows) == limit:
            break
        absent = [name for name in ("inputs", "targets", "idx", "answer") if name not in row]
        if absent:
            raise ArtifactError(f"{path} line {number} lacks {absent}; rerun the stage tasks")
        rows.append({name: row[name] for name in ("idx", "inputs", "targets", "answer")})
    if not rows:
        raise ArtifactError(f"{path} holds no example; check the task's file and rerun stage tasks")
    return rows


def make_questions(
    task: str,
    encoded: Sequence[Sequence[int]],
    *,
    inputs_length: int,
    end: tuple[int, ...] = (EOS_ID,),
) -> list[Question]:
    """Cut token lists to a length, end them and choose their padded lengths.

    Args:
        task: name of the task.
        encoded: ids of each example, without EOS.
        inputs_length: longest allowed, the end included; tokens.
        end: ids that follow each list.

    Source: released code, ``seqio.preprocessors.append_eos_after_trim``.
    """
    room = inputs_length - len(end)
    return [
        Question(
            task=task,
            position=position,
            tokens=(*ids[:room], *end),
            truncated=len(ids) > room,
            bucket=bucket_length(min(len(ids) + len(end), inputs_length), longest=inputs_length),
        )
        for position, ids in enumerate(encoded)
    ]


def bucket_length(tokens: int, *, longest: int) -> int:
    """Return the padded length of a row: a power of two from 32 on, at most `longest`."""
    length = SHORTEST_BUCKET
    while length < tokens:
        length *= 2
    return min(length, longest)


def batches(questions: Sequence[Question], *, rows: int) -> Iterator[list[Question]]:
    """Yield groups of one padded length, short rows first, each of at most `rows` examples.

    Within a length the tasks stay together: answers of like length end together.
    """
    order = sorted(
        questions, key=lambda item: (item.bucket, item.task, len(item.tokens), item.position)
    )
    start = 0
    while start < len(order):
        bucket = order[start].bucket
        group = [item for item in order[start : start + rows] if item.bucket == bucket]
        yield group
        start += len(group)


def padded(group: Sequence[Question], *, rows: int) -> Ids:
    """Return the ids of a group, ``(rows, bucket)``, zero after each end.

    A group that does not fill the batch repeats its first example: every call has the full
    shape, and no row is empty, on which a decoder could run on to the last step.
    """
    ids = np.zeros((rows, group[0].bucket), dtype=np.int32)
    for row in range(rows):
        tokens = group[row if row < len(group) else 0].tokens
        ids[row, : len(tokens)] = tokens
    return ids


def _answer(
    settings: PredictStage,
    questions: Sequence[Question],
    *,
    weights: Sequence[Sequence[Path]],
    total_ids: int,
    replicas: int,
) -> list[Answers]:
    """Return the ids that the model answers with each of several sets of weights.

    Args:
        settings: settings of the stage.
        questions: what is asked.
        weights: files of one model, or of the members of an ensemble; each set in its turn.
        total_ids: ids of the vocabulary.
        replicas: devices that share a batch.
    """
    from t5repro.model.checkpoints import load_weights
    from t5repro.model.transformer import T5

    embedding_rows = settings.vocab.embedding_rows
    if total_ids > embedding_rows:
        raise VocabularyError(
            f"the vocabulary has {total_ids} ids, the model only {embedding_rows} embeddings; "
            "vocab.vocab_size must be the one that the vocabulary was trained with"
        )
    models = [
        T5(
            settings.model,
            embedding_rows=embedding_rows,
            dropout_rate=0.0,
            seed=0,
            dtype=settings.devices.precision,
            adapter_width=settings.finetune.width,
        )
        for _ in weights[0]
    ]
    found = []
    with Progress("predict", total=len(questions) * len(weights), unit="examples") as progress:
        for paths in weights:
            for path, model in zip(paths, models, strict=True):
                load_weights(path, model)
            found.append(_answer_all(settings, questions, models, progress, replicas=replicas))
    return found


def _answer_all(
    settings: PredictStage,
    questions: Sequence[Question],
    models: Sequence[Any],
    progress: Progress,
    *,
    replicas: int,
) -> Answers:
    """Return what the models answer together, with the weights that they have now."""
    from t5repro.model.distribution import shared_rows

    answers: Answers = {}
    rows = settings.evaluate.batch_rows
    shape = shared_rows(rows, replicas)
    by_beam = set(settings.evaluate.beam_tasks)
    for searched in (False, True):
        decode = _decoder(settings, models, searched=searched)
        own = [item for item in questions if (item.task in by_beam) == searched]
        for group in batches(own, rows=rows):
            encoder_ids = padded(group, rows=shape)
            decoded = decode(encoder_ids, (encoder_ids != PAD_ID).astype(np.int32))
            for row, question in enumerate(group):
                answers[question.task, question.position] = decoded[row].tolist()
            progress.advance(len(group), padded_tokens=group[0].bucket)
    return answers


def _decoder(
    settings: PredictStage, models: Sequence[Any], *, searched: bool
) -> Callable[[Ids, Ids], NDArray[Any]]:
    """Return the function from ids and segments to answers: beam search, or greedy decoding."""
    from t5repro.model.beam import beam_search
    from t5repro.model.decode import greedy

    model, *others = models
    longest = settings.evaluate.max_decode_length
    if not searched:
        return partial(greedy, model, max_decode_length=longest, others=tuple(others))
    return partial(
        beam_search,
        model,
        max_decode_length=longest,
        width=settings.evaluate.beam_width,
        length_penalty=settings.evaluate.length_penalty,
    )
