"""The examples of each row of a mixture of tasks (paper section 3.5.2).

Examples are drawn in blocks. A block draws its tasks by the mixing rates from a random stream of
its own; each task goes through its examples in one seeded order an epoch, without end. The rows of
a step follow from the rows of all earlier blocks, so a run that resumes at step n draws again from
the start of the stream: about three million examples a second, and no text is read.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Float64, Int32, Int64
from t5repro.inputs.packing import BLOCK_ITEMS, pack_rows, row_splits
from t5repro.randomness import stream

BLOCKS_PER_DRAW = 256


@dataclass(frozen=True)
class Mixture:
    """The examples of all tasks and their mixing rates.

    Attributes:
        tasks: names.
        rates: share of each task in the drawn examples, up to a common factor, ``(tasks,)``.
        counts: examples of each task, ``(tasks,)``.
        lengths: tokens of inputs and targets of every example, task after task, ``(examples, 2)``.
    """

    tasks: tuple[str, ...]
    rates: Float64
    counts: Int64
    lengths: Int32

    @property
    def shares(self) -> Float64:
        """Rates of sum 1, ``(tasks,)``."""
        return self.rates / self.rates.sum()

    @property
    def task_indices(self) -> Int64:
        """Index of the task of every example, ``(examples,)``."""
        return np.repeat(np.arange(len(self.tasks)), self.counts)

    def rows_per_example(self, max_lengths: tuple[int, int]) -> float:
        """Return the part of a row that an example takes on average, on the scarcer side."""
        task = self.task_indices
        weights = self.shares[task] / self.counts[task]
        return float((weights @ (self.lengths / np.asarray(max_lengths))).max())


@dataclass(frozen=True)
class MixtureRows:
    """Rows of examples.

    Attributes:
        examples: indices of the examples, row after row, int32.
        splits: row r contains ``examples[splits[r]:splits[r + 1]]``.
    """

    examples: Int32
    splits: Int64


def draw_rows(
    mixture: Mixture, *, max_lengths: tuple[int, int], first_row: int, rows: int, seed: int
) -> MixtureRows:
    """Return the examples of the rows `first_row` to `first_row + rows - 1` of the mixture.

    Args:
        mixture: examples and rates.
        max_lengths: tokens of a row of inputs and of targets.
        first_row: rows of the stream to skip.
        rows: rows to return.
        seed: the run's seed.
    """
    examples: list[Int32] = []
    sizes: list[Int64] = []
    draw_counts = np.zeros(len(mixture.tasks), np.int64)
    # Rows are packed from whole blocks, from the start of the stream: the row with number n has the
    # same examples whichever row is the first.
    block = finished_rows = 0
    while finished_rows < first_row + rows:
        blocks = _estimated_blocks(first_row + rows - finished_rows, mixture, max_lengths)
        indices, draw_counts = draw_examples(
            mixture, first_block=block, blocks=blocks, draw_counts=draw_counts, seed=seed
        )
        row = pack_rows(mixture.lengths[indices], max_lengths=max_lengths)
        splits = row_splits(row)
        low = min(max(first_row - finished_rows, 0), len(splits) - 1)
        high = min(first_row + rows - finished_rows, len(splits) - 1)
        # Stable: a row keeps the order in which its examples were drawn.
        ordered = indices[np.argsort(row, kind="stable")]
        examples.append(ordered[splits[low] : splits[high]].astype(np.int32))
        sizes.append(np.diff(splits[low : high + 1]))
        finished_rows += len(splits) - 1
        block += blocks
    if not sizes:
        return MixtureRows(np.zeros(0, np.int32), np.zeros(1, np.int64))
    splits = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return MixtureRows(np.concatenate(examples), splits)


def _estimated_blocks(rows: int, mixture: Mixture, max_lengths: tuple[int, int]) -> int:
    """Estimate the blocks that fill so many rows; too low a number costs one more round."""
    blocks = rows / max(mixture.rows_per_example(max_lengths), 1e-9) / BLOCK_ITEMS
    return min(BLOCKS_PER_DRAW, int(blocks) + 1)


def draw_examples(
    mixture: Mixture, *, first_block: int, blocks: int, draw_counts: Int64, seed: int
) -> tuple[Int64, Int64]:
    """Draw the examples of consecutive blocks.

    Args:
        mixture: examples and rates.
        first_block: number of the first block.
        blocks: number of blocks.
        draw_counts: examples of each task that earlier blocks drew, ``(tasks,)``.
        seed: the run's seed.

    Returns:
        The indices of the examples, ``(blocks * BLOCK_ITEMS,)``, and `draw_counts` after them.
    """
    task_indices = np.concatenate(
        [
            _draw_tasks(mixture.shares, seed, number)
            for number in range(first_block, first_block + blocks)
        ]
    )
    first_example = np.cumsum(mixture.counts) - mixture.counts
    examples = np.zeros(len(task_indices), np.int64)
    counts_after = draw_counts.copy()
    for task, name in enumerate(mixture.tasks):
        positions = np.flatnonzero(task_indices == task)
        counts_after[task] += len(positions)
        examples[positions] = first_example[task] + _epochs(
            name, int(mixture.counts[task]), int(draw_counts[task]), int(counts_after[task]), seed
        )
    return examples, counts_after


def _draw_tasks(shares: Float64, seed: int, block: int) -> npt.NDArray[np.int16]:
    """Return the task of each example of a block, drawn independently."""
    draws = stream(seed, "finetune", "mixture", block).random(BLOCK_ITEMS)
    edges = np.cumsum(shares)
    edges[-1] = 1.0  # rounding must not leave a draw without a task
    return np.searchsorted(edges, draws, side="right").astype(np.int16)


def _epochs(task: str, count: int, low: int, high: int, seed: int) -> Int64:
    """Return the examples `low` to `high - 1` of a task that is repeated without end."""
    if low == high:
        return np.zeros(0, np.int64)
    # Epochs that the range touches, each with an order of its own.
    first, last = low // count, (high - 1) // count
    orders = [
        stream(seed, "finetune", "examples", task, epoch).permutation(count)
        for epoch in range(first, last + 1)
    ]
    return np.concatenate(orders)[low - first * count : high - first * count]
