import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.model.decode import greedy  # noqa: E402

pytestmark = pytest.mark.keras
STEPS = 9


@pytest.fixture(scope="module")
def model(make_model):
    """A network whose answers vary from step to step and some of which end early."""
    model = make_model(seed=4)
    generator = np.random.default_rng(1)
    for variable in model.trainable_variables:
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + 0.5 * noise)
    return model


@pytest.fixture(scope="module")
def inputs():
    ids = np.random.default_rng(3).integers(2, 96, (24, 10)).astype(np.int32)
    ids[::3, 6:] = 0
    return ids


def without_cache(model, ids, steps):
    """Run the whole network again for each id."""
    written = np.zeros((len(ids), steps), np.int32)
    done = np.zeros(len(ids), bool)
    for step in range(steps):
        shifted = np.concatenate([np.zeros((len(ids), 1), np.int32), written[:, :-1]], axis=1)
        logits = model(
            {
                "encoder_ids": ids,
                "encoder_segments": (ids != 0).astype(np.int32),
                "decoder_ids": shifted,
                "decoder_segments": np.ones_like(shifted),
            }
        )
        best = np.argmax(np.asarray(logits)[:, step], axis=-1)
        written[:, step] = np.where(done, 0, best)
        done |= best == 1
    return written


def test_greedy_decoding_with_a_cache_equals_that_without(model, inputs):
    found = greedy(model, inputs, max_decode_length=STEPS)
    np.testing.assert_array_equal(found, without_cache(model, inputs, STEPS))
    assert len(np.unique(found)) > 10  # the network does not say one word only


@pytest.mark.parametrize("width", [1, 3])
def test_rows_that_imported_weights_lack_are_never_written(make_model, inputs, tmp_path, width):
    from t5repro.model.beam import beam_search
    from t5repro.model.checkpoints import load_weights, read_arrays, save_weights, write_arrays

    model, path, rows = make_model(seed=4, tie_embeddings=False), tmp_path / "weights", 80
    save_weights(path, model)
    arrays = read_arrays(path)
    # All ids have nearly the same logit, negative for about half of the inputs.
    noise = np.random.default_rng(2).normal(0, 0.01, arrays["output_matrix"].shape)
    arrays["output_matrix"] = arrays["output_matrix"][:, :1] + noise.astype(np.float32)
    arrays["output_matrix"][:, rows:] = arrays["embedding"][rows:] = 0
    write_arrays(path, arrays)
    load_weights(path, model)
    if width > 1:
        found = beam_search(model, inputs, max_decode_length=STEPS, width=width, length_penalty=0.6)
    else:
        found = greedy(model, inputs, max_decode_length=STEPS)
        np.testing.assert_array_equal(found, without_cache(model, inputs, STEPS))
    assert found.max() < rows


@pytest.mark.parametrize("width", [1, 2])
def test_no_product_of_a_step_has_a_single_row(model, inputs, monkeypatch, width):
    from t5repro.model.beam import beam_graph
    from t5repro.model.decode import greedy_graph

    rows, logits = [], model.logits

    def noted(decoded, *arguments):
        rows.append(decoded.shape[0] * decoded.shape[1])
        return logits(decoded, *arguments)

    monkeypatch.setattr(model, "logits", noted)
    arrays = inputs[:1], np.ones_like(inputs[:1])
    if width == 1:
        found = greedy_graph(model, *arrays, max_decode_length=STEPS)
    else:
        found = beam_graph(model, *arrays, max_decode_length=STEPS, width=2, length_penalty=0.6)
    assert found.shape == (1, STEPS)
    assert set(rows) == {2 * width}


def test_a_single_row_has_the_answer_that_it_has_beside_a_copy(model, inputs):
    # A product with one row is divided by the size of the CPU's cache, so there must be none.
    beside_a_copy = greedy(model, np.repeat(inputs[:1], 2, axis=0), max_decode_length=STEPS)
    np.testing.assert_array_equal(
        greedy(model, inputs[:1], max_decode_length=STEPS), beside_a_copy[:1]
    )


def test_rows_that_ended_stay_padded(model, inputs):
    embedding = model.embedding.numpy().copy()
    moved = embedding.copy()
    moved[1] *= 4  # longer: the end wins often, but not at once
    try:
        model.embedding.assign(moved)
        found = greedy(model, inputs, max_decode_length=STEPS)
        expected = without_cache(model, inputs, STEPS)
    finally:
        model.embedding.assign(embedding)
    np.testing.assert_array_equal(found, expected)
    ended = found[(found == 1).any(axis=1)]
    ends = (ended == 1).argmax(axis=1)
    assert len(set(ends)) > 1
    for row, end in zip(ended, ends, strict=True):
        assert not row[end + 1 :].any()


