"""Floating-point operations of a training step, estimated from the matrix products only.

Softmax, norms, dropout and the optimizer are left out: they are a few percent of the products.
So are rotary positions, two multiplications per feature of a query or key, and MT-DNN's head of
pairs, some products of one position of a row.
"""

from t5repro.config.row_shapes import (
    RowShape,
    generator_of,
    judged_lengths,
    predicts_boundaries,
    row_shape,
)
from t5repro.config.sections.devices import Remat
from t5repro.config.sections.model import AddedLayers, ModelSettings, tuned_family
from t5repro.config.sections.training import TrainingSettings

PASSES = 3  # forward, and backward the gradients of the inputs and of the weights
MULTIPLY_ADD = 2  # operations
INDEX_WIDTH = 200  # features of the vector of an index in a span, of SpanBERT's head


def step_flops(
    model: ModelSettings, training: TrainingSettings, *, embedding_rows: int, texts: int = 1
) -> int:
    """Return the floating-point operations of one training step; padding counts as work.

    With adapters the other matrices are frozen and have no gradients of their own.

    Args:
        model: shape of the network.
        training: rows of a batch and their lengths, and the adapters.
        embedding_rows: rows of the output matrix.
        texts: of a row of a network of labels: options times orders; 1 in pre-training.
    """
    shape = row_shape(model, training, embedding_rows=embedding_rows, texts=texts)
    row = shape.texts * forward_multiplications(
        model,
        inputs_length=shape.inputs_length,
        targets_length=shape.targets_length,
        embedding_rows=shape.embedding_rows,
        memory=shape.memory,
    )
    if predicts_boundaries(model, training):
        row += _boundary_multiplications(model, training, embedding_rows)
    row += _judging_multiplications(model, training, embedding_rows)
    forward = row * training.batch_size + _distance_keys(model, shape)
    if not (isinstance(training, AddedLayers) and training.width):
        return PASSES * MULTIPLY_ADD * forward
    adapters = shape.texts * training.batch_size * _adapter_multiplications(model, training, shape)
    return MULTIPLY_ADD * ((PASSES - 1) * forward + PASSES * adapters)


def recomputed_flops(
    model: ModelSettings, training: TrainingSettings, *, remat: Remat, texts: int = 1
) -> int:
    """Return the operations that the backward pass of a step repeats; they are not in `step_flops`.

    Args:
        model: shape of the network.
        training: rows of a batch and their lengths.
        remat: `devices.remat`; with ``dots`` the products of positions only are repeated.
        texts: see `step_flops`.
    """
    if remat == "none":
        return 0
    shape = row_shape(model, training, texts=texts)
    networks = [model, generator_of(model, training)]
    repeated = 0
    for network in filter(None, networks):
        with_weights, of_positions = _block_multiplications(
            network, shape.inputs_length, shape.targets_length, shape.memory
        )
        repeated += of_positions + (with_weights if remat == "block" else 0)
    return MULTIPLY_ADD * shape.texts * repeated * training.batch_size


def _adapter_multiplications(model: ModelSettings, added: AddedLayers, shape: RowShape) -> int:
    """Return the multiplications of the adapters in a row: two matrices in each block."""
    lengths = tuned_family(model, added).lengths(shape.inputs_length, shape.targets_length)
    positions = sum(blocks * lengths[stack] for stack, blocks in model.heights.items())
    return positions * 2 * model.d_model * added.width


def _boundary_multiplications(
    model: ModelSettings, training: TrainingSettings, embedding_rows: int
) -> int:
    """Return the multiplications of SpanBERT's boundary objective in a row."""
    width, embedded = model.d_model, model.embedding_width or model.d_model
    first, second = (2 * width + INDEX_WIDTH) * width, width * embedded
    return training.targets_length * (first + second + embedded * embedding_rows)


