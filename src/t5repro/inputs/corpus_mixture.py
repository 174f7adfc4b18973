"""Batches that draw the corpus beside the tasks: multi-task training (paper section 3.5.2).

The corpus is one more member of the mixture; one row of span corruption is one of its examples, a
packed row of tasks holds several. So its share of rows follows from its share of examples and from
how much of a row an example of the tasks takes. Rows of the corpus stand evenly among the others:
row n is one if ``(n + 1) * share`` passes a whole number that ``n * share`` does not. Which row
of either stream comes next is a function of n alone, like everything a step reads.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.finetuning import TaskInputs, corpus_share, load_task_inputs
from t5repro.inputs.pretraining import SpanInputs, load_span_inputs
from t5repro.inputs.task_mixture import Mixture

PARTS = 1 << 20  # a share is a whole number of these, so that counting rows is exact


@dataclass(frozen=True)
class MixedInputs:
    """Rows of the corpus and rows of tasks.

    Attributes:
        tasks: the tasks, one row a batch.
        corpus: the corpus, one row a batch.
        batch_rows: rows of a batch of both.
        examples_share: share of the corpus among all examples, from 0 to 1.
        parts: rows of the corpus in `PARTS` rows.
    """

    tasks: TaskInputs
    corpus: SpanInputs
    batch_rows: int
    examples_share: float
    parts: int

    def corpus_rows(self, rows: int) -> int:
        """Return how many of the first `rows` rows are of the corpus."""
        return rows * self.parts // PARTS

    def batches(self, *, first_step: int, steps: int) -> tf.data.Dataset:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""
        low, high = first_step * self.batch_rows, (first_step + steps) * self.batch_rows
        before, after = self.corpus_rows(low), self.corpus_rows(high)
        streams = [
            source.batches(first_step=first, steps=count).map(_only_row)
            for source, first, count in (
                (self.corpus, before, after - before),
                (self.tasks, low - before, high - low - (after - before)),
            )
        ]
        parts = tf.constant(self.parts, tf.int64)

        def stream_of(row: tf.Tensor) -> tf.Tensor:
            passed = (row + 1) * parts // PARTS > row * parts // PARTS
            return tf.where(passed, tf.constant(0, tf.int64), tf.constant(1, tf.int64))

        chosen = tf.data.Dataset.range(low, high).map(stream_of)
        mixed = tf.data.Dataset.choose_from_datasets(streams, chosen, stop_on_empty_dataset=False)
        return mixed.batch(self.batch_rows, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    def counters(self, *, first_step: int, steps: int) -> dict[str, Any]:
        """Count what the steps draw: those of the tasks, and the corpus beside them."""
        low, high = first_step * self.batch_rows, (first_step + steps) * self.batch_rows
        before, after = self.corpus_rows(low), self.corpus_rows(high)
        rows = high - low - (after - before)
        counted = self.tasks.counters(first_step=low - before, steps=rows)
        drawn = sum(counted["drawn"].values())
        return {
            **counted,
            "corpus": {
                "rows": after - before,
                "rows_share": round(self.parts / PARTS, 6),
                "examples_share_asked": round(self.examples_share, 6),
                "examples_share_drawn": round((after - before) / max(after - before + drawn, 1), 6),
                **self.corpus.counters(steps=after),
            },
        }


def _only_row(features: dict[str, tf.Tensor], targets: tf.Tensor) -> Any:
    """Take the one row of a batch out of it."""
    return {name: array[0] for name, array in features.items()}, targets[0]


def rows_share(mixture: Mixture, room: tuple[int, int], examples_share: float) -> int:
    """Return how many of `PARTS` rows are of the corpus.

    Args:
        mixture: the tasks.
        room: tokens of a row of inputs and of targets.
        examples_share: share of the corpus among all examples.
    """
    share = mixture.rates / mixture.rates.sum()
    owner = np.repeat(np.arange(len(share)), mixture.counts)
    weight = share[owner] / mixture.counts[owner]
    row_of_an_example = float((weight @ (mixture.lengths / np.asarray(room))).max())
    rows = examples_share / (examples_share + (1 - examples_share) * row_of_an_example)
    return round(rows * PARTS)


def load_inputs(
    settings: FinetuneStage,
    *,
    examples: dict[str, Path],
    vocabulary: Path,
    seed: int,
    tokens: Path | None,
) -> TaskInputs | MixedInputs:
    """Read what fine-tuning draws from: the tasks, and with `corpus_examples` the corpus.

    Args:
        settings: of the stage.
        examples: task -> file of training examples.
        vocabulary: the SentencePiece model.
        seed: of this repetition of the stage.
        tokens: manifest of the token files, where the corpus is drawn.

    Raises:
        ArtifactError: a file is missing, empty or damaged.
    """
    plan = settings.finetune
    known: dict[str, Any] = {
        "examples": examples,
        "vocabulary": vocabulary,
        "vocab": settings.vocab,
        "seed": seed,
        "network": settings.model,
    }
    if tokens is None:
        return load_task_inputs(plan, **known)
    tasks = load_task_inputs(plan.model_copy(update={"batch_rows": 1}), **known)
    room = {"inputs_length": plan.inputs_length, "targets_length": plan.targets_length}
    corpus = load_span_inputs(
        settings.pretrain.model_copy(update={"batch_rows": 1, **room}),
        tokens=tokens.parent / "train.ids",
        offsets=tokens.parent / "train.offsets",
        vocab=settings.vocab,
        seed=seed,
        joined=settings.model.decoder_only,
    )
    counts = dict(zip(tasks.mixture.tasks, tasks.mixture.counts.tolist(), strict=True))
    share = corpus_share(plan, counts)
    parts = rows_share(tasks.mixture, (plan.inputs_length, plan.targets_length), share)
    return MixedInputs(tasks, corpus, plan.batch_rows, share, parts)
