"""The initial weights of pre-training: of a published checkpoint, or of an earlier phase."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from t5repro.artifacts import OPTIMIZER, WEIGHTS
from t5repro.errors import CheckpointError
from t5repro.model.checkpoints import (
    assign,
    load_optimizer,
    optimizer_variables,
    read_arrays,
    rows_in_use,
    weight_variables,
)
from t5repro.model.encoder_heads import shared_weights
from t5repro.model.foreign_weights import fit, read_foreign


def load_published(
    folder: Path, model: Any, *, continues: bool = True, model_file: str = ""
) -> str:
    """Set a model to a published checkpoint, and its optimizer if the checkpoint has its state.

    Args:
        folder: files of any library that `model/foreign_weights.py` reads.
        model: the network of the run with its optimizer, built. If the checkpoint has no state of
            this optimizer, it keeps its initial one, and so do heads of an encoder only that the
            checkpoint lacks.
        continues: whether the optimizer continues; otherwise it keeps its initial state.
        model_file: raw file of the vocabulary of the run; empty if the run trained it.

    Returns:
        The source of the weights, for the log.

    Raises:
        ArtifactError: the folder contains no readable weights.
        CheckpointError: the settings describe another network, or the order of ids is not known.
    """
    published = read_foreign(folder)
    network = model.network
    has_order = published.vocabulary or published.form != "huggingface" or not model_file
    if not has_order and network.settings.architecture != "encoder_decoder":
        raise CheckpointError(
            f"{folder} has no vocabulary, and vocab.model_file is {model_file!r}; which row of the "
            "embedding belongs to which piece is then not known: put the files of the vocabulary "
            "next to the weights, and list them in data.sources"
        )
    weights = fit(published, network.settings, embedding_rows=network.embedding_rows, where=folder)
    assign(folder, *shared_weights(weights, weight_variables(network)), "the model")
    network.rows_in_use = rows_in_use(weights)
    reinitialised = f"starting from {published.form} weights of {folder}, optimizer reinitialised"
    if not continues:
        return reinitialised
    slots = optimizer_variables(model.optimizer)
    # Keras counts the learning rate among the variables; the run's schedule sets it.
    slots.pop("learning_rate", None)
    arrays = {name: x for name, x in published.optimizer.items() if name != "learning_rate"}
    if _moments(arrays) != _moments(slots):  # no state, or of another optimizer
        return reinitialised
    assign(folder, arrays, slots, "the optimizer")
    return f"starting from {published.form} weights of {folder} at step {int(arrays['iteration'])}"


def load_phase(folder: Path, model: Any, *, continues: bool) -> str:
    """Set a model to the result of an earlier pre-training of the same network.

    Args:
        folder: results of the earlier pre-training.
        model: the network with its optimizer, built. Heads that the earlier one lacks are new.
        continues: whether the optimizer continues; otherwise it keeps its initial state.

    Returns:
        The source of the weights, for the log.

    Raises:
        ArtifactError: a file is missing or damaged.
        CheckpointError: the network, or the optimizer that continues, is another one.
    """
    arrays = read_arrays(folder / WEIGHTS)
    network = model.network
    assign(folder / WEIGHTS, *shared_weights(arrays, weight_variables(network)), "the model")
    network.rows_in_use = rows_in_use(arrays)
    if not continues:
        return f"continuing the weights of {folder}, optimizer reinitialised"
    load_optimizer(folder / OPTIMIZER, model.optimizer)
    return f"continuing {folder} at step {int(model.optimizer.iterations.numpy())}"


def _moments(slots: Iterable[str]) -> set[str]:
    """Return the kinds of slots: the last parts of their names."""
    return {name.rsplit(".", 1)[-1] for name in slots}
