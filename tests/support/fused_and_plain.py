"""Loss and gradients of a network with fused and with plain attention, on JAX, as a program.

python fused_and_plain.py FILE.npz

Rows are padded; dropout is on, and both networks draw the same noise.
"""

import os
import sys

import jax
import numpy as np
import tiny_training as tiny

os.environ["KERAS_BACKEND"] = "jax"
from t5repro.model.transformer import EncoderDecoder
from t5repro.systems.loss import TextLoss
from t5repro.train.adafactor import Adafactor
from t5repro.train.jax_step import JaxStep


def main(path: str) -> None:
    """Write the loss and each gradient of both networks."""
    arrays = {}
    for name in ("plain", "fused"):
        network = EncoderDecoder(
            tiny.SHAPE.model_copy(update={"num_encoder_layers": 2, "num_decoder_layers": 2}),
            embedding_rows=128,
            dropout_rate=0.2,
            seed=0,
            fused_attention=name == "fused",
        )
        optimizer = Adafactor(0.01)
        optimizer.build(network.trainable_variables)
        step = JaxStep(network, TextLoss(z_loss=1e-4), optimizer, normaliser="target_tokens")
        features, targets = tiny.batch(0)
        weights, others, _ = step.state()
        with jax.default_matmul_precision("highest"):
            loss, _, gradients = jax.jit(step._sums)(weights, {}, others, features, targets)
        arrays[f"{name} loss"] = loss
        for variable, gradient in zip(network.trainable_variables, gradients, strict=True):
            arrays[f"{name} {variable.path}"] = gradient
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})


if __name__ == "__main__":
    main(sys.argv[1])
