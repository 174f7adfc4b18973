import itertools

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.errors import SettingsError  # noqa: E402
from t5repro.model.beam import beam_search  # noqa: E402
from t5repro.model.decode import greedy  # noqa: E402

pytestmark = pytest.mark.keras
STEPS = 8
COMPILED = {}


def shaken(model, seed=1, noise=0.5):
    """Give a network answers that vary from step to step."""
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        shift = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + noise * shift)
    return model


@pytest.fixture(scope="module")
def model(make_model):
    model = shaken(make_model(seed=4))
    embedding = model.embedding.numpy().copy()
    embedding[1] *= 1.5  # longer: the end wins often, but not at once
    model.embedding.assign(embedding)
    return model


@pytest.fixture(scope="module")
def tiny_model(make_model):
    """A network of six ids, whose answers can all be tried."""
    from networks import text_network

    shape = make_model().settings
    return shaken(text_network(shape, embedding_rows=6, dropout_rate=0.0, seed=2), noise=0.35)


@pytest.fixture(scope="module")
def inputs():
    ids = np.random.default_rng(3).integers(2, 96, (24, 10)).astype(np.int32)
    ids[::3, 6:] = 0
    return ids


def log_probabilities(model, ids, written):
    """Run the whole network on unfinished answers; return log p of each next id, float64."""
    import tensorflow as tf

    if model not in COMPILED:
        COMPILED[model] = tf.function(model, reduce_retracing=True, autograph=False)
    rows, step = written.shape
    shifted = np.zeros((rows, STEPS + 1), np.int32)
    shifted[:, 1 : step + 1] = written
    logits = COMPILED[model](
        {
            "encoder_ids": ids,
            "encoder_segments": (ids != 0).astype(np.int32),
            "decoder_ids": shifted,
            "decoder_segments": np.ones_like(shifted),
        }
    )
    logits = np.asarray(logits)[:, step].astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def by_definition(model, ids, *, steps, width, alpha):
    """Search one row without cache, with lists: alive and finished answers as pairs."""
    alive, finished = [(0.0, ())], []
    for step in range(steps):
        best_hope = alive[0][0] / penalty(steps, alpha)
        if finished and min(finished)[0] > best_hope:
            break
        written = np.asarray([answer for _, answer in alive], np.int32).reshape(len(alive), step)
        tiled = np.repeat(ids[None], len(alive), axis=0)
        found = log_probabilities(model, tiled, written)
        grown = [
            (alive[row][0] + found[row, number], (*alive[row][1], number))
            for row in range(len(alive))
            for number in range(found.shape[1])
        ]
        grown = sorted(grown, key=lambda item: -item[0])[: 2 * width]
        alive = [item for item in grown if item[1][-1] != 1][:width]
        finished += [
            (log / penalty(step + 1, alpha), answer) for log, answer in grown if answer[-1] == 1
        ]
        finished = sorted(finished, reverse=True)[:width]
    answer = finished[0][1] if finished else alive[0][1]
    return np.pad(answer, (0, steps - len(answer)))


@pytest.mark.parametrize(("width", "alpha"), [(4, 0.6), (4, 0.0), (2, 1.0), (1, 0.6)])
def test_the_cached_search_equals_the_definition_without_a_cache(model, inputs, width, alpha):
    found = beam_search(model, inputs, max_decode_length=STEPS, width=width, length_penalty=alpha)
    for row, ids in list(zip(found, inputs, strict=True))[:10]:
        np.testing.assert_array_equal(
            row, by_definition(model, ids, steps=STEPS, width=width, alpha=alpha)
        )
    assert len({tuple(row) for row in found}) > 4


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_wide_search_finds_the_best_of_all_answers(tiny_model, alpha):
    steps = 3
    ids = np.random.default_rng(8).integers(2, 6, (6, 7)).astype(np.int32)
    others = [0, 2, 3, 4, 5]
    answers = [
        (*words, 1) for length in range(steps) for words in itertools.product(others, repeat=length)
    ]
    found = beam_search(tiny_model, ids, max_decode_length=steps, width=25, length_penalty=alpha)
    for row, inputs in zip(found, ids, strict=True):
        scores = {}
        for answer in answers:
            log = 0.0
            for place in range(len(answer)):
                written = np.asarray(answer[:place], np.int32)[None]
                log += log_probabilities(tiny_model, inputs[None], written)[0, answer[place]]
            scores[answer] = log / penalty(len(answer), alpha)
        best = max(scores, key=scores.get)
        np.testing.assert_array_equal(row, np.pad(best, (0, steps - len(best))))


def test_a_row_does_not_depend_on_its_neighbours(model, inputs):
    options = {"max_decode_length": STEPS, "width": 4, "length_penalty": 0.6}
    together = beam_search(model, inputs, **options)
    np.testing.assert_array_equal(beam_search(model, inputs[::-1], **options), together[::-1])
    np.testing.assert_array_equal(beam_search(model, inputs[:5], **options), together[:5])


def test_the_search_finds_answers_at_least_as_likely_as_greedy_ones(model, inputs):
    found = beam_search(model, inputs, max_decode_length=STEPS, width=4, length_penalty=0.0)
    plain = greedy(model, inputs, max_decode_length=STEPS)

    def log_of(ids, row):
        end = int(np.argmax(row == 1)) if (row == 1).any() else len(row) - 1
        return sum(
            log_probabilities(model, ids[None], row[None, :place])[0, row[place]]
            for place in range(end + 1)
        )

    ended = [(a == 1).any() and (b == 1).any() for a, b in zip(found, plain, strict=True)]
    gains = [
        log_of(ids, a) - log_of(ids, b)
        for ids, a, b, both in zip(inputs, found, plain, ended, strict=True)
        if both
    ]
    assert len(gains) > 3
    assert min(gains) > -1e-5
    assert max(gains) > 0.01


def test_the_search_stops_when_no_answer_can_win_any_more(make_model, inputs, monkeypatch):
    from t5repro.model import decode
    from t5repro.model.transformer import DecoderNetwork

    calls = []
    logits = np.full(96, -9.0, np.float32)
    logits[1] = 9.0

    def nearly_always_the_end(self, hidden, output):
        calls.append(1)
        return np.broadcast_to(logits, (len(inputs), 4, 96))

    monkeypatch.setattr(DecoderNetwork, "logits", nearly_always_the_end)
    monkeypatch.setattr(decode.engine(), "compiled_rows", lambda networks, function: function)
    found = beam_search(make_model(), inputs, max_decode_length=50, width=4, length_penalty=0.6)
    assert len(calls) == 1
    np.testing.assert_array_equal(found, np.tile(np.eye(1, 50, dtype=np.int32), (24, 1)))


def test_one_program_serves_all_batches_of_a_shape(model, inputs):
    from t5repro.model import decode

    options = {"max_decode_length": 3, "width": 2, "length_penalty": 0.6}
    beam_search(model, inputs, **options)
    beam_search(model, inputs[::-1], **options)
    program = decode._COMPILED[model][("beam", 3, 2, 0.6), model.form]
    assert program.experimental_get_tracing_count() == 1


def test_a_width_below_one_is_refused(model, inputs):
    with pytest.raises(SettingsError, match="beam width is 0 over 96 ids; it must be 1 or more"):
        beam_search(model, inputs, max_decode_length=3, width=0, length_penalty=0.6)
