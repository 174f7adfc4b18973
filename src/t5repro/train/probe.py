"""The time of a training's start and of a step on this machine, measured on rows of padding."""

import statistics
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from threading import BrokenBarrierError
from typing import Any

from t5repro.randomness import single_seed

STEPS = 20
WARM_UP = 3  # the first step compiles
PATIENCE = 600.0  # seconds for the slowest of several trainings to start

_together: Any = None  # the barrier of a process of `step_times`, which can only be inherited


@dataclass(frozen=True)
class StepTimes:
    """The measured times of a training.

    Attributes:
        start_seconds: from the start of the process until the first step is done.
        step_seconds: median of a step.
    """

    start_seconds: float
    step_seconds: float


def step_times(settings: Any, *, rows: int, trainings: int = 1) -> StepTimes:
    """Return the median times of equal trainings that run at the same time.

    Each has a process of its own, since the number of threads is one of a process.

    Args:
        settings: settings of `pretrain` or `finetune`, for a CPU or a GPU.
        rows: rows of a batch.
        trainings: number of trainings.

    Raises:
        DeviceError: the device is missing.
    """
    context = get_context("spawn")
    barrier = context.Barrier(trainings)
    started = time.time()  # of all processes: their monotonic clocks may have other zeros
    with ProcessPoolExecutor(trainings, context, initializer=_inherit, initargs=(barrier,)) as pool:
        futures = [pool.submit(_times, settings, rows, started) for _ in range(trainings)]
        times = [future.result() for future in sorted(futures, key=_was_kept_waiting)]
    return StepTimes(
        statistics.median(item.start_seconds for item in times),
        statistics.median(item.step_seconds for item in times),
    )


def step_seconds(settings: Any, *, rows: int, steps: int = STEPS) -> float:
    """Return the median time of a step in this process; the weights are new and are thrown away.

    Args:
        settings: settings of `pretrain` or `finetune`, for a CPU or a GPU.
        rows: rows of a batch.
        steps: measured steps.

    Raises:
        DeviceError: the device is missing.
    """
    return _times(settings, rows, time.time(), steps).step_seconds


def _inherit(barrier: Any) -> None:
    global _together
    _together = barrier


def _was_kept_waiting(future: Future[StepTimes]) -> bool:
    """Return whether a training failed only because another one did, which is the one to report."""
    return isinstance(future.exception(), BrokenBarrierError)


def _times(settings: Any, rows: int, started: float, steps: int = STEPS) -> StepTimes:
    try:
        return _measured(settings, rows, started, steps)
    except BaseException:
        if _together is not None:
            _together.abort()
        raise


def _measured(settings: Any, rows: int, started: float, steps: int) -> StepTimes:
    from t5repro.engines.devices import prepare

    prepare(settings.devices)
    import keras

    from t5repro.engines.engine import engine
    from t5repro.train.fresh_model import fresh_model, padding_batch

    keras.backend.clear_session()
    keras.utils.set_random_seed(0)  # deterministic operations require a seed
    model = fresh_model(settings, seed=single_seed(0, "probe"), rows=rows)
    batch = padding_batch(settings, rows)
    step = engine().single_step(model)
    step(batch)
    start_seconds = time.time() - started
    for _ in range(WARM_UP - 1):
        step(batch)
    if _together is not None:  # a step is slower while others are being taken
        _together.wait(PATIENCE)
    times = []
    for _ in range(steps):
        begin = time.monotonic()
        step(batch)
        times.append(time.monotonic() - begin)
    return StepTimes(start_seconds, statistics.median(times))
