"""Names of activations in configurations of Hugging Face, and ours."""

from pathlib import Path
from typing import Any

from t5repro.errors import CheckpointError

# Theirs -> ours; the first of several is the one that is written.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


def read_activation(path: Path, key: str, value: Any) -> str:
    """Return our name of an activation.

    Args:
        path: file of the configuration, for messages.
        key: of the configuration.
        value: its value.

    Raises:
        CheckpointError: the network has another activation than ours.
    """
    if value not in ACTIVATIONS:
        raise CheckpointError(f"{path}: {key} is {value!r}; allowed are {sorted(ACTIVATIONS)}")
    return ACTIVATIONS[value]


def written_activation(feed_forward: str) -> str:
    """Return Hugging Face's name of ours."""
    return next(name for name, ours in ACTIVATIONS.items() if ours == feed_forward)
