"""Batches of fine-tuning from the examples of tasks (paper section 2.4).

Every example is tokenised once and kept as ids, four bytes a token; the batches of thousands of
steps then only gather. `task_mixture` selects the examples of
each row; `corpus_mixture` adds rows of the corpus.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from t5repro.array_types import Array, Int32, Int64, Mask
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json_lines
from t5repro.inputs.batches import (
    Batch,
    Batches,
    FlatSegments,
    encoder_decoder_batch,
    gather_pieces,
    joined_batch,
)
from t5repro.inputs.task_mixture import Mixture, MixtureRows, draw_rows
from t5repro.progress import Progress, announce
from t5repro.task_groups import RELEASED_GROUPS
from t5repro.tasks.mixing_rates import mixing_rates, mixture_counts
from t5repro.vocab.special_ids import EOS_ID
from t5repro.vocab.vocabulary import Vocabulary, target_marker_ids

TEXTS_PER_BATCH = 2048  # tokenised together
ENCODING_THREADS = 8  # the ids do not depend on this number


class Tokenised(NamedTuple):
    """Texts as ids.

    Attributes:
        ids: every distinct text one after another, cut, with its suffix, int32.
        starts: start of each text; equal texts share one.
        lengths: tokens of each, suffix included.
        cut: True where tokens were cut off.
    """

    ids: Int32
    starts: Int64
    lengths: Int32
    cut: Mask

    def segments(self, examples: Array) -> FlatSegments:
        """Return the ids of some texts."""
        lengths = self.lengths[examples]
        return FlatSegments(gather_pieces(self.ids, self.starts[examples], lengths), lengths)


def tokenise(
    texts: list[str],
    *,
    vocabulary: Vocabulary,
    max_length: int,
    label: str,
    suffix: tuple[int, ...] = (EOS_ID,),
) -> Tokenised:
    """Convert texts to ids.

    Args:
        texts: texts to tokenise.
        vocabulary: the vocabulary.
        max_length: most tokens of a text, its suffix included; further tokens are cut off.
        label: name of the work in the progress display.
        suffix: ids that follow each text.

    Source: released code, ``append_eos_after_trim``.
    """
    # The suffix is never cut: a text without EOS would teach the model not to end.
    max_tokens = max_length - len(suffix)
    # Label words and questions with several answers repeat: each text is tokenised and kept once.
    index_of_text = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    ids: list[Int32] = []
    lengths: list[int] = []
    uncut_lengths: list[int] = []
    with Progress(label, total=len(index_of_text), unit="different texts") as progress:
        distinct = list(index_of_text)
        for first in range(0, len(distinct), TEXTS_PER_BATCH):
            batch = distinct[first : first + TEXTS_PER_BATCH]
            encoded = vocabulary.encode_batch(batch, threads=ENCODING_THREADS)
            rows = [[*row[:max_tokens], *suffix] for row in encoded]
            ids.append(np.fromiter(itertools.chain.from_iterable(rows), np.int32))
            lengths += map(len, rows)
            uncut_lengths += map(len, encoded)
            progress.advance(len(batch))
    # Offsets of the distinct texts, then one for each text of the task: equal texts share ids.
    sizes = np.array(lengths)
    indices = np.fromiter((index_of_text[text] for text in texts), np.int64, len(texts))
    return Tokenised(
        ids=np.concatenate(ids),
        starts=(np.cumsum(sizes) - sizes)[indices],
        lengths=sizes.astype(np.int32)[indices],
        cut=(np.array(uncut_lengths) > max_tokens)[indices],
    )


@dataclass(frozen=True)
class TaskInputs:
    """The tokenised examples of a mixture of tasks.

    Attributes:
        settings: of fine-tuning.
        seed: the run's seed.
        mixture: tasks, rates and lengths.
        inputs: inputs of every example, task after task.
        targets: targets of every example.
        joined: inputs and targets share one row, for a decoder-only network.
    """

    settings: FinetuneSettings
    seed: int
    mixture: Mixture
    inputs: Tokenised
    targets: Tokenised
    joined: bool = False

    def rows(self, *, first_step: int, steps: int) -> MixtureRows:
        """Return the examples in the rows of some steps."""
        return draw_rows(
            self.mixture,
            max_lengths=(self.settings.inputs_length, self.settings.targets_length),
            first_row=first_step * self.settings.batch_size,
            rows=steps * self.settings.batch_size,
            seed=self.seed,
        )

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`; see `batches`."""
        rows = self.rows(first_step=first_step, steps=steps)
        batch_size = self.settings.batch_size
        assemble = joined_batch if self.joined else encoder_decoder_batch

        def make(step: int) -> Batch:
            # Consecutive rows have consecutive examples: one slice of the stream.
            first_row = (step - first_step) * batch_size
            splits = rows.splits[first_row : first_row + batch_size + 1]
            examples = rows.examples[splits[0] : splits[-1]]
            return assemble(
                self.inputs.segments(examples),
                self.targets.segments(examples),
                np.diff(splits),
                inputs_length=self.settings.inputs_length,
                targets_length=self.settings.targets_length,
            )

        return Batches(make, first_step, steps)

    def counters(self, *, first_step: int, steps: int) -> dict[str, Any]:
        """Count the examples of some steps.

        Returns:
            By task: requested and drawn share, drawn examples, examples in its file, examples
            with cut inputs or targets; and the share of padding in the batches.
        """
        examples = self.rows(first_step=first_step, steps=steps).examples
        task_indices = self.mixture.task_indices
        tasks = len(self.mixture.tasks)
        draws = np.bincount(task_indices[examples], minlength=tasks)
        settings = self.settings
        # Exact, not probed: the lengths of all drawn examples are known.
        size = steps * settings.batch_size * (settings.inputs_length + settings.targets_length)
        filled = int(self.mixture.lengths[examples].sum())

        def name_tasks(values: Array) -> dict[str, Any]:
            return dict(zip(self.mixture.tasks, values.tolist(), strict=True))

        def cut(side: Tokenised) -> dict[str, Any]:
            return name_tasks(np.bincount(task_indices[side.cut], minlength=tasks))

        return {
            "rates_asked": name_tasks(np.round(self.mixture.shares, 6)),
            "rates_drawn": name_tasks(np.round(draws / max(draws.sum(), 1), 6)),
            "drawn": name_tasks(draws),
            "examples": name_tasks(self.mixture.counts),
            "truncated_inputs": cut(self.inputs),
            "truncated_targets": cut(self.targets),
            "padding_share": round(1 - filled / size, 6) if size else 0.0,
        }


