"""Losses of GPT's fine-tuning, against equations in float64, and its answers."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from networks import text_network  # noqa: E402

from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.model.checkpoints import load_weights, save_weights, weight_variables  # noqa: E402
from t5repro.model.encoder_heads import PRETRAINING_HEADS, new_heads  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.segment_rows import SegmentRow  # noqa: E402
from t5repro.model.span_answers import LIMITS_OF_BERT  # noqa: E402
from t5repro.model.task_answers import task_answers  # noqa: E402
from t5repro.model.task_rows import TaskRows  # noqa: E402
from t5repro.model.transformer import DecoderClassifier  # noqa: E402
from t5repro.systems.decoder_classifier.loss import DecoderAnswerLoss  # noqa: E402
from t5repro.train.special_rows import new_rows  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402

pytestmark = pytest.mark.keras

ROWS, LENGTH, IDS = 8, 13, 128
LABELS = {
    "cola": TaskAnswer("label", ("no", "yes")),
    "glue_stsb": TaskAnswer("number"),
    "mnli": TaskAnswer("label", ("a", "b", "c")),
}
COLUMNS = LabelColumns(LABELS)
GPT = SIZES["gpt_tiny"].model_copy(update={"num_decoder_layers": 1})


def decoder(**options):
    micro_batches = options.pop("micro_batches", 1)
    network = DecoderClassifier(
        GPT, embedding_rows=IDS, dropout_rate=0.0, seed=3, labels=COLUMNS.total
    )
    random = np.random.default_rng(1)
    network.label_head.matrix.assign(random.normal(size=network.label_head.matrix.shape))
    loss = DecoderAnswerLoss(columns=COLUMNS, **({"lm_weight": 0.5} | options))
    return TensorFlowModel(network, loss, normaliser="target_tokens", micro_batches=micro_batches)


@pytest.fixture
def batch():
    """Rows of three tasks; those of the second one are read in both orders."""
    random = np.random.default_rng(0)
    lengths = random.integers(4, LENGTH + 1, ROWS)
    inside = np.arange(LENGTH) < lengths[:, None]
    tasks = np.arange(ROWS) % 3
    both = (tasks == 1)[:, None] * inside
    features = {
        "decoder_ids": random.integers(3, 100, (ROWS, LENGTH)) * inside,
        "decoder_segments": inside,
        "swapped_ids": random.integers(3, 100, (ROWS, LENGTH)) * both,
        "swapped_segments": both,
        "last_positions": lengths[:, None] - 1,
        "label_columns": [COLUMNS.columns[sorted(LABELS)[task]] for task in tasks],
    }
    targets = np.where(tasks == 1, 2.5, np.arange(ROWS) % 2)[:, None]
    return {name: tf.constant(array, tf.int32) for name, array in features.items()}, tf.constant(
        targets, tf.float32
    )


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def expected_losses(model, features, targets):
    """Return the losses of labels and of texts of each row, from the states of the decoder."""
    network = model.network
    weights = {
        path: variable.numpy().astype(np.float64)
        for path, variable in weight_variables(network).items()
    }
    of_labels, of_texts = [], []
    for row in range(ROWS):
        state, text_losses = 0, []
        for order in ("decoder", "swapped"):
            ids = features[f"{order}_ids"].numpy()[row]
            ids = ids[ids > 0]
            if not len(ids):
                continue
            ones = tf.ones((1, len(ids)), tf.int32)
            embedded = network.embed(tf.constant(ids[None], tf.int32))
            states = network.decoder(embedded, ones).numpy().astype(np.float64)[0]
            state = state + states[-1]
            likely = log_softmax(states[:-1] @ weights["embedding"].T)
            text_losses.append(-likely[np.arange(len(ids) - 1), ids[1:]].mean())
        of_texts.append(np.mean(text_losses))
        logits = state @ weights["label_head/matrix"] + weights["label_head/bias"]
        first, width, is_number = features["label_columns"].numpy()[row]
        own, target = logits[first : first + width], float(targets[row, 0])
        loss = (own[0] - target) ** 2 if is_number else -log_softmax(own)[int(target)]
        of_labels.append(loss)
    return np.array(of_labels), np.array(of_texts)


@pytest.mark.parametrize("lm_weight", [0, 0.5, 2])
def test_the_loss_is_that_of_labels_plus_the_weighted_mean_over_each_text(batch, lm_weight):
    """Radford et al., 2018, section 3.2; the states of both orders are added."""
    features, targets = batch
    model = decoder(lm_weight=lm_weight)
    of_labels, of_texts = expected_losses(model, features, targets)
    loss, _ = model.loss_and_gradients(features, targets)
    assert float(loss) == pytest.approx((of_labels + lm_weight * of_texts).mean(), rel=2e-5)


def test_micro_batches_have_the_gradients_of_the_whole_batch(batch):
    whole = decoder().loss_and_gradients(*batch)
    parts = decoder(micro_batches=4).loss_and_gradients(*batch)
    assert float(parts[0]) == pytest.approx(float(whole[0]), rel=1e-5)
    for actual, expected in zip(parts[1], whole[1], strict=True):
        assert np.abs(actual - expected).max() <= 2e-5 * max(np.abs(expected).max(), 1e-3)


def test_padding_has_no_influence(batch):
    features, targets = batch
    model = decoder()
    before, _ = model.loss_and_gradients(features, targets)
    width = LENGTH + 6
    wider = {
        name: tf.pad(array, [[0, 0], [0, width - LENGTH]]) if array.shape[1] == LENGTH else array
        for name, array in features.items()
    }
    after, _ = model.loss_and_gradients(wider, targets)
    assert float(after) == pytest.approx(float(before), rel=1e-5)


def test_one_batch_is_learnt_by_heart(batch):
    model = decoder()
    model.compile(optimizer=keras.optimizers.Adam(2e-3), jit_compile=False)
    step = tf.function(model.train_step, autograph=False)
    for _ in range(200):
        step(batch)
    model.reset_metrics()
    of_labels, _ = expected_losses(model, *batch)
    assert of_labels.max() < 0.05


def test_fine_tuning_begins_with_the_pretrained_weights_and_a_new_layer(tmp_path):
    pretrained = text_network(GPT, embedding_rows=IDS, dropout_rate=0.0, seed=9)
    save_weights(tmp_path / "weights.safetensors", pretrained)
    model = decoder().network
    heads = new_heads(tmp_path / "weights.safetensors", COLUMNS)
    fresh = [path for path in weight_variables(model) if path.startswith(heads)]
    assert fresh == ["label_head/matrix", "label_head/bias"]
    load_weights(
        tmp_path / "weights.safetensors", model, fresh=fresh, unused=(*PRETRAINING_HEADS, *heads)
    )
    for path, variable in weight_variables(pretrained).items():
        assert (weight_variables(model)[path].numpy() == variable.numpy()).all()


def test_the_answer_of_a_task_of_similarity_does_not_depend_on_the_order(batch):
    features, _ = batch
    model = decoder().network
    rows, swapped = [], []
    for row in range(ROWS):
        ids, other = (
            [int(token) for token in features[f"{order}_ids"].numpy()[row] if token]
            for order in ("decoder", "swapped")
        )
        rows.append(SegmentRow(ids, len(ids), False, tuple(other)))
        swapped.append(SegmentRow(other or ids, len(ids), False, tuple(ids if other else ())))
    options = {
        "columns": COLUMNS,
        "batch_size": 3,
        "inputs_length": LENGTH,
        "spans": LIMITS_OF_BERT,
    }
    answers, others = (
        task_answers([model], TaskRows(one, (), ROWS), task="glue_stsb", **options).texts
        for one in (rows, swapped)
    )
    assert [float(answer) for answer in others] == pytest.approx(
        list(map(float, answers)), abs=2e-4
    )
    logits = np.asarray(model(features))
    first = COLUMNS.columns["glue_stsb"].first
    assert list(map(float, answers)) == pytest.approx(logits[:, first].tolist(), abs=2e-4)
    answers = task_answers([model], TaskRows(rows, (), ROWS), task="mnli", **options)
    first = COLUMNS.columns["mnli"].first
    best = logits[:, first : first + 3].argmax(axis=1)
    assert answers.texts == [LABELS["mnli"].words[label] for label in best]


def trained_gpt(folder, *, rows):
    """Write weights of a pre-training in which all rows of the embedding have moved."""
    model = text_network(GPT, embedding_rows=IDS, dropout_rate=0.0, seed=5)
    embedding = np.zeros(model.embedding.shape, np.float32)
    embedding[:rows] = 1 + np.arange(rows)[:, None]
    model.embedding.assign(embedding)
    save_weights(folder / "weights.safetensors", model)
    return folder / "weights.safetensors", embedding


@pytest.mark.parametrize("rows", [IDS, 100])
def test_fine_tuning_begins_with_new_rows_of_the_special_pieces(tmp_path, rows):
    path, trained = trained_gpt(tmp_path, rows=rows)
    model = decoder().network
    initial = model.embedding.numpy()
    special = [103, 104, 105]
    with new_rows(model, path, special):
        load_weights(path, model, fresh=["label_head/matrix", "label_head/bias"])
    found = model.embedding.numpy()
    np.testing.assert_array_equal(found[special], initial[special])
    assert found[special].std() == pytest.approx(0.02, rel=0.2)
    others = np.setdiff1d(np.arange(IDS), special)
    np.testing.assert_array_equal(found[others], trained[others])
    # A row that the weights lacked is a target of the language model now.
    assert model.rows_in_use == (IDS if rows == IDS else 106)


def test_rows_that_a_fine_tuning_has_trained_are_kept(tmp_path, batch):
    model = decoder().network
    model.embedding.assign(model.embedding + 1)
    save_weights(tmp_path / "weights.safetensors", model, COLUMNS)
    again = decoder().network
    with new_rows(again, tmp_path / "weights.safetensors", [103, 104, 105]):
        load_weights(tmp_path / "weights.safetensors", again)
    np.testing.assert_array_equal(again.embedding.numpy(), model.embedding.numpy())
