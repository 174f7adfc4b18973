"""A folder of ``t5repro weights publish`` in transformers: the same tokens, the same answers."""

from pathlib import Path

import pytest
from finished_run import RUN, TEXTS, VOCABULARY
from published_run import write_published_run

from t5repro.files import read_json_lines
from t5repro.hub.publish import publish
from t5repro.vocab.vocabulary import Vocabulary

transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")

pytestmark = [
    pytest.mark.parity,
    pytest.mark.keras,
    pytest.mark.filterwarnings("ignore:TensorFlow already runs with"),
]
LONG = " ".join(TEXTS)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a finished run and its published folder."""
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_published_run(folder)
        publish(RUN, folder=Path("published"))
    return folder


@pytest.mark.parametrize("tokenizer_class", ["AutoTokenizer", "T5Tokenizer"])
def test_generate_writes_the_predictions_of_the_run(checkout: Path, tokenizer_class: str) -> None:
    folder = checkout / "published"
    tokenizer = getattr(transformers, tokenizer_class).from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    rows = list(read_json_lines(checkout / RUN / "evaluate_predict/baseline/one.jsonl"))
    inputs = tokenizer(
        [row["inputs"] for row in rows], return_tensors="pt", padding=True, truncation=True
    )
    answers = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True)
    assert answers == [row["prediction"] for row in rows]
    assert len(set(answers)) > 1


@pytest.mark.parametrize("tokenizer_class", ["AutoTokenizer", "T5Tokenizer"])
def test_ids_are_those_of_the_run_and_long_inputs_are_cut_alike(
    checkout: Path, tokenizer_class: str
) -> None:
    tokenizer = getattr(transformers, tokenizer_class).from_pretrained(checkout / "published")
    vocabulary = Vocabulary.load(checkout / VOCABULARY)
    for text in TEXTS:
        assert tokenizer(text).input_ids == [*vocabulary.encode(text), 1]
    assert tokenizer(LONG, truncation=True).input_ids == [*vocabulary.encode(LONG)[:63], 1]
    # The first sentinel is the last id; a tokenizer with other sentinels would miss the embedding.
    assert tokenizer.convert_tokens_to_ids("<extra_id_0>") == vocabulary.total_ids - 1
