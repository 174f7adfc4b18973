"""This project's step and decoding on JAX: SHAPE ROWS WORK STEPS [fused] [no_dropout]."""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # the parts of a group share the card

import accelerator_shapes as shared
import jax
import keras
import numpy as np
import training_shapes

from t5repro.config.sections.model import ModelSettings
from t5repro.model.beam import beam_graph
from t5repro.model.decode import greedy_graph
from t5repro.model.transformer import EncoderDecoder
from t5repro.systems.loss import TextLoss
from t5repro.train.adafactor import Adafactor
from t5repro.train.jax_step import JaxStep
from t5repro.vocab.special_ids import EOS_ID


def main() -> None:
    """Measure what the command line names."""
    job = shared.job()
    training = job.work == "train"
    network = EncoderDecoder(
        training_shapes.settings(job.shape, ModelSettings),
        embedding_rows=job.shape.ids,
        dropout_rate=training_shapes.DROPOUT
        if training and "no_dropout" not in job.options
        else 0.0,
        seed=0,
        dtype="bfloat16",
        fused_attention="fused" in job.options,
    )
    result = train(job, network) if training else decode(job, network)
    memory = jax.devices()[0].memory_stats() or {}
    shared.tell({**result, "gigabytes": memory.get("peak_bytes_in_use", 0) / 1e9})


def train(job: shared.Job, network: EncoderDecoder) -> dict[str, float]:
    """Measure a step with its update."""
    optimizer = Adafactor(training_shapes.RATE)
    optimizer.build(network.trainable_variables)
    step = JaxStep(network, TextLoss(z_loss=1e-4), optimizer, normaliser="padded_size")
    batches = [(features(*batch), batch[1]) for batch in shared.batches(job.shape)]
    state = step.state()

    def update(number: int) -> jax.Array:
        nonlocal state
        # As in a training: each batch travels to the card.
        state, loss = step(state, *jax.device_put(batches[number % len(batches)]))
        return loss

    return shared.train(job.shape, job.steps, update, float)


def features(inputs: np.ndarray, targets: np.ndarray) -> dict[str, np.ndarray]:
    """Return the features of full rows of one example."""
    return {
        "encoder_ids": inputs,
        "encoder_segments": np.ones_like(inputs),
        "decoder_ids": np.pad(targets, ((0, 0), (1, 0)))[:, :-1],
        "decoder_segments": np.ones_like(targets),
    }


def decode(job: shared.Job, network: EncoderDecoder) -> dict[str, float]:
    """Measure the decoding of a batch; no answer ends early."""
    logits = network.logits
    never = np.where(np.arange(job.shape.ids) == EOS_ID, np.float32(-1e9), np.float32(0))
    network.logits = lambda *arrays: logits(*arrays) + never
    variables = network.weights
    values = [variable.value for variable in variables]

    def answers(values: list[jax.Array], ids: jax.Array, segments: jax.Array) -> jax.Array:
        with keras.StatelessScope(state_mapping=[*zip(variables, values, strict=True)]):
            if job.work == "greedy":
                return greedy_graph(network, ids, segments, max_decode_length=shared.ANSWER)
            return beam_graph(
                network,
                ids,
                segments,
                max_decode_length=shared.ANSWER,
                width=shared.WIDTH,
                length_penalty=shared.LENGTH_PENALTY,
            )

    compiled = jax.jit(answers)
    ids, _ = shared.batches(job.shape)[0]
    return shared.decode(job.shape, lambda: np.asarray(compiled(values, ids, np.ones_like(ids))))


if __name__ == "__main__":
    main()
