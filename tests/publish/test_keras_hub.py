"""Presets of BERT, RoBERTa and ALBERT in keras-hub, written and read, and what it cannot have."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml

keras = pytest.importorskip("keras")
keras_hub = pytest.importorskip("keras_hub")
from finished_run import VOCABULARY, write_vocabulary  # noqa: E402

from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.config.sections.pretrain import PretrainStage  # noqa: E402
from t5repro.config.sections.vocab import VocabSettings  # noqa: E402
from t5repro.engines.devices import Devices  # noqa: E402
from t5repro.errors import CheckpointError  # noqa: E402
from t5repro.files import read_json  # noqa: E402
from t5repro.jobs.pretrain import PretrainJob  # noqa: E402
from t5repro.model.checkpoints import weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.foreign_weights import fit, read_foreign  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.segment_rows import SegmentEncoder  # noqa: E402
from t5repro.model.trained_as import TrainedAs  # noqa: E402
from t5repro.publish.keras_hub import write_keras_hub  # noqa: E402
from t5repro.publish.tokenizer_files import TokenizerFiles, vocabulary_files  # noqa: E402
from t5repro.train import pretrain  # noqa: E402
from t5repro.train.import_weights import import_weights  # noqa: E402
from t5repro.train.import_weights import write_vocabulary as write_imported_vocabulary  # noqa: E402
from t5repro.vocab.vocabulary import Vocabulary  # noqa: E402

pytestmark = [
    pytest.mark.keras,
    pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file.*vocabulary.spm:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in.*vocabulary.spm"),
]
ROWS, LENGTH = 128, 20
SMALL = {
    "d_model": 24,
    "d_ff": 40,
    "d_kv": 6,
    "num_heads": 4,
    "num_encoder_layers": 4,
    "max_positions": LENGTH,
}
COLUMNS = LabelColumns({"pairs": TaskAnswer("label", ("no", "yes"), segments=2)})
TEXTS = [("word3 and yes", "word4 or no word5"), ("no", "word7"), (" ".join(["word9"] * 30), "yes")]


def sized(size: str, **change: Any) -> ModelSettings:
    of_size = {key: getattr(SIZES[size], key) for key in SIZES[size].model_fields_set}
    return ModelSettings(**{**of_size, **SMALL, **change})


NETWORKS = {
    "Bert": sized("bert_base"),
    "Roberta": sized("roberta_base"),
    "Albert": sized("albert_base", embedding_width=8),
    "Albert of groups": sized("albert_base", embedding_width=8, block_groups=2, blocks_per_group=2),
}


def network(model: ModelSettings, **heads: Any) -> Encoder:
    made = Encoder(model, embedding_rows=ROWS, dropout_rate=0.0, seed=0, **heads)
    generator = np.random.default_rng(1)
    for variable in made.weights:
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + 0.1 * noise)
    return made


def arrays_of(made: Encoder) -> dict[str, np.ndarray]:
    return {name: np.asarray(value.numpy()) for name, value in weight_variables(made).items()}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_vocabulary(folder, vocab_size=104)
    return folder / VOCABULARY


def files(vocabulary: Path, model: ModelSettings) -> TokenizerFiles:
    return vocabulary_files(vocabulary, VocabSettings(vocab_size=104, extra_ids=8), model)


def our_rows(vocabulary: Path, made: Encoder) -> dict[str, np.ndarray]:
    encoder = SegmentEncoder(Vocabulary.load(vocabulary), model=made.settings, length=LENGTH)
    return made.row_features(encoder.rows(TEXTS), LENGTH)


def values(x: Any) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(x))


def of_pieces(outputs: Any, features: dict[str, np.ndarray]) -> np.ndarray:
    """Return the outputs of an encoder where a row has pieces."""
    encoded = outputs["sequence_output"] if isinstance(outputs, dict) else outputs
    return values(encoded)[features["encoder_segments"] > 0]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_classifier_of_keras_hub_reads_texts_and_answers_as_ours(
    name: str, vocabulary: Path, tmp_path: Path
) -> None:
    made = network(NETWORKS[name], labels=2)
    trained = TrainedAs(0.2, 0.3, COLUMNS)
    written = write_keras_hub(
        tmp_path, made.settings, arrays_of(made), files(vocabulary, made.settings), trained
    )
    assert {path.name for path in written} >= {"config.json", "task.json", "labels.json"}
    task = keras_hub.models.TextClassifier.from_preset(str(tmp_path))
    assert type(task).__name__ == f"{name.split()[0]}TextClassifier"
    assert (task.dropout, task.backbone.dropout) == (0.3, 0.2)
    features = our_rows(vocabulary, made)
    expected = values(made(features))
    # From ids to text: its preprocessor writes our rows, cut alike.
    texts = tuple(np.array(segments) for segments in zip(*TEXTS, strict=True))
    theirs = task.preprocessor(x=texts)
    np.testing.assert_array_equal(values(theirs["token_ids"]), features["encoder_ids"])
    np.testing.assert_array_equal(values(theirs["padding_mask"]), features["encoder_segments"])
    if made.settings.token_types:
        np.testing.assert_array_equal(values(theirs["segment_ids"]), features["encoder_types"])
    np.testing.assert_allclose(values(task(theirs)), expected, rtol=0, atol=1e-5)
    predicted = values(task(theirs)).argmax(axis=-1)
    words = read_json(tmp_path / "labels.json")
    assert [words[number] for number in predicted] == [
        ("no", "yes")[number] for number in expected.argmax(axis=-1)
    ]
    backbone = keras_hub.models.Backbone.from_preset(str(tmp_path))
    encoded, expected = of_pieces(backbone(theirs), features), made.encode(features)
    np.testing.assert_allclose(encoded, of_pieces(expected, features), rtol=0, atol=1e-5)


def test_a_pretrained_roberta_predicts_masked_pieces_in_keras_hub(
    vocabulary: Path, tmp_path: Path
) -> None:
    made = network(NETWORKS["Roberta"])
    write_keras_hub(tmp_path, made.settings, arrays_of(made), files(vocabulary, made.settings))
    task = keras_hub.models.MaskedLM.from_preset(str(tmp_path))
    features = our_rows(vocabulary, made)
    positions = np.array([[1, 2], [0, 3], [4, 5]], np.int32)
    expected = values(made(features | {"target_positions": positions}))
    actual = task(
        {
            "token_ids": features["encoder_ids"],
            "padding_mask": features["encoder_segments"],
            "mask_positions": positions,
        }
    )
    np.testing.assert_allclose(values(actual), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["Bert", "Albert"])
def test_a_pretrained_encoder_is_a_backbone_to_fine_tune(
    name: str, vocabulary: Path, tmp_path: Path
) -> None:
    made = network(NETWORKS[name], pair_classes=2)
    write_keras_hub(tmp_path, made.settings, arrays_of(made), files(vocabulary, made.settings))
    task = keras_hub.models.TextClassifier.from_preset(str(tmp_path), num_classes=3)
    features = our_rows(vocabulary, made)
    outputs = task.backbone(
        {
            "token_ids": features["encoder_ids"],
            "padding_mask": features["encoder_segments"],
            "segment_ids": features["encoder_types"],
        }
    )
    expected = made.encode(features)
    np.testing.assert_allclose(
        values(outputs["pooled_output"]), values(made.pooled(expected)), rtol=0, atol=1e-5
    )
    assert task.predict(["word3"], verbose=0).shape == (1, 3)


def test_what_keras_hub_fixes_is_named(vocabulary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "preset"
    exact = sized("spanbert_base")
    message = "model.feed_forward is 'gelu', and BertBackbone has 'gelu_tanh'.*Hugging Face instead"
    with pytest.raises(CheckpointError, match=message):
        write_keras_hub(folder, exact, {}, files(vocabulary, exact))
    spans = network(NETWORKS["Bert"], predicts_spans=True)
    with pytest.raises(CheckpointError, match="it has no task for span_head/"):
        write_keras_hub(folder, spans.settings, arrays_of(spans), files(vocabulary, spans.settings))
    gpt = sized("gpt")
    message = "no GPT of 2018.*GPT2Backbone has norms before.*OpenAIGPTLMHeadModel"
    with pytest.raises(CheckpointError, match=message):
        write_keras_hub(folder, gpt, {}, files(vocabulary, gpt))
    assert not folder.exists()


# Presets that keras-hub's own classes wrote, with the tokenizers of their families


def word_pieces() -> Any:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word", "yes", "no", "and", "or", "cafe"]
    return keras_hub.models.BertTokenizer(
        vocabulary=[*words, *(f"##{digit}" for digit in range(10))],
        lowercase=True,
        strip_accents=True,
    )


def byte_pairs() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel

    merges = ["w o", "r d", "wo rd", "\u0120 word", "n o", "\u0120 no"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *sorted(ByteLevel.alphabet())]
    pieces += [*(pair.replace(" ", "") for pair in merges), "<mask>"]
    ids = {piece: number for number, piece in enumerate(pieces)}
    return keras_hub.models.RobertaTokenizer(vocabulary=ids, merges=merges)


def unigrams() -> Any:
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"word{n} and yes or no word{n + 1}" for n in range(200)),
        model_writer=trained,
        vocab_size=40,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        pad_piece="<pad>",
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        user_defined_symbols="[MASK]",
        minloglevel=2,
    )
    return keras_hub.models.AlbertTokenizer(proto=trained.getvalue())


HUB_SIZES = {
    "num_layers": 4,
    "num_heads": 4,
    "hidden_dim": 24,
    "intermediate_dim": 40,
    "max_sequence_length": LENGTH,
    "dtype": "float32",
}
ALBERT = {"embedding_dim": 8, "num_segments": 2}
TRAINED_ELSEWHERE = {
    "Bert": (word_pieces, {"num_segments": 2}),
    "Roberta": (byte_pairs, {}),
    "Albert": (unigrams, ALBERT),
    "Albert of groups": (unigrams, ALBERT | {"num_groups": 2, "num_inner_repetitions": 2}),
}


def trained_elsewhere(name: str, task: str, folder: Path, **options: Any) -> Any:
    """Return a task of keras-hub with random weights, whose preset is in a folder."""
    kind = name.split()[0]
    of_tokenizer, sizes = TRAINED_ELSEWHERE[name]
    tokenizer = of_tokenizer()
    rows = tokenizer.vocabulary_size()
    models = keras_hub.models
    backbone = getattr(models, f"{kind}Backbone")(vocabulary_size=rows, **HUB_SIZES | sizes)
    preprocessor = getattr(models, f"{kind}{task}Preprocessor")(tokenizer, sequence_length=LENGTH)
    made = getattr(models, f"{kind}{task}")(backbone, preprocessor=preprocessor, **options)
    generator = np.random.default_rng(2)
    for variable in made.weights:
        variable.assign(variable + 0.1 * generator.normal(size=variable.shape))
    made.save_to_preset(str(folder))
    return made


def imported(folder: Path, to: Path, **heads: Any) -> tuple[Encoder, Path]:
    """Return our network with the weights of a preset, and its vocabulary as that of a run."""
    foreign = read_foreign(folder)
    assert foreign.form == "keras_hub"
    assert foreign.vocabulary is not None
    write_imported_vocabulary(to, foreign.vocabulary, rows=foreign.embedding_rows)
    made = Encoder(
        foreign.model, embedding_rows=foreign.embedding_rows, dropout_rate=0.0, seed=0, **heads
    )
    variables = weight_variables(made)
    assert foreign.weights.keys() == variables.keys()
    for path, array in foreign.weights.items():
        variables[path].assign(array)
    return made, to


@pytest.mark.parametrize("name", TRAINED_ELSEWHERE)
def test_a_classifier_trained_with_keras_hub_is_imported_with_its_vocabulary_and_logits(
    name: str, tmp_path: Path
) -> None:
    task = trained_elsewhere(name, "TextClassifier", tmp_path / "preset", num_classes=3)
    made, vocabulary = imported(tmp_path / "preset", tmp_path / "vocabulary", labels=3)
    texts = [
        ("Word3 and y\u00e9s", "word4 or no word5"),
        ("no", "caf\u00e9 7"),
        ("word9 " * 30, "no"),
    ]
    encoder = SegmentEncoder(Vocabulary.load(vocabulary), model=made.settings, length=LENGTH)
    ours = values(made(made.row_features(encoder.rows(texts), LENGTH)))
    columns = tuple(map(list, zip(*texts, strict=True)))
    theirs = values(task(task.preprocessor(x=columns)))
    assert np.ptp(theirs, axis=0).max() > 0.01  # rows differ
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", TRAINED_ELSEWHERE)
def test_pretraining_starts_from_a_preset_that_keras_hub_wrote(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = trained_elsewhere(name, "TextClassifier", tmp_path / "preset", num_classes=3)
    import_weights(tmp_path / "preset", tmp_path / "imported")
    settings = yaml.safe_load((tmp_path / "imported/settings.yaml").read_text())
    section = {"steps": 0, "objective": "masked_lm"}
    if name == "Roberta":
        section |= {"masked_lm": {"pair_task": "none"}}
    monkeypatch.setattr(pretrain, "prepare", lambda settings: Devices("cpu", ("CPU:0",)))
    (tmp_path / "work").mkdir()
    pretrain.pretrain(
        PretrainJob(
            PretrainStage.model_validate(
                {"seed": 0, "devices": {}, "pretrain": section, **settings}
            ),
            start_from=tmp_path / "preset",
            folder=tmp_path / "run",
            work=tmp_path / "work",
            manifest=tmp_path / "run/manifest.json",
        ),
        code={},
    )
    run = read_foreign(tmp_path / "run")
    assert run.form == "t5repro"
    made = Encoder(run.model, embedding_rows=run.embedding_rows, dropout_rate=0.0, seed=0)
    for path, variable in weight_variables(made).items():
        variable.assign(run.weights[path])
    vocabulary = Vocabulary.load(tmp_path / "imported/sentencepiece.model")
    encoder = SegmentEncoder(vocabulary, model=made.settings, length=LENGTH)
    features = made.row_features(encoder.rows(TEXTS), LENGTH)
    theirs = task.preprocessor(x=tuple(map(list, zip(*TEXTS, strict=True))))
    np.testing.assert_allclose(
        *(of_pieces(x, features) for x in (made.encode(features), task.backbone(theirs))),
        rtol=0,
        atol=1e-5,
    )


def test_a_roberta_pretrained_with_keras_hub_predicts_the_same_masked_pieces_here(
    tmp_path: Path,
) -> None:
    task = trained_elsewhere("Roberta", "MaskedLM", tmp_path / "preset")
    foreign = read_foreign(tmp_path / "preset")
    assert foreign.vocabulary is not None
    order = foreign.vocabulary.order
    made, _ = imported(tmp_path / "preset", tmp_path / "vocabulary")
    ids = np.random.default_rng(3).integers(4, 256, (3, LENGTH)).astype(np.int32)
    ours = np.vectorize({order.foreign_id(n): n for n in range(foreign.embedding_rows)}.get)(ids)
    positions = np.array([[1, 2], [0, 3], [4, 5]], np.int32)
    whole = np.ones_like(ids)
    expected = values(task({"token_ids": ids, "padding_mask": whole, "mask_positions": positions}))
    actual = values(
        made({"encoder_ids": ours, "encoder_segments": whole, "target_positions": positions})
    )
    np.testing.assert_allclose(order.to_foreign(actual, -1), expected, rtol=0, atol=1e-5)


def test_an_exported_preset_comes_back_with_the_same_weights_and_ids(
    vocabulary: Path, tmp_path: Path
) -> None:
    for name, shape in NETWORKS.items():
        made = network(shape, labels=2)
        folder = tmp_path / name
        write_keras_hub(
            folder, shape, arrays_of(made), files(vocabulary, shape), TrainedAs(columns=COLUMNS)
        )
        weights = fit(read_foreign(folder), shape, embedding_rows=ROWS, where=folder)
        assert weights.keys() == arrays_of(made).keys()
        assert all(np.array_equal(weights[path], a) for path, a in arrays_of(made).items())
        _, pieces = imported(folder, tmp_path / f"{name} vocabulary", labels=2)
        ids = [Vocabulary.load(path).encode("word3 and yes") for path in (vocabulary, pieces)]
        assert ids[0] == ids[1]


def test_a_backbone_alone_is_imported_without_a_pooler_that_is_zero(
    vocabulary: Path, tmp_path: Path
) -> None:
    made = network(NETWORKS["Bert"])  # pre-trained without pairs, so without a pooler
    write_keras_hub(tmp_path, made.settings, arrays_of(made), files(vocabulary, made.settings))
    weights = read_foreign(tmp_path).weights
    assert "encoder/block_3/feed_forward/wo" in weights
    assert not any(path.startswith(("pooler/", "masked_lm/")) for path in weights)


def test_networks_of_keras_hub_with_other_constants_are_refused(tmp_path: Path) -> None:
    trained_elsewhere("Bert", "MaskedLM", tmp_path / "masked")
    message = (
        "'BertMaskedLM', whose head is another one.*only BertTextClassifier can.*backbone.save"
    )
    with pytest.raises(CheckpointError, match=message):
        read_foreign(tmp_path / "masked")
    trained_elsewhere("Roberta", "TextClassifier", tmp_path / "wide", num_classes=3, hidden_dim=32)
    with pytest.raises(CheckpointError, match=r"below the labels has the shape \(24, 32\), ours"):
        read_foreign(tmp_path / "wide")
    gpt = keras_hub.models.GPT2Backbone(
        vocabulary_size=50, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16
    )
    gpt.save_to_preset(str(tmp_path / "gpt"))
    with pytest.raises(
        CheckpointError, match="'GPT2Backbone'; only those of T5, Bert, Roberta, Al"
    ):
        read_foreign(tmp_path / "gpt")
