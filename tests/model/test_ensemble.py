"""Several networks that answer together."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.model.decode import greedy  # noqa: E402

pytestmark = pytest.mark.keras

STEPS = 7


def by_whole_passes(models, ids):
    """Return the greedy answer from full passes of every model, logits averaged."""
    written = np.zeros((len(ids), STEPS + 1), np.int32)
    segments = (ids > 0).astype(np.int32)
    done = np.zeros(len(ids), bool)
    for step in range(STEPS):
        features = {
            "encoder_ids": ids,
            "encoder_segments": segments,
            "decoder_ids": written[:, :STEPS],
            "decoder_segments": np.ones((len(ids), STEPS), np.int32),
        }
        logits = np.mean([np.asarray(model(features))[:, step] for model in models], axis=0)
        best = np.where(done, 0, logits.argmax(axis=-1))
        written[:, step + 1] = best
        done |= best == 1
    return written[:, 1:]


@pytest.fixture(scope="module")
def ids():
    ids = np.random.default_rng(3).integers(2, 90, (6, 9)).astype(np.int32)
    ids[1, 4:] = 0
    return ids


def test_an_ensemble_writes_the_likeliest_id_of_the_mean_of_logits(make_model, ids):
    models = [make_model(seed=seed) for seed in (0, 1, 2)]
    ours = greedy(models[0], ids, max_decode_length=STEPS, ensemble=models[1:])
    np.testing.assert_array_equal(ours, by_whole_passes(models, ids))
    alone = [greedy(model, ids, max_decode_length=STEPS) for model in models]
    assert all(not np.array_equal(ours, one) for one in alone)


def test_an_ensemble_of_a_model_with_itself_answers_as_the_model(make_model, ids):
    model, copy = make_model(seed=4), make_model(seed=4)
    alone = greedy(model, ids, max_decode_length=STEPS)
    both = greedy(model, ids, max_decode_length=STEPS, ensemble=[copy])
    np.testing.assert_array_equal(alone, both)
