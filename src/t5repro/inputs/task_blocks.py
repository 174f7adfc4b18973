"""The examples of each step of a mixture with one task a step, as in MT-DNN.

A task's examples are put into one order and divided into blocks of a batch; an epoch has the blocks
of all tasks in an order of its own. So a task has as many steps as its share of the mixture says,
and a step is a function of its number and the seed.

Source: Liu et al., 2019 (MT-DNN), algorithm 1; ``BatchGen`` and ``train.py`` of v0.1.
"""

import numpy as np

from t5repro.array_types import Int32, Int64
from t5repro.inputs.task_mixture import Mixture
from t5repro.randomness import stream


def draw_blocks(
    mixture: Mixture, batch_size: int, *, first_step: int, steps: int, seed: int
) -> Int32:
    """Return the examples of some steps, ``(steps * batch_size,)``.

    Args:
        mixture: examples and rates.
        batch_size: examples of a step.
        first_step: number of the first step.
        steps: number of steps.
        seed: the run's seed.
    """
    per_epoch = blocks_per_epoch(mixture, batch_size)
    first_example = np.cumsum(mixture.counts) - mixture.counts
    orders = [
        first + stream(seed, "finetune", "block_order", task).permutation(int(count))
        for task, first, count in zip(mixture.tasks, first_example, mixture.counts, strict=True)
    ]
    length = int(per_epoch.sum())
    blocks: list[Int64] = [np.zeros(0, np.int64)]
    for epoch in range(first_step // length, -(-(first_step + steps) // length)):
        # 1. The task of each step of the epoch, and which of the task's blocks it is.
        tasks = stream(seed, "finetune", "blocks", epoch).permutation(
            np.repeat(np.arange(len(per_epoch)), per_epoch)
        )
        low = max(first_step - epoch * length, 0)
        high = min(first_step + steps - epoch * length, length)
        for place in range(low, high):
            task = tasks[place]
            number = np.count_nonzero(tasks[:place] == task) + epoch * per_epoch[task]
            # 2. A block; the last one of a task ends with its first examples.
            blocks.append(_block(orders[task], int(number), batch_size))
    return np.concatenate(blocks).astype(np.int32)


def blocks_per_epoch(mixture: Mixture, batch_size: int) -> Int64:
    """Return the steps of each task in an epoch, at least 1, int64 ``(tasks,)``.

    An epoch is as long as possible without a task that is drawn more often than it has examples.
    """
    examples = mixture.shares * (mixture.counts / mixture.shares).min()
    return np.maximum(np.ceil(examples / batch_size - 1e-9), 1).astype(np.int64)


def _block(order: Int64, number: int, batch_size: int) -> Int64:
    blocks = -(-len(order) // batch_size)
    first = number % blocks * batch_size
    return order[(first + np.arange(batch_size)) % len(order)]