def _judging_multiplications(
    model: ModelSettings, training: TrainingSettings, embedding_rows: int
) -> int:
    """Return the multiplications of the heads of ELECTRA's second network in a row."""
    width, embedded = model.d_model, model.embedding_width or model.d_model
    judged, predicted = judged_lengths(model, training)
    return judged * (width + 1) * width + predicted * embedded * (width + embedding_rows)


def forward_multiplications(
    model: ModelSettings,
    *,
    inputs_length: int,
    targets_length: int,
    embedding_rows: int,
    memory: int = 0,
) -> int:
    """Return the multiplications of the forward pass over one row.

    Args:
        model: shape of the network.
        inputs_length: tokens.
        targets_length: tokens; of an encoder only the predicted positions, 0 with a head of labels.
            The generator of ELECTRA predicts them, and is counted with its detector.
        embedding_rows: rows of the output matrix.
        memory: positions before the row.
    """
    blocks = _block_multiplications(model, inputs_length, targets_length, memory)
    predicted = model.family.predicted(inputs_length, targets_length)
    return sum(blocks) + _head_multiplications(model, inputs_length, predicted, embedding_rows)


def _block_multiplications(
    model: ModelSettings, inputs_length: int, targets_length: int, memory: int
) -> tuple[int, int]:
    """Return the multiplications of the blocks: with weights, and of positions with positions."""
    if model.positions == "distances":
        return _two_stream_multiplications(model, inputs_length, targets_length, memory)
    lengths = model.family.lengths(inputs_length, targets_length)
    inner = model.num_heads * model.d_kv
    projection = model.d_model * inner
    feed_forward = (3 if model.gated else 2) * model.d_model * model.d_ff
    with_weights = of_positions = 0
    for stack, blocks in model.heights.items():
        length = lengths[stack]
        with_weights += blocks * length * (4 * projection + feed_forward)
        of_positions += blocks * 2 * length**2 * inner  # weights of attention, and their values
    if model.family.stacks == ("encoder", "decoder"):
        queries, keys = lengths["decoder"], lengths["encoder"]
        with_weights += model.num_decoder_layers * 2 * (queries + keys) * projection
        of_positions += model.num_decoder_layers * 2 * queries * keys * inner
    return with_weights, of_positions


def _two_stream_multiplications(
    model: ModelSettings, length: int, predicted: int, memory: int
) -> tuple[int, int]:
    """Return the multiplications of blocks with contents and queries, without keys of distances."""
    inner = model.num_heads * model.d_kv
    projection = model.d_model * inner
    feed_forward = (3 if model.gated else 2) * model.d_model * model.d_ff
    keys = length + memory
    distances = length + keys
    queries = length + predicted
    # Queries and outputs of both streams, keys and values.
    with_weights = projection * (2 * queries + 2 * keys) + queries * feed_forward
    of_positions = queries * (2 * keys + distances) * inner
    blocks = model.num_encoder_layers
    return blocks * with_weights, blocks * of_positions


def _distance_keys(model: ModelSettings, shape: RowShape) -> int:
    """Return the multiplications of the keys of distances, which all rows of a batch share."""
    if model.positions != "distances":
        return 0
    distances = shape.directions * (2 * shape.inputs_length + shape.memory)
    return model.num_encoder_layers * distances * model.d_model * model.num_heads * model.d_kv


def _head_multiplications(
    model: ModelSettings, inputs_length: int, predicted: int, embedding_rows: int
) -> int:
    """Return the multiplications below and above the blocks."""
    if not model.family.predicts_inputs:
        return predicted * model.d_model * embedding_rows
    projection = inputs_length * model.d_model * model.embedding_width
    if model.family.has_generator:
        generator = forward_multiplications(
            model.generator,
            inputs_length=inputs_length,
            targets_length=predicted,
            embedding_rows=embedding_rows,
        )
        return projection + (generator if predicted else 0)
    embedded = model.embedding_width or model.d_model
    # XLNet predicts from the queries themselves.
    transform = 0 if model.positions == "distances" else model.d_model
    return projection + predicted * embedded * (transform + embedding_rows)
