"""Losses of an encoder's labels and numbers.

Shape suffixes: B rows of the batch, C columns of the head.
"""

from keras import ops

from t5repro.model.layers import Tensor
from t5repro.train.loss import token_losses

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
        columns_B3: int32, first column of the row's task, number of its columns, and 1 if the
            target is a number, which the first column predicts.

    Returns:
        float32 ``(batch, 1)``.

    Source: BERT ``run_classifier.create_model``; its regression is that of XLNet and MT-DNN.
    """
    first_B, count_B, is_number_B = (columns_B3[:, part] for part in range(3))
    columns_C = ops.arange(outputs_BC.shape[-1], dtype="int32")[None]
    inside_BC = ops.logical_and(
        columns_C >= first_B[:, None], columns_C < (first_B + count_B)[:, None]
    )
    targets_B = targets_B1[:, 0]
    is_number_B = is_number_B == 1
    classes_B = first_B + ops.where(is_number_B, 0, ops.cast(targets_B, "int32"))
    of_labels_B = cross_entropies(classes_B, ops.where(inside_BC, outputs_BC, EXCLUDED))
    # A product with a mask, not a gather: its gradient has fixed bits.
    is_first_BC = ops.cast(columns_C == first_B[:, None], "float32")
    numbers_B = ops.sum(outputs_BC * is_first_BC, axis=-1)
    of_numbers_B = ops.square(numbers_B - targets_B)
    return ops.where(is_number_B, of_numbers_B, of_labels_B)[:, None]
