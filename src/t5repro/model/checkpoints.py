"""Weights and training state as safetensors files: without code, deterministic to the byte.

A weights file names each array by its path in the model (`encoder/block_0/self_attention/q`).
An optimizer file contains the slots, named by their weight, and the step. A state file contains
both, the state of the dropout noise, the memory of row slots and the arrays of the training loop.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from t5repro.errors import ArtifactError, CheckpointError, FormError
from t5repro.files import form_of, refuse_other_form, write_bytes
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.model.layers import Dropout
from t5repro.model.stream_memory import StreamMemory

Arrays = dict[str, np.ndarray]

LABELS = "labels"  # entry of the metadata of a file of weights
WHOLE_NUMBERS = "iub"  # kinds of NumPy's types, with truth values
STATE_SECTIONS = ("weights", "optimizer", "noise", "memory")
LOOP_SECTION = "others"  # of a state file: the arrays of the training loop


def weight_variables(model: Any) -> dict[str, Any]:
    """Return all weights by their path in the model, also those that do not train."""
    prefix = f"{model.name}/"
    return {variable.path.removeprefix(prefix): variable for variable in model.weights}


def optimizer_variables(optimizer: Any) -> dict[str, Any]:
    """Return the slots and the step counter by name."""
    prefix = f"{optimizer.name}/"
    return {variable.path.removeprefix(prefix): variable for variable in optimizer.variables}


def noise_variables(model: Any) -> dict[str, Any]:
    """Return the states of the dropout noise by their path in the model."""
    # Keras has no public list of all nested layers.
    return {
        layer.model_path: layer.noise.state
        for layer in model._flatten_layers()
        if isinstance(layer, Dropout) and layer.rate > 0
    }


def memory_variables(model: Any) -> dict[str, Any]:
    """Return what a pre-training remembers of the step before, by path in the model."""
    return {
        layer.model_path: layer
        for layer in model._flatten_layers()
        if isinstance(layer, StreamMemory)
    }


def save_weights(path: Path, model: Any, columns: LabelColumns = NO_COLUMNS) -> None:
    """Write the weights, float32, atomically, with the labels that the head has columns for."""
    labels = columns.as_text() if columns.answers else ""
    write_arrays(path, _values(weight_variables(model)), labels=labels)


def read_labels(path: Path) -> LabelColumns:
    """Return the labels of a file of weights, without any if it has no head.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    with opened(path) as arrays:
        text = (arrays.metadata() or {}).get(LABELS, "{}")
    return LabelColumns.from_text(text, str(path))


def load_weights(
    path: Path, model: Any, *, fresh: Collection[str] = (), unused: tuple[str, ...] = ()
) -> None:
    """Load the weights of a file into a model.

    Args:
        path: the file.
        model: the model with the weights.
        fresh: weights that keep their values if the file lacks them, such as adapters.
        unused: starts of the names of weights of the file that the model does not need, such as
            the heads of pre-training.

    Raises:
        CheckpointError: the file lacks a weight, has one more, or one has another shape.
    """
    arrays = {
        name: array
        for name, array in read_arrays(path).items()
        if not unused or not name.startswith(unused)
    }
    assign(path, arrays, _without(weight_variables(model), fresh, arrays), "the model")
    model.rows_in_use = rows_in_use(arrays)


def rows_in_use(weights: Mapping[str, np.ndarray]) -> int:
    """Return the number of rows of the embedding up to the last that is not zero.

    Weights of other libraries may have a row for each id and none to fill up vector lanes; zeros
    take the place of such rows (`foreign_weights.fit`). No logit of theirs has a gradient, so they
    remain zero in training, unless rows of tasks have their pieces.
    """
    # The output matrix excludes ids from prediction; a shared one is the embedding.
    matrix = weights["output_matrix"].T if "output_matrix" in weights else weights["embedding"]
    return int(np.flatnonzero(matrix.any(axis=1)).max(initial=-1)) + 1


def save_optimizer(path: Path, optimizer: Any) -> None:
    """Write the optimizer's slots and step, atomically."""
    write_arrays(path, _values(optimizer_variables(optimizer)))


def load_optimizer(
    path: Path, optimizer: Any, *, fresh: Collection[str] = (), frozen: Collection[str] = ()
) -> None:
    """Load the slots and the step of a file into an optimizer.

    Args:
        path: the file.
        optimizer: the optimizer with the slots.
        fresh: weights with slots that keep their values if the file lacks them.
        frozen: weights without slots in this optimizer; their slots in the file are ignored.

    Raises:
        CheckpointError: the file was written for another model or optimizer.
    """
    # The dot ends the name of a weight: `a/b` must not match the slots of `a/b_bias`.
    frozen_slots = tuple(f"{_slot_of(weight)}." for weight in frozen)
    arrays = {
        name: value
        for name, value in read_arrays(path).items()
        if not frozen_slots or not name.startswith(frozen_slots)
    }
    variables = optimizer_variables(optimizer)
    fresh_slots = tuple(f"{_slot_of(weight)}." for weight in fresh)
    slots = {name for name in variables if fresh_slots and name.startswith(fresh_slots)}
    assign(path, arrays, _without(variables, slots, arrays), "the optimizer")


