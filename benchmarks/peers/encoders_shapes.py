"""What both programs of the benchmark of systems before T5 share: shapes and made-up rows."""

from typing import Any

import numpy as np

from t5repro.config.flops import step_flops
from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.pretrain import PretrainSettings

DROPOUT = 0.1
RATE = 1e-4
IDS = 32_128
ROWS, LENGTH, MASKED = 16, 128, 20
SPAN = 4  # pieces of a masked span of SpanBERT
OF_SENTENCES: dict[str, dict[str, Any]] = {
    "bert": {"rows": "segment_pair", "pair_task": "next_sentence"},
    "roberta": {"rows": "full_sentences", "pair_task": "none"},
    "albert": {"rows": "segment_pair", "pair_task": "sentence_order"},
    "spanbert": {
        "rows": "doc_sentences",
        "pair_task": "none",
        "unit": "span",
        "boundary_weight": 1,
    },
    "structbert": {
        "rows": "segment_pair",
        "pair_task": "sentence_structure",
        "shuffle_share": 0.05,
    },
    "electra": {"rows": "electra_segments", "pair_task": "none"},
}
# System -> settings of pre-training in which it differs from the others.
PRETRAININGS: dict[str, dict[str, Any]] = {
    "gpt": {"objective": "lm", "targets_length": LENGTH},
    "xlnet": {"objective": "permutation_lm", "targets_length": 21},
    "structbert": {"targets_length": 26},  # 20 masked pieces and two shuffled trigrams
}


def pretraining(system: str) -> PretrainSettings:
    """Return the settings of pre-training of a system."""
    masked_lm = OF_SENTENCES.get(system)
    return PretrainSettings.model_validate(
        {
            **({"masked_lm": masked_lm} if masked_lm else {}),
            "objective": "masked_lm",
            "batch_size": ROWS,
            "inputs_length": LENGTH,
            "targets_length": MASKED,
            "dropout_rate": DROPOUT,
            "loss_normaliser": "target_tokens",
            "z_loss": 0,
            "optimizer": "adam_fairseq",
            "weight_decay": 0.01,
            "learning_rate": {"schedule": "constant", "factor": RATE},
            **PRETRAININGS.get(system, {}),
        }
    )


def batch(system: str) -> tuple[dict[str, Any], np.ndarray]:
    """Return full rows of made-up ids, features and targets, as pre-training has them."""
    draw = np.random.default_rng(0)
    features, targets = _text(draw) if system == "gpt" else _masked_rows(system, draw)
    return {name: array.astype(np.int32) for name, array in features.items()}, targets.astype(
        np.int32
    )


def _text(draw: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """Return rows of a language model; each position predicts the next id."""
    ids = draw.integers(3, IDS - 200, (ROWS, LENGTH + 1))
    ones = np.ones((ROWS, LENGTH))
    return {"decoder_ids": ids[:, :-1], "decoder_segments": ones}, ids[:, 1:]


def _masked_rows(system: str, draw: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """Return rows of an encoder, with places or spans to predict."""
    training = pretraining(system)
    masked_lm, predicted = training.masked_lm, training.targets_length
    if masked_lm.boundary_weight:
        # Spans of four pieces, apart from each other, one after the other.
        firsts = np.tile(np.arange(MASKED // SPAN) * (LENGTH // (MASKED // SPAN)) + 1, (ROWS, 1))
        index = np.tile(np.arange(MASKED) % SPAN, (ROWS, 1))
        firsts = np.repeat(firsts, SPAN, axis=1)
        places = firsts + index
    else:
        order = draw.permuted(np.tile(np.arange(LENGTH), (ROWS, 1)), axis=1)
        places = np.sort(order[:, :predicted])
    features = {
        "encoder_ids": draw.integers(3, IDS - 200, (ROWS, LENGTH)),
        "encoder_segments": np.ones((ROWS, LENGTH)),
        "encoder_types": np.tile(np.arange(LENGTH) >= LENGTH // 2, (ROWS, 1)),
        "target_positions": places,
    }
    if system == "xlnet":
        features["encoder_order"] = order
    elif system == "electra":
        features["sample_draws"] = draw.integers(0, 1 << 24, places.shape)
    elif masked_lm.pair_classes:
        features["pair_label"] = draw.integers(0, masked_lm.pair_classes, ROWS)
    if masked_lm.boundary_weight:
        features["boundary_positions"] = np.stack([firsts - 1, firsts + SPAN], axis=-1)
        features["boundary_index"] = index
    return features, draw.integers(3, IDS - 200, (ROWS, predicted))


def size_of(system: str, size: str) -> Any:
    """Return the shape of a network, such as ``bert`` of size ``mini``."""
    return SIZES[f"{system}_{size}"]


def operations(system: str, size: str) -> int:
    """Return the operations of the matrix products of a step, as t5repro counts them."""
    return step_flops(size_of(system, size), pretraining(system), embedding_rows=IDS)
