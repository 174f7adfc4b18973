"""The stochastic answer network: MT-DNN's head for the labels of pairs of texts.

It reads the states of the second segment in several turns, each with a query that the turn before
has made, and averages the probabilities of all turns. In training it leaves out turns at random.

Source: Liu et al., 2018 (arXiv 1804.07888), section 2; MT-DNN v0.1, ``SANClassifier``.

Shape suffixes: B rows of the batch, L positions, D features, C classes, K turns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.dense import ClassHead, Dense
from t5repro.model.initial_values import Draw
from t5repro.model.layers import Dropout, SeededLayer, Tensor, matmul
from t5repro.randomness import single_seed

TURNS = 5
EXCLUDED = -1e9  # score of a position of the other segment: a weight of 0
FLOOR = 1e-30  # least probability: the logarithm of 0 would end the training


class SanHead(SeededLayer):
    """A stochastic answer network for each of some tasks.

    Args:
        model: shape of the network.
        tasks: name, number of classes and share of features dropped in training, of each task.
        turn_dropout: share of turns left out in training.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        tasks: Sequence[tuple[str, int, float]],
        turn_dropout: float,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.networks = [
            AnswerNetwork(
                model,
                classes=classes,
                dropout_rate=rate,
                turn_dropout=turn_dropout,
                **self.inner(task),
            )
            for task, classes, rate in tasks
        ]

    def build(self, input_shape: Any = None) -> None:
        """Create all weights."""
        for network in self.networks:
            network.build()

    def call(
        self, states_BLD: Tensor, segments_BL: Tensor, types_BL: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Return the logarithms of the probabilities of each task's classes, (batch, classes).

        Args:
            states_BLD: output of the encoder.
            segments_BL: 1 at positions of the example, 0 at padding.
            types_BL: 0 at positions of the first segment with its special pieces, 1 of the second.
            training: apply dropout and leave out turns.
        """
        is_row_BL = segments_BL > 0
        first_BL = ops.logical_and(is_row_BL, types_BL == 0)
        second_BL = ops.logical_and(is_row_BL, types_BL > 0)
        return [
            network(states_BLD, first_BL, second_BL, training=training) for network in self.networks
        ]


class AnswerNetwork(SeededLayer):
    """The stochastic answer network of one task.

    Args:
        model: shape of the network.
        classes: labels of the task.
        dropout_rate: share of features dropped in training.
        turn_dropout: share of turns left out in training; one at random never is.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        classes: int,
        dropout_rate: float,
        turn_dropout: float,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        width = model.d_model
        self.query = ClassHead(model, inputs=width, outputs=1, **self.inner("query"))
        self.attention = Dense(model, inputs=width, outputs=width, **self.inner("attention"))
        self.gru = GatedUnit(width, **self.inner("gru"))
        self.classes = ClassHead(model, inputs=4 * width, outputs=classes, **self.inner("classes"))
        # The same features at all positions of a row, as ``DropoutWrapper`` drops them.
        self.query_dropout, self.key_dropout = (
            Dropout(dropout_rate, **self.inner(name)) for name in ("query_dropout", "key_dropout")
        )
        self.asked_dropout, self.class_dropout, self.state_dropout = (
            Dropout(dropout_rate, per_position=True, **self.inner(name))
            for name in ("asked_dropout", "class_dropout", "state_dropout")
        )
        self.turn_dropout = TurnDropout(turn_dropout, **self.inner("turn_dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create all weights."""
        for layer in (self.query, self.attention, self.gru, self.classes):
            layer.build()

    def call(
        self, states_BLD: Tensor, first_BL: Tensor, second_BL: Tensor, training: bool = False
    ) -> Tensor:
        """Return the logarithms of the probabilities of the classes, float32 (batch, classes)."""
        x_BLD = ops.cast(states_BLD, floatx())
        # 1. The first query: a weighted mean of the states of the first segment.
        h_BLD = self.query_dropout(x_BLD, training=training)
        state_BD = mean_state(h_BLD, self.query(h_BLD)[..., 0], first_BL)
        turns = []
        for _ in range(TURNS):
            # 2. What the query finds in the second segment.
            keys_BLD = self.key_dropout(x_BLD, training=training)
            asked_BD = self.asked_dropout(state_BD, training=training)
            # A length axis of 1, as in `Encoder.pooled`.
            asked_B1D = self.attention(asked_BD[:, None])
            read_BD = mean_state(x_BLD, ops.sum(keys_BLD * asked_B1D, axis=-1), second_BL)
            # 3. The classes, from both and their distance and product.
            apart_BD = read_BD - state_BD
            # The maximum is the absolute value, by an operation with measured bits (D-043).
            both = [read_BD, state_BD, ops.maximum(apart_BD, -apart_BD), read_BD * state_BD]
            merged = self.class_dropout(ops.concatenate(both, axis=-1), training=training)
            turns.append(ops.softmax(self.classes(merged), axis=-1))
            # 4. The query of the next turn.
            state_BD = self.gru(read_BD, self.state_dropout(state_BD, training=training))
        kept_BKC = self.turn_dropout(ops.stack(turns, axis=1), training=training)
        return logarithm(ops.maximum(ops.mean(kept_BKC, axis=1), FLOOR))


def mean_state(x_BLD: Tensor, scores_BL: Tensor, inside_BL: Tensor) -> Tensor:
    """Return the mean of states, weighted by a softmax of scores at some positions, (batch, D)."""
    weights_BL = ops.softmax(ops.where(inside_BL, scores_BL, EXCLUDED), axis=-1)
    return ops.sum(weights_BL[..., None] * x_BLD, axis=1)


class GatedUnit(SeededLayer):
    """A gated recurrent unit with a state as wide as its input.

    Args:
        width: features.
        layer: seed, path and precision, see `SeededLayer`.

    Source: PyTorch ``GRUCell``, with its initial values.
    """

    def __init__(self, width: int, **layer: Any) -> None:
        super().__init__(**layer)
        self.width = width

    def build(self, input_shape: Any = None) -> None:
        """Create two matrices and two biases: the gates reset and update, and the new state."""
        columns, draw = 3 * self.width, uniform(self.width**-0.5)
        for name in ("input", "state"):
            setattr(
                self, f"{name}_matrix", self.weight(f"{name}_matrix", (self.width, columns), draw)
            )
            setattr(self, f"{name}_bias", self.weight(f"{name}_bias", (columns,), draw))

    def call(self, x_BD: Tensor, state_BD: Tensor) -> Tensor:
        """Return the next state, (batch, features)."""
        of_input = matmul(x_BD[:, None], self.input_matrix, self.input_bias)[:, 0]
        of_state = matmul(state_BD[:, None], self.state_matrix, self.state_bias)[:, 0]
        reset, update, new = zip(*map(self._gates, (of_input, of_state)), strict=True)
        r, z = sigmoid(sum(reset)), sigmoid(sum(update))
        n = ops.tanh(new[0] + r * new[1])
        return (1.0 - z) * n + z * state_BD

    def _gates(self, columns: Tensor) -> Any:
        """Return reset, update and new state, (batch, features) each."""
        return ops.unstack(ops.reshape(columns, (-1, 3, self.width)), axis=1)


class TurnDropout(SeededLayer):
    """Leave out turns of a row at random, but for one of them.

    Args:
        rate: share of turns that are left out.
        layer: seed, path and precision, see `SeededLayer`.

    Source: MT-DNN v0.1, ``generate_mask``: the turn that is kept is scaled up as well.
    """

    def __init__(self, rate: float, **layer: Any) -> None:
        super().__init__(**layer)
        self.rate = rate
        if rate > 0:
            noise_seed = single_seed(self.seed, "dropout", self.model_path)
            self.noise = keras.random.SeedGenerator(noise_seed, name="noise")
        self.built = True

    def call(self, turns_BKC: Tensor, training: bool = False) -> Tensor:
        """Return the probabilities, in training with turns of 0 and the others scaled up."""
        if not training or self.rate == 0:
            return turns_BKC
        rows, turns = turns_BKC.shape[:2]
        draws = keras.random.uniform((rows, 2, turns), seed=self.noise, dtype="float32")
        # The turn with the largest of as many draws is any one with the same probability.
        always_B1 = ops.argmax(draws[:, 1], axis=-1)[:, None]
        is_always_BK = ops.arange(turns, dtype=always_B1.dtype)[None] == always_B1
        is_kept_BK = ops.logical_or(draws[:, 0] >= self.rate, is_always_BK)
        return (
            turns_BKC * (ops.cast(is_kept_BK, turns_BKC.dtype) * (1 / (1 - self.rate)))[..., None]
        )


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)) by the tangent, which has measured bits (D-043)."""
    return 0.5 + 0.5 * ops.tanh(0.5 * x)


def logarithm(x: Tensor) -> Tensor:
    """Return the logarithm; its gradient is a quotient, not a reciprocal (D-043)."""

    def function(x: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> Tensor:
            (upstream,) = arguments if upstream is None else (upstream,)
            return upstream / x

        return ops.log(x), gradient

    return ops.custom_gradient(function)(x)


def uniform(limit: float) -> Draw:
    """Draw uniformly within a limit."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return (generator.random(shape, dtype=np.float32) * 2 - 1) * np.float32(limit)

    return draw
