"""The first steps of a training, repeated on an engine, to compare it with the other engine.

Dropout is off, since every engine draws other noise; all else is the training's own: weights,
batches, loss, optimizer, learning rate. The program runs in the environment of its engine and
leaves a state after each step, and the next program measures its distance from these.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.artifacts import STEPS
from t5repro.config.sections.devices import MeshSettings
from t5repro.engines.devices import prepare
from t5repro.files import read_json, write_text
from t5repro.jobs.pretrain import PretrainJob
from t5repro.train.finetune import finetuning
from t5repro.train.pretrain import pretraining

WEIGHTS_SECTION = "weights"
# A softmax does not depend on a number that is added to all its logits: the gradients of these
# biases are rounding, which an optimizer that divides by their size makes as large as any other.
WITHOUT_EFFECT = ("k_bias", "span_head/bias")
# So is a part of the gradient of the keys of distances: the slowest cosines are such numbers. Only
# in float32 is the part large enough to hide the rest.
HIDDEN_IN_FLOAT32 = ("self_attention/r",)


def comparable(settings: Any, rule: str, *, engine: str, precision: str) -> Any:
    """Return the settings of a stage on another engine of this CPU, without dropout.

    Args:
        settings: of the stage.
        rule: ``pretrain``, ``finetune`` or ``evaluate_predict``.
        engine: ``tensorflow`` or ``jax``.
        precision: ``float32`` or ``float64``, of everything.
    """
    places = {
        "engine": engine,
        "kind": "cpu",
        "precision": precision,
        "cloud_folder": "",
        "mesh": MeshSettings(),
        "remat": "none",
    }
    change = {"devices": settings.devices.model_copy(update=places)}
    if training := getattr(settings, rule, None):
        change[rule] = training.model_copy(update={"dropout_rate": 0.0})
    return settings.model_copy(update=change)


def repeat(
    job: Any, folder: Path, *, steps: int, reference: Path | None = None, free: bool = False
) -> None:
    """Repeat the first steps of a training; write losses, states, and distances from a reference.

    Args:
        job: of pre-training or fine-tuning, with settings of `comparable`.
        folder: receives a state before the first and after each step, and `STEPS`.
        steps: number of steps.
        reference: folder of an earlier repetition; each step starts from its state.
        free: start only the first step from it.
    """
    prepare(job.settings.devices, floatx=job.settings.devices.precision)
    # The engine reads its environment when it is imported: after `prepare`.
    from t5repro.train.callback import steps_of
    from t5repro.train.loop import make_model, set_schedules

    training = (pretraining if isinstance(job, PretrainJob) else finetuning)(job, code={})
    model = make_model(training)
    set_schedules(training, model, offset=steps_of(model))
    repeat_steps(model, training.batches(0, steps), folder, reference=reference, free=free)


def repeat_steps(
    model: Any,
    batches: Iterable[Any],
    folder: Path,
    *,
    reference: Path | None = None,
    free: bool = False,
) -> None:
    """Train a compiled model on some batches; see `repeat`."""
    from t5repro.engines.engine import engine
    from t5repro.model.checkpoints import load_state, save_state

    train = engine().single_step(model)
    losses, distances = [], []
    save_state(folder / state_file(0), model.network, model.optimizer)
    for step, batch in enumerate(batches):
        if reference and (step == 0 or not free):
            load_state(reference / state_file(step), model.network, model.optimizer)
        losses.append(train(batch))
        state = folder / state_file(step + 1)
        save_state(state, model.network, model.optimizer)
        if reference:
            previous = reference / state_file(0 if free else step)
            distances.append(_distance(state, reference / state_file(step + 1), previous))
    result = {"libraries": engine().libraries(), "losses": losses, "distances": distances}
    if reference:
        result["losses_of_reference"] = read_json(reference / STEPS)["losses"]
    write_text(folder / STEPS, json.dumps(result))


def state_file(step: int) -> str:
    """Return the name of the state after some steps."""
    return f"state-{step}.safetensors"


def _distance(state: Path, reference: Path, previous: Path) -> dict[str, Any]:
    """Return the distance of all weights from the reference as a share of the way they moved."""
    from keras.config import floatx

    from t5repro.model.checkpoints import read_arrays

    left_out = WITHOUT_EFFECT if floatx() == "float64" else WITHOUT_EFFECT + HIDDEN_IN_FLOAT32
    ours, theirs, start = (
        read_arrays(path, section=WEIGHTS_SECTION) for path in (state, reference, previous)
    )
    squares = {
        name: (_square(ours[name], theirs[name]), _square(theirs[name], start[name]))
        for name in theirs
        if not name.endswith(left_out)
    }
    farthest = max(squares, key=lambda name: squares[name][0])
    apart, moved = (sum(pair[index] for pair in squares.values()) for index in (0, 1))
    return {"share": float(np.sqrt(apart / moved)) if moved else 0.0, "farthest": farthest}


def _square(first: np.ndarray, second: np.ndarray) -> float:
    difference = first.astype(np.float64) - second.astype(np.float64)
    return float(np.sum(np.square(difference)))
