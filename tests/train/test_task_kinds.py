"""Options and spans in fine-tuning, against equations in float64."""

import numpy as np
import pytest
import yaml

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.cli.main import main  # noqa: E402
from t5repro.config.load import load_run_file  # noqa: E402
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.finetune import FinetuneStage  # noqa: E402
from t5repro.estimate.work import step_work  # noqa: E402
from t5repro.model.checkpoints import noise_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.segment_rows import SegmentRow  # noqa: E402
from t5repro.model.span_answers import LIMITS_OF_BERT  # noqa: E402
from t5repro.model.task_answers import task_answers  # noqa: E402
from t5repro.model.task_rows import TaskRows  # noqa: E402
from t5repro.model.transformer import DecoderClassifier  # noqa: E402
from t5repro.systems.decoder_classifier.loss import DecoderAnswerLoss  # noqa: E402
from t5repro.systems.encoder.loss import EncoderAnswerLoss  # noqa: E402
from t5repro.systems.label_losses import option_losses, span_losses  # noqa: E402
from t5repro.train import preflight  # noqa: E402
from t5repro.train.fresh_model import fresh_model, padding_batch  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402

pytestmark = pytest.mark.keras

ROWS, LENGTH, IDS = 8, 11, 128
ANSWERS = {
    "cola": TaskAnswer("label", ("no", "yes")),
    "copa": TaskAnswer("choice", ("choice1", "choice2")),
    "squad": TaskAnswer("span"),
    "stsb": TaskAnswer("number"),
    "chunks": TaskAnswer("tags", ("O", "B-X")),
    "names": TaskAnswer("tags", ("O", "B-PER", "I-PER")),
}


ANSWER_FEATURES = ("label_columns", "answer_span", "piece_tags")


def network(*tasks, lm_weight=None, micro_batches=1):
    """Return a BERT with its loss, or with `lm_weight` a GPT."""
    columns = LabelColumns({task: ANSWERS[task] for task in tasks})
    shape = {"embedding_rows": IDS, "dropout_rate": 0.0, "seed": 3, "labels": columns.total}
    blocks = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    if lm_weight is None:
        size = SIZES["bert_tiny"].model_copy(update=blocks)
        model = Encoder(size, predicts_spans=columns.has_spans, tags=columns.tags, **shape)
        loss = EncoderAnswerLoss(columns=columns)
    else:
        model = DecoderClassifier(SIZES["gpt_tiny"].model_copy(update=blocks), **shape)
        loss = DecoderAnswerLoss(columns=columns, lm_weight=lm_weight)
    random = np.random.default_rng(1)
    for head in ("label_head", "span_head", "tag_head"):
        if layer := getattr(model, head, None):
            layer.matrix.assign(random.normal(size=layer.matrix.shape))
    return TensorFlowModel(model, loss, normaliser="target_tokens", micro_batches=micro_batches)


def batch(*tasks, options=2, stack="encoder"):
    """Rows of the tasks in turn; only those of COPA have a second option."""
    random = np.random.default_rng(0)
    columns = LabelColumns({task: ANSWERS[task] for task in tasks})
    shape = (ROWS, options, LENGTH)
    names = [tasks[row % len(tasks)] for row in range(ROWS)]
    lengths = random.integers(5, LENGTH + 1, shape[:2])
    lengths[:, 1:] *= np.array([[name == "copa"] for name in names])
    inside = np.arange(LENGTH) < lengths[..., None]
    arrays = {f"{stack}_ids": random.integers(3, 100, shape) * inside, f"{stack}_segments": inside}
    if stack == "encoder":
        arrays["encoder_types"] = (np.arange(LENGTH) > 3) * inside
    else:
        arrays["last_positions"] = np.maximum(lengths - 1, 0)[..., None]
    if options == 1:
        arrays = {name: array[:, 0] for name, array in arrays.items()}
    arrays["label_columns"] = np.array([columns.columns[name] for name in names])
    arrays["answer_span"] = np.sort(random.integers(0, 5, (ROWS, 2)))
    arrays["piece_tags"] = np.zeros((ROWS, LENGTH), int)
    for row, name in enumerate(names):
        if ANSWERS[name].kind == "tags":  # at some pieces of the row
            (first, width, _), places = columns.columns[name], range(1, 5, 1 + row % 2)
            tags = random.integers(0, width, len(places))
            arrays["piece_tags"][row, list(places)] = first + tags + 1
    targets = np.array([[2.5 if name == "stsb" else row % 2] for row, name in enumerate(names)])
    features = {name: tf.constant(array, tf.int32) for name, array in arrays.items()}
    return features, tf.constant(targets, tf.float32)


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def one_by_one(model, features, targets, stack="encoder"):
    """Return the loss of each row from the logits of its options, each read alone."""
    columns, losses = model.objective.columns, []
    for row, (first, width, kind) in enumerate(features["label_columns"].numpy()):
        logits = []
        segments = np.reshape(features[f"{stack}_segments"][row], (-1, LENGTH))
        for option in range(len(segments)):
            if not segments[option].any():
                continue
            names = [name for name in features if name not in ANSWER_FEATURES]
            one = {
                name: tf.reshape(features[name][row], (len(segments), -1))[option : option + 1]
                for name in names
            }
            logits.append(model(one))
        target = float(targets[row, 0])
        place = first, width, kind
        (name,) = (task for task in columns.answers if columns.columns[task] == place)
        if ANSWERS[name].kind == "tags":
            heads = logits[0] if isinstance(logits[0], tuple) else logits
            own = np.asarray(heads[-1])[0, :, first : first + width]
            tags = features["piece_tags"].numpy()[row]
            places = np.flatnonzero(tags)
            losses.append(-log_softmax(own)[places, tags[places] - first - 1].mean())
            continue
        if name == "squad":
            ends = logits[0][columns.total > 0] if isinstance(logits[0], tuple) else logits[0]
            real = np.flatnonzero(segments[0])
            likely = log_softmax(np.asarray(ends)[0, real].T)
            losses.append(-likely[np.arange(2), features["answer_span"].numpy()[row]].mean())
            continue
        heads = [np.asarray(one[0] if isinstance(one, tuple) else one)[0] for one in logits]
        own = [head[first : first + width] for head in heads]
        if name == "cola":
            losses.append(-log_softmax(own[0])[int(target)])
        elif name == "copa":
            losses.append(-log_softmax(np.concatenate(own))[int(target)])
        else:
            losses.append((float(own[0][0]) - target) ** 2)
    return np.array(losses)


