"""Networks that write text, by the architecture of their settings."""

from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.model.transformer import Decoder, EncoderDecoder, TextNetwork


def text_network(model: ModelSettings, **shape: Any) -> TextNetwork:
    """Return the network of an architecture; see `EncoderDecoder` and `Decoder`."""
    return Decoder(model, **shape) if model.family.joined else EncoderDecoder(model, **shape)
