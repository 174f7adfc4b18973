"""Loss, gradients and noise of a step with and without recomputed activations, as a program on JAX.

python remat_steps.py FILE.npz
"""

import sys
from typing import Any

import numpy as np
import tiny_training as tiny
from engine_steps import MODES, Case, cases, compiled

from t5repro.config.sections.devices import DevicesSettings, Remat
from t5repro.engines.devices import prepare

CASES = (
    "T5",
    "prefix language model",
    "masked pieces, pairs and borders in parts",  # blocks that share weights
    "answers of a decoder with its language model",
)
DEEP = {"num_encoder_layers": 3, "num_decoder_layers": 3}
KINDS: tuple[Remat, ...] = ("none", "block", "dots")


def step_of(case: Case, remat: Remat) -> Any:
    """Return the step of a case with dropout; its network is freshly initialised."""
    model = compiled(case, "jax", MODES["float32"], dropout_rate=0.1)
    from t5repro.train.compiled_model import recompute_blocks

    recompute_blocks(model.network, remat)
    return model.step


def gradients(step: Any, batch: Any) -> dict[str, np.ndarray]:
    """Return the sum of the losses, gradients by weight, and the new states of the noise."""
    import jax

    features, targets = batch
    weights, others, _ = step.state()

    def sums(weights: Any, others: Any) -> Any:
        divisor = step.loss.divisor(targets, step.normaliser)
        terms = step.loss.term_weights(step.network, features, targets, divisor)
        return step._sums(weights, terms, others, features, targets)

    summed, states, found = jax.jit(sums)(weights, others)
    names = [weight.path for weight in step.network.trainable_variables]
    arrays = {"loss": summed, **dict(zip(names, found, strict=True))}
    arrays |= {f"noise {number}": state for number, state in enumerate(states)}
    return {name: np.asarray(value) for name, value in arrays.items()}


def memory(remat: Remat) -> int:
    """Return the temporary memory of a compiled step of a deep network with long rows; bytes."""
    import jax

    case = Case(model=tiny.SHAPE.model_copy(update=DEEP))
    batch = jax.tree.map(lambda array: np.tile(array, (4, 16)), tiny.batch(0))
    step = step_of(case, remat)
    program = jax.jit(step.update).lower(step.state(), *batch).compile()
    return int(program.memory_analysis().temp_size_in_bytes)


def main(path: str) -> None:
    """Write the arrays of all cases and kinds, and the memory of each kind."""
    prepare(DevicesSettings(engine="jax", remat="block"))
    arrays: dict[str, Any] = {f"memory/{remat}": memory(remat) for remat in KINDS}
    for name in CASES:
        case = cases()[name]
        for remat in KINDS:
            for key, value in gradients(step_of(case, remat), case.batch(0)).items():
                arrays[f"{name}/{remat}/{key}".replace(" ", "_")] = value
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