CASES = [
    *(("squad",), ("copa",), ("cola", "squad", "stsb"), ("cola", "copa", "squad", "stsb")),
    *(("names",), ("chunks", "names"), ("names", "squad"), ("chunks", "cola", "copa", "names")),
]


@pytest.mark.parametrize("tasks", CASES, ids="+".join)
def test_the_loss_of_each_row_is_that_of_its_own_kind_of_answer(tasks):
    features, targets = batch(*tasks, options=2 if "copa" in tasks else 1)
    model = network(*tasks)
    loss, gradients = model.loss_and_gradients(features, targets)
    expected = one_by_one(model, features, targets)
    assert float(loss) == pytest.approx(expected.mean(), rel=2e-5)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("tasks", CASES, ids="+".join)
def test_micro_batches_have_the_gradients_of_the_whole_batch(tasks):
    rows = batch(*tasks, options=2 if "copa" in tasks else 1)
    whole = network(*tasks).loss_and_gradients(*rows)
    parts = network(*tasks, micro_batches=4).loss_and_gradients(*rows)
    assert float(parts[0]) == pytest.approx(float(whole[0]), rel=1e-5)
    for actual, expected in zip(parts[1], whole[1], strict=True):
        assert np.abs(actual - expected).max() <= 2e-5 * max(np.abs(expected).max(), 5e-2)


@pytest.mark.parametrize("lm_weight", [0, 0.5])
def test_gpt_scores_each_option_and_reads_the_texts_of_all(lm_weight):
    """Radford et al., 2018, section 3.3: the options are normalised by a softmax."""
    features, targets = batch("cola", "copa", stack="decoder")
    model = network("cola", "copa", lm_weight=float(lm_weight))
    gpt = model.network
    of_labels = one_by_one(model, features, targets, stack="decoder")
    of_texts = []
    for row in range(ROWS):
        by_option = []
        for ids in features["decoder_ids"].numpy()[row]:
            ids = ids[ids > 0]
            if not len(ids):
                continue
            segments = tf.ones((1, len(ids)), tf.int32)
            states = gpt.decoder(gpt.embed(tf.constant(ids[None], tf.int32)), segments)
            likely = log_softmax(gpt.logits(states))[0, :-1]
            by_option.append(-likely[np.arange(len(ids) - 1), ids[1:]].mean())
        of_texts.append(np.mean(by_option))
    loss, _ = model.loss_and_gradients(features, targets)
    expected = (of_labels + lm_weight * np.array(of_texts)).mean()
    assert float(loss) == pytest.approx(expected, rel=2e-5)


