"""Beside Hugging Face's BERT, RoBERTa and ALBERT, with the same random weights, both ways."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")

pytestmark = [pytest.mark.parity, pytest.mark.keras]
ROWS, LENGTH, LABELS = 97, 23, 3
TASKS = (
    *("ForPreTraining", "ForMaskedLM"),
    *("ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification"),
)

BERT = {"max_position_embeddings": 31}
ALBERT = {"max_position_embeddings": 31, "embedding_size": 13, "num_hidden_layers": 4}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", BERT),
    "bert tanh": ("Bert", {**BERT, "hidden_act": "gelu_new", "type_vocab_size": 3}),
    "roberta": ("Roberta", {"max_position_embeddings": 33, "type_vocab_size": 1}),
    "roberta with the padding of ours": (
        "Roberta",
        {"max_position_embeddings": 32, "type_vocab_size": 1, "pad_token_id": 0},
    ),
    **{
        f"albert {groups}x{inner}": (
            "Albert",
            {**ALBERT, "num_hidden_groups": groups, "inner_group_num": inner},
        )
        for groups in (1, 2)
        for inner in (1, 2)
    },
    "albert of one width": ("Albert", {**ALBERT, "embedding_size": 35}),
    "albert without sharing": ("Albert", {**ALBERT, "num_hidden_groups": 4}),
}


def tasks_of(kind):
    return [task for task in TASKS if hasattr(transformers, kind + task)]


CASES = [(name, task) for name in VARIANTS for task in tasks_of(VARIANTS[name][0])]
TRAINED = [case for case in CASES if case[1] in ("ForPreTraining", "ForMaskedLM")]


def hugging_face(name, task):
    kind, change = VARIANTS[name]
    torch.manual_seed(3)
    config = getattr(transformers, f"{kind}Config")(
        **{
            "vocab_size": ROWS,
            "hidden_size": 35,
            "num_hidden_layers": 3,
            "num_attention_heads": 5,
            "intermediate_size": 43,
            "layer_norm_eps": 1e-6,
            "attn_implementation": "eager",
            "num_labels": LABELS if task.endswith("Classification") else 2,
            **change,
        }
    )
    model = getattr(transformers, kind + task)(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            # Less in norms, so that answers vary.
            deviation = 0.1 if "norm" in parameter_name.lower() else 0.3
            parameter.add_(deviation * torch.randn_like(parameter))
    return model


def ours_from(folder):
    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.encoder import Encoder
    from t5repro.model.foreign_weights import read_foreign

    foreign = read_foreign(folder)
    classes = {
        name: len(foreign.weights.get(f"{name}/bias", ()))
        for name in ("pair_head", "label_head", "tag_head")
    }
    model = Encoder(
        foreign.model,
        embedding_rows=foreign.embedding_rows,
        dropout_rate=0.0,
        seed=0,
        pair_classes=classes["pair_head"],
        labels=classes["label_head"],
        predicts_spans="span_head/bias" in foreign.weights,
        tags=classes["tag_head"],
    )
    variables = weight_variables(model)
    assert set(variables) == set(foreign.weights)
    for name, variable in variables.items():
        variable.assign(foreign.weights[name])
    return model


@pytest.fixture
def pair(request, tmp_path):
    """Return Hugging Face's model and ours with the same weights, through files."""
    theirs = hugging_face(*request.param)
    theirs.save_pretrained(tmp_path / "theirs", safe_serialization=True)
    return theirs, ours_from(tmp_path / "theirs")