def load_task_inputs(
    settings: FinetuneSettings,
    *,
    examples: Mapping[str, Path],
    vocabulary: Path,
    vocab: VocabSettings,
    seed: int,
    model: ModelSettings | None = None,
) -> TaskInputs:
    """Read and tokenise the training examples of every task.

    Args:
        settings: of fine-tuning.
        examples: task -> file of training examples.
        vocabulary: the SentencePiece model.
        vocab: of the vocabulary; the SentencePiece model must match it.
        seed: the run's seed.
        model: architecture and target marker; by default an encoder-decoder.

    Raises:
        ArtifactError: a file is missing, empty or damaged.
        VocabularyError: the SentencePiece model has another number of ids than the settings.
    """
    loaded_vocabulary = Vocabulary.load(vocabulary)
    if loaded_vocabulary.total_ids != vocab.total_ids:
        raise VocabularyError(
            f"{vocabulary} has {loaded_vocabulary.total_ids} ids, vocab.vocab_size + "
            f"vocab.extra_ids is {vocab.total_ids}; rerun the rule vocab"
        )
    # Sorted: the order of the tasks must not depend on the order of the settings.
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
    model = model or ModelSettings()
    # A decoder-only network may end its inputs in the word `target:` in place of EOS.
    marker = target_marker_ids(loaded_vocabulary, model, inputs_length=settings.inputs_length)
    inputs, targets = (
        tokenise(
            [row[side] for task in tasks for row in rows[task]],
            vocabulary=loaded_vocabulary,
            max_length=length,
            label=f"finetune: tokenise {name}",
            suffix=suffix,
        )
        for side, length, name, suffix in (
            (0, settings.inputs_length, "inputs", marker),
            (1, settings.targets_length, "targets", (EOS_ID,)),
        )
    )
    for task in tasks:
        _check_targets(task, rows[task], loaded_vocabulary)
    # Examples are indices into all texts, task after task.
    mixture = Mixture(
        tasks=tasks,
        rates=np.array([rates[task] for task in tasks], np.float64),
        counts=np.array([counts[task] for task in tasks], np.int64),
        lengths=np.stack([inputs.lengths, targets.lengths], axis=1),
    )
    return TaskInputs(settings, seed, mixture, inputs, targets, model.family.joined)


def _check_targets(task: str, rows: Sequence[tuple[str, str, Any]], vocabulary: Vocabulary) -> None:
    """Refuse labels that the model cannot write; count other such targets.

    Released tasks keep the labels of the paper; they are counted too.

    Args:
        task: name of the task.
        rows: inputs, targets and answer of each example.
        vocabulary: the vocabulary.

    Raises:
        SettingsError: a label has no spelling in pieces.
    """
    if not any(task in group for group in RELEASED_GROUPS.values()):
        # Of a label the answer is its index; a truth value would be one to isinstance.
        labels = sorted({targets for _, targets, answer in rows if type(answer) is int})
        vocabulary.check_labels(labels, f"name other words in tasks.own.{task}.labels")
    if warning := vocabulary.unwritable_targets([targets for _, targets, _ in rows]):
        announce(f"finetune: task {task}: {warning}")


def _read_examples(path: Path) -> list[tuple[str, str, Any]]:
    """Return inputs, targets and answer of each row; the answer is None where there is none.

    Raises:
        ArtifactError: the file is missing or has no rows, or a row lacks inputs or targets.
    """
    rows: list[tuple[str, str, Any]] = []
    for number, row in enumerate(read_json_lines(path), start=1):
        inputs, targets = row.get("inputs"), row.get("targets")
        if not isinstance(inputs, str) or not isinstance(targets, str):
            raise ArtifactError(
                f"{path} line {number} lacks inputs or targets; delete it and rerun the rule tasks"
            )
        rows.append((inputs, targets, row.get("answer")))
    # An empty task would have a rate without examples to draw.
    if not rows:
        raise ArtifactError(f"{path} has no examples to train on; check the task's training files")
    return rows
