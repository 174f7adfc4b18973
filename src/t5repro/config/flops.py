"""Floating-point operations of a training step, estimated from the matrix products alone.

Softmax, norms, dropout and the optimizer are left out: they are a few percent of the products.
Rotary positions are left out, too: two multiplications per feature of a query or key.
"""

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings

PASSES = 3  # forward, and backward the gradients of the inputs and of the weights
MULTIPLY_ADD = 2  # operations


def step_flops(model: ModelSettings, training: TrainingSettings, *, embedding_rows: int) -> int:
    """Return the floating-point operations of one training step; padding counts as work.

    Args:
        model: shape of the network.
        training: rows of a batch and their lengths.
        embedding_rows: rows of the output matrix.
    """
    row = forward_multiplications(
        model,
        inputs_length=training.packed_inputs_length,
        targets_length=training.targets_length,
        embedding_rows=embedding_rows,
    )
    return PASSES * MULTIPLY_ADD * row * training.batch_size


def forward_multiplications(
    model: ModelSettings, *, inputs_length: int, targets_length: int, embedding_rows: int
) -> int:
    """Return the multiplications of the forward pass over one row."""
    width, inner = model.d_model, model.num_heads * model.d_kv
    matrices = 3 if model.gated else 2
    projection = width * inner
    feed_forward = matrices * width * model.d_ff
    if model.decoder_only:  # inputs and targets are one row
        length = inputs_length + targets_length
        block = length * (4 * projection + feed_forward + 2 * length * inner)
        return model.num_decoder_layers * block + length * width * embedding_rows
    encoder = inputs_length * (4 * projection + feed_forward + 2 * inputs_length * inner)
    decoder = targets_length * (6 * projection + feed_forward)
    decoder += targets_length * 2 * (targets_length + inputs_length) * inner
    decoder += inputs_length * 2 * projection  # keys and values of the encoder's output
    logits = targets_length * width * embedding_rows
    return model.num_encoder_layers * encoder + model.num_decoder_layers * decoder + logits
