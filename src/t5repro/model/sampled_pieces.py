"""Pieces that a generator draws in place of masked ones, within a training step.

A piece is where the cumulative probabilities first exceed a random number, which the row brings
along (`MaskedInputs.batches`): the noise of a step depends on seed, row and epoch only, not on the
batch, its parts or its devices. This has the distribution of the released code, which adds Gumbel
noise to the logits, from one number a piece instead of one for each id.

Source: ELECTRA ``PretrainingModel._get_fake_data`` and ``pretrain_helpers.sample_from_softmax``.

Shape suffixes: B rows of the batch, L positions, M masked positions, V ids; N = B * M masked
positions, K blocks of W ids.
"""

from keras import ops
from keras.config import floatx

from t5repro.model.layers import Tensor
from t5repro.randomness import DRAW_BITS

BLOCK = 128  # ids
BELOW_ONE = 1.0 - 2.0**-23


def sampled_pieces(logits_BMV: Tensor, draws_BM: Tensor) -> Tensor:
    """Return an id for each masked position, drawn from the softmax of its logits, int32.

    Args:
        logits_BMV: float32.
        draws_BM: random numbers, int32 of `DRAW_BITS` bits.
    """
    rows, count, ids = logits_BMV.shape
    probabilities_NV = ops.softmax(ops.reshape(logits_BMV, (-1, ids)), axis=-1)
    probabilities_NV = ops.pad(probabilities_NV, [[0, 0], [0, -ids % BLOCK]])
    blocks = probabilities_NV.shape[-1] // BLOCK
    probabilities_NKW = ops.reshape(probabilities_NV, (-1, blocks, BLOCK))
    # 1. The block of ids in which the sum of probabilities reaches the random number.
    sums_NK = running_sums(ops.sum(probabilities_NKW, axis=-1))
    share_N = ops.cast(ops.reshape(draws_BM, (-1,)), floatx()) * 2.0**-DRAW_BITS
    share_N = below_total(share_N * sums_NK[:, -1], sums_NK[:, -1])
    block_N = _reached(sums_NK, share_N)
    # 2. The id in this block.
    before_NK = ops.pad(sums_NK[:, :-1], [[0, 0], [1, 0]])
    is_block_NK = ops.equal(ops.arange(blocks, dtype="int32")[None], block_N[:, None])
    share_N = share_N - ops.sum(ops.where(is_block_NK, before_NK, 0.0), axis=-1)
    starts_N = ops.arange(rows * count, dtype="int32") * blocks
    inside_NW = ops.take(ops.reshape(probabilities_NKW, (-1, BLOCK)), starts_N + block_N, axis=0)
    sums_NW = running_sums(inside_NW)
    id_N = _reached(sums_NW, below_total(share_N, sums_NW[:, -1]))
    return ops.reshape(block_N * BLOCK + id_N, (rows, count))


def running_sums(x_NK: Tensor) -> Tensor:
    """Return the sums of the values up to each, as additions in a fixed order on every device."""
    step = 1
    while step < x_NK.shape[-1]:
        x_NK = x_NK + ops.pad(x_NK[:, :-step], [[0, 0], [step, 0]])
        step *= 2
    return x_NK


def below_total(share_N: Tensor, total_N: Tensor) -> Tensor:
    """Return shares that rounding has not lifted to the total: an id of probability 0 follows."""
    return ops.minimum(share_N, total_N * BELOW_ONE)


def _reached(sums_NK: Tensor, share_N: Tensor) -> Tensor:
    """Return the index of the first sum that exceeds a share, int32."""
    count_N = ops.sum(ops.cast(sums_NK <= share_N[:, None], "int32"), axis=-1)
    return ops.cast(count_N, "int32")  # a sum may widen


def with_values_at(
    values_BL: Tensor, positions_BM: Tensor, new_BM: Tensor, is_masked_BM: Tensor
) -> Tensor:
    """Return values of rows, with new ones at the masked positions.

    Args:
        values_BL: int32.
        positions_BM: int32, in ascending order; the position 0 in place of missing ones, which is
            never masked.
        new_BM: int32.
        is_masked_BM: whether the position exists.
    """
    rows, length = values_BL.shape
    starts_B1 = ops.arange(rows, dtype="int32")[:, None] * length
    # Missing positions write the value that is there, several times.
    new_BM = ops.where(is_masked_BM, new_BM, values_BL[:, :1])
    flat = ops.scatter_update(
        ops.reshape(values_BL, (-1,)),
        ops.reshape(starts_B1 + positions_BM, (-1, 1)),
        ops.reshape(new_BM, (-1,)),
    )
    return ops.reshape(flat, (rows, length))
