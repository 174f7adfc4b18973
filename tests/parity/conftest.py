"""Peers beside ours: the same weights in Hugging Face's T5 and in this project's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.sections.model import ModelSettings

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")
EMBEDDING_ROWS = 97

VARIANTS = {
    "1.0": {},
    "1.1": {"feed_forward": "gated_gelu", "tie_embeddings": False},
    "1.0 untied": {"tie_embeddings": False},
    "1.1 tied": {"feed_forward": "gated_gelu"},
    "swiglu": {"feed_forward": "swiglu", "tie_embeddings": False},
    "umt5": {
        "feed_forward": "gated_gelu",
        "tie_embeddings": False,
        "relative_position_bias": "per_layer",
    },
    "umt5 tied": {"feed_forward": "gated_gelu", "relative_position_bias": "per_layer"},
}


def pytest_report_header() -> str:
    return f"peers: torch {torch.__version__}, transformers {transformers.__version__}"


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def shape(request: pytest.FixtureRequest) -> ModelSettings:
    """Return an odd shape of each variant."""
    return odd_shape(**request.param)


def odd_shape(**change: Any) -> ModelSettings:
    values = {
        "d_model": 29,
        "d_ff": 43,
        "d_kv": 7,
        "num_heads": 5,
        "num_encoder_layers": 3,
        "num_decoder_layers": 2,
        "relative_position_buckets": 14,
        "relative_position_max_distance": 23,
    }
    return ModelSettings.model_validate(values | change)


def hugging_face_classes(shape: ModelSettings) -> tuple[Any, Any]:
    """Return Hugging Face's classes of configuration and model."""
    if shape.relative_position_bias == "per_layer":
        return transformers.UMT5Config, transformers.UMT5ForConditionalGeneration
    return transformers.T5Config, transformers.T5ForConditionalGeneration


def hugging_face(shape: ModelSettings, seed: int = 0, noise: float = 0.2) -> Any:
    """Return Hugging Face's model with random weights; noise on top varies what it writes."""
    from t5repro.model.huggingface_config import FEED_FORWARD

    torch.manual_seed(seed)
    config_class, model_class = hugging_face_classes(shape)
    config = config_class(
        vocab_size=EMBEDDING_ROWS,
        d_model=shape.d_model,
        d_ff=shape.d_ff,
        d_kv=shape.d_kv,
        num_heads=shape.num_heads,
        num_layers=shape.num_encoder_layers,
        num_decoder_layers=shape.num_decoder_layers,
        feed_forward_proj=FEED_FORWARD[shape.feed_forward],
        tie_word_embeddings=shape.tie_embeddings,
        relative_attention_num_buckets=shape.relative_position_buckets,
        relative_attention_max_distance=shape.relative_position_max_distance,
        layer_norm_epsilon=shape.norm_epsilon,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    return model


def ours_from(folder: Path) -> Any:
    """Return our model with the weights of a folder."""
    from networks import text_network

    from t5repro.model.foreign_weights import read_foreign

    return with_weights(text_network, read_foreign(folder))


def with_weights(kind: Any, published: Any) -> Any:
    from t5repro.model.checkpoints import weight_variables

    model = kind(published.model, embedding_rows=published.embedding_rows, dropout_rate=0.0, seed=1)
    variables = weight_variables(model)
    assert set(variables) == set(published.weights)
    for name, variable in variables.items():
        variable.assign(published.weights[name])
    return model


@pytest.fixture(scope="session")
def inputs() -> np.ndarray:
    """Return rows of ids with padding at some ends."""
    ids = np.random.default_rng(5).integers(2, EMBEDDING_ROWS, (8, 33)).astype(np.int32)
    for row, length in enumerate((33, 21, 9, 33, 30, 2, 17, 33)):
        ids[row, length - 1] = 1
        ids[row, length:] = 0
    return ids


@pytest.fixture
def pair(shape: ModelSettings, tmp_path: Path) -> tuple[Any, Any]:
    """Return Hugging Face's model and ours with the same weights, through files."""
    theirs = hugging_face(shape)
    theirs.save_pretrained(tmp_path / "theirs")
    return theirs, ours_from(tmp_path / "theirs")


@pytest.fixture
def lively_pair(shape: ModelSettings, tmp_path: Path) -> tuple[Any, Any]:
    """Return the same of weights whose answers vary from step to step and often end."""
    theirs = hugging_face(shape, seed=2, noise=0.3)
    with torch.no_grad():
        head = theirs.shared if shape.tie_embeddings else theirs.lm_head
        head.weight[1] *= 2.5
    theirs.save_pretrained(tmp_path / "theirs")
    return theirs, ours_from(tmp_path / "theirs")
