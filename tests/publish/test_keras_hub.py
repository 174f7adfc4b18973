"""Presets of BERT, RoBERTa and ALBERT in keras-hub, and what it cannot have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")
keras_hub = pytest.importorskip("keras_hub")
from finished_run import VOCABULARY, write_vocabulary  # noqa: E402

from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.config.sections.vocab import VocabSettings  # noqa: E402
from t5repro.errors import CheckpointError  # noqa: E402
from t5repro.files import read_json  # noqa: E402
from t5repro.model.checkpoints import weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.segment_rows import SegmentEncoder  # noqa: E402
from t5repro.model.trained_as import TrainedAs  # noqa: E402
from t5repro.publish.keras_hub import write_keras_hub  # noqa: E402
from t5repro.publish.tokenizer_files import TokenizerFiles, vocabulary_files  # noqa: E402
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
    outputs = backbone(theirs)
    encoded = outputs["sequence_output"] if isinstance(outputs, dict) else outputs
    real = features["encoder_segments"] > 0
    np.testing.assert_allclose(
        values(encoded)[real], values(made.encode(features))[real], rtol=0, atol=1e-5
    )


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
