"""What a network reads and predicts of a row of a batch: lengths, ids, and texts of an example.

A network of labels reads each option of an example, and GPT some texts in both orders. All rows of
a batch have as many texts as any task of the mixture needs.
"""

from collections.abc import Collection
from typing import NamedTuple

from t5repro.config.sections.model import AddedLayers, ModelSettings, tuned_family
from t5repro.config.sections.training import TrainingSettings

# Tasks on the similarity of two texts, which have no order (Radford et al., 2018, section 3.3).
SIMILARITY_TASKS = frozenset({"glue_mrpc", "glue_qqp", "glue_stsb"})
OPTIONS = {"super_glue_copa": 2}  # task -> texts of which one is the answer
NUMBER_TASKS = frozenset({"glue_stsb"})
SPAN_TASKS = frozenset({"squad"})
# Tasks whose answer is another text: summaries, translations, names of entities.
TEXT_TASKS = frozenset(
    {
        *("cnn_dailymail", "wmt_en_de", "wmt_en_fr", "wmt_en_ro", "super_glue_record"),
        *("super_glue_wsc", "dpr", "glue_wnli"),
    }
)


class RowShape(NamedTuple):
    """The shape of a row.

    Attributes:
        inputs_length: tokens of a text.
        targets_length: tokens; of an encoder only the predicted positions; 0 for labels.
        positions: tokens of a text that the network reads.
        embedding_rows: rows of the output matrix; 0 without logits of ids.
        texts: texts of a row.
    """

    inputs_length: int
    targets_length: int
    positions: int
    embedding_rows: int
    texts: int = 1


def row_shape(
    model: ModelSettings,
    training: TrainingSettings,
    *,
    embedding_rows: int = 0,
    tasks: Collection[str] = (),
) -> RowShape:
    """Return the shape of a row of a training.

    Args:
        model: shape of the network.
        training: lengths of a row.
        embedding_rows: rows of the output matrix.
        tasks: those of the mixture, in fine-tuning.
    """
    # Pre-training has an objective and none of the layers that fine-tuning adds.
    if not isinstance(training, AddedLayers) or tuned_family(model, training).writes_text:
        inputs, targets = training.packed_inputs_length, training.targets_length
        positions = model.family.positions(inputs, targets)
        return RowShape(inputs, targets, positions, embedding_rows)
    reads_pieces = getattr(training, "lm_weight", 0.0) > 0
    texts = options_of(tasks) * orders_of(model, tasks)
    length = training.inputs_length
    return RowShape(length, 0, length, embedding_rows if reads_pieces else 0, texts)


def options_of(tasks: Collection[str]) -> int:
    """Return the most options of an example of the tasks, 1 if none has options."""
    return max((OPTIONS.get(task, 1) for task in tasks), default=1)


def orders_of(model: ModelSettings, tasks: Collection[str]) -> int:
    """Return in how many orders a network of labels reads the texts of the tasks."""
    return 2 if model.family.joined and not SIMILARITY_TASKS.isdisjoint(tasks) else 1


def predicts_boundaries(model: ModelSettings, training: TrainingSettings) -> bool:
    """Return whether a pre-training has SpanBERT's boundary objective."""
    masked_lm = getattr(training, "masked_lm", None)  # fine-tuning has none
    return model.family.predicts_inputs and masked_lm is not None and masked_lm.boundary_weight > 0