def batch(model, rows=6):
    """Return rows of ids with padding at their ends and a change of the token type inside."""
    generator = np.random.default_rng(6)
    ids = generator.integers(2, ROWS, (rows, LENGTH)).astype(np.int32)
    lengths = np.array([LENGTH, 11, 5, LENGTH, 20, 2])[:rows, None]
    places = np.arange(LENGTH)[None]
    real = places < lengths
    padding = model.config.pad_token_id
    types = (places > lengths // 2) * (model.config.type_vocab_size - 1)
    return {
        "encoder_ids": np.where(real, ids, padding).astype(np.int32),
        "encoder_segments": real.astype(np.int32),
        "encoder_types": np.where(real, types, 0).astype(np.int32),
        "target_positions": (generator.integers(0, LENGTH, (rows, 7)) % lengths).astype(np.int32),
    }


def their_logits(model, features):
    """Return the logits of masked pieces at the predicted positions, and those of classes."""
    names = {"input_ids": "ids", "attention_mask": "segments", "token_type_ids": "types"}
    found = model(
        **{
            name: torch.tensor(features[f"encoder_{ours}"], dtype=torch.long)
            for name, ours in names.items()
        }
    )
    if hasattr(found, "prediction_logits"):
        pieces = found.prediction_logits
        classes = getattr(found, "seq_relationship_logits", None)
        classes = found.sop_logits if classes is None else classes
    elif type(model).__name__.endswith("ForTokenClassification"):
        return [torch.tensor(features["encoder_segments"])[..., None] * found.logits]
    elif type(model).__name__.endswith("Classification"):
        return [found.logits]
    elif hasattr(found, "start_logits"):
        # At padding theirs see the row, ours padding: both mean nothing.
        real = torch.tensor(features["encoder_segments"])[..., None]
        return [real * torch.stack([found.start_logits, found.end_logits], dim=-1)]
    else:
        pieces, classes = found.logits, None
    positions = torch.tensor(features["target_positions"], dtype=torch.long)
    at_targets = torch.gather(pieces, 1, positions[:, :, None].expand(-1, -1, ROWS))
    return [at_targets] if classes is None else [at_targets, classes]


def our_logits(model, features):
    found = model(features)
    if model.predicts_spans or model.tags:
        return [found * features["encoder_segments"][..., None]]
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("pair", CASES, ids=" ".join, indirect=True)
def test_logits_agree_to_a_ten_thousandth(pair):
    theirs, ours = pair
    features = batch(theirs)
    expected = [logits.detach().numpy() for logits in their_logits(theirs, features)]
    found = [np.asarray(logits) for logits in our_logits(ours, features)]
    for our, their in zip(found, expected, strict=True):
        assert our.shape == their.shape
        assert np.abs(our - their).max() < 1e-4 * np.abs(their).max()
        assert their.std() > 0.2  # the comparison is of numbers that differ


def structbert():
    """Return a BERT with StructBERT's head of pairs, which Hugging Face's class lacks."""
    model = hugging_face("bert", "ForPreTraining")
    model.cls.seq_relationship = torch.nn.Linear(model.config.hidden_size, 3)
    torch.nn.init.normal_(model.cls.seq_relationship.weight, std=0.5)
    return model


def test_the_logits_of_structbert_are_those_of_a_bert_with_three_classes_of_pairs(tmp_path):
    theirs = structbert()
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    ours = ours_from(tmp_path)
    features = batch(theirs)
    expected = [logits.detach().numpy() for logits in their_logits(theirs, features)]
    found = [np.asarray(logits) for logits in our_logits(ours, features)]
    assert [logits.shape[-1] for logits in found] == [ROWS, 3]
    for our, their in zip(found, expected, strict=True):
        assert np.abs(our - their).max() < 1e-4 * np.abs(their).max()
        assert their.std() > 0.2
    targets = np.random.default_rng(7).integers(2, ROWS, features["target_positions"].shape)
    classes = np.arange(len(targets)) % 3
    loss = their_loss(theirs, features, targets, classes).item()
    assert float(our_loss(ours, features, targets, classes)) == pytest.approx(loss, rel=1e-5)


def their_loss(model, features, targets, classes):
    logits = their_logits(model, features)
    entropy = torch.nn.functional.cross_entropy
    loss = entropy(logits[0].reshape(-1, ROWS), torch.tensor(targets.reshape(-1)).long())
    return loss + entropy(logits[1], torch.tensor(classes).long()) if len(logits) > 1 else loss


def our_loss(model, features, targets, classes):
    import keras
    import tensorflow as tf

    logits = our_logits(model, features)
    entropy = keras.ops.sparse_categorical_crossentropy
    loss = tf.reduce_mean(entropy(targets, logits[0], from_logits=True))
    if len(logits) > 1:
        loss += tf.reduce_mean(entropy(classes, logits[1], from_logits=True))
    return loss


@pytest.mark.parametrize("pair", TRAINED, ids=" ".join, indirect=True)
def test_gradients_of_the_loss_agree_to_a_thousandth(pair):
    import tensorflow as tf

    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.huggingface_encoders import standard_arrays
    from t5repro.model.weight_names import from_huggingface

    theirs, ours = pair
    features = batch(theirs)
    targets = np.random.default_rng(7).integers(2, ROWS, features["target_positions"].shape)
    classes = np.array([0, 1, 1, 0, 0, 1])
    loss = their_loss(theirs, features, targets, classes)
    loss.backward()
    gradients = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    # The vector of RoBERTa's single type is added to all positions: its gradient is their sum.
    gradients.pop("roberta.embeddings.token_type_embeddings.weight", None)
    state = standard_arrays(gradients, theirs.config.to_dict())
    expected = from_huggingface(state, ours.settings)
    variables = weight_variables(ours)
    with tf.GradientTape() as tape:
        ours_loss = our_loss(ours, features, targets, classes)
    assert float(ours_loss) == pytest.approx(loss.item(), rel=1e-5)
    found = tape.gradient(ours_loss, [variable.value for variable in variables.values()])
    assert set(expected) == set(variables)
    for name, gradient in zip(variables, found, strict=True):
        difference = np.abs(tf.convert_to_tensor(gradient) - expected[name]).max()
        # The gradient of the keys' biases is 0: each is added to all logits of a query.
        assert difference < 1e-3 * np.abs(expected[name]).max() + 1e-6, name


@pytest.mark.parametrize("kind", ["Bert", "Albert"])
def test_the_accuracies_of_pretraining_are_those_of_their_heads(kind, tmp_path):
    """Of a network with a head of pairs: the most probable piece and class of each prediction."""
    from t5repro.systems.encoder.loss import MaskedLoss

    theirs = hugging_face(kind.lower() + (" 1x1" if kind == "Albert" else ""), "ForPreTraining")
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    ours = ours_from(tmp_path)
    features = batch(theirs)
    rows = len(features["encoder_ids"])
    with torch.no_grad():
        pieces, pairs = (logits.numpy() for logits in their_logits(theirs, features))
    targets = pieces.argmax(-1).astype(np.int32)
    targets[::2] += 1  # wrong in every second row
    labels = pairs.argmax(-1).astype(np.int32)
    labels[0] = 1 - labels[0]
    features["pair_label"] = labels
    right = [int(n) for n in MaskedLoss().right_answers(ours, features, targets)]
    real = targets != 0
    is_right = pieces.argmax(-1) == targets
    assert right == [(is_right & real).sum(), real.sum(), rows - 1, rows]


@pytest.mark.parametrize("pair", CASES, ids=" ".join, indirect=True)
def test_exported_weights_return_to_the_bit(pair, tmp_path):
    from t5repro.model.checkpoints import weight_variables
    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.publish.weights import write_huggingface

    theirs, ours = pair
    arrays = {name: variable.numpy() for name, variable in weight_variables(ours).items()}
    folder = tmp_path / "exported"
    write_huggingface(folder, ours.settings, arrays, VocabularyFiles(b"", b"", 0))
    kind = type(theirs)
    again, report = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report  # no key is missing, superfluous or of another shape
    features = batch(theirs)
    padding = features["encoder_segments"] == 0
    features["encoder_ids"][padding] = again.config.pad_token_id
    with torch.no_grad():
        found = [logits.numpy() for logits in their_logits(again.eval(), features)]
    expected = [np.asarray(logits) for logits in our_logits(ours, features)]
    for our, their in zip(expected, found, strict=True):
        assert np.abs(our - their).max() < 1e-4 * np.abs(their).max()
    again.save_pretrained(tmp_path / "again", safe_serialization=True)
    returned = ours_from(tmp_path / "again")
    for name, variable in weight_variables(returned).items():
        np.testing.assert_array_equal(variable.numpy(), arrays[name], err_msg=name)
    assert returned.settings == ours.settings
    if kind.__name__.startswith("Roberta"):
        return  # its rows that no position has are zeros now
    for (name, value), (other_name, other) in zip(
        sorted(theirs.state_dict().items()), sorted(again.state_dict().items()), strict=True
    ):
        assert name == other_name
        assert torch.equal(value, other), name


@pytest.mark.parametrize("name", ["bert", "roberta", "albert 1x1"])
def test_the_loss_of_a_span_is_theirs(name, tmp_path):
    from t5repro.systems.label_losses import span_losses

    theirs = hugging_face(name, "ForQuestionAnswering")
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    ours = ours_from(tmp_path)
    # Two rows without padding, of which theirs has a probability.
    features = {name: array[[0, 3]] for name, array in batch(theirs).items()}
    spans = np.array([[3, 9], [22, 22]], np.int32)
    names = {"input_ids": "ids", "attention_mask": "segments", "token_type_ids": "types"}
    expected = theirs(
        **{
            key: torch.tensor(features[f"encoder_{name}"], dtype=torch.long)
            for key, name in names.items()
        },
        start_positions=torch.tensor(spans[:, 0], dtype=torch.long),
        end_positions=torch.tensor(spans[:, 1], dtype=torch.long),
    ).loss.item()
    logits = ours.span_logits(ours.encode(features))
    found = np.asarray(span_losses(spans, logits, features["encoder_segments"]))
    assert found.mean() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["Bert", "Albert"])
