"""Rows of the embedding that fine-tuning reinitialises, of GPT's special pieces.

Source: openai/finetune-transformer-lm ``train.py``, ``np.random.randn(n_special, n_embd) * 0.02``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t5repro.model.checkpoints import read_labels


@contextmanager
def new_rows(network: Any, weights: Path, rows: Sequence[int]) -> Iterator[None]:
    """Keep some initial rows of the embedding while the weights of a training are loaded.

    Nothing is kept if the earlier training already had labels, so trained these rows.

    Args:
        network: the network with its initial weights.
        weights: of the earlier training.
        rows: ids of special pieces; may be empty.
    """
    if not rows or read_labels(weights).answers:
        yield
        return
    initial = network.embedding.numpy()[rows]
    yield
    embedding = network.embedding.numpy()
    embedding[rows] = initial
    network.embedding.assign(embedding)
    # Weights of other libraries may lack these rows.
    network.rows_in_use = max(network.rows_in_use, rows[-1] + 1)
