"""Floating-point operations of a training step, estimated from the matrix products alone.

Softmax, norms, dropout and the optimizer are left out: they are a few percent of the products.
So are rotary positions: two multiplications per feature of a query or key.
"""

from t5repro.config.row_shapes import predicts_boundaries, row_shape
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings

PASSES = 3  # forward, and backward the gradients of the inputs and of the weights
MULTIPLY_ADD = 2  # operations
INDEX_WIDTH = 200  # features of the vector of an index in a span, of SpanBERT's head


def step_flops(
    model: ModelSettings, training: TrainingSettings, *, embedding_rows: int, texts: int = 1
) -> int:
    """Return the floating-point operations of one training step; padding counts as work.

    Args:
        model: shape of the network.
        training: rows of a batch and their lengths.
        embedding_rows: rows of the output matrix.
        texts: of a row of a network of labels: options times orders; 1 in pre-training.
    """
    shape = row_shape(model, training, embedding_rows=embedding_rows, texts=texts)
    row = shape.texts * forward_multiplications(
        model,
        inputs_length=shape.inputs_length,
        targets_length=shape.targets_length,
        embedding_rows=shape.embedding_rows,
    )
    if predicts_boundaries(model, training):
        row += _boundary_multiplications(model, training, embedding_rows)
    return PASSES * MULTIPLY_ADD * row * training.batch_size


def _boundary_multiplications(
    model: ModelSettings, training: TrainingSettings, embedding_rows: int
) -> int:
    """Return the multiplications of SpanBERT's boundary objective in a row."""
    width, embedded = model.d_model, model.embedding_width or model.d_model
    first, second = (2 * width + INDEX_WIDTH) * width, width * embedded
    return training.targets_length * (first + second + embedded * embedding_rows)


def forward_multiplications(
    model: ModelSettings, *, inputs_length: int, targets_length: int, embedding_rows: int
) -> int:
    """Return the multiplications of the forward pass over one row.

    Args:
        model: shape of the network.
        inputs_length: tokens.
        targets_length: tokens; of an encoder only the predicted positions, 0 with a head of labels.
        embedding_rows: rows of the output matrix.
    """
    width, inner = model.d_model, model.num_heads * model.d_kv
    matrices = 3 if model.gated else 2
    projection = width * inner
    feed_forward = matrices * width * model.d_ff
    if model.decoder_only:  # inputs and targets are one row
        length = inputs_length + targets_length
        block = length * (4 * projection + feed_forward + 2 * length * inner)
        return model.num_decoder_layers * block + length * width * embedding_rows
    encoder = inputs_length * (4 * projection + feed_forward + 2 * inputs_length * inner)
    if model.encoder_only:
        embedded = model.embedding_width or width
        ends = targets_length * (width * embedded + embedded * embedding_rows)
        ends += inputs_length * width * model.embedding_width  # the projection
        return model.num_encoder_layers * encoder + ends
    decoder = targets_length * (6 * projection + feed_forward)
    decoder += targets_length * 2 * (targets_length + inputs_length) * inner
    decoder += inputs_length * 2 * projection  # keys and values of the encoder's output
    logits = targets_length * width * embedding_rows
    return model.num_encoder_layers * encoder + model.num_decoder_layers * decoder + logits
