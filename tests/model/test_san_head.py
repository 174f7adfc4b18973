"""The stochastic answer network of MT-DNN against its equations in float64."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.model.checkpoints import weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.san_head import FLOOR, TURNS, SanHead, TurnDropout  # noqa: E402
from t5repro.systems.encoder.loss import EncoderAnswerLoss  # noqa: E402
from t5repro.train.adamax import Adamax  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402

pytestmark = pytest.mark.keras

WIDTH, LENGTH, ROWS = 12, 9, 6
MODEL = SIZES["bert_tiny"].model_copy(
    update={"d_model": WIDTH, "d_ff": 16, "d_kv": 4, "num_heads": 3, "num_encoder_layers": 1}
)
ANSWERS = {
    "mnli": TaskAnswer("label", ("a", "b", "c"), 2, head="san"),
    "sst": TaskAnswer("label", ("no", "yes"), 1),
    "stsb": TaskAnswer("number", (), 2),
    "wide": TaskAnswer("label", ("no", "yes"), 2, head="san"),
}
COLUMNS = LabelColumns(ANSWERS)


def layer(**change):
    options = {"turn_dropout": 0.0, "tasks": [("mnli", 3, 0.0), ("wide", 2, 0.0)], **change}
    head = SanHead(MODEL, seed=3, path="san_head", dtype="float32", **options)
    head.build()
    generator = np.random.default_rng(8)
    for variable in head.weights:  # wide enough that the turns differ
        variable.assign(generator.normal(size=variable.shape) * 0.6)
    return head


def rows(seed=0):
    """Return states, segments and types: a first segment of 2 to 4 and padded second ones."""
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(ROWS, LENGTH, WIDTH)).astype(np.float32)
    position = np.arange(LENGTH)
    first = generator.integers(2, 5, (ROWS, 1))
    lengths = generator.integers(first + 1, LENGTH + 1)
    segments = (position < lengths).astype(np.int32)
    return states, segments, ((position >= first) * segments).astype(np.int32)


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def by_equations(weights, states, segments, types):
    """Return the probabilities of each turn for each row, in float64, row after row.

    Independent of the layer: only rows inside their segments are read, and the gates are those of
    PyTorch's documentation of ``GRUCell``.
    """
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    found = []
    for x, inside, kind in zip(states.astype(np.float64), segments, types, strict=True):
        first, second = x[(inside == 1) & (kind == 0)], x[(inside == 1) & (kind == 1)]
        scores = first @ w["query/matrix"][:, 0] + w["query/bias"]
        state = softmax(scores) @ first
        turns = []
        for _ in range(5):
            asked = state @ w["attention/matrix"] + w["attention/bias"]
            read = softmax(second @ asked) @ second
            merged = np.concatenate([read, state, np.abs(read - state), read * state])
            turns.append(softmax(merged @ w["classes/matrix"] + w["classes/bias"]))
            gates = read @ w["gru/input_matrix"] + w["gru/input_bias"]
            from_state = state @ w["gru/state_matrix"] + w["gru/state_bias"]
            r, z = (
                1 / (1 + np.exp(-(gates + from_state)[part * WIDTH : (part + 1) * WIDTH]))
                for part in range(2)
            )
            new = np.tanh(gates[2 * WIDTH :] + r * from_state[2 * WIDTH :])
            state = (1 - z) * new + z * state
        found.append(turns)
    return np.array(found)


def weights_of(head, number):
    network = head.networks[number]
    return {
        f"{part}/{name}": getattr(getattr(network, part), name).numpy()
        for part, names in {
            "query": ("matrix", "bias"),
            "attention": ("matrix", "bias"),
            "classes": ("matrix", "bias"),
            "gru": ("input_matrix", "input_bias", "state_matrix", "state_bias"),
        }.items()
        for name in names
    }


def test_the_log_of_the_mean_of_five_turns_is_that_of_the_equations():
    head, (states, segments, types) = layer(), rows()
    for number, logits in enumerate(head(states, segments, types)):
        turns = by_equations(weights_of(head, number), states, segments, types)
        assert turns.shape[1] == TURNS
        assert np.abs(turns[:, 0] - turns[:, 4]).max() > 0.05
        np.testing.assert_allclose(np.asarray(logits), np.log(turns.mean(axis=1)), atol=2e-5)


def test_padding_and_the_states_there_have_no_effect():
    head, (states, segments, types) = layer(), rows()
    before = [np.asarray(logits) for logits in head(states, segments, types)]
    states[segments == 0] = 100
    after = [np.asarray(logits) for logits in head(states, segments, types)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_class_without_probability_has_a_finite_logarithm():
    head, (states, segments, types) = layer(), rows()
    head.networks[1].classes.bias.assign([300.0, -300.0])
    logits = np.asarray(head(states, segments, types)[1])
    assert np.isfinite(logits).all()
    assert logits[:, 1] == pytest.approx(np.log(FLOOR), rel=1e-5)


def test_a_turn_in_ten_is_left_out_and_never_all_of_a_row():
    dropout = TurnDropout(0.6, seed=1, path="turn_dropout", dtype="float32")
    kept = np.asarray(dropout(np.ones((20_000, TURNS, 1), np.float32), training=True))[..., 0]
    assert set(np.unique(np.round(kept, 4))) == {0.0, 2.5}
    assert (kept > 0).any(axis=1).all()
    # One turn, any one, is always kept, and the others with .4.
    expected = 1 / TURNS + (1 - 1 / TURNS) * 0.4
    assert (kept > 0).mean(axis=0) == pytest.approx(expected, abs=4 * (0.25 / 20_000) ** 0.5)
    assert np.asarray(dropout(np.ones((2, TURNS, 1), np.float32))).min() == 1


def encoder(**change):
    networks = [(task, first, width) for task, (first, width, _) in COLUMNS.networks.items()]
    options = {"labels": COLUMNS.total, "networks": networks, "dropout_rate": 0.0, **change}
    return Encoder(MODEL, embedding_rows=128, seed=4, **options)


def test_each_task_has_the_columns_of_its_own_head():
    assert COLUMNS.pooled == 3
    network = encoder()
    assert network.label_head.bias.shape == (3,)
    states, segments, types = rows()
    features = {"encoder_segments": segments, "encoder_types": types}
    logits = np.asarray(network.label_logits(states, features))
    pooled = np.asarray(network.pooled_logits(states))
    of_mnli, of_wide = (np.asarray(x) for x in network.san_head(states, segments, types))
    np.testing.assert_array_equal(logits, np.concatenate([of_mnli, pooled, of_wide], axis=1))


def test_a_network_of_pairs_alone_has_no_pooler():
    columns = LabelColumns({"mnli": ANSWERS["mnli"]})
    network = encoder(labels=columns.total, networks=[("mnli", 0, 3)])
    assert not hasattr(network, "pooler")
    assert not hasattr(network, "label_head")


def batch():
    generator = np.random.default_rng(5)
    _, segments, types = rows()
    features = {
        "encoder_ids": generator.integers(3, 100, (ROWS, LENGTH)) * segments,
        "encoder_segments": segments,
        "encoder_types": types,
        "label_columns": np.tile(np.array([COLUMNS.columns["mnli"]]), (ROWS, 1)),
    }
    targets = generator.integers(0, 3, (ROWS, 1)).astype(np.float32)
    return {name: tf.constant(x, tf.int32) for name, x in features.items()}, tf.constant(targets)


def model_of(network):
    loss = EncoderAnswerLoss(columns=COLUMNS)
    return TensorFlowModel(network, loss, normaliser="target_tokens", micro_batches=1)


def log_softmax(x):
    return np.log(softmax(x))


def test_the_loss_is_the_cross_entropy_of_the_logarithms():
    """A second softmax over the logarithms of a mean, as in the code."""
    features, targets = batch()
    network = encoder()
    loss, _ = model_of(network).loss_and_gradients(features, targets)
    states = np.asarray(network.encode(features))
    segments, types = (features[f"encoder_{name}"].numpy() for name in ("segments", "types"))
    turns = by_equations(weights_of(network.san_head, 0), states, segments, types)
    logs = log_softmax(np.log(turns.mean(axis=1)))
    expected = -logs[np.arange(ROWS), targets.numpy()[:, 0].astype(int)].mean()
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_a_step_moves_the_weights_of_the_task_by_the_numerical_gradient():
    """One update by MT-DNN's Adamax; the networks of other tasks only decay."""
    features, targets = batch()
    network = encoder()
    model = model_of(network)
    optimizer = Adamax(0.01, corrects_bias=False, epsilon=1e-6, decay=0.0)
    states = np.asarray(network.encode(features), np.float64)
    segments, types = (features[f"encoder_{name}"].numpy() for name in ("segments", "types"))
    weights = weights_of(network.san_head, 0)

    def loss_of(changed):
        turns = by_equations(changed, states, segments, types)
        logs = log_softmax(np.log(turns.mean(axis=1)))
        return -logs[np.arange(ROWS), targets.numpy()[:, 0].astype(int)].mean()

    variables = list(model.trainable_variables)
    before = {name: x.numpy() for name, x in weight_variables(network).items()}
    _, gradients = model.loss_and_gradients(features, targets)
    optimizer.apply(gradients, variables)
    after = {name: x.numpy() for name, x in weight_variables(network).items()}
    checked = 0
    for name, values in weights.items():
        path = f"san_head/mnli/{name}"
        for place in list(np.ndindex(values.shape))[:: max(values.size // 4, 1)]:
            up, down = ({**weights, name: values.astype(np.float64).copy()} for _ in range(2))
            up[name][place] += 1e-5
            down[name][place] -= 1e-5
            gradient = (loss_of(up) - loss_of(down)) / 2e-5
            if abs(gradient) > 1e-5:
                moved = 0.1 * gradient / (abs(gradient) + 2e-6) * 0.01
                assert before[path][place] - after[path][place] == pytest.approx(moved, rel=2e-2)
                checked += 1
    assert checked > 15
    others = [name for name in before if name.startswith(("san_head/wide", "label_head"))]
    assert len(others) == 12
    for name in others:
        np.testing.assert_array_equal(before[name], after[name])


def test_the_gated_unit_begins_uniformly_as_pytorchs():
    network = encoder()
    matrix = network.san_head.networks[0].gru.input_matrix.numpy()
    limit = WIDTH**-0.5
    assert 0.95 * limit < np.abs(matrix).max() <= limit
    assert np.abs(matrix).mean() == pytest.approx(limit / 2, rel=0.1)


def test_a_task_may_have_a_dropout_of_its_own():
    """The columns of other tasks keep theirs; a rate of 0 leaves the task's logits alone."""
    first, width, _ = COLUMNS.columns["sst"]
    states, segments, types = rows()
    features = {"encoder_segments": segments, "encoder_types": types}
    network = encoder(dropout_rate=0.5, networks=[], task_dropout=[("sst", first, width, 0.0)])
    plain = np.asarray(network.label_logits(states, features))
    noisy = np.asarray(network.label_logits(states, features, training=True))
    own = slice(first, first + width)
    np.testing.assert_array_equal(noisy[:, own], plain[:, own])
    assert (np.delete(noisy, own, axis=1) != np.delete(plain, own, axis=1)).all()