def test_the_scores_of_options_are_theirs(kind, tmp_path):
    """Their class of choices has the weights of one label."""
    theirs = hugging_face(kind.lower() + (" 1x1" if kind == "Albert" else ""), "ForMultipleChoice")
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    ours = ours_from(tmp_path)
    features = {name: array.reshape(3, 2, -1) for name, array in batch(theirs).items()}
    names = {"input_ids": "ids", "attention_mask": "segments", "token_type_ids": "types"}
    expected = theirs(
        **{
            key: torch.tensor(features[f"encoder_{name}"], dtype=torch.long)
            for key, name in names.items()
        }
    ).logits.detach().numpy()  # fmt: skip
    found = np.asarray(ours(features)).reshape(3, 2)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    assert expected.std() > 0.2


@pytest.mark.parametrize("kind", ["Bert", "Albert"])
def test_a_network_without_heads_is_read(kind, tmp_path):
    from t5repro.model.foreign_weights import read_foreign

    model = hugging_face(kind.lower() + (" 2x2" if kind == "Albert" else ""), "ForPreTraining")
    body = model.base_model
    body.save_pretrained(tmp_path, safe_serialization=True)
    found = read_foreign(tmp_path).weights
    assert "masked_lm/bias" not in found
    np.testing.assert_array_equal(
        found["embedding"], body.get_input_embeddings().weight.detach().numpy()
    )


