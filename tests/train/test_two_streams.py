"""Steps of XLNet: loss and update against NumPy, the memory in checkpoints, what it trains."""

import csv
import json
import signal
from pathlib import Path

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.model.checkpoints import memory_variables, read_arrays, save_state, weight_variables  # noqa: E402
from t5repro.model.two_stream import TwoStreamEncoder  # noqa: E402
from t5repro.systems.two_stream.loss import PermutationLoss  # noqa: E402
from t5repro.train.adam import Adam  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402
from t5repro.train.validation import Validation  # noqa: E402

pytestmark = pytest.mark.keras

IDS, KEPT, REUSED = 128, 9, 6
ROWS, LENGTH, PREDICTED = 8, 12, 4
SHAPE = SIZES["xlnet_tiny"].model_copy(
    update={"d_model": 12, "d_ff": 20, "d_kv": 4, "num_heads": 3}
)


def network(**change):
    arguments = {
        "embedding_rows": IDS,
        "dropout_rate": 0.0,
        "seed": 3,
        "memory_shape": (ROWS, KEPT),
        "reuse_length": REUSED,
        "both_directions": True,
    }
    return TwoStreamEncoder(SHAPE, **{**arguments, **change})


def trained(model):
    return TensorFlowModel(model, PermutationLoss(), normaliser="target_tokens", micro_batches=1)


def disturb(model, seed=0):
    random = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign_add(0.2 * random.normal(size=variable.shape).astype(np.float32))