def save_state(
    path: Path, model: Any, optimizer: Any, loop: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write a state that training resumes from, atomically.

    Args:
        path: where to write it.
        model: provides the weights, the state of the noise and the memory.
        optimizer: provides slots and step.
        loop: arrays of the training loop, by name.
    """
    # One flat namespace, with the section before the name: safetensors has no groups.
    arrays = {f"{LOOP_SECTION}/{name}": value for name, value in (loop or {}).items()}
    for section, variables in _state(model, optimizer).items():
        arrays |= {f"{section}/{name}": value for name, value in _values(variables).items()}
    write_arrays(path, arrays)


def load_state(path: Path, model: Any, optimizer: Any) -> Arrays:
    """Load weights, noise, memory and optimizer of a state; return the training loop's arrays.

    Raises:
        CheckpointError: the state is of another model or optimizer.
    """
    sections: dict[str, Arrays] = {section: {} for section in (*STATE_SECTIONS, LOOP_SECTION)}
    for name, value in read_arrays(path).items():
        section, _, local_name = name.partition("/")
        if section not in sections:
            raise CheckpointError(f"{path} has {name!r}, which is no part of a training state")
        sections[section][local_name] = value
    for section, variables in _state(model, optimizer).items():
        assign(path, sections[section], variables, f"the {section} of this run")
    return sections[LOOP_SECTION]


def read_arrays(path: Path, *, section: str = "") -> Arrays:
    """Return the arrays of a safetensors file by name.

    Args:
        path: the file.
        section: read only this section of a state file, and drop it from the names; if empty, all
            arrays.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    prefix = f"{section}/" if section else ""
    with opened(path) as arrays:
        names = [name for name in arrays.keys() if name.startswith(prefix)]  # noqa: SIM118
        return {name.removeprefix(prefix): arrays.get_tensor(name) for name in names}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a safetensors file.

    Raises:
        ArtifactError: it is missing or damaged.
        FormError: it has another form than its name says.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the stage that writes it")
    refuse_other_form(path)
    try:
        with safe_open(path, framework="numpy") as arrays:
            yield arrays
    except (SafetensorError, AttributeError) as error:  # the latter for types that numpy lacks
        if form := form_of(path):
            raise FormError(
                f"{path} is {form.name} in place of safetensors; get it again, or have its library "
                "save it as safetensors"
            ) from error
        raise ArtifactError(
            f"{path} is not a safetensors file that numpy can read ({error}); delete it and rerun "
            "its stage, get it again, or save it again as float32"
        ) from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, labels: str = "") -> None:
    """Write arrays as safetensors, atomically; equal arrays give equal bytes.

    Args:
        path: where to write them.
        arrays: by name.
        labels: text of the labels to write with them, if there are any.
    """
    # At most one entry of metadata: the library writes several in no fixed order.
    metadata = {LABELS: labels} if labels else None
    # Sorted and in C order, so that equal arrays give equal bytes however they were made.
    ordered = {name: np.array(arrays[name], order="C") for name in sorted(arrays)}
    write_bytes(path, save(ordered, metadata=metadata))


def _state(model: Any, optimizer: Any) -> dict[str, dict[str, Any]]:
    sections = (
        weight_variables(model),
        optimizer_variables(optimizer),
        noise_variables(model),
        memory_variables(model),
    )
    return dict(zip(STATE_SECTIONS, sections, strict=True))


def _values(variables: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(variable.numpy()) for name, variable in variables.items()}


def _slot_of(weight: str) -> str:
    """Return the prefix of a weight's slots in `train.optimizer`."""
    return weight.replace("/", ".")


def _without(
    variables: Mapping[str, Any], fresh: Collection[str], arrays: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the variables without the `fresh` ones that a file lacks."""
    return {
        name: variable
        for name, variable in variables.items()
        if name in arrays or name not in fresh
    }


def assign(path: Path, arrays: Arrays, variables: Mapping[str, Any], owner: str) -> None:
    """Set `variables` to `arrays`, all or none.

    Raises:
        CheckpointError: an array is missing, superfluous, of another shape or of whole numbers in
            place of weights; the message names the `owner` of the variables.
    """
    # All checks come first, so that a refused file leaves the variables unchanged.
    for name, variable in variables.items():
        if name not in arrays:
            raise CheckpointError(
                f"{path} lacks {name!r}, which {owner} needs; was it written under other settings?"
            )
        if arrays[name].shape != tuple(variable.shape):
            raise CheckpointError(
                f"{path}: {name!r} has shape {arrays[name].shape}, {owner} needs "
                f"{tuple(variable.shape)}; check the model and vocab settings"
            )
        # Keras would convert them: int8 values without their scales are other weights.
        if arrays[name].dtype.kind in WHOLE_NUMBERS and "float" in str(variable.dtype):
            raise CheckpointError(
                f"{path}: {name!r} has numbers of the type {arrays[name].dtype}, {owner} needs "
                f"{variable.dtype}; was it quantized?"
            )
    for name in arrays:
        if name not in variables:
            raise CheckpointError(
                f"{path} has {name!r}, which {owner} does not have; "
                "was it written under other settings?"
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])
