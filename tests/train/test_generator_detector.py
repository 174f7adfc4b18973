"""ELECTRA's step, against equations in float64 and against BERT's step."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.model.checkpoints import weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.generator_detector import GeneratorDetector  # noqa: E402
from t5repro.model.sampled_pieces import sampled_pieces  # noqa: E402
from t5repro.systems.encoder.loss import MaskedLoss  # noqa: E402
from t5repro.systems.generator_detector.loss import ReplacedTokensLoss  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402
from t5repro.train.validation import Validation  # noqa: E402

pytestmark = pytest.mark.keras

ROWS, LENGTH, PLACES, IDS = 8, 17, 5, 256
MASK = 200
TASKS = ("detection", "masked_detection", "masked_pieces", "all_pieces")
SHAPE = SIZES["electra_tiny"].model_copy(  # with a projection in both networks
    update={"num_encoder_layers": 1, "embedding_width": 48, "generator_width": 0.25}
)


def electra(*, tying="embeddings", task="detection", weight=50.0, micro_batches=1):
    shape = SHAPE.model_copy(update={"generator_tying": tying})
    if tying == "all":
        shape = shape.model_copy(update={"generator_width": 1.0})
    network = GeneratorDetector(shape, embedding_rows=IDS, dropout_rate=0.0, seed=3, task=task)
    random = np.random.default_rng(5)
    for variable in network.weights:  # biases and scales other than 0 and 1, logits that differ
        variable.assign_add(0.1 * random.normal(size=variable.shape))
    loss = ReplacedTokensLoss(task=task, weight=weight)
    return TensorFlowModel(network, loss, normaliser="target_tokens", micro_batches=micro_batches)


@pytest.fixture
def batch():
    """Return rows with [MASK] at some positions, none of them the first."""
    random = np.random.default_rng(0)
    lengths = random.integers(8, LENGTH + 1, ROWS)
    inside = np.arange(LENGTH) < lengths[:, None]
    ids = random.integers(3, 100, (ROWS, LENGTH)) * inside
    masked = [np.sort(random.permutation(np.arange(1, 7))[: 1 + row % PLACES]) for row in range(8)]
    positions, targets = np.zeros((2, ROWS, PLACES), int)
    for row, places in enumerate(masked):
        positions[row, : len(places)] = places
        targets[row, : len(places)] = ids[row, places]
        ids[row, places] = MASK
    features = {
        "encoder_ids": ids,
        "encoder_segments": inside,
        "encoder_types": (np.arange(LENGTH) > 3) * inside,
        "target_positions": positions,
        "sample_draws": random.integers(0, 1 << 24, (ROWS, PLACES)),
    }
    features = {name: tf.constant(array, tf.int32) for name, array in features.items()}
    return features, tf.constant(targets, tf.int32)


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def drawn_by_hand(logits, draws):
    """Return the first id whose cumulative probability exceeds the random number."""
    sums = np.cumsum(np.exp(log_softmax(logits)), axis=-1)
    return (sums <= np.asarray(draws)[..., None] * 2.0**-24 * sums[..., -1:]).sum(axis=-1)


def rows_by_hand(model, features, targets):
    """Return the generator's logits, the rows with its pieces and the original rows."""
    states = model.network.generated(features)
    logits = np.asarray(model.network.masked_logits(states, features["target_positions"]))
    drawn = drawn_by_hand(logits, features["sample_draws"])
    rows, originals = (np.array(features["encoder_ids"]) for _ in range(2))
    for row, places in enumerate(np.asarray(features["target_positions"])):
        for place, piece, target in zip(places, drawn[row], targets.numpy()[row], strict=True):
            if target:
                rows[row, place], originals[row, place] = piece, target
    return logits, rows, originals


def read_by_hand(model, features, rows):
    return model.network.encode(features | {"encoder_ids": tf.constant(rows, tf.int32)})


def cross_entropy(labels, logits):
    logits = np.asarray(logits, np.float64)
    return np.logaddexp(0, logits) - labels * logits