def test_a_span_competes_with_all_positions_of_its_row():
    logits = np.random.default_rng(2).normal(size=(2, 5, 2)).astype(np.float32)
    segments = tf.constant([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    spans = [(0, 4), (2, 2)]
    losses = np.asarray(span_losses(tf.constant(spans), tf.constant(logits), segments))[:, 0]
    for row, (first, last) in enumerate(spans):
        both = log_softmax(logits[row, : 5 - 2 * row].T)
        assert losses[row] == pytest.approx(-(both[0, first] + both[1, last]) / 2, rel=1e-5)


def test_an_option_that_a_row_lacks_has_no_probability():
    outputs = tf.constant([[[1.0], [2.0], [9.0]]])
    exists = tf.constant([[True, True, False]])
    loss = option_losses(tf.constant([[1.0]]), outputs, tf.constant([[0, 1, 2]]), exists)
    assert float(loss[0, 0]) == pytest.approx(np.log1p(np.exp(-1.0)), rel=1e-5)


def test_the_answer_is_the_option_of_the_highest_score():
    features, _ = batch("copa")
    model = network("copa")
    ids = features["encoder_ids"].numpy().reshape(-1, LENGTH)
    rows = [SegmentRow([int(token) for token in row if token], 4, False) for row in ids]
    answers = task_answers(
        [model.network],
        TaskRows(rows, (), ROWS),
        columns=model.objective.columns,
        task="copa",
        inputs_length=LENGTH,
        batch_size=5,
        spans=LIMITS_OF_BERT,
    )
    scores = np.asarray(model(features)).reshape(ROWS, 2)
    assert answers.texts == [("choice1", "choice2")[best] for best in scores.argmax(axis=1)]
    assert len(set(answers.texts)) == 2


def test_each_word_has_the_likeliest_tag_of_its_first_piece():
    features, _ = batch("chunks", "names", options=1)
    model = network("chunks", "names")
    ids = features["encoder_ids"].numpy()
    rows = [SegmentRow([int(token) for token in row if token], 4, False) for row in ids]
    # The third word of each row was cut off; the second one has two pieces.
    places = [[1, 3, 0]] * ROWS
    answers = task_answers(
        [model.network],
        TaskRows(rows, (), ROWS, places),
        columns=model.objective.columns,
        task="names",
        inputs_length=LENGTH,
        batch_size=3,
        spans=LIMITS_OF_BERT,
    )
    logits = np.asarray(model(features))[:, [1, 3], 2:]  # behind the columns of chunks
    tags = np.array(ANSWERS["names"].words)[logits.argmax(axis=-1)]
    assert answers.texts == [f"{first} {second} O" for first, second in tags]
    assert len(set(answers.texts)) > 1


@pytest.mark.parametrize("tasks", [("squad",), ("copa",), ("names",)], ids="+".join)
def test_one_batch_is_learnt_by_heart(tasks):
    features, targets = batch(*tasks, options=2 if "copa" in tasks else 1)
    model = network(*tasks)
    model.compile(optimizer=keras.optimizers.Adam(2e-3), jit_compile=False)
    step = tf.function(model.train_step, autograph=False)
    for _ in range(150):
        step((features, targets))
    assert one_by_one(model, features, targets).max() < 0.05


@pytest.mark.parametrize(
    ("task", "size", "texts"),
    [("race", "bert_tiny", 4), ("race", "gpt_tiny", 4), ("super_glue_copa", "bert_tiny", 2)],
)
def test_preflight_and_estimate_count_every_option_of_a_row(task, size, texts):
    def stage(name):
        return FinetuneStage.model_validate(
            {
                "seed": 0,
                "vocab": {"vocab_size": 100, "extra_ids": 20},
                "model": SIZES[size].model_dump(),
                "tasks": {"names": [name]},
                "finetune": {"inputs_length": LENGTH, "answers": "labels"},
                "devices": {},
            }
        )

    features, _ = padding_batch(stage(task), ROWS)
    stack = "decoder" if size == "gpt_tiny" else "encoder"
    assert features[f"{stack}_ids"].shape == (ROWS, texts, LENGTH)
    label, choice = (step_work("finetune", stage(name)) for name in ("glue_sst2", task))
    assert choice == texts * label


@pytest.mark.parametrize(("system", "stack"), [("bert", "encoder"), ("gpt", "decoder")])
def test_preflight_counts_every_option_of_an_own_task_of_the_run_file(
    system, stack, tmp_path, monkeypatch
):
    endings = {
        "files": {"train": ["endings.csv"]},
        "fields": ["beginning"],
        "options": ["ending_a", "ending_b", "ending_c"],
        "target": "right",
        "metrics": ["accuracy"],
    }
    values = {
        "use": [f"systems/{system}", f"sizes/{system}_tiny"],
        "tasks": {"names": ["endings"], "own": {"endings": endings}, "segments": True},
        "finetune": {"inputs_length": LENGTH},
    }
    run_file = tmp_path / "run.yaml"
    run_file.write_text(yaml.safe_dump(values))
    steps = []
    monkeypatch.setattr(preflight, "preflight", lambda step, **_: steps.append(step))
    command = ["stage", "preflight", "--stage", "finetune", "--settings", str(run_file)]
    assert main(command) == 0
    features, _ = padding_batch(steps[0], ROWS)
    assert features[f"{stack}_ids"].shape == (ROWS, 3, LENGTH)
    assert step_work("finetune", steps[0]) == step_work("finetune", load_run_file(run_file))


@pytest.mark.parametrize("size", ["albert_tiny", "gpt_tiny"])
def test_a_fine_tuning_without_dropout_may_drop_at_its_head(size):
    settings = FinetuneStage.model_validate(
        {
            "seed": 0,
            "vocab": {"vocab_size": 100, "extra_ids": 20},
            "model": SIZES[size].model_dump(),
            "tasks": {"names": ["cola"]},
            "finetune": {"dropout_rate": 0, "classifier_dropout": 0.1, "answers": "labels"},
            "devices": {},
        }
    )
    model = fresh_model(settings, seed=0, columns=LabelColumns({"cola": ANSWERS["cola"]}))
    assert list(noise_variables(model.network)) == ["label_dropout"]
    assert model.network.label_dropout.rate == 0.1
