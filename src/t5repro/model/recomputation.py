"""Activations that the backward pass computes again instead of keeping them in memory (JAX only).

A block then keeps its inputs only, and its forward pass runs a second time before its gradient.
TensorFlow's `recompute_grad` would draw other noise the second time, since dropout's noise is a
state that every draw changes; here the state is an argument and a result.

Source: Chen et al., 2016, "Training deep nets with sublinear memory cost".
"""

from collections.abc import Callable
from typing import Any

import keras

from t5repro.config.sections.devices import Remat
from t5repro.model.layers import Tensor


def recomputed(
    layer: keras.layers.Layer,
    function: Callable[..., Tensor],
    inputs: tuple[Any, ...],
    remat: Remat,
) -> Tensor:
    """Return `function(*inputs)`, of which the backward pass keeps only what `remat` says.

    Args:
        layer: has all weights and noise states that the function reads.
        function: of arrays, or tuples of them; an argument may be None.
        inputs: its arguments.
        remat: `block` keeps nothing but the inputs, `dots` the products with weights too.
    """
    import jax

    variables = layer.variables
    states = layer.non_trainable_variables  # of noise; a frozen weight among them stays equal

    def of_values(values: list[Any], *arrays: Any) -> tuple[Tensor, list[Any]]:
        # A scope of its own: a value that the outer scope received from in here would be used
        # outside of the function whose trace made it.
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            result = function(*arrays)
        return result, [scope.get_current_value(state) for state in states]

    products = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    policy = products if remat == "dots" else None  # None: nothing is kept
    result, new_states = jax.checkpoint(of_values, policy=policy)(
        [variable.value for variable in variables], *inputs
    )
    for state, value in zip(states, new_states, strict=True):
        state.assign(value)
    return result
