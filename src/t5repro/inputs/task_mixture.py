"""Which example of which task comes next, and in which row (paper section 3.5.2).

Examples come in blocks. A block draws its tasks by the mixing rates from a stream of its own;
each task goes through its examples in one seeded order an epoch, forever. The rows of a step
follow from the rows of all blocks before it, so a run resumed at step n plans from the start of
the stream: about three million examples a second, and no text is read.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from t5repro.inputs.packing import BLOCK_ITEMS, Integers, pack_rows, row_splits
from t5repro.randomness import stream

BLOCKS_AT_ONCE = 256


@dataclass(frozen=True)
class Mixture:
    """What is drawn from.

    Attributes:
        tasks: names.
        rates: share of each task's examples among those drawn, not necessarily of sum 1.
        counts: examples of each task.
        lengths: tokens of inputs and targets of every example, task after task, ``(examples, 2)``.
    """

    tasks: tuple[str, ...]
    rates: npt.NDArray[np.float64]
    counts: Integers
    lengths: npt.NDArray[np.int32]


@dataclass(frozen=True)
class PlannedRows:
    """Rows of examples.

    Attributes:
        examples: numbers of the examples, row after row, int32.
        splits: row r holds the examples ``splits[r]`` to ``splits[r + 1]``.
    """

    examples: npt.NDArray[np.int32]
    splits: Integers


def plan_rows(
    mixture: Mixture, *, room: tuple[int, int], first_row: int, rows: int, seed: int
) -> PlannedRows:
    """Return the examples of the rows `first_row` to `first_row + rows - 1` of the mixture.

    Args:
        mixture: what is drawn from.
        room: tokens of a row of inputs and of targets.
        first_row: rows of the stream to pass over.
        rows: rows to plan.
        seed: the run's seed.
    """
    examples: list[npt.NDArray[np.int32]] = []
    sizes: list[Integers] = []
    used = np.zeros(len(mixture.tasks), np.int64)
    block = passed = 0
    while passed < first_row + rows:
        blocks = _blocks_for(first_row + rows - passed, mixture, room)
        drawn, used = draw_examples(mixture, first_block=block, blocks=blocks, used=used, seed=seed)
        row = pack_rows(mixture.lengths[drawn], room=room)
        splits = row_splits(row)
        low = min(max(first_row - passed, 0), len(splits) - 1)
        high = min(first_row + rows - passed, len(splits) - 1)
        by_row = drawn[np.argsort(row, kind="stable")]
        examples.append(by_row[splits[low] : splits[high]].astype(np.int32))
        sizes.append(np.diff(splits[low : high + 1]))
        passed += len(splits) - 1
        block += blocks
    if not sizes:
        return PlannedRows(np.zeros(0, np.int32), np.zeros(1, np.int64))
    splits = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return PlannedRows(np.concatenate(examples), splits)


def _blocks_for(rows: int, mixture: Mixture, room: tuple[int, int]) -> int:
    """Guess how many blocks fill so many rows; a guess too low costs another round."""
    share = mixture.rates / mixture.rates.sum()
    owner = np.repeat(np.arange(len(share)), mixture.counts)
    weight = share[owner] / mixture.counts[owner]
    rows_per_example = float((weight @ (mixture.lengths / np.asarray(room))).max())
    blocks = rows / max(rows_per_example, 1e-9) / BLOCK_ITEMS
    return min(BLOCKS_AT_ONCE, int(blocks) + 1)


def draw_examples(
    mixture: Mixture, *, first_block: int, blocks: int, used: Integers, seed: int
) -> tuple[Integers, Integers]:
    """Draw the examples of some blocks.

    Args:
        mixture: what is drawn from.
        first_block: number of the first block.
        blocks: how many.
        used: examples of each task that earlier blocks drew.
        seed: the run's seed.

    Returns:
        The numbers of the examples, ``(blocks * BLOCK_ITEMS,)``, and `used` after them.
    """
    share = mixture.rates / mixture.rates.sum()
    tasks = np.concatenate(
        [_draw_tasks(share, seed, number) for number in range(first_block, first_block + blocks)]
    )
    first_example = np.cumsum(mixture.counts) - mixture.counts
    drawn = np.zeros(len(tasks), np.int64)
    after = used.copy()
    for task, name in enumerate(mixture.tasks):
        places = np.flatnonzero(tasks == task)
        after[task] += len(places)
        drawn[places] = first_example[task] + _epochs(
            name, int(mixture.counts[task]), int(used[task]), int(after[task]), seed
        )
    return drawn, after


def _draw_tasks(share: npt.NDArray[np.float64], seed: int, block: int) -> npt.NDArray[np.int16]:
    """Return the task of each example of a block, drawn independently."""
    draws = stream(seed, "finetune", "mixture", block).random(BLOCK_ITEMS)
    edges = np.cumsum(share)
    edges[-1] = 1.0  # rounding must not leave a draw without a task
    return np.searchsorted(edges, draws, side="right").astype(np.int16)


def _epochs(task: str, count: int, low: int, high: int, seed: int) -> Integers:
    """Return the examples `low` to `high - 1` of a task that is repeated forever."""
    if low == high:
        return np.zeros(0, np.int64)
    first, last = low // count, (high - 1) // count
    orders = [
        stream(seed, "finetune", "examples", task, epoch).permutation(count)
        for epoch in range(first, last + 1)
    ]
    return np.concatenate(orders)[low - first * count : high - first * count]
