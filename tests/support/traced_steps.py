"""Trainings of one process that share their traced steps.

Tracing the step and optimising its graph is most of a tiny training. A training with the settings
of an earlier one gets its network and its optimizer, with the state of a freshly made model to the
bit: weights, slots, counts and noise. A training in a new process traces its own step.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from t5repro.engines.devices import Devices

# Settings that no graph contains; the schedule, which depends on the steps, is a key of its own.
NOT_TRACED = (
    "steps",
    "checkpoint_every_steps",
    "log_every_steps",
    "validation_every_steps",
    "keep_checkpoints",
    "optimizer_state",
    "cloud_folder",
)


@dataclass
class Traced:
    """A model, and its traced steps by what a graph has of a model that is no variable."""

    model: Any
    steps: dict[str, Any] = field(default_factory=dict)


_TRACED: dict[str, Traced] = {}


def run(job: Any) -> None:
    """Train on the CPU of this process, as `loop.run` does."""
    from t5repro.train import loop

    key = json.dumps(
        [job.rule, job.layer_decay, repr(job.columns()), _traced_settings(job.recorded_settings)]
    )
    make_model, fit = loop.make_model, loop.fit

    def with_state_of_a_fresh_one(job: Any) -> Any:
        fresh = make_model(job)
        traced = _TRACED.setdefault(key, Traced(fresh))
        if traced.model is not fresh:
            _copy_state(fresh, traced.model)
        return traced.model

    def with_its_step(job: Any, model: Any, *arguments: Any) -> None:
        rate = model.optimizer._learning_rate
        schedule = (type(rate), rate.get_config(), model.optimizer.starts)
        constants = repr((*schedule, model.network.rows_in_use))
        steps = _TRACED[key].steps
        model.train_function = steps.get(constants)  # if absent, Keras traces
        try:
            fit(job, model, *arguments)
        finally:
            steps[constants] = model.train_function

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_model", with_state_of_a_fresh_one)
        patch.setattr(loop, "fit", with_its_step)
        loop.run(job, Devices("cpu", ("CPU:0",)))


def _traced_settings(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _traced_settings(item) for name, item in value.items() if name not in NOT_TRACED
        }
    return value


def _copy_state(source: Any, target: Any) -> None:
    for before, after in zip(_states(source), _states(target), strict=True):
        assert before.keys() == after.keys()
        for name, variable in before.items():
            after[name].assign(variable.value)
    target.network.rows_in_use = source.network.rows_in_use


def _states(model: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the variables of a state, as a checkpoint has them."""
    from t5repro.model.checkpoints import noise_variables, optimizer_variables, weight_variables

    yield weight_variables(model.network)
    yield optimizer_variables(model.optimizer)
    yield noise_variables(model.network)