def norm(x, weights, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return normal * weights[f"{name}/scale"] + weights[f"{name}/bias"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attention(weights, name, query, seen, distances, mask, differs, d_kv):
    """Return XLNet's attention of one row by loops: equation 7 of its paper, score by score."""
    heads = weights[f"{name}/content_bias"].shape[0]
    split = {
        key: values @ weights[f"{name}/{key}"]
        for key, values in (("q", query), ("k", seen), ("v", seen))
    }
    frequencies = 10_000.0 ** (-np.arange(0, query.shape[1], 2) / query.shape[1])
    read = np.zeros((len(query), heads * d_kv))
    for head in range(heads):
        part = slice(head * d_kv, (head + 1) * d_kv)
        content, position, kind = (
            weights[f"{name}/{bias}_bias"][head] for bias in ("content", "distance", "type")
        )
        for i, q in enumerate(split["q"][:, part]):
            scores = np.full(len(seen), -np.inf)
            for j, k in enumerate(split["k"][:, part]):
                if mask[i, j]:
                    angles = distances[i, j] * frequencies
                    key = np.concatenate([np.sin(angles), np.cos(angles)])
                    r = (key @ weights[f"{name}/r"])[part]
                    of_type = weights[f"{name}/type_table"][int(differs[i, j]), head]
                    total = (q + content) @ k + (q + position) @ r + (q + kind) @ of_type
                    scores[j] = total / np.sqrt(d_kv)
            shares = np.exp(scores - scores.max())
            read[i, part] = (shares / shares.sum()) @ split["v"][:, part]
    return read @ weights[f"{name}/o"]


def looped(weights, features, memory, row):
    """Return the logits of a row and the inputs of all blocks, in float64."""
    ids, types, order, places = (
        features[name][row]
        for name in ("encoder_ids", "encoder_types", "encoder_order", "target_positions")
    )
    content = weights["embedding"][ids]
    queries = np.tile(weights["encoder/query_start"], (len(places), 1))
    all_types = np.concatenate([np.zeros(KEPT, int), types])
    sign = -1 if row % 2 else 1
    inputs = []

    def after(block, x, seen, positions, visible):
        differs = types[positions][:, None] != all_types
        distances = sign * (positions[:, None] + KEPT - np.arange(KEPT + LENGTH))
        mask = np.concatenate([np.ones((len(x), KEPT), bool), visible], axis=1)
        name = f"encoder/block_{block}"
        read = attention(
            weights, f"{name}/self_attention", x, seen, distances, mask, differs, SHAPE.d_kv
        )
        x = norm(x + read, weights, f"{name}/self_attention_norm")
        inside = x @ weights[f"{name}/feed_forward/wi"] + weights[f"{name}/feed_forward/wi_bias"]
        out = gelu(inside) @ weights[f"{name}/feed_forward/wo"]
        out = out + weights[f"{name}/feed_forward/wo_bias"]
        return norm(x + out, weights, f"{name}/feed_forward_norm")

    for block in range(SHAPE.num_encoder_layers):
        inputs.append(content)
        seen = np.concatenate([memory[block][row], content])
        every = np.arange(LENGTH)
        new = after(block, content, seen, every, order[None] <= order[:, None])
        queries = after(block, queries, seen, places, order[None] < order[places][:, None])
        content = new
    return queries @ weights["embedding"].T + weights["masked_lm/bias"], inputs


def test_the_loss_of_two_steps_and_the_memory_between_them_follow_from_the_equations(tiny):
    model = network()
    disturb(model)
    step = trained(model)
    weights = {path: np.float64(v.numpy()) for path, v in weight_variables(model).items()}
    memory = np.zeros(model.memory.shape)
    for number in range(2):
        features, targets = tiny.permuted_batch(number)
        rows = [looped(weights, features, memory, row) for row in range(ROWS)]
        logits = np.array([row[0] for row in rows])
        logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        chosen = np.take_along_axis(logs, targets[..., None], axis=-1)[..., 0]
        loss, _ = step.loss_and_gradients(features, tf.constant(targets))
        assert float(loss) == pytest.approx(-chosen[targets > 0].mean(), rel=1e-5)
        inputs = np.array([[row[1][block] for row in rows] for block in range(len(memory))])
        memory = np.concatenate([memory, inputs[:, :, :REUSED]], axis=2)[:, :, -KEPT:]
        assert np.abs(model.memory.states.numpy() - memory).max() < 1e-4
    assert np.abs(memory[:, :, 0]).max() > 0.1  # all of it is filled after two steps


def test_one_update_is_that_of_adam_without_correction(tiny):
    """XLNet's ``AdamWeightDecayOptimizer``: decay of matrices and of the three biases of heads."""
    model = network()
    disturb(model)
    step = trained(model)
    optimizer = Adam(0.01, variant="adam_bert", epsilon=1e-6, decay=0.1)
    optimizer.build(step.trainable_variables)
    features, targets = tiny.permuted_batch(0)
    before = {path: v.numpy().astype(np.float64) for path, v in weight_variables(model).items()}
    _, gradients = step.loss_and_gradients(features, tf.constant(targets))
    optimizer.apply(gradients, step.trainable_variables)
    by_path = dict(zip((v.path for v in step.trainable_variables), gradients, strict=True))
    for path, variable in weight_variables(model).items():
        gradient = np.float64(by_path[variable.path])
        update = 0.1 * gradient / (np.sqrt(0.001 * gradient**2) + 1e-6)
        decays = before[path].ndim > 1
        assert decays == (not path.endswith(("norm/scale", "bias")) or "self_attention/" in path)
        expected = before[path] - 0.01 * (update + 0.1 * before[path] * decays)
        assert np.abs(variable.numpy() - expected).max() < 1e-5, path


def test_the_memory_is_no_weight_and_gets_no_gradient(tiny):
    model, without = network(), network(memory_shape=(ROWS, 0))
    assert set(weight_variables(model)) == set(weight_variables(without))
    assert list(memory_variables(model)) == ["memory"]
    assert memory_variables(without) == {}
    assert not any(variable is model.memory.states for variable in model.trainable_variables)
    features, targets = tiny.permuted_batch(0)
    step = trained(model)
    with tf.GradientTape() as tape:
        step.objective.summed(model, features, tf.constant(targets), {})
        remembered = tf.reduce_sum(tf.square(model.memory.states.value))
    variables = [variable.value for variable in model.trainable_variables]
    assert float(remembered) > 0
    assert tape.gradient(remembered, variables) == [None] * len(variables)


def test_held_out_text_is_measured_without_the_memory_of_training(tiny):
    model = network()
    disturb(model)
    step = trained(model)
    batches = [tiny.permuted_batch(100)]
    measure = Validation(batches, every_steps=1)
    first = measure.loss(step)
    features, targets = tiny.permuted_batch(0)
    step.loss_and_gradients(features, tf.constant(targets))
    states = model.memory.states.numpy()
    assert np.abs(states).max() > 0
    assert measure.loss(step) == first
    assert np.array_equal(model.memory.states.numpy(), states)


@pytest.mark.parametrize("step", [2, 6])
def test_a_training_that_is_killed_and_resumed_ends_in_the_same_bytes(
    tiny, tmp_path, in_a_new_process, step
):
    options = {"two_stream": True, "dropout_rate": 0.1}
    killed = in_a_new_process(tmp_path, {"cut": options}, kill_at=[step])
    assert json.loads(killed.stdout.splitlines()[-1]) == [-signal.SIGKILL, 0], killed.stderr
    assert ("resuming from" in killed.stderr) == (step > 4)
    whole = in_a_new_process(tmp_path, {"whole": options})
    assert whole.returncode == 0, whole.stderr
    results = [tmp_path / name / "results" for name in ("cut", "whole")]
    for name in ("weights.safetensors", "optimizer.safetensors", "history.csv"):
        cut, uncut = ((folder / name).read_bytes() for folder in results)
        assert cut == uncut, name


def test_two_replicas_each_with_the_memory_of_its_rows_train_as_one_device(
    tiny, tmp_path, in_a_new_process
):
    """Killed and resumed they end in the same bytes: a checkpoint has the memory of both."""
    options = {
        "two_stream": True,
        "dropout_rate": 0.0,
        "log_every_steps": 1,
        "learning_rate": {"schedule": "constant", "factor": 0.001},
    }
    processes = [
        in_a_new_process(tmp_path, {"one": options}),
        in_a_new_process(tmp_path, {"two": options}, replicas=2),
        in_a_new_process(tmp_path, {"cut": options}, replicas=2, kill_at=[6]),
    ]
    assert [done.returncode for done in processes] == [0, 0, 0], processes
    assert "resuming from" in processes[-1].stderr
    one, two, cut = (tmp_path / name / "results" for name in ("one", "two", "cut"))
    for name in ("weights.safetensors", "optimizer.safetensors", "history.csv"):
        assert (cut / name).read_bytes() == (two / name).read_bytes(), name
    losses = [
        [float(row["loss"]) for row in csv.DictReader(text.splitlines())]
        for text in ((folder / "history.csv").read_text() for folder in (one, two))
    ]
    assert len(losses[0]) == 10
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_resumed_training_reads_its_memory(tiny, tmp_path):
    """Without the section of the memory the steps after an interruption would be others."""
    model = network()
    optimizer = Adam(0.01, variant="adam_bert")
    optimizer.build(model.trainable_variables)
    features, targets = tiny.permuted_batch(0)
    trained(model).loss_and_gradients(features, tf.constant(targets))
    save_state(tmp_path / "state", model, optimizer)
    stored = read_arrays(tmp_path / "state", section="memory")
    assert np.array_equal(stored["memory"], model.memory.states.numpy())
    assert not any("memory" in name for name in read_arrays(tmp_path / "state", section="weights"))


def test_left_to_right_without_memory_it_is_a_causal_language_model(tiny):
    """A query sees what is before it: changes at and after its position change nothing."""
    model = network(memory_shape=(ROWS, 0), both_directions=False)
    disturb(model)
    features, _ = tiny.permuted_batch(0)
    features["encoder_order"] = np.tile(np.arange(LENGTH, dtype=np.int32), (ROWS, 1))
    places = features["target_positions"] = np.tile(np.array([1, 4, 7, 11], np.int32), (ROWS, 1))
    logits = np.asarray(model(features))
    for number, place in enumerate(places[0]):
        changed = {**features, "encoder_ids": features["encoder_ids"].copy()}
        changed["encoder_ids"][:, place:] = 50
        others = np.asarray(model(changed))
        assert np.array_equal(others[:, number], logits[:, number])
        assert np.abs(others[:, number + 1 :] - logits[:, number + 1 :]).sum() > 0 or number == 3
        before = {**features, "encoder_ids": features["encoder_ids"].copy()}
        before["encoder_ids"][:, place - 1] = 50
        assert np.abs(np.asarray(model(before))[:, number] - logits[:, number]).max() > 1e-3


def test_more_padding_on_the_left_changes_no_answer():
    model = network(labels=3, memory_shape=(), both_directions=False)
    disturb(model)
    from t5repro.model.segment_rows import SegmentRow

    random = np.random.default_rng(1)
    rows = [
        SegmentRow(random.integers(3, 100, length).tolist(), length // 2, cut=False)
        for length in (9, 12, 5)
    ]
    short, long = (
        np.asarray(model.answer_logits(model.row_features(rows, length))) for length in (12, 28)
    )
    assert np.abs(short - long).max() < 1e-5
    features = model.row_features(rows[:1], 12)
    assert features["encoder_types"].tolist() == [[4, 4, 4, 0, 0, 0, 0, 1, 1, 1, 1, 2]]
    assert features["encoder_ids"][0, -9:].tolist() == rows[0].ids
    assert features["encoder_segments"].tolist() == [[0] * 3 + [1] * 9]


def test_it_learns_rows_by_heart(tiny):
    """The loss of one batch falls below .05; queries see all but the predicted pieces."""
    model = network(memory_shape=(ROWS, 0), both_directions=False)
    step = trained(model)
    step.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse", jit_compile=False)
    features, targets = tiny.permuted_batch(0)
    batch = ({name: tf.constant(v) for name, v in features.items()}, tf.constant(targets))
    train = tf.function(step.train_step, autograph=False)
    losses = []
    while len(losses) < 200 and (not losses or losses[-1] > 0.05):
        losses.append(float(train(batch)["loss"]))
        step.reset_metrics()
    assert losses[0] > 4
    assert losses[-1] <= 0.05


def test_a_file_of_weights_has_no_memory(tmp_path: Path):
    from t5repro.model.checkpoints import save_weights

    save_weights(tmp_path / "weights", network())
    assert not any("memory" in name for name in read_arrays(tmp_path / "weights"))


def test_keras_hub_has_no_such_network_and_says_so(tmp_path: Path):
    from t5repro.errors import CheckpointError
    from t5repro.publish.keras_hub import write_keras_hub
    from t5repro.publish.tokenizer_files import VocabularyFiles

    arrays = {path: v.numpy() for path, v in weight_variables(network()).items()}
    files = VocabularyFiles(b"", b"", 0)
    with pytest.raises(CheckpointError, match="keras-hub has no network of model.architecture two"):
        write_keras_hub(tmp_path, SHAPE, arrays, files)
