"""Fused attention is refused where its kernel cannot compute the network.

That it computes what plain attention computes is in `tests/train/test_jax_step.py`, on JAX.
"""

import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.errors import SettingsError  # noqa: E402
from t5repro.model.fused_attention import FusedAttention  # noqa: E402
from t5repro.model.transformer import EncoderDecoder  # noqa: E402

pytestmark = pytest.mark.keras

SHAPE = ModelSettings(
    d_model=32, d_ff=64, d_kv=8, num_heads=4, num_encoder_layers=1, num_decoder_layers=1
)


def test_a_network_on_tensorflow_is_refused() -> None:
    with pytest.raises(SettingsError, match="needs Keras's backend jax; it is 'tensorflow'"):
        EncoderDecoder(SHAPE, embedding_rows=128, dropout_rate=0.1, seed=0, fused_attention=True)


@pytest.mark.parametrize(
    ("setting", "value"), [("positions", "rotary"), ("dropout_noise", "per_position")]
)
def test_positions_and_dropout_without_a_kernel_are_refused(setting: str, value: str) -> None:
    shape = SHAPE.model_copy(update={setting: value})
    with pytest.raises(SettingsError, match=f"model.{setting} '{value}'"):
        FusedAttention(shape, dropout_rate=0.1, seed=0, path="attention", dtype="float32")
