"""What both programs of the encoders' benchmark share: shapes and made-up rows."""

from typing import Any

import numpy as np

from t5repro.config.flops import step_flops
from t5repro.config.published_sizes import SIZES
from t5repro.config.sections.pretrain import PretrainSettings

DROPOUT = 0.1
RATE = 1e-4
IDS = 32_128
ROWS, LENGTH, MASKED = 16, 128, 20
SYSTEMS = {"bert": "next_sentence", "roberta": "none", "albert": "sentence_order"}


def pretraining(system: str) -> PretrainSettings:
    """Return the settings of pre-training of a system."""
    pair_task = SYSTEMS[system]
    return PretrainSettings.model_validate(
        {
            "objective": "masked_lm",
            "masked_lm": {
                "rows": "full_sentences" if pair_task == "none" else "segment_pair",
                "pair_task": pair_task,
            },
            "batch_size": ROWS,
            "inputs_length": LENGTH,
            "targets_length": MASKED,
            "dropout_rate": DROPOUT,
            "loss_normaliser": "target_tokens",
            "z_loss": 0,
            "optimizer": "adam_fairseq",
            "weight_decay": 0.01,
            "learning_rate": {"schedule": "constant", "factor": RATE},
        }
    )


def batch(system: str) -> tuple[dict[str, Any], np.ndarray]:
    """Return full rows of made-up ids, features and targets, as pre-training has them."""
    draw = np.random.default_rng(0)
    places = np.sort(draw.permuted(np.tile(np.arange(LENGTH), (ROWS, 1)), axis=1)[:, :MASKED])
    features = {
        "encoder_ids": draw.integers(3, IDS - 200, (ROWS, LENGTH)),
        "encoder_segments": np.ones((ROWS, LENGTH)),
        "encoder_types": np.tile(np.arange(LENGTH) >= LENGTH // 2, (ROWS, 1)),
        "target_positions": places,
    }
    if SYSTEMS[system] != "none":
        features["pair_label"] = draw.integers(0, 2, ROWS)
    targets = draw.integers(3, IDS - 200, (ROWS, MASKED)).astype(np.int32)
    return {name: array.astype(np.int32) for name, array in features.items()}, targets


def size_of(system: str, size: str) -> Any:
    """Return the shape of a network, such as that of ``bert`` and ``mini``."""
    return SIZES[f"{system}_{size}"]


def operations(system: str, size: str) -> int:
    """Return the operations of the matrix products of a step, as t5repro counts them."""
    return step_flops(size_of(system, size), pretraining(system), embedding_rows=IDS)
