"""Task examples as ids, tokenised inside tf.data by tensorflow-text (paper section 2.4).

Every example is tokenised once, many together, and kept as ids: the batches of thousands of steps
then only gather. Memory is four bytes a token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_text

from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json_lines
from t5repro.inputs.batches import Features, Flat, assemble, assemble_joined, gather_pieces
from t5repro.inputs.packing import Integers
from t5repro.inputs.task_mixture import Mixture, PlannedRows, plan_rows
from t5repro.progress import Progress
from t5repro.tasks.mixing_rates import fixed_rate_share, mixing_rates, mixture_counts
from t5repro.vocab.special_ids import EOS_ID
from t5repro.vocab.vocabulary import Vocabulary, target_marker_ids

TEXTS_AT_ONCE = 2048

CORPUS = "/corpus"  # among the tasks of a mixture; no task can have this name


class Tokenised(NamedTuple):
    """Texts as ids.

    Attributes:
        ids: every distinct text one after another, cut and ended, int32.
        starts: where each text begins; equal texts begin at one place.
        lengths: tokens of each, EOS included.
        cut: True where tokens were cut off.
    """

    ids: npt.NDArray[np.int32]
    starts: Integers
    lengths: npt.NDArray[np.int32]
    cut: npt.NDArray[np.bool_]


def tokenise(
    texts: list[str], *, model: bytes, max_length: int, label: str, end: tuple[int, ...] = (EOS_ID,)
) -> Tokenised:
    """Turn texts into ids.

    Args:
        texts: what to tokenise.
        model: the serialised SentencePiece model.
        max_length: most tokens of a text, its end included; the rest is cut off.
        label: how progress names the work.
        end: ids that follow each text; EOS.

    Source: released code, ``append_eos_after_trim``.
    """
    room = max_length - len(end)
    tokenizer = tensorflow_text.SentencepieceTokenizer(model=model, out_type=tf.int32)

    def encode(batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        ragged = tokenizer.tokenize(batch)
        ends = tf.tile(tf.constant([end]), [tf.shape(batch)[0], 1])
        return tf.concat([ragged[:, :room], ends], axis=1), ragged.row_lengths()

    # Label words and questions with several answers repeat: each text is tokenised and kept once.
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    dataset = (
        tf.data.Dataset.from_tensor_slices(tf.constant(list(places), tf.string))
        .batch(TEXTS_AT_ONCE)
        .map(encode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    )
    ids: list[Any] = []
    lengths: list[Any] = []
    whole: list[Any] = []
    with Progress(label, total=len(places), unit="texts") as progress:
        for ragged, before in dataset:
            ids.append(ragged.flat_values.numpy())
            lengths.append(ragged.row_lengths().numpy())
            whole.append(before.numpy())
            progress.advance(len(before))
    sizes = np.concatenate(lengths)
    chosen = np.fromiter((places[text] for text in texts), np.int64, len(texts))
    return Tokenised(
        ids=np.concatenate(ids),
        starts=(np.cumsum(sizes) - sizes)[chosen],
        lengths=sizes.astype(np.int32)[chosen],
        cut=(np.concatenate(whole) > room)[chosen],
    )


@dataclass(frozen=True)
class TaskInputs:
    """Examples of a mixture of tasks, ready to be drawn.

    Attributes:
        settings: of fine-tuning.
        seed: the run's seed.
        mixture: tasks, rates and lengths.
        inputs: inputs of every example, task after task.
        targets: targets of every example.
        joined: inputs and targets are one row, for a decoder alone.
    """

    settings: FinetuneSettings
    seed: int
    mixture: Mixture
    inputs: Tokenised
    targets: Tokenised
    joined: bool = False

    def plan(self, *, first_step: int, steps: int) -> PlannedRows:
        """Return the examples of the rows of some steps."""
        return plan_rows(
            self.mixture,
            room=(self.settings.inputs_length, self.settings.targets_length),
            first_row=first_step * self.settings.batch_rows,
            rows=steps * self.settings.batch_rows,
            seed=self.seed,
        )

    def batches(self, *, first_step: int, steps: int) -> tf.data.Dataset:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""
        plan = self.plan(first_step=first_step, steps=steps)
        rows = self.settings.batch_rows
        lay = assemble_joined if self.joined else assemble
        with tf.device("CPU:0"):
            examples, splits = tf.constant(plan.examples), tf.constant(plan.splits)
            sides = [
                tuple(tf.constant(part) for part in side[:3])
                for side in (self.inputs, self.targets)
            ]

        def make(number: tf.Tensor) -> tuple[Features, tf.Tensor]:
            bounds = splits[number * rows : (number + 1) * rows + 1]
            chosen = examples[bounds[0] : bounds[-1]]
            inputs, targets = (_examples(chosen, *side) for side in sides)
            counts = tf.ensure_shape(tf.cast(bounds[1:] - bounds[:-1], tf.int32), [rows])
            return lay(
                inputs,
                targets,
                counts,
                inputs_length=self.settings.inputs_length,
                targets_length=self.settings.targets_length,
            )

        return (
            tf.data.Dataset.range(steps)
            .map(make, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(tf.data.AUTOTUNE)
        )

    def counters(self, *, first_step: int, steps: int) -> dict[str, Any]:
        """Count what the steps draw.

        Returns:
            By task: share asked and drawn, examples drawn, examples in its file, examples whose
            inputs or targets were cut; and the share of padding in the batches.
        """
        plan = self.plan(first_step=first_step, steps=steps)
        owner = np.repeat(np.arange(len(self.mixture.tasks)), self.mixture.counts)
        drawn = np.bincount(owner[plan.examples], minlength=len(self.mixture.tasks))
        share = self.mixture.rates / self.mixture.rates.sum()
        settings = self.settings
        room = steps * settings.batch_rows * (settings.inputs_length + settings.targets_length)
        filled = int(self.mixture.lengths[plan.examples].sum())

        def by_task(values: npt.NDArray[Any]) -> dict[str, Any]:
            return dict(zip(self.mixture.tasks, values.tolist(), strict=True))

        def cut(side: Tokenised) -> dict[str, Any]:
            return by_task(np.bincount(owner[side.cut], minlength=len(self.mixture.tasks)))

        return {
            "rates_asked": by_task(np.round(share, 6)),
            "rates_drawn": by_task(np.round(drawn / max(drawn.sum(), 1), 6)),
            "drawn": by_task(drawn),
            "examples": by_task(self.mixture.counts),
            "truncated_inputs": cut(self.inputs),
            "truncated_targets": cut(self.targets),
            "padding_share": round(1 - filled / room, 6) if room else 0.0,
        }


def _examples(chosen: tf.Tensor, ids: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor) -> Flat:
    tokens = tf.gather(lengths, chosen)
    return Flat(gather_pieces(ids, tf.gather(starts, chosen), tokens), tokens)


def load_task_inputs(
    settings: FinetuneSettings,
    *,
    examples: Mapping[str, Path],
    vocabulary: Path,
    vocab: VocabSettings,
    seed: int,
    network: ModelSettings | None = None,
) -> TaskInputs:
    """Read and tokenise the training examples of every task.

    Args:
        settings: of fine-tuning.
        examples: task -> file of training examples.
        vocabulary: the SentencePiece model.
        vocab: of the vocabulary, which the model must match.
        seed: the run's seed.
        network: what reads the examples; absent: an encoder-decoder.

    Raises:
        ArtifactError: a file is missing, empty or damaged.
        VocabularyError: the model has another number of ids than the settings say.
    """
    known = Vocabulary.load(vocabulary)
    if known.total_ids != vocab.total_ids:
        raise VocabularyError(
            f"{vocabulary} has {known.total_ids} ids, vocab.vocab_size + vocab.extra_ids is "
            f"{vocab.total_ids}; rerun the rule vocab"
        )
    tasks = tuple(sorted(examples))
    rows = {task: _read_examples(examples[task]) for task in tasks}
    counts = {task: len(rows[task]) for task in tasks}
    rates = mixing_rates(
        mixture_counts(
            counts, examples=settings.mixture_examples, weights=settings.mixture_weights
        ),
        kind=settings.mixture,
        limit=settings.mixture_limit,
        temperature=settings.mixture_temperature,
    )
    model = vocabulary.read_bytes()
    network = network or ModelSettings()
    marker = target_marker_ids(known, network, inputs_length=settings.inputs_length)
    inputs, targets = (
        tokenise(
            [row[side] for task in tasks for row in rows[task]],
            model=model,
            max_length=length,
            label=f"finetune: tokenise {name}",
            end=end,
        )
        for side, length, name, end in (
            (0, settings.inputs_length, "inputs", marker),
            (1, settings.targets_length, "targets", (EOS_ID,)),
        )
    )
    mixture = Mixture(
        tasks=tasks,
        rates=np.array([rates[task] for task in tasks], np.float64),
        counts=np.array([counts[task] for task in tasks], np.int64),
        lengths=np.stack([inputs.lengths, targets.lengths], axis=1),
    )
    return TaskInputs(settings, seed, mixture, inputs, targets, network.decoder_only)


def corpus_share(settings: FinetuneSettings, counts: Mapping[str, int]) -> float:
    """Return the share of the corpus among all examples of a mixture that draws it.

    Args:
        settings: of fine-tuning; `corpus_examples` is above 0.
        counts: task -> training examples.
    """
    counted = mixture_counts(
        counts, examples=settings.mixture_examples, weights=settings.mixture_weights
    )
    limit, temperature = settings.mixture_limit, settings.mixture_temperature
    if settings.corpus_rate == "stated" and settings.mixture == "proportional":
        return fixed_rate_share(
            counted, settings.corpus_examples, limit=limit, temperature=temperature
        )
    rates = mixing_rates(
        {**counted, CORPUS: settings.corpus_examples},
        kind=settings.mixture,
        limit=limit,
        temperature=temperature,
    )
    return rates[CORPUS]


def _read_examples(path: Path) -> list[tuple[str, str]]:
    """Return inputs and targets of each row.

    Raises:
        ArtifactError: the file is missing or has no rows, or a row lacks inputs or targets.
    """
    rows: list[tuple[str, str]] = []
    for number, row in enumerate(read_json_lines(path), start=1):
        inputs, targets = row.get("inputs"), row.get("targets")
        if not isinstance(inputs, str) or not isinstance(targets, str):
            raise ArtifactError(
                f"{path} line {number} lacks inputs or targets; delete it and rerun the rule tasks"
            )
        rows.append((inputs, targets))
    if not rows:
        raise ArtifactError(f"{path} has no examples to train on; check the task's training files")
    return rows
