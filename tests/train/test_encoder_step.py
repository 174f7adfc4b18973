"""Losses and steps of an encoder only, against equations in float64."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.model.checkpoints import weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.systems.encoder.loss import EncoderAnswerLoss, MaskedLoss  # noqa: E402
from t5repro.systems.label_losses import cross_entropies, label_losses  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402
from t5repro.train.validation import Validation  # noqa: E402

pytestmark = pytest.mark.keras

ROWS, LENGTH, PLACES, IDS = 8, 17, 5, 128
LABELS = {
    "cola": TaskAnswer("label", ("no", "yes")),
    "mnli": TaskAnswer("label", ("a", "b", "c")),
    "stsb": TaskAnswer("number"),
}


ONE_BLOCK = SIZES["bert_tiny"].model_copy(update={"num_encoder_layers": 1})


def encoder(size=ONE_BLOCK, *, pair_classes=0, boundary_weight=0.0, columns=None, micro_batches=1):
    heads = {"pair_classes": pair_classes, "predicts_boundaries": boundary_weight > 0}
    loss = MaskedLoss(boundary_weight=boundary_weight)
    if columns:
        heads = {"labels": columns.total, "predicts_spans": columns.has_spans}
        loss = EncoderAnswerLoss(columns=columns)
    network = Encoder(size, embedding_rows=IDS, dropout_rate=0.0, seed=3, **heads)
    return TensorFlowModel(network, loss, normaliser="target_tokens", micro_batches=micro_batches)


@pytest.fixture
def masked_batch():
    random = np.random.default_rng(0)
    lengths = random.integers(6, LENGTH + 1, ROWS)
    inside = np.arange(LENGTH) < lengths[:, None]
    targets = random.integers(3, 100, (ROWS, PLACES))
    targets[np.arange(PLACES) >= random.integers(1, PLACES + 1, ROWS)[:, None]] = 0
    features = {
        "encoder_ids": random.integers(3, 100, (ROWS, LENGTH)) * inside,
        "encoder_segments": inside,
        "encoder_types": (np.arange(LENGTH) > 3) * inside,
        "target_positions": np.sort(random.integers(0, 6, (ROWS, PLACES))),
        "pair_label": random.integers(0, 2, ROWS),
    }
    return {name: tf.constant(array, tf.int32) for name, array in features.items()}, tf.constant(
        targets, tf.int32
    )


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def test_the_loss_of_pretraining_is_the_sum_of_the_means_of_both_tasks(masked_batch):
    """BERT, appendix A.2: the mean masked language model likelihood plus that of the pairs."""
    features, targets = masked_batch
    model = encoder(pair_classes=2)
    loss, _ = model.loss_and_gradients(features, targets)
    pieces, pairs = (log_softmax(logits) for logits in model(features))
    real = targets.numpy() > 0
    of_targets = np.take_along_axis(pieces, targets.numpy()[..., None], axis=-1)[..., 0]
    of_pairs = pairs[np.arange(ROWS), features["pair_label"].numpy()]
    assert float(loss) == pytest.approx(-of_targets[real].mean() - of_pairs.mean(), rel=1e-5)


def test_pairs_of_three_kinds_are_a_cross_entropy_of_three_classes(masked_batch):
    """StructBERT, section 2.3: the second segment follows, precedes, or is of another text."""
    features, targets = masked_batch
    features = features | {"pair_label": tf.constant(np.arange(ROWS) % 3, tf.int32)}
    model = encoder(pair_classes=3)
    loss, _ = model.loss_and_gradients(features, targets)
    pieces, pairs = (log_softmax(logits) for logits in model(features))
    assert pairs.shape == (ROWS, 3)
    real = targets.numpy() > 0
    of_targets = np.take_along_axis(pieces, targets.numpy()[..., None], axis=-1)[..., 0]
    of_pairs = pairs[np.arange(ROWS), np.arange(ROWS) % 3]
    assert float(loss) == pytest.approx(-of_targets[real].mean() - of_pairs.mean(), rel=1e-5)


@pytest.mark.parametrize("pair_classes", [0, 2, 3])
def test_the_accuracies_are_the_shares_of_right_pieces_and_pairs(masked_batch, pair_classes):
    """ALBERT, table 5: accuracies of the pre-training tasks; without padding."""
    features, targets = masked_batch
    model = encoder(pair_classes=pair_classes)
    outputs = model(features)
    logits = np.asarray(outputs[0] if pair_classes else outputs)
    # The first half of the targets is what the network predicts, as far as they are no padding.
    targets = targets.numpy()
    real = targets > 0
    targets[:4] = np.where(real[:4], logits[:4].argmax(-1), 0)
    is_right = logits.argmax(-1) == targets
    expected = {"masked_pieces": is_right[real].mean()}
    if pair_classes:
        pairs = np.asarray(outputs[1]).argmax(-1)
        expected["pairs"] = (pairs == features["pair_label"].numpy()).mean()
    validation = Validation([(features, tf.constant(targets))], every_steps=1)
    assert validation.accuracies(model) == pytest.approx(expected)
    assert 0 < expected["masked_pieces"] < 1


def normalised(x, weights, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return normal * weights[f"{name}/scale"] + weights[f"{name}/bias"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_pieces_of_spans_are_predicted_from_the_states_at_both_borders(masked_batch):
    """SpanBERT, section 3.2, derived in float64 from the states of the encoder."""
    features, targets = masked_batch
    random = np.random.default_rng(5)
    index = random.integers(-1, 15, (ROWS, PLACES)) * (targets.numpy() > 0) - (targets.numpy() == 0)
    borders = random.integers(0, 6, (ROWS, PLACES, 2))
    features |= {
        "boundary_index": tf.constant(index, tf.int32),
        "boundary_positions": tf.constant(borders, tf.int32),
    }
    model = encoder(boundary_weight=0.5)
    for variable in model.weights:  # biases and scales other than 0 and 1
        if "boundary_head" in variable.path:
            variable.assign_add(0.1 * random.normal(size=variable.shape))
    weights = {
        path: variable.numpy().astype(np.float64)
        for path, variable in weight_variables(model.network).items()
    }
    states = model.network.encode(features).numpy().astype(np.float64)
    pair = states[np.arange(ROWS)[:, None, None], borders].reshape(ROWS, PLACES, -1)
    hidden = np.concatenate([pair, weights["boundary_head/indices"][np.maximum(index, 0)]], -1)
    for name in ("first", "second"):
        layer = f"boundary_head/{name}"
        hidden = hidden @ weights[f"{layer}/matrix"] + weights[f"{layer}/bias"]
        hidden = normalised(gelu(hidden), weights, f"{layer}_norm")
    logits = hidden @ weights["embedding"].T + weights["boundary_head/bias"]
    of_pieces = -np.take_along_axis(log_softmax(logits), targets.numpy()[..., None], -1)[..., 0]
    counted = index >= 0
    expected = 0.5 * of_pieces[counted].sum() / (counted.sum() + 1)
    without, _ = encoder().loss_and_gradients(features, targets)
    loss, _ = model.loss_and_gradients(features, targets)
    assert float(loss) - float(without) == pytest.approx(expected, rel=1e-4)


def test_micro_batches_have_the_gradients_of_the_whole_batch(masked_batch):
    """The divisor of the masked pieces is that of the batch, not of a part."""
    features, targets = masked_batch
    features |= {
        "boundary_index": tf.where(targets > 0, targets % 4 - 1, -1),
        "boundary_positions": tf.stack([targets % 5, targets % 6], axis=-1),
    }
    heads = {"pair_classes": 2, "boundary_weight": 1.0}
    whole = encoder(**heads).loss_and_gradients(features, targets)
    parts = encoder(**heads, micro_batches=4).loss_and_gradients(features, targets)
    assert float(parts[0]) == pytest.approx(float(whole[0]), rel=1e-5)
    for actual, expected in zip(parts[1], whole[1], strict=True):
        assert np.abs(actual - expected).max() <= 2e-5 * max(np.abs(expected).max(), 1e-3)


def test_positions_that_fill_up_a_row_have_no_influence(masked_batch):
    features, targets = masked_batch
    model = encoder()
    before = model.loss_and_gradients(features, targets)
    moved = tf.where(targets == 0, LENGTH - 1, features["target_positions"])
    after = model.loss_and_gradients(features | {"target_positions": moved}, targets)
    assert float(after[0]) == float(before[0])


def test_masked_pieces_are_counted_and_rows_with_a_label(masked_batch):
    _, targets = masked_batch
    assert int(encoder().objective.count(targets)) == np.count_nonzero(targets)
    assert int(encoder(columns=LabelColumns(LABELS)).objective.count(tf.zeros((ROWS, 1)))) == ROWS


def test_a_label_competes_with_those_of_its_own_task_and_a_number_with_none():
    random = np.random.default_rng(1)
    outputs = (3 * random.normal(size=(3, 6))).astype(np.float32)
    targets = tf.constant([[1.0], [2.0], [3.7]])  # cola yes, mnli c, stsb 3.7
    columns = tf.constant([[0, 2, 0], [2, 3, 0], [5, 1, 1]])
    losses = np.asarray(label_losses(targets, tf.constant(outputs), columns))[:, 0]
    assert losses[0] == pytest.approx(-log_softmax(outputs[0, :2])[1], rel=1e-5)
    assert losses[1] == pytest.approx(-log_softmax(outputs[1, 2:5])[2], rel=1e-5)
    assert losses[2] == pytest.approx((outputs[2, 5] - np.float32(3.7)) ** 2, rel=1e-5)


def test_a_head_of_several_tasks_has_the_gradients_of_a_head_for_each():
    outputs = tf.Variable(np.random.default_rng(2).normal(size=(2, 6)).astype(np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(
            label_losses(tf.constant([[0.0], [1.5]]), outputs, tf.constant([[0, 2, 0], [5, 1, 1]]))
        )
    gradient = tf.convert_to_tensor(tape.gradient(loss, outputs)).numpy()
    values = outputs.numpy().astype(np.float64)
    expected = np.zeros((2, 6))
    expected[0, :2] = np.exp(log_softmax(values[0, :2])) - [1, 0]
    expected[1, 5] = 2 * (values[1, 5] - 1.5)
    assert gradient == pytest.approx(expected, abs=1e-6)


def test_the_cross_entropy_of_a_class_is_that_of_its_column():
    logits = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
    classes = np.array([0, 2, 1, 0])
    actual = np.asarray(cross_entropies(tf.constant(classes, tf.int32), tf.constant(logits)))
    assert actual == pytest.approx(-log_softmax(logits)[np.arange(4), classes], rel=1e-5)


@pytest.mark.parametrize("system", ["bert_tiny", "roberta_tiny", "albert_tiny", "structbert_tiny"])
def test_one_batch_is_learnt_by_heart(masked_batch, system):
    features, targets = masked_batch
    pair_classes = {"roberta_tiny": 0, "structbert_tiny": 3}.get(system, 2)
    shape = SIZES[system].model_copy(update={"num_encoder_layers": 1})
    model = encoder(shape, pair_classes=pair_classes)
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse", jit_compile=False)
    # Each position has one target: rows of the fixture may name a position twice.
    positions = tf.tile(tf.range(PLACES)[None], (ROWS, 1))
    features = features | {"target_positions": positions}
    step = tf.function(model.train_step, autograph=False)
    losses = []
    while len(losses) < 150 and (not losses or losses[-1] > 0.05):
        losses.append(float(step((features, targets))["loss"]))
        model.reset_metrics()
    assert losses[0] > 4
    assert losses[-1] <= 0.05


def test_a_head_of_spans_continues_and_spans_alone_do_without_a_pooler(tmp_path):
    from t5repro.model.checkpoints import save_weights
    from t5repro.model.encoder_heads import new_heads

    spans = {"squad": TaskAnswer("span")}
    alone, both, labels = map(LabelColumns, (spans, spans | LABELS, LABELS))
    save_weights(tmp_path / "pairs", encoder(pair_classes=2).network)
    for name, columns in {"alone": alone, "labels": labels}.items():
        save_weights(tmp_path / name, encoder(columns=columns).network, columns)
    assert new_heads(tmp_path / "alone", alone) == ()
    assert new_heads(tmp_path / "alone", both) == ("label_head/", "tag_head/", "pooler/")
    assert new_heads(tmp_path / "labels", alone) == (
        "label_head/",
        "tag_head/",
        "span_head/",
        "pooler/",
    )
    assert new_heads(tmp_path / "pairs", alone) == (
        "label_head/",
        "tag_head/",
        "span_head/",
        "pooler/",
    )


def test_answer_networks_start_anew_and_are_left_out_of_a_training_without_them(tmp_path):
    """MT-DNN: of the common training the pooler continues in that of a single task."""
    from t5repro.model.checkpoints import load_weights, save_weights
    from t5repro.model.encoder_heads import PRETRAINING_HEADS, new_heads

    answers = {**LABELS, "rte": TaskAnswer("label", ("no", "yes"), 2, head="san")}
    together = LabelColumns(answers)
    shape = {"embedding_rows": IDS, "dropout_rate": 0.0, "seed": 3, "labels": together.total}
    (first, width, _) = together.networks["rte"]
    network = Encoder(ONE_BLOCK, networks=[("rte", first, width)], **shape)
    network.pooler.matrix.assign_add(tf.ones_like(network.pooler.matrix))
    save_weights(tmp_path / "together", network, together)
    single = LabelColumns({"rte": TaskAnswer("label", ("no", "yes"), 2)})
    heads = new_heads(tmp_path / "together", single)
    assert heads == ("label_head/", "tag_head/", "san_head/")
    assert new_heads(tmp_path / "together", together) == ()
    tuned = encoder(columns=single).network
    fresh = [path for path in weight_variables(tuned) if path.startswith(heads)]
    load_weights(tmp_path / "together", tuned, fresh=fresh, unused=(*PRETRAINING_HEADS, *heads))
    assert np.array_equal(tuned.pooler.matrix, network.pooler.matrix)
    alone = LabelColumns({"rte": answers["rte"]})  # without a pooler
    save_weights(tmp_path / "pretrained", encoder(pair_classes=2).network)
    assert new_heads(tmp_path / "pretrained", alone) == (
        "label_head/", "tag_head/", "san_head/", "pooler/",
    )  # fmt: skip


def test_heads_of_other_tasks_start_anew_and_the_rest_continues(tmp_path):
    """Of a pre-training without pairs the pooler starts anew as well, as RoBERTa's."""
    from t5repro.model.checkpoints import load_weights, read_labels, save_weights
    from t5repro.model.encoder_heads import PRETRAINING_HEADS, new_heads

    columns = LabelColumns(LABELS)
    pairs = encoder(pair_classes=2).network
    save_weights(tmp_path / "pretrained", encoder().network)
    save_weights(tmp_path / "pairs", pairs)
    save_weights(tmp_path / "tuned", encoder(columns=columns).network, columns)
    assert read_labels(tmp_path / "tuned").answers == LABELS
    assert read_labels(tmp_path / "pairs").answers == {}
    rte = LabelColumns({"rte": TaskAnswer("label", ("no", "yes"))})
    other = encoder(columns=rte).network
    heads = {name: new_heads(tmp_path / name, rte) for name in ("pretrained", "pairs", "tuned")}
    assert heads == {
        "pretrained": ("label_head/", "tag_head/", "pooler/"),
        "pairs": ("label_head/", "tag_head/"),
        "tuned": ("label_head/", "tag_head/"),
    }
    assert new_heads(tmp_path / "tuned", columns) == ()
    before = weight_variables(other)["label_head/matrix"].numpy()
    pairs.pooler.matrix.assign_add(tf.ones_like(pairs.pooler.matrix))
    save_weights(tmp_path / "pairs", pairs)
    fresh = [path for path in weight_variables(other) if path.startswith(heads["pairs"])]
    load_weights(
        tmp_path / "pairs", other, fresh=fresh, unused=(*PRETRAINING_HEADS, *heads["pairs"])
    )
    assert np.array_equal(weight_variables(other)["label_head/matrix"], before)
    assert np.array_equal(other.pooler.matrix, pairs.pooler.matrix)
