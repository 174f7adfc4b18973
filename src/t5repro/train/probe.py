"""The time of a training step on one device of this machine, measured on rows of padding."""

import statistics
import time
from typing import Any

from t5repro.randomness import single_seed

STEPS = 20
WARM_UP = 3  # the first step compiles


def step_seconds(settings: Any, *, rows: int, steps: int = STEPS) -> float:
    """Return the median time of a step; the weights are new and are thrown away.

    Args:
        settings: settings of `pretrain` or `finetune`, for a CPU or a GPU.
        rows: rows of a batch.
        steps: measured steps.

    Raises:
        DeviceError: the device is missing.
    """
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
    times = []
    for _ in range(WARM_UP + steps):
        started = time.monotonic()
        step(batch)
        times.append(time.monotonic() - started)
    return statistics.median(times[WARM_UP:])