def test_decoding_stops_when_every_row_has_ended(make_model, inputs, monkeypatch):
    from t5repro.model import decode
    from t5repro.model.transformer import DecoderNetwork

    steps = []

    def always_the_end(self, hidden, output):
        steps.append(1)
        return np.tile(np.eye(1, 96, k=1, dtype=np.float32), (len(inputs), 1, 1))

    monkeypatch.setattr(DecoderNetwork, "logits", always_the_end)
    monkeypatch.setattr(decode.engine(), "compiled_rows", lambda networks, function: function)
    found = decode.greedy(make_model(), inputs, max_decode_length=50)
    assert len(steps) == 1
    np.testing.assert_array_equal(found, np.tile(np.eye(1, 50, dtype=np.int32), (24, 1)))


def test_a_row_does_not_depend_on_its_neighbours(model, inputs):
    together = greedy(model, inputs, max_decode_length=STEPS)
    turned = greedy(model, inputs[::-1], max_decode_length=STEPS)
    np.testing.assert_array_equal(together, turned[::-1])


def test_segments_default_to_where_the_inputs_are_not_padding(model, inputs):
    segments = (inputs != 0).astype(np.int32)
    np.testing.assert_array_equal(
        greedy(model, inputs, segments, max_decode_length=4),
        greedy(model, inputs, max_decode_length=4),
    )


def test_one_program_serves_all_batches_of_a_shape(model, inputs):
    from t5repro.model import decode

    greedy(model, inputs, max_decode_length=3)
    program = decode._COMPILED[model][("greedy", 3), model.form]
    greedy(model, inputs[::-1], max_decode_length=3)
    assert decode._COMPILED[model][("greedy", 3), model.form] is program
    assert program.experimental_get_tracing_count() == 1


def joined_without_cache(model, ids, steps):
    """Run a decoder alone again on inputs and answer for each id."""
    lengths = (ids != 0).sum(axis=1)
    width = ids.shape[1] + steps
    text = np.zeros((len(ids), width), np.int32)
    text[:, : ids.shape[1]] = ids
    written = np.zeros((len(ids), steps), np.int32)
    done = np.zeros(len(ids), bool)
    place = np.arange(width)[None]
    rows = np.arange(len(ids))
    for step in range(steps):
        logits = model(
            {
                "decoder_ids": np.pad(text, [[0, 0], [1, 0]])[:, :-1],
                "decoder_segments": (place <= lengths[:, None] + step).astype(np.int32),
                "decoder_prefix": (place <= lengths[:, None]).astype(np.int32),
            }
        )
        best = np.argmax(np.asarray(logits)[rows, lengths + step], axis=-1)
        written[:, step] = np.where(done, 0, best)
        text[rows, lengths + step] = best
        done |= best == 1
    return written


LAYERS = pytest.mark.parametrize(
    "layers",
    [
        {},
        {"feed_forward": "swiglu", "relative_position_bias": "per_layer"},
        {"positions": "rotary"},
    ],
    ids=["T5", "swiglu, per layer", "rotary"],
)


def shaken(model):
    generator = np.random.default_rng(1)
    for variable in model.trainable_variables:
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + 0.5 * noise)
    return model


@LAYERS
@pytest.mark.parametrize("architecture", ["language_model", "prefix_language_model"])
def test_a_decoder_alone_decodes_with_a_cache_as_without(make_model, inputs, architecture, layers):
    model = shaken(make_model(seed=4, architecture=architecture, **layers))
    found = greedy(model, inputs, max_decode_length=STEPS)
    np.testing.assert_array_equal(found, joined_without_cache(model, inputs, STEPS))
    assert len(np.unique(found)) > 10


@LAYERS
def test_two_stacks_decode_with_a_cache_as_without(make_model, inputs, layers):
    model = shaken(make_model(seed=4, **layers))
    found = greedy(model, inputs, max_decode_length=STEPS)
    np.testing.assert_array_equal(found, without_cache(model, inputs, STEPS))
    assert len(np.unique(found)) > 10


@LAYERS
def test_shared_stacks_decode_with_a_cache_as_without(make_model, inputs, layers):
    model = make_model(
        seed=4, architecture="shared_encoder_decoder", num_decoder_layers=2, **layers
    )
    found = greedy(model, inputs, max_decode_length=STEPS)
    np.testing.assert_array_equal(found, without_cache(model, inputs, STEPS))
