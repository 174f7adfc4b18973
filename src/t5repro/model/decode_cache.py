"""The inputs in the form that decoding attends to: keys and values, computed once, and biases.

An encoder-decoder attends to the encoder through cross-attention (`CrossDecoding`). A decoder only
attends to its own keys and values: of the inputs, and of the answer so far (`PrefixDecoding`).
Greedy decoding and beam search are one program for both: `encode` before the first step,
`encoded_biases` and `answer_biases` in each. Cached keys are turned by their own position if
positions are rotary (`rotation`).

Shape suffixes: B rows of the batch, M positions of the inputs, T steps, D features, H heads.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from t5repro.model.attention import BLOCKED, bias_of_block, causal_mask, segment_mask
from t5repro.model.block import Block
from t5repro.model.layers import Tensor
from t5repro.model.rotary import Rotation
from t5repro.model.single_rows import two_rows_or_more

START_ID = 0  # first input of a decoder


class EncodedInputs(NamedTuple):
    """The inputs in the form that decoding attends to.

    Attributes:
        keys_values: keys and values for each block of the decoder, (batch, heads, M, d_kv).
        segments: 1 at positions with an id, else 0; (batch, M).
        first_ids: input of the first step, (batch,).
    """

    keys_values: list[list[Tensor]]
    segments: Tensor
    first_ids: Tensor

    def of_two_rows_or_more(self) -> "EncodedInputs":
        """Return these inputs, a single row twice: a step then has no product with one row."""
        return EncodedInputs(
            [[two_rows_or_more(array) for array in arrays] for arrays in self.keys_values],
            two_rows_or_more(self.segments),
            two_rows_or_more(self.first_ids),
        )


class Decoding(ABC):
    """How the steps of decoding attend to the inputs and to the answer so far.

    Args:
        network: the network that decodes; it has a `decoder`, and `embed` for its ids.
    """

    def __init__(self, network: Any) -> None:
        self.network = network

    @abstractmethod
    def encode(self, ids_BM: Tensor, segments_BM: Tensor) -> EncodedInputs:
        """Run the network on its inputs.

        Args:
            ids_BM: int32, EOS included, padded on the right.
            segments_BM: 1 at positions with an id, else 0.
        """

    @abstractmethod
    def encoded_biases(self, segments_BM: Tensor, step: Tensor, *, steps: int) -> list[Tensor]:
        """Return the biases of one step's attention logits over the inputs, float32.

        Args:
            segments_BM: of the encoded inputs.
            step: number of the step, from 0.
            steps: the greatest number of steps.

        Returns:
            Arrays of (batch, 1 or heads, 1, M), see `attention.bias_of_block`.
        """

    @abstractmethod
    def positions(self, segments_BM: Tensor, step: Tensor) -> Tensor:
        """Return the position of a step in each row, int32 (batch,) or, if all are equal, (1,).

        Args:
            segments_BM: of the encoded inputs.
            step: number of the step, from 0.
        """

    def answer_mask(self, steps: int) -> np.ndarray:
        """Return the bias of each step over the answer so far without position biases."""
        return causal_mask(steps)

    def answer_biases(self, steps: int) -> list[Tensor]:
        """Return the biases of each step's attention logits over the answer so far, float32.

        Returns:
            Arrays of (steps, heads, steps), by step, head and position, see
            `attention.bias_of_block`.
        """
        mask_TT = self.answer_mask(steps)
        biases = self.network.decoder.position_biases(lambda table: table(length=steps) + mask_TT)
        return [ops.transpose(bias_HTT, (1, 0, 2)) for bias_HTT in biases]

    def rotation(self, segments_BM: Tensor, step: Tensor, *, steps: int) -> Rotation | None:
        """Return the angles of one step's position in each row; None if they are not rotary.

        Args:
            segments_BM: of the encoded inputs.
            step: number of the step, from 0.
            steps: the greatest number of steps.
        """
        table = self.network.decoder.rotation(segments_BM.shape[1] + steps)
        return table.select(self.positions(segments_BM, step)) if table else None

    def embed(self, last_BW: Tensor, segments_BM: Tensor, step: Tensor) -> Tensor:
        """Return the embedded input of a step, (batch, answers of a row, features).

        Args:
            last_BW: int32, the id before the step in each answer of each row.
            segments_BM: of the encoded inputs.
            step: number of the step, from 0.
        """
        return self.network.decoder.add_positions(
            self.network.embed(last_BW), lambda: self.positions(segments_BM, step)[:, None]
        )


class CrossDecoding(Decoding):
    """Decoding that attends to the output of an encoder."""

    def encode(self, ids_BM: Tensor, segments_BM: Tensor) -> EncodedInputs:
        """Run the encoder, see `Decoding`."""
        encoded_BMD = self.network.encode(ids_BM, segments_BM)
        return EncodedInputs(
            [
                block.cross_attention.keys_and_values(encoded_BMD)
                for block in self.network.decoder.blocks
            ],
            segments_BM,
            ops.full((ops.shape(ids_BM)[0],), START_ID, dtype="int32"),
        )

    def encoded_biases(self, segments_BM: Tensor, step: Tensor, *, steps: int) -> list[Tensor]:
        """Return the mask of the inputs: cross-attention has no position bias."""
        return [_mask_of_inputs(segments_BM)]

    def positions(self, segments_BM: Tensor, step: Tensor) -> Tensor:
        """Return the step itself: the answer has a row of its own."""
        return step[None]


class PrefixDecoding(Decoding):
    """Decoding of a decoder only, which sees 0, the inputs and then its answer.

    The first step starts from the last input id. Its keys are already among the keys of the inputs,
    so the first position of the answer's cache stays unused and masked.
    """

    def encode(self, ids_BM: Tensor, segments_BM: Tensor) -> EncodedInputs:
        """Run the decoder on 0 and the inputs, M + 1 positions, see `Decoding`."""
        decoder = self.network.decoder
        # The position after the last input predicts the first id of the answer.
        segments_BM = ops.pad(segments_BM, [[0, 0], [1, 0]], constant_values=1)
        shifted_BM = ops.pad(ids_BM, [[0, 0], [1, 0]]) * segments_BM
        biases = decoder.self_biases(segments_BM, segments_BM if self.network.sees_prefix else None)
        angles = decoder.rotation(segments_BM.shape[1])
        x_BMD = decoder.add_positions(
            self.network.embed(shifted_BM),
            lambda: ops.arange(segments_BM.shape[1], dtype="int32")[None],
        )
        keys_values: list[list[Tensor]] = []
        # The blocks of `Stack.call` without dropout, which also hand out their keys and values.
        for number, block in enumerate(decoder.blocks):

            def attend(x_BMD: Tensor, block: Block = block, number: int = number) -> Tensor:
                attention = block.self_attention
                queries, keys, values = attention.queries_keys_values(x_BMD, angles)
                keys_values.append([keys, values])
                return attention.read(queries, keys, values, bias_of_block(biases, number))

            x_BMD = block.feed_forward_sublayer(block.self_attention_sublayer(x_BMD, attend))
        last_B1 = ops.sum(segments_BM, axis=1, keepdims=True) - 1
        first_ids_B = ops.take_along_axis(shifted_BM, last_B1, axis=1)[:, 0]
        return EncodedInputs(keys_values, segments_BM, first_ids_B)

    def encoded_biases(self, segments_BM: Tensor, step: Tensor, *, steps: int) -> list[Tensor]:
        """Return mask and position biases: the inputs are earlier positions of the same row."""
        mask_B11M = _mask_of_inputs(segments_BM)
        length = segments_BM.shape[1]
        distance_BM = (
            self.positions(segments_BM, step)[:, None] - ops.arange(length, dtype="int32")[None]
        )
        farthest = length + steps
        # Positions of padding are after the query; they are masked, whatever their bucket.
        distance_BM = ops.clip(distance_BM, 0, farthest)
        biases = self.network.decoder.position_biases(
            lambda table: table.distance_bias(distance_BM, farthest)
        )
        return [ops.transpose(bias_HBM, (1, 0, 2))[:, :, None] + mask_B11M for bias_HBM in biases]

    def positions(self, segments_BM: Tensor, step: Tensor) -> Tensor:
        """Return the position after the inputs and the earlier steps."""
        return ops.sum(segments_BM, axis=1) - 1 + step

    def answer_mask(self, steps: int) -> np.ndarray:
        """Return the causal mask without the position of the first step, see the class."""
        mask_TT = causal_mask(steps)
        mask_TT[:, 0] = BLOCKED  # its key is the one of the last input, which would count twice
        return mask_TT


def _mask_of_inputs(segments_BM: Tensor) -> Tensor:
    return segment_mask(ops.ones_like(segments_BM[:, :1]), segments_BM)