@pytest.fixture(scope="module")
def vocabulary():
    """A vocabulary of 56 pieces and eight sentinels, whose special pieces have the ids from 64."""
    import io

    import sentencepiece

    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.vocab.special_ids import add_sentinels

    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"word{n} and yes or no word{n + 1}" for n in range(200)),
        model_writer=trained,
        vocab_size=56,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    proto = trained.getvalue()
    return VocabularyFiles(add_sentinels(proto, 8), proto, sentinels=8, total_ids=64)


@pytest.mark.parametrize("tokenizer_class", ["AutoTokenizer", "BigBirdTokenizer"])
@pytest.mark.parametrize("name", ["bert ForPreTraining", "roberta ForMaskedLM"])
def test_a_tokenizer_writes_the_rows_of_a_task(vocabulary, tmp_path, name, tokenizer_class):
    import sentencepiece

    from t5repro.model.checkpoints import weight_variables
    from t5repro.publish.weights import write_huggingface

    theirs = hugging_face(*name.split())
    theirs.save_pretrained(tmp_path / "theirs", safe_serialization=True)
    ours = ours_from(tmp_path / "theirs")
    arrays = {path: variable.numpy() for path, variable in weight_variables(ours).items()}
    write_huggingface(tmp_path, ours.settings, arrays, vocabulary)
    tokenizer = getattr(transformers, tokenizer_class).from_pretrained(tmp_path)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.with_sentinels)
    a, b = (pieces.encode(text) for text in ("word1 and, 7 yes", "no  word5"))
    row = tokenizer("word1 and, 7 yes", "no  word5")
    assert row.input_ids == [64, *a, 65, *b, 65]
    if name.startswith("bert"):
        assert row.token_type_ids == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    else:
        assert "token_type_ids" not in row
    assert tokenizer("yes [MASK]").input_ids == [64, *pieces.encode("yes"), 66, 65]
    padded = tokenizer(["yes", "yes and no"], padding=True).input_ids
    assert padded[0][-1] == 0


PUBLISHED = {
    "bert_base": ("BertForPreTraining", {}),
    "bert_large": (
        "BertForPreTraining",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
    ),
    "roberta_base": (
        "RobertaForMaskedLM",
        {"vocab_size": 50_265, "max_position_embeddings": 514, "type_vocab_size": 1},
    ),
    "albert_xxlarge": ("AlbertForPreTraining", {}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_number_of_parameters_is_that_of_the_released_configuration(name):
    from t5repro.config.presets.sizes import SIZES
    from t5repro.model.sizes import parameter_count

    model_class, change = PUBLISHED[name]
    kind = getattr(transformers, model_class)
    config = kind.config_class(**change)
    with torch.device("meta"):
        model = kind(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    if name.startswith("roberta"):
        count -= 3 * config.hidden_size  # two rows of positions, one of token types
    classes = 2 if model_class.endswith("PreTraining") else 0
    assert parameter_count(SIZES[name], config.vocab_size, pair_classes=classes) == count
