"""The work of a training with frozen weights, compared with the shapes of the network's weights."""

from math import prod

import pytest

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.estimate.work import step_work
from t5repro.model.adapters import ADAPTER
from t5repro.model.transformer import EncoderDecoder

LENGTH, ROWS, BLOCKS = 32, 4, 3
TINY = {
    "model": {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4,
              "num_encoder_layers": BLOCKS, "num_decoder_layers": BLOCKS},
    "vocab.vocab_size": 500,
    "finetune": {"batch_size": ROWS, "inputs_length": LENGTH, "targets_length": LENGTH},
}  # fmt: skip


def with_adapters(width: int) -> Settings:
    return load_settings(
        {**TINY, "finetune": {**TINY["finetune"], "method": "adapters", "adapter_width": width}}
    )


def test_gradual_unfreezing_is_counted_as_training_all_weights() -> None:
    gradual = load_settings({**TINY, "finetune.method": "gradual_unfreezing"})
    assert step_work("finetune", gradual) == step_work("finetune", load_settings(TINY))


@pytest.mark.parametrize("width", [8, 100])
def test_adapters_add_three_passes_of_their_weights_to_two_of_the_frozen(width: int) -> None:
    settings = with_adapters(width)
    network = EncoderDecoder(
        settings.model,
        embedding_rows=settings.vocab.embedding_rows,
        dropout_rate=0.0,
        adapter_width=width,
        seed=0,
    )
    matrices = sum(
        prod(weight.shape)
        for weight in network.weights
        if ADAPTER in f"/{weight.path}" and len(weight.shape) == 2
    )
    assert matrices > 0
    frozen = step_work("finetune", load_settings(TINY)) * 2 // 3
    # Each position passes the matrices of its block: a multiplication and an addition a weight.
    expected = frozen + 3 * 2 * ROWS * LENGTH * matrices
    assert step_work("finetune", settings) == expected
