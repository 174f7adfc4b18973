"""Weights and training state as safetensors files: no code in them, the same bytes each time.

A weights file names each array by its place in the model (`encoder/block_0/self_attention/q`).
An optimizer file names each slot by its weight, and the step. A state file holds both, the state
of the dropout noise, and what the training loop adds.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from t5repro.errors import ArtifactError, CheckpointError
from t5repro.files import write_bytes
from t5repro.model.layers import Dropout

Arrays = dict[str, np.ndarray]

STATE_PARTS = ("weights", "optimizer", "noise")


def weight_variables(model: Any) -> dict[str, Any]:
    """Return all weights by their place in the model, those that do not train as well."""
    prefix = f"{model.name}/"
    return {item.path.removeprefix(prefix): item for item in model.weights}


def optimizer_variables(optimizer: Any) -> dict[str, Any]:
    """Return the slots and the step counter by name."""
    prefix = f"{optimizer.name}/"
    return {item.path.removeprefix(prefix): item for item in optimizer.variables}


def noise_variables(model: Any) -> dict[str, Any]:
    """Return the states of the dropout noise by their place in the model."""
    return {
        layer.place: layer.noise.state
        for layer in model._flatten_layers()
        if isinstance(layer, Dropout) and layer.rate > 0
    }


def save_weights(path: Path, model: Any) -> None:
    """Write the weights, float32, atomically."""
    write_arrays(path, _values(weight_variables(model)))


def load_weights(path: Path, model: Any, *, fresh: Collection[str] = ()) -> None:
    """Set the weights to those of a file.

    Args:
        path: the file.
        model: what has the weights.
        fresh: weights that keep their values where the file lacks them, such as adapters.

    Raises:
        CheckpointError: the file lacks a weight, has one more, or one has another shape.
    """
    arrays = read_arrays(path)
    assign(path, arrays, _without(weight_variables(model), fresh, arrays), "the model")


def save_optimizer(path: Path, optimizer: Any) -> None:
    """Write the optimizer's slots and step, atomically."""
    write_arrays(path, _values(optimizer_variables(optimizer)))


def load_optimizer(
    path: Path, optimizer: Any, *, fresh: Collection[str] = (), frozen: Collection[str] = ()
) -> None:
    """Set the optimizer's slots and step to those of a file.

    Args:
        path: the file.
        optimizer: what has the slots.
        fresh: weights whose slots begin anew where the file lacks them.
        frozen: weights that have no slots here, whatever the file holds.

    Raises:
        CheckpointError: the file was written for another model or optimizer.
    """
    frozen_slots = tuple(f"{_slot_of(place)}." for place in frozen)
    arrays = {
        name: value
        for name, value in read_arrays(path).items()
        if not frozen_slots or not name.startswith(frozen_slots)
    }
    own = optimizer_variables(optimizer)
    fresh_slots = tuple(f"{_slot_of(place)}." for place in fresh)
    slots = {name for name in own if fresh_slots and name.startswith(fresh_slots)}
    assign(path, arrays, _without(own, slots, arrays), "the optimizer")


def save_state(
    path: Path, model: Any, optimizer: Any, others: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write all that training continues from, atomically.

    Args:
        path: where to write it.
        model: its weights and the state of its noise.
        optimizer: its slots and step.
        others: arrays of the training loop, by name.
    """
    arrays = {f"others/{name}": value for name, value in (others or {}).items()}
    for part, variables in _state(model, optimizer).items():
        arrays |= {f"{part}/{name}": value for name, value in _values(variables).items()}
    write_arrays(path, arrays)


def load_state(path: Path, model: Any, optimizer: Any) -> Arrays:
    """Set weights, noise and optimizer to a state file's; return the training loop's arrays.

    Raises:
        CheckpointError: the state is of another model or optimizer.
    """
    parts: dict[str, Arrays] = {part: {} for part in (*STATE_PARTS, "others")}
    for name, value in read_arrays(path).items():
        part, _, rest = name.partition("/")
        if part not in parts:
            raise CheckpointError(f"{path} holds {name!r}, which is no part of a training state")
        parts[part][rest] = value
    for part, variables in _state(model, optimizer).items():
        assign(path, parts[part], variables, f"the {part} of this run")
    return parts["others"]


def read_arrays(path: Path) -> Arrays:
    """Return all arrays of a safetensors file by name.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the stage that writes it")
    try:
        with safe_open(path, framework="numpy") as opened:
            return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ArtifactError(
            f"{path} is not a safetensors file ({error}); delete it and rerun its stage"
        ) from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as safetensors, atomically; equal arrays give equal bytes."""
    # No metadata: the library writes its entries in no fixed order.
    write_bytes(path, save({name: np.array(arrays[name], order="C") for name in sorted(arrays)}))


def _state(model: Any, optimizer: Any) -> dict[str, dict[str, Any]]:
    parts = (weight_variables(model), optimizer_variables(optimizer), noise_variables(model))
    return dict(zip(STATE_PARTS, parts, strict=True))


def _values(variables: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(item.numpy()) for name, item in variables.items()}


def _slot_of(place: str) -> str:
    """Return the beginning of a slot's name in `train.optimizer`."""
    return place.replace("/", ".")


def _without(
    variables: Mapping[str, Any], fresh: Collection[str], arrays: Mapping[str, Any]
) -> dict[str, Any]:
    """Leave out the `fresh` variables that a file lacks."""
    return {name: item for name, item in variables.items() if name in arrays or name not in fresh}


def assign(path: Path, arrays: Arrays, variables: Mapping[str, Any], owner: str) -> None:
    """Set `variables` to `arrays`, all or none.

    Raises:
        CheckpointError: an array is absent, too many, or of another shape; `owner` says whose.
    """
    for name, item in variables.items():
        if name not in arrays:
            raise CheckpointError(
                f"{path} lacks {name!r}, which {owner} needs; was it written under other settings?"
            )
        if arrays[name].shape != tuple(item.shape):
            raise CheckpointError(
                f"{path}: {name!r} has shape {arrays[name].shape}, {owner} needs "
                f"{tuple(item.shape)}; check the model and vocab settings"
            )
    for name in arrays:
        if name not in variables:
            raise CheckpointError(
                f"{path} holds {name!r}, which {owner} does not have; "
                "was it written under other settings?"
            )
    for name, item in variables.items():
        item.assign(arrays[name])
