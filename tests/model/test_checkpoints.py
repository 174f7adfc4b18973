import numpy as np
import pytest

keras = pytest.importorskip("keras")
from t5repro.errors import ArtifactError, CheckpointError  # noqa: E402
from t5repro.model.checkpoints import (  # noqa: E402
    load_state,
    load_weights,
    noise_variables,
    read_arrays,
    save_state,
    save_weights,
    weight_variables,
    write_arrays,
)

pytestmark = pytest.mark.keras


@pytest.fixture
def weights(tmp_path, make_model):
    path = tmp_path / "weights.safetensors"
    save_weights(path, make_model(seed=1))
    return path


def make_optimizer(model):
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    return optimizer


def test_weights_come_back_as_they_were(weights, make_model):
    model = make_model(seed=2)
    load_weights(weights, model)
    for name, variable in weight_variables(make_model(seed=1)).items():
        np.testing.assert_array_equal(weight_variables(model)[name].numpy(), variable.numpy())


def test_weights_are_named_by_their_place(weights):
    names = set(read_arrays(weights))
    assert {
        "embedding",
        "encoder/relative_bias/table",
        "encoder/block_1/self_attention/q",
        "decoder/block_2/cross_attention/o",
        "decoder/block_0/feed_forward/wi",
        "decoder/norm/scale",
    } <= names
    assert len(names) == 1 + 2 + 2 * 8 + 3 * 13 + 2


def test_the_same_weights_are_the_same_bytes(tmp_path, weights, make_model):
    again = tmp_path / "again.safetensors"
    save_weights(again, make_model(seed=1))
    assert again.read_bytes() == weights.read_bytes()


def test_the_bytes_do_not_depend_on_the_order_of_the_arrays(tmp_path):
    arrays = {"b": np.arange(3.0), "a": np.ones((2, 2), np.float32), "c": np.asarray(7)}
    for name, order in (("x", "abc"), ("y", "cba")):
        write_arrays(tmp_path / name, {key: arrays[key] for key in order})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    assert read_arrays(tmp_path / "x")["c"].shape == ()


def test_a_missing_weight_is_named(weights, make_model):
    arrays = read_arrays(weights)
    del arrays["decoder/norm/scale"]
    write_arrays(weights, arrays)
    with pytest.raises(CheckpointError, match=r"lacks 'decoder/norm/scale', which the model needs"):
        load_weights(weights, make_model())


def test_a_weight_too_many_is_named(weights, make_model):
    write_arrays(weights, {**read_arrays(weights), "decoder/extra": np.zeros(2, np.float32)})
    with pytest.raises(CheckpointError, match=r"has 'decoder/extra', which the model does not"):
        load_weights(weights, make_model())


def test_a_weight_of_another_shape_is_named_and_nothing_is_changed(weights, make_model):
    model = make_model(seed=2, d_ff=48)
    before = model.embedding.numpy().copy()
    with pytest.raises(
        CheckpointError,
        match=r"'encoder/block_0/feed_forward/wi' has shape \(24, 40\), .*\(24, 48\)",
    ):
        load_weights(weights, model)
    np.testing.assert_array_equal(model.embedding.numpy(), before)


def test_a_missing_file_names_the_cure(tmp_path, make_model):
    with pytest.raises(ArtifactError, match="run the stage that writes it"):
        load_weights(tmp_path / "none.safetensors", make_model())


def test_a_damaged_file_names_the_cure(weights, make_model):
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ArtifactError, match="not a safetensors file .* delete it"):
        load_weights(weights, make_model())


def test_a_state_brings_back_weights_slots_step_noise_and_the_loops_arrays(tmp_path, make_model):
    model = make_model(seed=1, dropout_rate=0.2)
    optimizer = make_optimizer(model)
    optimizer.iterations.assign(17)
    optimizer.variables[-1].assign(np.full(optimizer.variables[-1].shape, 0.5))
    features = {
        name: np.ones((2, 3), np.int32)
        for name in ("encoder_ids", "encoder_segments", "decoder_ids", "decoder_segments")
    }
    model(features, training=True)
    path = tmp_path / "state.safetensors"
    save_state(path, model, optimizer, {"rows": np.asarray([[1.5, 2.0]])})
    expected = np.asarray(model(features, training=True))

    other = make_model(seed=1, dropout_rate=0.2)
    other.embedding.assign(np.zeros(other.embedding.shape))
    other_optimizer = make_optimizer(other)
    others = load_state(path, other, other_optimizer)
    np.testing.assert_array_equal(others["rows"], [[1.5, 2.0]])
    assert int(other_optimizer.iterations.numpy()) == 17
    np.testing.assert_array_equal(other_optimizer.variables[-1].numpy(), 0.5)
    np.testing.assert_array_equal(np.asarray(other(features, training=True)), expected)


def test_every_dropout_has_noise_of_its_own_in_the_state(make_model):
    noise = noise_variables(make_model(dropout_rate=0.1))
    assert len({int(state.numpy()[0]) for state in noise.values()}) == len(noise)
    assert len(noise) == 2 * 4 + 3 * 6 + 2 * 2
    assert noise_variables(make_model(dropout_rate=0.0)) == {}


def test_a_state_of_another_network_is_refused(tmp_path, make_model):
    model = make_model()
    path = tmp_path / "state.safetensors"
    save_state(path, model, make_optimizer(model))
    other = make_model(num_encoder_layers=3)
    with pytest.raises(CheckpointError, match=r"lacks 'encoder/block_2/.*the weights of this run"):
        load_state(path, other, make_optimizer(other))


def test_a_file_that_is_no_state_is_refused(weights, make_model):
    model = make_model()
    with pytest.raises(CheckpointError, match="no part of a training state"):
        load_state(weights, model, make_optimizer(model))
