"""Two answers to a row, and how far the ids in which they first differ are from a tie."""

from typing import Any

import numpy as np
import pytest

from t5repro.config.sections.model import ModelSettings
from t5repro.evaluate.repeated_answers import logits_of_first_others
from t5repro.versions.other_engine import MARGIN, margin_of
from t5repro.vocab.special_ids import EOS_ID

STEPS, IDS = 6, 40
INPUTS = np.array([[7, 3, 1, 0, 0], [9, 9, 4, 12, 1], [5, 1, 0, 0, 0]], np.int32)

pytestmark = pytest.mark.keras


def network(architecture: str, seed: int = 0) -> Any:
    from networks import text_network

    model = ModelSettings(
        architecture=architecture,
        d_model=16,
        d_ff=32,
        d_kv=8,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
    )
    return text_network(model, embedding_rows=IDS, dropout_rate=0.0, seed=seed)


def greedy_ids(models: list[Any]) -> np.ndarray:
    from t5repro.model.decode import greedy

    return greedy(models[0], INPUTS, max_decode_length=STEPS, ensemble=models[1:])


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize(
    "architecture", ["encoder_decoder", "language_model", "prefix_language_model"]
)
def test_no_other_id_has_a_larger_logit_than_a_greedy_one(architecture: str, members: int) -> None:
    models = [network(architecture, seed) for seed in range(members)]
    ids = greedy_ids(models)
    best_of_others = np.full(len(ids), -np.inf)
    rows = np.arange(len(ids))
    ends = np.where((ids == EOS_ID).any(axis=1), np.argmax(ids == EOS_ID, axis=1), STEPS)
    steps = np.minimum([0, 2, 1], ends)  # beyond its end an answer is padding
    own = np.zeros(len(ids))
    for other in range(IDS):
        rivals = ids.copy()
        rivals[rows, steps] = np.where(ids[rows, steps] == other, (other + 1) % IDS, other)
        pairs = logits_of_first_others(models, INPUTS, ids, rivals)
        own = pairs[:, 0]
        best_of_others = np.maximum(best_of_others, pairs[:, 1])
    assert (own > best_of_others).all()


@pytest.mark.parametrize(("shift", "ties"), [(0.0, True), (3e-7, True), (1e-2, False)])
def test_ids_whose_weights_nearly_tie_are_told_from_others(shift: float, ties: bool) -> None:
    model = network("encoder_decoder")
    chosen = greedy_ids([model])[:, 1]
    twin = next(number for number in range(2, IDS) if number not in chosen)
    embedding = np.asarray(model.embedding)
    embedding[twin] = embedding[chosen[0]] * (1 + shift)
    model.embedding.assign(embedding)
    ids = greedy_ids([model])[:1]
    step = int(np.argmax(np.isin(ids[0], [chosen[0], twin])))
    rivals = ids.copy()
    rivals[0, step] = twin if ids[0, step] == chosen[0] else chosen[0]
    (pair,) = logits_of_first_others([model], INPUTS[:1], ids, rivals).tolist()
    side = {"answers": {"t": [{"text": "yes"}]}, "logits": {"t": {"0": pair}}}
    assert (margin_of([side, side], "t", 0, "yes") <= MARGIN) is ties
