"""Losses of labels, numbers, options, spans and tags.

Shape suffixes: B rows of the batch, O options of a row, L positions, C columns of the head.
"""

from keras import ops
from keras.config import floatx

from t5repro.model.labels import CHOICE, LABEL, NUMBER
from t5repro.model.layers import Tensor
from t5repro.systems.token_loss import token_losses

EXCLUDED = -1e9  # logit of a column of another task: a probability of 0


def cross_entropies(classes_B: Tensor, logits_BC: Tensor) -> Tensor:
    """Return the cross-entropy of each row, (batch,).

    Args:
        classes_B: int32, column of the correct class.
        logits_BC: float32.
    """
    # The loss of ids has a fast gradient; it leaves out id 0, so classes count from 1.
    padded = ops.pad(logits_BC, [[0, 0], [1, 0]], constant_values=EXCLUDED)
    return token_losses(classes_B[:, None] + 1, padded[:, None, :], z_loss=0.0)[:, 0]


def label_losses(targets_B1: Tensor, outputs_BC: Tensor, columns_B3: Tensor) -> Tensor:
    """Return the loss of each row: cross-entropy of a label, squared error of a number.

    Args:
        targets_B1: float32, the column of the correct label within its task, or the number.
        outputs_BC: float32, all columns of the head.
        columns_B3: int32, see `labels.Columns`.

    Returns:
        float32 ``(batch, 1)``; meaningless for rows with another kind of answer.

    Source: BERT ``run_classifier.create_model``; regression as in XLNet and MT-DNN.
    """
    first_B, count_B, kind_B = (columns_B3[:, column] for column in range(3))
    columns_C = ops.arange(outputs_BC.shape[-1], dtype="int32")[None]
    inside_BC = ops.logical_and(
        columns_C >= first_B[:, None], columns_C < (first_B + count_B)[:, None]
    )
    targets_B = ops.cast(targets_B1[:, 0], floatx())
    # Other kinds of targets do not name a column; a missing column would give a loss of NaN.
    classes_B = ops.where(kind_B == LABEL, first_B + ops.cast(targets_B, "int32"), 0)
    label_losses_B = cross_entropies(classes_B, ops.where(inside_BC, outputs_BC, EXCLUDED))
    number_losses_B = ops.square(first_columns(outputs_BC, first_B) - targets_B)
    return ops.where(kind_B == NUMBER, number_losses_B, label_losses_B)[:, None]


def option_losses(
    targets_B1: Tensor, outputs_BOC: Tensor, columns_B3: Tensor, exists_BO: Tensor
) -> Tensor:
    """Return the loss of each row, for its label, its number or its choice of an option.

    Args:
        targets_B1: float32, as for `label_losses`, or the index of the correct option.
        outputs_BOC: float32, all columns of the head for each option.
        columns_B3: int32, see `labels.Columns`.
        exists_BO: whether a row has this option.

    Returns:
        float32 ``(batch, 1)``.

    Source: Radford et al., 2018, section 3.3; transformers ``BertForMultipleChoice``.
    """
    scores_BO = first_columns(outputs_BOC, columns_B3[:, :1])
    is_choice_B = columns_B3[:, 2] == CHOICE
    # A row without options has no index among them.
    options_B = ops.where(is_choice_B, ops.cast(targets_B1[:, 0], "int32"), 0)
    choice_losses_B = cross_entropies(options_B, ops.where(exists_BO, scores_BO, EXCLUDED))
    return ops.where(
        is_choice_B[:, None],
        choice_losses_B[:, None],
        label_losses(targets_B1, outputs_BOC[:, 0], columns_B3),
    )


def span_losses(spans_B2: Tensor, outputs_BL2: Tensor, segments_BL: Tensor) -> Tensor:
    """Return the mean of the cross-entropies of the first and the last piece of a span, (batch, 1).

    Args:
        spans_B2: int32, positions of the first and the last piece.
        outputs_BL2: float32, their logits.
        segments_BL: 1 at positions of the row, 0 at padding, which has no probability.

    Source: BERT ``run_squad.model_fn_builder``; there padding has a probability.
    """
    edge_losses_B = [
        cross_entropies(
            spans_B2[:, edge], ops.where(segments_BL > 0, outputs_BL2[..., edge], EXCLUDED)
        )
        for edge in range(2)
    ]
    return 0.5 * (edge_losses_B[0] + edge_losses_B[1])[:, None]


def tag_losses(tags_BL: Tensor, outputs_BLC: Tensor, columns_B3: Tensor) -> Tensor:
    """Return the mean cross-entropy of the tagged pieces of each row, (batch, 1).

    Args:
        tags_BL: int32, one more than the column of the tag; 0 at pieces without one.
        outputs_BLC: float32, all columns of the head of tags.
        columns_B3: int32, see `labels.Columns`; meaningless for rows with another kind of answer.

    Source: transformers ``BertForTokenClassification``, there over the pieces of the batch (D-053).
    """
    columns_C = ops.arange(outputs_BLC.shape[-1], dtype="int32")[None]
    first_B1, count_B1 = columns_B3[:, :1], columns_B3[:, 1:2]
    inside_BC = ops.logical_and(columns_C >= first_B1, columns_C < first_B1 + count_B1)
    own_BLC = ops.where(inside_BC[:, None], outputs_BLC, EXCLUDED)
    # As in `cross_entropies`, class 0 has no loss.
    padded = ops.pad(own_BLC, [[0, 0], [0, 0], [1, 0]], constant_values=EXCLUDED)
    losses_BL = token_losses(tags_BL, padded, z_loss=0.0)
    tagged_B = ops.sum(ops.cast(tags_BL > 0, floatx()), axis=-1)
    return (ops.sum(losses_BL, axis=-1) / ops.maximum(tagged_B, 1.0))[:, None]


def first_columns(outputs: Tensor, first: Tensor) -> Tensor:
    """Return the column of a row's task, the first one, from the columns of all, the last axis."""
    columns_C = ops.arange(outputs.shape[-1], dtype="int32")
    # A product with a mask, not a gather: its gradient has fixed bits.
    return ops.sum(outputs * ops.cast(columns_C == first[..., None], floatx()), axis=-1)
