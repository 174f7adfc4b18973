"""Inputs and targets of a network in a row of a batch: lengths, ids, and texts of an example."""

from typing import NamedTuple

from t5repro.config.sections.model import AddedLayers, ModelSettings, tuned_family
from t5repro.config.sections.training import TrainingSettings


class RowShape(NamedTuple):
    """The shape of a row.

    Attributes:
        inputs_length: tokens of a text.
        targets_length: tokens; of an encoder only the predicted positions; 0 for labels.
        positions: tokens of a text that the network reads.
        embedding_rows: rows of the output matrix; 0 without logits of ids.
        texts: texts of a row.
        memory: positions before the row that its queries read.
        directions: in which the rows of a batch are read.
    """

    inputs_length: int
    targets_length: int
    positions: int
    embedding_rows: int
    texts: int = 1
    memory: int = 0
    directions: int = 1


def row_shape(
    model: ModelSettings, training: TrainingSettings, *, embedding_rows: int = 0, texts: int = 1
) -> RowShape:
    """Return the shape of a row of a training.

    Args:
        model: shape of the network.
        training: lengths of a row.
        embedding_rows: rows of the output matrix.
        texts: of a row of a network of labels: options times orders; 1 in pre-training.
    """
    # Pre-training has an objective and none of the layers that fine-tuning adds.
    if not isinstance(training, AddedLayers) or tuned_family(model, training).writes_text:
        inputs, targets = training.packed_inputs_length, training.targets_length
        positions = model.family.positions(inputs, targets)
        shape = RowShape(inputs, targets, positions, embedding_rows)
        permutation_lm = getattr(training, "permutation_lm", None)  # fine-tuning has none
        if not model.family.has_memory or permutation_lm is None:
            return shape
        memory = permutation_lm.memory_length(inputs)
        return shape._replace(memory=memory, directions=1 + permutation_lm.both_directions)
    reads_pieces = getattr(training, "lm_weight", 0.0) > 0
    length = training.inputs_length
    return RowShape(length, 0, length, embedding_rows if reads_pieces else 0, texts)


def generator_of(model: ModelSettings, training: TrainingSettings) -> ModelSettings | None:
    """Return the shape of the second network of a pre-training; none in fine-tuning."""
    is_pretraining = getattr(training, "masked_lm", None) is not None
    return model.generator if model.family.has_generator and is_pretraining else None


def judged_lengths(model: ModelSettings, training: TrainingSettings) -> tuple[int, int]:
    """Return the positions that ELECTRA's second network judges, and the predicted ones.

    Both are 0 in fine-tuning and of other networks.
    """
    if generator_of(model, training) is None:
        return 0, 0
    task = training.replaced_tokens.task  # type: ignore[attr-defined]
    pieces = {"masked_pieces": training.targets_length, "all_pieces": training.inputs_length}
    return 0 if task == "masked_pieces" else training.inputs_length, pieces.get(task, 0)


def predicts_boundaries(model: ModelSettings, training: TrainingSettings) -> bool:
    """Return whether a pre-training has SpanBERT's boundary objective."""
    masked_lm = getattr(training, "masked_lm", None)  # fine-tuning has none
    if model.family.objective != "masked_lm" or masked_lm is None:
        return False
    return bool(masked_lm.boundary_weight > 0)
