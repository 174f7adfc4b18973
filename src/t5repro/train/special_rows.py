"""The rows of GPT's special pieces, which fine-tuning begins anew.

Pre-training has these rows in its softmax, where they are never the next piece, so it moves all of
them alike. The released code appends new ones to the pre-trained matrix.

Source: openai/finetune-transformer-lm ``train.py``, ``np.random.randn(n_special, n_embd) * 0.02``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t5repro.model.checkpoints import read_labels
from t5repro.vocab.special_pieces import special_id

PIECES = ("_start_", "_delimiter_", "_classify_")


@contextmanager
def new_special_rows(model: Any, weights: Path, *, total_ids: int) -> Iterator[None]:
    """Keep the initial rows of the special pieces while the weights of a training are loaded.

    Nothing is kept in a network other than a decoder of labels, and if the earlier training already
    had labels, so trained these rows.

    Args:
        model: the network with its initial weights.
        weights: of the earlier training.
        total_ids: pieces and sentinels of the vocabulary.
    """
    is_decoder = getattr(model, "label_columns", None) is not None and model.settings.decoder_only
    if not is_decoder or read_labels(weights).answers:
        yield
        return
    rows = [special_id(piece, total_ids) for piece in PIECES]
    initial = model.embedding.numpy()[rows]
    yield
    embedding = model.embedding.numpy()
    embedding[rows] = initial
    model.embedding.assign(embedding)
    # Weights of other libraries may lack these rows.
    model.rows_in_use = max(model.rows_in_use, rows[-1] + 1)
