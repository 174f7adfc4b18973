"""Multi-task training: the corpus as one more member of the mixture (paper section 3.5.2).

One row of span corruption counts as one example of the corpus, while a packed row of tasks
contains several. The share of rows therefore follows from the share of examples and the average
length of the tasks' examples. Rows of the corpus are spread evenly over the run: row n is one if
``(n + 1) * share`` reaches an integer that ``n * share`` does not. Like everything else in a
batch, the next row of either source depends only on n.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.inputs.batches import Batch, Batches
from t5repro.inputs.finetuning import TaskInputs, load_task_inputs
from t5repro.inputs.pretraining import CorpusInputs, load_corpus_inputs
from t5repro.inputs.task_mixture import Mixture
from t5repro.tasks.mixing_rates import fixed_rate_share, mixing_rates, mixture_counts
from t5repro.vocab.token_files import split_files

CORPUS = "/corpus"  # name of the corpus among the tasks of a mixture; no task can have it
ROW_UNITS = 1 << 20  # a share of rows is an integer number of these, so that counting rows is exact


class _RowRange(NamedTuple):
    """Consecutive rows of a run, split into rows of the corpus and rows of tasks.

    Attributes:
        first: number of the first row.
        rows: number of rows.
        corpus_first: rows of the corpus before it.
        corpus_rows: rows of the corpus in it.
    """

    first: int
    rows: int
    corpus_first: int
    corpus_rows: int

    @property
    def tasks_first(self) -> int:
        return self.first - self.corpus_first

    @property
    def tasks_rows(self) -> int:
        return self.rows - self.corpus_rows


@dataclass(frozen=True)
class MixedInputs:
    """Rows of the corpus and rows of tasks.

    Attributes:
        tasks: the tasks, with one row a batch.
        corpus: the corpus, with one row a batch.
        batch_size: rows of a batch of both.
        examples_share: share of the corpus in all examples, from 0 to 1.
        corpus_units: rows of the corpus in `ROW_UNITS` rows.
    """

    tasks: TaskInputs
    corpus: CorpusInputs
    batch_size: int
    examples_share: float
    corpus_units: int

    def corpus_rows(self, rows: int) -> int:
        """Return the number of rows of the corpus in the first `rows` rows."""
        return rows * self.corpus_units // ROW_UNITS

    def _row_range(self, first_step: int, steps: int) -> _RowRange:
        first, rows = first_step * self.batch_size, steps * self.batch_size
        corpus_first = self.corpus_rows(first)
        return _RowRange(first, rows, corpus_first, self.corpus_rows(first + rows) - corpus_first)

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`; see `batches`."""
        rows = self._row_range(first_step, steps)
        # Both sources have batches of one row, so a row is a step of its source.
        corpus = self.corpus.batches(first_step=rows.corpus_first, steps=rows.corpus_rows)
        tasks = self.tasks.batches(first_step=rows.tasks_first, steps=rows.tasks_rows)

        def row_of(number: int) -> Batch:
            # Bresenham's line: the count grows at a row of the corpus.
            before = self.corpus_rows(number)
            is_corpus = self.corpus_rows(number + 1) > before
            return corpus.make(before) if is_corpus else tasks.make(number - before)

        def make(step: int) -> Batch:
            numbers = range(step * self.batch_size, (step + 1) * self.batch_size)
            features, targets = zip(*map(row_of, numbers), strict=True)
            names = features[0]
            return (
                {name: np.concatenate([row[name] for row in features]) for name in names},
                np.concatenate(targets),
            )

        return Batches(make, first_step, steps)

    def counters(self, *, first_step: int, steps: int) -> dict[str, Any]:
        """Count the examples of some steps: `TaskInputs.counters`, and the corpus."""
        rows = self._row_range(first_step, steps)
        counters = self.tasks.counters(first_step=rows.tasks_first, steps=rows.tasks_rows)
        examples = sum(counters["drawn"].values()) + rows.corpus_rows
        return {
            **counters,
            "corpus": {
                "rows": rows.corpus_rows,
                "rows_share": round(self.corpus_units / ROW_UNITS, 6),
                "examples_share_asked": round(self.examples_share, 6),
                "examples_share_drawn": round(rows.corpus_rows / max(examples, 1), 6),
                **self.corpus.counters(steps=rows.corpus_first + rows.corpus_rows),
            },
        }


def corpus_share(settings: FinetuneSettings, counts: Mapping[str, int]) -> float:
    """Return the share of the corpus in all examples of the mixture.

    Args:
        settings: of fine-tuning; `corpus_examples` is above 0.
        counts: task -> training examples.
    """
    task_counts = mixture_counts(
        counts, examples=settings.mixture_examples, weights=settings.mixture_weights
    )
    limit, temperature = settings.mixture_limit, settings.mixture_temperature
    if settings.corpus_rate == "stated" and settings.mixture == "proportional":
        return fixed_rate_share(
            task_counts, settings.corpus_examples, limit=limit, temperature=temperature
        )
    rates = mixing_rates(
        {**task_counts, CORPUS: settings.corpus_examples},
        kind=settings.mixture,
        limit=limit,
        temperature=temperature,
    )
    return rates[CORPUS]


def corpus_row_units(mixture: Mixture, max_lengths: tuple[int, int], examples_share: float) -> int:
    """Return the number of rows of the corpus in `ROW_UNITS` rows.

    Args:
        mixture: the tasks.
        max_lengths: tokens of a row of inputs and of targets.
        examples_share: share of the corpus in all examples.
    """
    task_rows = (1 - examples_share) * mixture.rows_per_example(max_lengths)
    return round(examples_share / (examples_share + task_rows) * ROW_UNITS)


def load_finetuning_inputs(
    settings: FinetuneStage,
    *,
    examples: dict[str, Path],
    vocabulary: Path,
    seed: int,
    tokens: Path | None,
) -> TaskInputs | MixedInputs:
    """Read the tasks, and the corpus if `corpus_examples` is above 0.

    Args:
        settings: of the stage.
        examples: task -> file of training examples.
        vocabulary: the SentencePiece model.
        seed: of this repetition of the stage.
        tokens: manifest of the token files; absent if the corpus is not drawn.

    Raises:
        ArtifactError: a file is missing, empty or damaged.
    """
    training = settings.finetune
    task_arguments: dict[str, Any] = {
        "examples": examples,
        "vocabulary": vocabulary,
        "vocab": settings.vocab,
        "seed": seed,
        "model": settings.model,
    }
    if tokens is None:
        return load_task_inputs(training, **task_arguments)
    single_row = {"batch_size": 1}
    tasks = load_task_inputs(training.model_copy(update=single_row), **task_arguments)
    lengths = {"inputs_length": training.inputs_length, "targets_length": training.targets_length}
    ids, offsets = split_files(tokens.parent, "train")
    corpus = load_corpus_inputs(
        settings.pretrain.model_copy(update={**single_row, **lengths}),
        ids=ids,
        offsets=offsets,
        vocab=settings.vocab,
        seed=seed,
        joined=settings.model.family.joined,
    )
    counts = dict(zip(tasks.mixture.tasks, tasks.mixture.counts.tolist(), strict=True))
    share = corpus_share(training, counts)
    corpus_units = corpus_row_units(
        tasks.mixture, (training.inputs_length, training.targets_length), share
    )
    return MixedInputs(tasks, corpus, training.batch_size, share, corpus_units)
