"""A small network and packed rows for the tests of the model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from t5repro.config.sections.model import ModelSettings

ODD_SHAPE = ModelSettings(
    d_model=24,
    d_ff=40,
    d_kv=6,
    num_heads=3,
    num_encoder_layers=2,
    num_decoder_layers=3,
    relative_position_max_distance=20,
)
ROWS_OF_EMBEDDING = 96


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Any]:
    def make(
        seed: int = 0, dropout_rate: float = 0.0, dtype: str = "float32", **change: Any
    ) -> Any:
        from networks import text_network

        return text_network(
            ODD_SHAPE.model_copy(update=change),
            embedding_rows=ROWS_OF_EMBEDDING,
            dropout_rate=dropout_rate,
            seed=seed,
            dtype=dtype,
        )

    return make


@pytest.fixture(scope="session")
def examples() -> list[tuple[np.ndarray, np.ndarray]]:
    """Four pairs of inputs and targets of different lengths."""
    generator = np.random.default_rng(7)
    return [
        (
            generator.integers(2, ROWS_OF_EMBEDDING, inputs).astype(np.int32),
            generator.integers(2, ROWS_OF_EMBEDDING, targets).astype(np.int32),
        )
        for inputs, targets in ((5, 3), (9, 6), (7, 4), (12, 2))
    ]


@pytest.fixture(scope="session")
def pack() -> Callable[..., dict[str, np.ndarray]]:
    """Lay pairs of inputs and targets into rows, each row a list of pairs."""

    def lay(
        rows: list[list[tuple[np.ndarray, np.ndarray]]], inputs_length: int, targets_length: int
    ) -> dict[str, np.ndarray]:
        shapes = {"encoder": inputs_length, "decoder": targets_length}
        features = {
            f"{side}_{kind}": np.zeros((len(rows), length), np.int32)
            for side, length in shapes.items()
            for kind in ("ids", "segments")
        }
        features["targets"] = np.zeros((len(rows), targets_length), np.int32)
        for row, pairs in enumerate(rows):
            start = {"encoder": 0, "decoder": 0}
            for segment, (inputs, targets) in enumerate(pairs, start=1):
                shifted = np.concatenate([[0], targets[:-1]])
                for side, ids in (("encoder", inputs), ("decoder", shifted)):
                    place = slice(start[side], start[side] + len(ids))
                    features[f"{side}_ids"][row, place] = ids
                    features[f"{side}_segments"][row, place] = segment
                    if side == "decoder":
                        features["targets"][row, place] = targets
                    start[side] = place.stop
        return features

    return lay


@pytest.fixture(scope="session")
def join() -> Callable[..., dict[str, np.ndarray]]:
    """Lay pairs into rows for a decoder alone, each row a list of pairs."""

    def lay(rows: list[list[tuple[np.ndarray, np.ndarray]]], length: int) -> dict[str, np.ndarray]:
        names = ("decoder_ids", "decoder_segments", "decoder_prefix", "targets")
        features = {name: np.zeros((len(rows), length), np.int32) for name in names}
        for row, pairs in enumerate(rows):
            start = 0
            for segment, (inputs, targets) in enumerate(pairs, start=1):
                ids = np.concatenate([inputs, targets])
                place = slice(start, start + len(ids))
                features["decoder_ids"][row, place] = np.concatenate([[0], ids[:-1]])
                features["decoder_segments"][row, place] = segment
                features["decoder_prefix"][row, start : start + len(inputs) + 1] = 1
                features["targets"][row, start + len(inputs) : place.stop] = targets
                start = place.stop
        return features

    return lay