def pieces_by_hand(logits, targets):
    return -np.take_along_axis(log_softmax(logits), targets[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize("tying", ["none", "embeddings", "all"])
@pytest.mark.parametrize("task", TASKS)
def test_the_loss_is_the_mean_of_masked_pieces_plus_that_of_the_second_network(batch, tying, task):
    """Clark et al., 2020, sections 2 and 3.4, in float64; `[CLS]` and `[SEP]` count."""
    features, targets = batch
    model = electra(tying=tying, task=task)
    loss, _ = model.loss_and_gradients(features, targets)
    logits, rows, originals = rows_by_hand(model, features, targets)
    is_masked = targets.numpy() > 0
    generator = pieces_by_hand(logits, targets.numpy())[is_masked].mean()
    read = read_by_hand(model, features, rows)
    network, is_real = model.network, features["encoder_segments"].numpy() > 0
    changed = rows != originals
    if task == "masked_pieces":
        states = np.take_along_axis(
            read.numpy(), features["target_positions"].numpy()[..., None], axis=1
        )
        pieces = network.piece_logits(tf.constant(states))
        second = pieces_by_hand(pieces, targets.numpy())[is_masked].mean()
    elif task == "all_pieces":
        copying = 1 / (1 + np.exp(-np.asarray(network.detector_head(read), np.float64)))
        written = np.exp(-pieces_by_hand(network.piece_logits(read), originals))
        likelihood = copying * ~changed + (1 - copying) * written
        second = -np.log(likelihood)[is_real].mean()
    else:
        losses = cross_entropy(changed, network.detector_head(read))
        judged = is_real
        if task == "masked_detection":
            judged = np.zeros_like(is_real)
            for row, places in enumerate(features["target_positions"].numpy()):
                judged[row, places[is_masked[row]]] = True
            assert judged.sum() == is_masked.sum()
        second = losses[judged].mean()
    assert float(loss) == pytest.approx(generator + 50 * second, rel=2e-5)


def test_a_right_guess_is_an_original_piece_and_the_first_position_counts(batch, monkeypatch):
    features, targets = batch
    model = electra()
    network = model.network
    # A generator that is sure of the original pieces: nothing is replaced.
    logits = 50.0 * np.eye(IDS, dtype=np.float32)[targets.numpy()]
    monkeypatch.setattr(network, "masked_logits", lambda *states: tf.constant(logits))
    network.detector_head.logit.matrix.assign(0.0 * network.detector_head.logit.matrix)
    network.detector_head.logit.bias.assign([2.0])
    judged = int(tf.reduce_sum(features["encoder_segments"]))  # with [CLS] and [SEP]
    weights = model.objective.term_weights(network, features, targets, tf.constant(1.0))
    assert float(weights["replaced"]) == pytest.approx(50 / judged)
    loss = model.objective.summed(network, features, targets, weights)
    # All labels are 0, also where [MASK] was, so each piece has the same loss.
    assert float(loss) == pytest.approx(50 * np.logaddexp(0, 2.0), rel=1e-6)


def test_the_detector_has_no_gradient_in_weights_of_the_generator_alone(batch):
    features, targets = batch
    with_detector, without = electra(), electra(weight=0.0)
    gradients = {}
    for model in (with_detector, without):
        _, values = model.loss_and_gradients(features, targets)
        gradients[model] = dict(zip(weight_variables(model.network), values, strict=True))
    moved = set()
    for name, gradient in gradients[with_detector].items():
        difference = np.abs(gradient - gradients[without][name]).max()
        if name.startswith(("generator", "masked_lm")):
            assert difference == 0, name
        elif difference > 0:
            moved.add(name)
    assert {"embedding", "encoder/positions/table", "encoder/embedding_norm/scale"} <= moved
    assert "detector_head/logit/matrix" in moved


@pytest.mark.parametrize("task", TASKS)
def test_micro_batches_draw_the_same_pieces_and_have_the_same_gradients(batch, task):
    features, targets = batch
    whole = electra(task=task).loss_and_gradients(features, targets)
    parts = electra(task=task, micro_batches=4).loss_and_gradients(features, targets)
    assert float(parts[0]) == pytest.approx(float(whole[0]), rel=1e-5)
    for actual, expected in zip(parts[1], whole[1], strict=True):
        assert np.abs(actual - expected).max() <= 2e-5 * max(np.abs(expected).max(), 1e-2)


def test_gradients_are_the_slopes_of_the_loss(batch):
    """In the directions of three weights, by differences: the drawn pieces stay the same."""
    features, targets = batch
    model = electra()
    _, values = model.loss_and_gradients(features, targets)
    gradients = dict(zip(weight_variables(model.network), values, strict=True))
    random = np.random.default_rng(8)
    for name in (
        "detector_head/transform/matrix",
        "encoder/block_0/feed_forward/wi",
        "encoder/embedding_projection/matrix",
    ):
        variable = weight_variables(model.network)[name]
        direction = random.normal(size=variable.shape).astype(np.float32)
        losses = []
        for sign in (1, -1):
            variable.assign_add(sign * 1e-3 * direction)
            losses.append(float(model.loss_and_gradients(features, targets)[0]))
            variable.assign_add(-sign * 1e-3 * direction)
        slope = (losses[0] - losses[1]) / 2e-3
        expected = float(np.sum(gradients[name] * direction))
        assert slope == pytest.approx(expected, rel=2e-2, abs=0.05), name


def test_without_a_second_loss_the_generator_is_bert_without_pairs(batch):
    """A BERT with its weights has its loss; so has any share of [MASK], which rows decide."""
    features, targets = batch
    model = electra(weight=0.0)
    shape = SHAPE.generator
    bert = Encoder(shape, embedding_rows=IDS, dropout_rate=0.0, seed=0)
    ours = weight_variables(model.network)
    for name, variable in weight_variables(bert).items():
        own = name.replace("encoder/", "generator/", 1)
        variable.assign(ours[own if own in ours else name])
    arm = TensorFlowModel(bert, MaskedLoss(), normaliser="target_tokens", micro_batches=1)
    bert_loss, bert_gradients = arm.loss_and_gradients(features, targets)
    loss, gradients = model.loss_and_gradients(features, targets)
    assert float(loss) == pytest.approx(float(bert_loss), rel=1e-6)
    by_name = dict(zip(ours, gradients, strict=True))
    for name, gradient in zip(weight_variables(bert), bert_gradients, strict=True):
        own = name.replace("encoder/", "generator/", 1)
        found = by_name[own if own in ours else name]
        assert np.abs(found - gradient).max() <= 1e-5 * max(np.abs(gradient).max(), 1e-3), name


def test_pieces_are_drawn_with_the_probabilities_of_the_softmax():
    random = np.random.default_rng(2)
    logits = 2 * random.normal(size=300).astype(np.float32)
    logits[7] = -1e9  # a row of the embedding without a piece
    draws = random.integers(0, 1 << 24, (40, 500))
    drawn = sampled_pieces(
        tf.constant(np.tile(logits, (40, 500, 1))), tf.constant(draws, tf.int32)
    ).numpy()
    counts = np.bincount(drawn.ravel(), minlength=300)
    expected = np.exp(log_softmax(logits)) * draws.size
    assert counts[7] == 0
    assert len(counts) == 300
    common = expected > 5
    chi_square = ((counts - expected)[common] ** 2 / expected[common]).sum()
    freedom = common.sum()
    assert chi_square < freedom + 4 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("draw", [0, 1, (1 << 24) - 1])
@pytest.mark.parametrize("ids", [100, 128, 2432])
def test_the_smallest_and_the_largest_random_number_draw_a_possible_piece(draw, ids):
    logits = np.full((1, 2, ids), -1e9, np.float32)
    logits[0, 0, [5, 70]] = 0.0
    logits[0, 1, ids - 3] = 3.0
    drawn = sampled_pieces(tf.constant(logits), tf.constant([[draw, draw]], tf.int32)).numpy()
    assert drawn.tolist() == [[70 if draw > 1 else 5, ids - 3]]


def test_a_piece_depends_on_its_own_logits_and_number_only(batch):
    features, _ = batch
    random = np.random.default_rng(4)
    logits = random.normal(size=(ROWS, PLACES, IDS)).astype(np.float32)
    draws = features["sample_draws"].numpy()
    whole = sampled_pieces(tf.constant(logits), tf.constant(draws)).numpy()
    order = random.permutation(ROWS)
    moved = sampled_pieces(tf.constant(logits[order]), tf.constant(draws[order])).numpy()
    assert (moved == whole[order]).all()
    assert (whole == drawn_by_hand(logits, draws)).all()


@pytest.mark.parametrize("task", TASKS)
def test_accuracies_are_of_masked_and_of_replaced_pieces(batch, task):
    features, targets = batch
    model = electra(task=task)
    logits, rows, originals = rows_by_hand(model, features, targets)
    is_masked = targets.numpy() > 0
    expected = {"masked_pieces": (logits.argmax(-1) == targets.numpy())[is_masked].mean()}
    if task in ("detection", "masked_detection"):
        read = read_by_hand(model, features, rows)
        is_right = (np.asarray(model.network.detector_head(read)) > 0) == (rows != originals)
        judged = features["encoder_segments"].numpy() > 0
        if task == "masked_detection":
            judged &= np.array(features["encoder_ids"]) == MASK
        expected["replaced_pieces"] = is_right[judged].mean()
    validation = Validation([(features, targets)], every_steps=1)
    assert validation.accuracies(model) == pytest.approx(expected)
    loss = pieces_by_hand(logits, targets.numpy())[is_masked].mean()
    assert validation.loss(model) == pytest.approx(loss, rel=1e-5)


def test_one_batch_is_learnt_by_heart(batch):
    features, targets = batch
    model = electra(weight=5.0)
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse", jit_compile=False)
    step = tf.function(model.train_step, autograph=False)
    losses = []
    while len(losses) < 200 and (not losses or losses[-1] > 0.1):
        losses.append(float(step((features, targets))["loss"]))
        model.reset_metrics()
    assert losses[0] > 5
    assert losses[-1] <= 0.1


def test_fine_tuning_takes_the_detector_and_starts_with_new_heads(tmp_path):
    from t5repro.model.checkpoints import load_weights, save_weights
    from t5repro.model.encoder_heads import PRETRAINING_HEADS, new_heads
    from t5repro.model.generator_detector import Detector
    from t5repro.model.labels import LabelColumns, TaskAnswer

    columns = LabelColumns({"cola": TaskAnswer("label", ("no", "yes"))})
    for tying in ("none", "embeddings", "all"):
        network = electra(tying=tying).network
        save_weights(tmp_path / tying, network)
        heads = new_heads(tmp_path / tying, columns)
        tuned = Detector(network.settings, embedding_rows=IDS, dropout_rate=0.0, seed=1, labels=2)
        fresh = [path for path in weight_variables(tuned) if path.startswith(heads)]
        assert fresh == ["label_head/matrix", "label_head/bias"]
        load_weights(tmp_path / tying, tuned, fresh=fresh, unused=(*PRETRAINING_HEADS, *heads))
        assert np.array_equal(tuned.embedding, network.embedding)


def test_labels_read_the_state_of_the_first_position_itself(batch):
    """ELECTRA ``get_prediction_module``: no pooler, and Glorot's initial values."""
    from t5repro.model.generator_detector import Detector

    features, _ = batch
    network = Detector(SHAPE, embedding_rows=IDS, dropout_rate=0.0, seed=1, labels=3)
    states = network.encode(features).numpy()
    matrix = network.label_head.matrix.numpy()
    assert network(features).numpy() == pytest.approx(states[:, 0] @ matrix, abs=1e-5)
    limit = np.sqrt(6 / (128 + 3))
    assert 0.9 * limit < np.abs(matrix).max() <= limit
    projection = network.encoder.embedding_projection.matrix.numpy()
    assert 0.98 * np.sqrt(6 / 176) < np.abs(projection).max() <= np.sqrt(6 / 176)
    others = np.abs(network.encoder.blocks[0].feed_forward.wi.numpy()).max()
    assert others <= 0.04 + 1e-6  # two deviations of the truncated normal
