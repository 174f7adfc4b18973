"""Batches of pre-training; those of fine-tuning are in `examples`.

Each element of a dataset is ``(features, targets)``: features ``encoder_ids`` and
``encoder_segments`` ``(batch_rows, inputs_length)``, ``decoder_ids`` and ``decoder_segments``
``(batch_rows, targets_length)``, targets ``(batch_rows, targets_length)``, all int32, 0 for
padding. For a decoder alone (`joined`) inputs and targets are one row of the sum of their lengths:
features ``decoder_ids``, ``decoder_segments`` and ``decoder_prefix``, and targets, 0 at inputs too.
Step n's batch depends on the data, the settings, the seed and n, never on the step at
which a run began or on how many threads work. Between files and batches there are TensorFlow
operations only, so that the hosts of a TPU pod can run them.
"""

from pathlib import Path
from typing import Any

import tensorflow as tf

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.inputs.pretraining import load_span_inputs


def span_corruption_batches(
    settings: PretrainSettings,
    *,
    tokens: Path,
    offsets: Path,
    vocab: VocabSettings,
    seed: int,
    first_step: int,
    steps: int,
    joined: bool = False,
) -> tf.data.Dataset:
    """Return the batches of pre-training from `first_step` on.

    Args:
        settings: of pre-training.
        tokens: file of ids.
        offsets: file of document offsets.
        vocab: of the vocabulary that the ids belong to.
        seed: the run's seed.
        first_step: number of the first batch.
        steps: how many batches.
        joined: inputs and targets are one row, for a decoder alone.
    """
    inputs = load_span_inputs(
        settings, tokens=tokens, offsets=offsets, vocab=vocab, seed=seed, joined=joined
    )
    return inputs.batches(first_step=first_step, steps=steps)


def span_corruption_counters(
    settings: PretrainSettings,
    *,
    tokens: Path,
    offsets: Path,
    vocab: VocabSettings,
    seed: int,
    steps: int,
    joined: bool = False,
) -> dict[str, Any]:
    """Return what the manifest of pre-training says of its batches; see `SpanInputs.counters`."""
    inputs = load_span_inputs(
        settings, tokens=tokens, offsets=offsets, vocab=vocab, seed=seed, joined=joined
    )
    return inputs.counters(steps=steps)
