"""Memory of a training step on one chip: weights, gradients, slots and activations.

The formula is within a tenth of the figures of the TPU compiler for T5-small and T5-base
(`docs/run_on_tpu.md`); with micro-batches it is a fifth too low for T5-small. A report of
the rule `preflight` is preferred where it exists.
"""

from dataclasses import dataclass

from t5repro.config.row_shapes import predicts_boundaries, row_shape
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.estimate.work import WEIGHT_BYTES, precision_bytes, slots_per_weight
from t5repro.model.sizes import parameter_count

LOGIT_BYTES = 8  # float32 logits and their gradients
MASK_BYTES = 1  # of dropout, for each attention weight


@dataclass(frozen=True)
class Memory:
    """Memory of a chip for one training step.

    Attributes:
        needed: bytes.
        available: bytes of the chip.
        micro_batches: smallest number of micro-batches with which it fits; 0 if it never fits.
        source: ``formula`` or ``preflight``.
    """

    needed: float
    available: float
    micro_batches: int
    source: str

    @property
    def fits(self) -> bool:
        """Whether the step fits as configured."""
        return self.needed <= self.available


def state_bytes(parameters: int, *, optimizer: str, accumulates: bool) -> float:
    """Return the bytes of weights, gradients and slots.

    With several micro-batches the sum of the gradients is a further copy.
    """
    copies = (3 if accumulates else 2) + slots_per_weight(optimizer)
    return WEIGHT_BYTES * parameters * copies


def activation_bytes(
    model: ModelSettings,
    *,
    inputs_length: int,
    targets_length: int,
    embedding_rows: int,
    precision: str,
) -> float:
    """Return the bytes that the backward pass needs of the forward pass over one row."""
    bytes_each = precision_bytes(precision)
    width, inner = model.d_model, model.num_heads * model.d_kv
    hidden = (3 if model.gated else 2) * model.d_ff
    weight = bytes_each + MASK_BYTES  # of attention

    def block(length: int) -> float:
        layers = length * (4 * width + 3 * inner + hidden) * bytes_each
        # Attention weights and their dropout masks grow with the square of the length.
        return layers + model.num_heads * length**2 * weight

    family = model.family
    lengths = family.lengths(inputs_length, targets_length)
    total = sum(blocks * block(lengths[stack]) for stack, blocks in model.heights.items())
    if family.stacks == ("encoder", "decoder"):
        # Cross-attention reads the encoder's output once per decoder block.
        cross = targets_length * (2 * width + 2 * inner) * bytes_each
        cross += inputs_length * 2 * inner * bytes_each
        cross += model.num_heads * inputs_length * targets_length * weight
        total += model.num_decoder_layers * cross
    return total + family.predicted(inputs_length, targets_length) * embedding_rows * LOGIT_BYTES


def training_memory(
    model: ModelSettings,
    training: TrainingSettings,
    *,
    embedding_rows: int,
    texts: int = 1,
    precision: str,
    chips: int,
    available: float,
) -> Memory:
    """Return the memory of a step by the formula.

    Args:
        model: shape of the network.
        training: rows of a batch and their lengths.
        embedding_rows: rows of the output matrix.
        texts: of a row of a network of labels, see `work.texts_of`.
        precision: `devices.precision`.
        chips: chips that share the rows.
        available: bytes of a chip.
    """
    parameters = parameter_count(model, embedding_rows)
    shape = row_shape(model, training, embedding_rows=embedding_rows, texts=texts)
    row = shape.texts * activation_bytes(
        model,
        inputs_length=shape.inputs_length,
        targets_length=shape.targets_length,
        embedding_rows=shape.embedding_rows,
        precision=precision,
    )
    # SpanBERT's boundary objective predicts ids a second time.
    if predicts_boundaries(model, training):
        row += shape.targets_length * embedding_rows * LOGIT_BYTES
    # Rounded up: the chip with the most rows decides.
    rows = -(-training.batch_size // chips)

    def needed(micro_batches: int) -> float:
        state = state_bytes(parameters, optimizer=training.optimizer, accumulates=micro_batches > 1)
        return state + -(-rows // micro_batches) * row

    # Micro-batches of a chip have equal numbers of rows.
    divisors = [micro_batches for micro_batches in range(1, rows + 1) if rows % micro_batches == 0]
    fitting = (micro_batches for micro_batches in divisors if needed(micro_batches) <= available)
    return Memory(needed(training.micro_batches), available, next(fitting, 0), "formula")
