"""Memory of a training or a prediction, by a formula: weights, gradients, slots and activations.

Of a chip it is within a tenth of the figures of the TPU compiler for T5-small and T5-base
(`docs/run_on_tpu.md`); with micro-batches it is a fifth too low for T5-small, and a report of the
rule `preflight` is preferred where it exists. On a CPU the libraries and the temporary arrays of
the step come on top; `docs/estimate.md` compares that with measured trainings.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

from t5repro.config.known_tasks import own_facts
from t5repro.config.row_shapes import generator_of, judged_lengths, predicts_boundaries, row_shape
from t5repro.config.schema import Settings
from t5repro.config.sections.devices import Remat
from t5repro.config.sections.model import ModelSettings, tuned_family
from t5repro.config.sections.tasks import OwnTask
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.segment_rows import orders_of
from t5repro.model.sizes import parameter_count
from t5repro.task_table import facts_of

TRAININGS = ("pretrain", "finetune")
ON_DEVICE = (*TRAININGS, "evaluate_predict")

WEIGHT_BYTES = 4  # stored and updated in float32
FACTORED_SLOTS = 0.015  # Adafactor's row and column moments as a share of the weights
LOGIT_BYTES = 8  # float32 logits and their gradients
MASK_BYTES = 1  # of dropout, for each attention weight
# On a CPU; measured by benchmarks/training_memory.py.
LIBRARY_BYTES = 900e6  # TensorFlow, Keras, the compiled step and the input pipeline
FREE_SHARE = 0.1  # of the machine, which a proposed setting leaves to everything else
TEMPORARIES = 1.7  # activations of the blocks with temporary arrays, as a multiple of them


@dataclass(frozen=True)
class Memory:
    """Memory of a chip, or of a job on a CPU.

    Attributes:
        needed: bytes.
        available: bytes of the chip or the machine; 0 if unknown.
        micro_batches: smallest number of micro-batches with which a training fits; 0 if it never
            fits, and of a prediction.
        source: ``formula`` or ``preflight``.
        batch_size: largest batch with which a prediction fits; 0 if none does, and of a training.
    """

    needed: float
    available: float
    micro_batches: int
    source: str
    batch_size: int = 0

    @property
    def fits(self) -> bool:
        """Whether it fits as configured, as far as the available memory is known."""
        return not self.available or self.needed <= self.available


def slots_per_weight(optimizer: str) -> float:
    """Return the numbers that an optimizer keeps for each weight: two moments, or factored ones."""
    return FACTORED_SLOTS if optimizer == "adafactor" else 2.0


def precision_bytes(precision: str) -> int:
    """Return the bytes of an activation."""
    return 2 if precision == "bfloat16" else 4


def texts_of_row(rule: str, settings: Settings) -> int:
    """Return the texts that a network of labels reads of a row of a training."""
    if rule != "finetune":
        return 1
    # The settings of a job have the names of own tasks only.
    return texts_of(settings.model, settings.tasks.names, own=getattr(settings.tasks, "own", {}))


def texts_of(model: ModelSettings, tasks: Collection[str], *, own: Mapping[str, OwnTask]) -> int:
    """Return the texts of a row: each option, and GPT some in both orders; 1 without tasks.

    A batch pads its rows to the task of the mixture with the most texts.

    Args:
        model: shape of the network.
        tasks: names of the tasks of the mixture.
        own: the run's own tasks.
    """
    of_run = {name: own_facts(name, definition) for name, definition in own.items()}
    options = [(of_run.get(task) or facts_of(task)).options for task in tasks]
    return max(options, default=1) * orders_of(model, tasks)


def state_bytes(parameters: int, *, optimizer: str, accumulates: bool) -> float:
    """Return the bytes of weights, gradients and slots.

    With several micro-batches the sum of the gradients is a further copy.
    """
    copies = (3 if accumulates else 2) + slots_per_weight(optimizer)
    return WEIGHT_BYTES * parameters * copies


def block_bytes(model: ModelSettings, length: int, *, precision: str, shares: int = 1) -> float:
    """Return the bytes of the activations of a block without cross-attention, of one row.

    Args:
        model: shape of the network.
        length: tokens of the row.
        precision: `devices.precision`.
        shares: devices that share each weight, and with it heads and inner features.
    """
    bytes_each = precision_bytes(precision)
    inner = model.num_heads * model.d_kv
    hidden = (3 if model.gated else 2) * model.d_ff
    layers = length * (4 * model.d_model + (3 * inner + hidden) / shares) * bytes_each
    # Attention weights and their dropout masks grow with the square of the length.
    return layers + model.num_heads / shares * length**2 * (bytes_each + MASK_BYTES)


def cross_attention_bytes(
    model: ModelSettings, inputs_length: int, targets_length: int, *, precision: str, shares: int
) -> float:
    """Return the bytes of the activations of cross-attention in a block, of one row."""
    bytes_each = precision_bytes(precision)
    inner = model.num_heads * model.d_kv / shares
    layers = targets_length * (2 * model.d_model + 2 * inner) + inputs_length * 2 * inner
    weights = model.num_heads / shares * inputs_length * targets_length
    return layers * bytes_each + weights * (bytes_each + MASK_BYTES)


def distance_bytes(
    model: ModelSettings,
    inputs_length: int,
    targets_length: int,
    memory: int,
    *,
    precision: str,
    shares: int,
) -> float:
    """Return what a block with keys of distances has beyond `block_bytes`, of one row."""
    bytes_each = precision_bytes(precision)
    heads = model.num_heads / shares
    queries, keys = inputs_length + targets_length, inputs_length + memory
    # Scores of distances, and weights of keys in place of those that `block_bytes` counts.
    scores = queries * (inputs_length + keys) * bytes_each
    weights = (queries * keys - queries**2) * (bytes_each + MASK_BYTES)
    # The memory, its keys and values.
    memory_bytes = memory * (model.d_model * WEIGHT_BYTES + 2 * heads * model.d_kv * bytes_each)
    return heads * (scores + weights) + memory_bytes


def activation_bytes(
    model: ModelSettings,
    *,
    inputs_length: int,
    targets_length: int,
    precision: str,
    shares: int = 1,
    remat: Remat = "none",
    memory: int = 0,
) -> float:
    """Return the bytes that the backward pass needs of the blocks, of one row; without logits.

    Args:
        model: shape of the network.
        inputs_length: tokens of a row of inputs.
        targets_length: tokens of a row of targets.
        precision: `devices.precision`.
        shares: devices that share each weight.
        remat: `devices.remat`.
        memory: positions before the row.
    """
    lengths = model.family.lengths(inputs_length, targets_length)
    if model.positions == "distances":
        lengths = {"encoder": inputs_length + targets_length}  # contents and queries
    blocks = {
        stack: block_bytes(model, length, precision=precision, shares=shares)
        for stack, length in lengths.items()
    }
    if model.family.stacks == ("encoder", "decoder"):
        # Cross-attention reads the encoder's output once per decoder block.
        blocks["decoder"] += cross_attention_bytes(
            model, inputs_length, targets_length, precision=precision, shares=shares
        )
    if model.positions == "distances":
        blocks["encoder"] += distance_bytes(
            model, inputs_length, targets_length, memory, precision=precision, shares=shares
        )
    heights = model.heights
    if remat == "none":
        return sum(height * blocks[stack] for stack, height in heights.items())
    features = _kept_features(model, shares, remat) * precision_bytes(precision)
    # All that one block has is in memory while its gradient is computed.
    whole = max(blocks[stack] for stack in heights)
    return whole + sum(height * lengths[stack] * features for stack, height in heights.items())


def _kept_features(model: ModelSettings, shares: int, remat: Remat) -> float:
    """Return the numbers of a token that a block keeps whose activations are computed again."""
    if remat == "block":
        return model.d_model  # its input
    inner = (3 * model.num_heads * model.d_kv + (2 if model.gated else 1) * model.d_ff) / shares
    return 3 * model.d_model + inner  # and the products with weights


def training_memory(
    model: ModelSettings,
    training: TrainingSettings,
    *,
    embedding_rows: int,
    texts: int = 1,
    precision: str,
    chips: int,
    available: float,
    on_cpu: bool = False,
    shares: int = 1,
    remat: Remat = "none",
) -> Memory:
    """Return the memory of a step by the formula.

    Args:
        model: shape of the network.
        training: rows of a batch and their lengths.
        embedding_rows: rows of the output matrix.
        texts: of a row of a network of labels, see `texts_of`.
        precision: `devices.precision`.
        chips: chips that share the rows.
        available: bytes of a chip, or of the machine.
        on_cpu: whether libraries and temporary arrays take the same memory.
        shares: chips that share each weight.
        remat: `devices.remat`.
    """
    parameters = parameter_count(model, embedding_rows)
    shape = row_shape(model, training, embedding_rows=embedding_rows, texts=texts)
    networks = [model, generator_of(model, training)]
    blocks = sum(
        activation_bytes(
            network,
            inputs_length=shape.inputs_length,
            targets_length=shape.targets_length,
            precision=precision,
            shares=shares,
            remat=remat,
            memory=shape.memory,
        )
        for network in filter(None, networks)
    )
    predicted = model.family.predicted(shape.inputs_length, shape.targets_length)
    logits = predicted * shape.embedding_rows * LOGIT_BYTES / shares
    row = shape.texts * ((TEMPORARIES if on_cpu else 1) * blocks + logits)
    # SpanBERT's boundary objective predicts ids a second time, as may ELECTRA's second network.
    _, further = judged_lengths(model, training)
    further += shape.targets_length * predicts_boundaries(model, training)
    row += further * embedding_rows * LOGIT_BYTES / shares
    if not training.steps:  # no batch is computed: the weights are written as they are
        row = 0.0
    libraries = LIBRARY_BYTES if on_cpu else 0.0
    # Rounded up: the chip with the most rows decides.
    rows = -(-training.batch_size // chips)

    def needed(micro_batches: int) -> float:
        state = state_bytes(parameters, optimizer=training.optimizer, accumulates=micro_batches > 1)
        return libraries + state / shares + -(-rows // micro_batches) * row

    # Micro-batches of a chip have equal numbers of rows.
    small = [divisor for divisor in range(1, isqrt(rows) + 1) if rows % divisor == 0]
    divisors = sorted({*small, *(rows // divisor for divisor in small)})
    usable = available * (1 - FREE_SHARE) if on_cpu else available
    fitting = (micro_batches for micro_batches in divisors if needed(micro_batches) <= usable)
    return Memory(needed(training.micro_batches), available, next(fitting, 0), "formula")


def prediction_memory(settings: Settings, *, available: float) -> Memory:
    """Return the memory of a prediction on a CPU by the formula."""
    model, evaluate = settings.model, settings.evaluate
    precision = settings.devices.precision
    embedding_rows = settings.vocab.embedding_rows
    models = len(evaluate.ensemble) or 1
    fixed = LIBRARY_BYTES + WEIGHT_BYTES * parameter_count(model, embedding_rows) * (models + 1)
    if tuned_family(model, settings.finetune).writes_text:
        written = evaluate.max_decode_length
        beams = evaluate.beam_width if evaluate.beam_tasks else 1
        inner, blocks = model.num_heads * model.d_kv, model.heights["decoder"]
        # Keys and values of inputs and answer, in each block of each member of an ensemble.
        cached = 2 * inner * (evaluate.inputs_length + written) * precision_bytes(precision)
        row: float = beams * (models * blocks * cached + embedding_rows * LOGIT_BYTES)
    else:
        row = 0.0
    texts = texts_of(model, settings.tasks.names, own=settings.tasks.own) if not row else 1
    # Without a backward pass one block's activations are in memory at a time.
    row += TEMPORARIES * texts * block_bytes(model, evaluate.inputs_length, precision=precision)
    needed = fixed + evaluate.batch_size * row
    fitting = max(int((available * (1 - FREE_SHARE) - fixed) / row), 0)
    return Memory(needed, available, 0, "formula", min(fitting, evaluate.batch_size))


def cpu_memory(rule: str, settings: Settings, *, available: float = 0.0) -> Memory:
    """Return the memory of a job on a CPU that computes with the model.

    Args:
        rule: one of `ON_DEVICE`.
        settings: settings of the job's node.
        available: bytes of the machine; 0 if unknown.
    """
    if rule not in TRAININGS:
        return prediction_memory(settings, available=available)
    return training_memory(
        settings.model,
        getattr(settings, rule),
        embedding_rows=settings.vocab.embedding_rows,
        texts=texts_of_row(rule, settings),
        precision=settings.devices.precision,
        chips=1,
        available=available,
        on_cpu=True,  # the logical devices of a mesh share its memory
        remat=settings.devices.remat,
    )


def machine_bytes() -> float:
    """Return the memory of this machine, or of the control group that limits this process."""
    physical = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limits = [path for path in CGROUP_LIMITS if path.is_file()]
    texts = [path.read_text(encoding="utf-8").strip() for path in limits]
    return min([physical, *(float(text) for text in texts if text.isdigit())])


# Of version 2 and of version 1; as a container sees them.
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
