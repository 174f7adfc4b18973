"""A training step on JAX: one compiled function from state and batch to loss and new state.

Keras's `fit` calls `JaxModel.train_step`, which calls `JaxStep.update`; `JaxStep` itself is called
for single steps (`train/repeated_steps.py`). It computes what `tensorflow_step` computes, with the
same network, loss and optimizer. Keras's own step on JAX is not used: it knows one loss of one
output, and a loss here may read several heads.

Shape suffixes: B rows of the batch.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import keras
from keras.config import floatx

from t5repro.engines.jax_engine import parts_of
from t5repro.systems.loss import Features, Loss, Normaliser
from t5repro.train.optimizer import Optimizer
from t5repro.train.step import TrainedModel

Arrays = list[jax.Array]
Sums = tuple[jax.Array, Arrays, Arrays]  # loss, other variables, gradients; see `JaxStep._sums`


class State(NamedTuple):
    """All that a step changes.

    Attributes:
        weights: of the network, those that are trained.
        untrained_values: of the network: weights that are not trained, and the states of dropout's
            noise.
        slots: of the optimizer, its count of updates among them.
    """

    weights: Arrays
    untrained_values: Arrays
    slots: Arrays


class JaxStep:
    """A compiled training step.

    Args:
        network: the network, with its weights.
        loss: of a batch.
        optimizer: built with the network's trainable variables.
        normaliser: see `Loss.divisor`.
        micro_batches: number of parts that a batch is split into.
    """

    def __init__(
        self,
        network: Any,
        loss: Loss,
        optimizer: Optimizer,
        *,
        normaliser: Normaliser,
        micro_batches: int = 1,
    ) -> None:
        self.network = network
        self.loss = loss
        self.optimizer = optimizer
        self.normaliser: Normaliser = normaliser
        self.micro_batches = micro_batches

    @cached_property
    def _compiled(self) -> Callable[..., tuple[State, jax.Array]]:
        # The old state's memory holds the new one, in the same parts on the same devices.
        shardings = [[variable.value.sharding for variable in group] for group in self.variables]
        return jax.jit(self.update, donate_argnums=0, out_shardings=(State(*shardings), None))

    def state(self) -> State:
        """Return a copy of the present state, to begin with.

        A step gives the memory of its state away: the variables keep theirs.
        """
        return State(
            *([jnp.array(variable.value) for variable in variables] for variables in self.variables)
        )

    def write(self, state: State) -> None:
        """Write a state into the variables of the network and the optimizer."""
        for variables, values in zip(self.variables, state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

    def __call__(
        self, state: State, features: Features, targets: jax.Array
    ) -> tuple[State, jax.Array]:
        """Return the state after an update, and the loss of the batch before it.

        Args:
            state: of `state` or of an earlier call; it is used up.
            features: of the rows of a batch.
            targets: of the same rows.
        """
        updated: tuple[State, jax.Array] = self._compiled(state, features, targets)
        return updated

    @property
    def variables(self) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """The variables of a `State`, in its order."""
        network = self.network
        return (
            network.trainable_variables,
            network.non_trainable_variables,
            self.optimizer.variables,
        )

    def update(
        self, state: State, features: Features, targets: jax.Array
    ) -> tuple[State, jax.Array]:
        """Return the result of a call, in operations of JAX that are not compiled yet."""
        weights, untrained_values, slots = state
        divisor = self.loss.divisor(targets, self.normaliser)
        term_weights = self.loss.term_weights(self.network, features, targets, divisor)
        sums = partial(self._sums, weights, term_weights)
        if self.micro_batches == 1:
            summed, untrained_values, gradients = sums(untrained_values, features, targets)
        else:
            zeros = [jnp.zeros_like(weight) for weight in weights]
            summed, untrained_values, gradients = self._over_parts(
                sums, zeros, untrained_values, features, targets
            )
        weights, slots = self.optimizer.stateless_apply(
            slots, [gradient / divisor for gradient in gradients], weights
        )
        return State(weights, untrained_values, slots), summed / divisor

    def _sums(
        self,
        weights: Arrays,
        term_weights: Mapping[str, jax.Array],
        untrained_values: Arrays,
        features: Features,
        targets: jax.Array,
    ) -> Sums:
        """Return the summed loss of some rows, the other variables after it, and its gradients."""

        def summed_loss(weights: Arrays) -> tuple[jax.Array, Arrays]:
            trained, untrained, _ = self.variables
            mapping = [
                *zip(trained, weights, strict=True),
                *zip(untrained, untrained_values, strict=True),
            ]
            with keras.StatelessScope(state_mapping=mapping) as scope:
                summed = self.loss.summed(self.network, features, targets, term_weights)
            return summed, [scope.get_current_value(variable) for variable in untrained]

        (summed, untrained_values), gradients = jax.value_and_grad(summed_loss, has_aux=True)(
            weights
        )
        return summed, untrained_values, gradients

    def _over_parts(
        self,
        sums: Callable[..., Sums],
        zeros: Arrays,
        untrained_values: Arrays,
        features: Features,
        targets: jax.Array,
    ) -> Sums:
        """Return the result of `sums` with the activations of one part in memory at a time."""

        def add(total: Sums, part: tuple[Features, jax.Array]) -> tuple[Sums, None]:
            summed, untrained_values, gradients = total
            part_sum, untrained_values, part_gradients = sums(untrained_values, *part)
            added = [a + b for a, b in zip(gradients, part_gradients, strict=True)]
            return (summed + part_sum, untrained_values, added), None

        divided = partial(parts_of, parts=self.micro_batches)
        parts = jax.tree.map(divided, (features, targets))
        total, _ = jax.lax.scan(add, (jnp.zeros((), floatx()), untrained_values, zeros), parts)
        return total


class JaxModel(TrainedModel):
    """A trained model whose step is a function of JAX, which `fit` compiles."""

    def compile(self, optimizer: Optimizer, **arguments: Any) -> None:
        """Set the optimizer; Keras's own loss is not used."""
        super().compile(optimizer=optimizer, **{**arguments, "loss": None, "jit_compile": True})
        self.step = JaxStep(
            self.network,
            self.objective,
            optimizer,
            normaliser=self.normaliser,
            micro_batches=self.micro_batches,
        )

    def train_step(
        self, state: tuple[Arrays, Arrays, Arrays, Arrays], data: tuple[Features, jax.Array]
    ) -> tuple[dict[str, jax.Array], tuple[Arrays, Arrays, Arrays, Arrays]]:
        """Return the mean loss and the counts since a reset, and the state after an update."""
        *variables, metrics = state
        features, targets = data
        updated, loss = self.step.update(State(*variables), features, targets)
        mapping = list(zip(self.metrics_variables, metrics, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self.count(features, targets)
            self._loss_tracker.update_state(loss, sample_weight=targets.shape[0])
            logs = self.get_metrics_result()
            counted = [scope.get_current_value(variable) for variable in self.metrics_variables]
        return logs, (*updated, counted)
