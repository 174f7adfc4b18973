"""The table of layouts covers every weight of every network, and each weight once."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import tiny_training as tiny

from t5repro.engines.weight_layouts import COLUMNS, LAYOUTS, ROWS, WHOLE, axes_of, checked_axes
from t5repro.errors import SettingsError
from t5repro.model.encoder import Encoder
from t5repro.model.generator_detector import Detector, GeneratorDetector
from t5repro.model.transformer import Decoder, DecoderClassifier, EncoderDecoder
from t5repro.model.two_stream import TwoStreamEncoder
from t5repro.train.optimizer import path_of

SHAPE: dict[str, Any] = {"embedding_rows": 128, "dropout_rate": 0.1, "seed": 0, "adapter_width": 4}
GPT = tiny.SIZES["gpt_tiny"]


def networks() -> Iterator[Any]:
    """Yield a network of each family, and of the forms with other weights."""
    yield EncoderDecoder(tiny.SHAPE, **SHAPE)
    other = {
        "feed_forward": "gated_gelu",
        "tie_embeddings": False,
        "relative_position_bias": "per_layer",
    }
    yield EncoderDecoder(tiny.SHAPE.model_copy(update=other), **SHAPE)
    yield Decoder(GPT, **SHAPE)
    yield DecoderClassifier(GPT, labels=3, **SHAPE)
    yield Encoder(tiny.ENCODER, pair_classes=2, predicts_boundaries=True, **SHAPE)
    yield Encoder(tiny.ENCODER, labels=3, predicts_spans=True, **SHAPE)
    apart = tiny.ELECTRA.model_copy(update={"generator_tying": "none"})
    yield GeneratorDetector(apart, task="all_pieces", **SHAPE)
    yield GeneratorDetector(tiny.ELECTRA, **SHAPE)
    yield Detector(tiny.ELECTRA, labels=3, **SHAPE)
    yield TwoStreamEncoder(tiny.TWO_STREAM, memory_shape=(8, 9), reuse_length=6, **SHAPE)
    yield TwoStreamEncoder(tiny.TWO_STREAM, labels=3, **SHAPE)
    yield Encoder(tiny.ENCODER, labels=3, networks=[("pairs", 1, 2)], **SHAPE)


def test_every_weight_matches_one_key_and_every_key_a_weight() -> None:
    paths = {path_of(weight) for network in networks() for weight in network.weights}
    whole = [path for path in paths if axes_of(path) == WHOLE and "/adapter/" not in path]
    assert 0 < len(whole) < len(paths)
    assert not [path for path in whole if path.endswith(("embedding", "/wi", "/wo", "/q", "/o"))]
    assert not [key for key, _ in LAYOUTS if not any(re.fullmatch(key, path) for path in paths)]


@pytest.mark.parametrize(
    "path", ["encoder/block_0/self_attention/query", "encoder/block_0/gate/matrix", "embeddings"]
)
def test_a_renamed_or_new_weight_is_refused(path: str) -> None:
    with pytest.raises(SettingsError, match=rf"weight '{path}' is matched by no key of LAYOUTS in"):
        axes_of(path)


def test_a_weight_that_two_keys_match_is_refused() -> None:
    layouts = ((r"embedding", ROWS), (r"emb.*", COLUMNS))
    with pytest.raises(SettingsError, match=r"matched by 2 keys \(embedding, emb\.\*\)"):
        axes_of("embedding", layouts)


def test_a_weight_that_cannot_be_divided_evenly_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"of which 100 is not a multiple of devices.mesh.model 8"
    ):
        checked_axes("embedding", (100, 32), 8)
    with pytest.raises(SettingsError, match="its layout in .* has 2 axes"):
        checked_axes("embedding", (128,), 8)
