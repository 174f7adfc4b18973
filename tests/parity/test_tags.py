"""A BERT fine-tuned on tags here gives each word the same tag in Hugging Face, and returns."""

import json
from pathlib import Path

import numpy as np
import pytest
from original_files_run import run_in_a_new_process

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")

pytestmark = [pytest.mark.parity, pytest.mark.keras]
TASK = "conll_2003"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on CoNLL-2003's form, with the exported weights of its fine-tuning."""
    from t5repro.publish.weights import export_weights

    folder = tmp_path_factory.mktemp("tags")
    run_in_a_new_process(folder, TASK)
    export_weights(
        folder / "bert/finetune/manifest.json",
        vocabulary=folder / "vocab.model",
        form="huggingface",
        folder=folder / "exported",
    )
    return folder


def test_each_word_has_the_tag_that_their_class_gives_its_first_piece(run: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(run / "exported")
    model = transformers.AutoModelForTokenClassification.from_pretrained(run / "exported").eval()
    assert type(model).__name__ == "BertForTokenClassification"
    answers = (run / f"bert/validation/{TASK}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = (run / "tasks/validation.jsonl").read_text(encoding="utf-8").splitlines()
    tags = set()
    for row, answer in zip(map(json.loads, rows), map(json.loads, answers), strict=True):
        words = row["segments"][0].split(" ")
        encoded = tokenizer(words, is_split_into_words=True)
        firsts = [encoded.word_ids().index(number) for number in range(len(words))]
        with torch.no_grad():
            logits = model(**{name: torch.tensor([ids]) for name, ids in encoded.items()}).logits
        predicted = [model.config.id2label[int(logits[0, place].argmax())] for place in firsts]
        assert " ".join(predicted) == answer["prediction"]
        tags |= {*predicted}
    assert tags == {"O", "B-PER", "B-LOC", "B-ORG"}


def test_what_their_class_saves_is_read_to_the_bit(run: Path) -> None:
    from t5repro.model.checkpoints import read_arrays
    from t5repro.model.foreign_weights import read_foreign

    model = transformers.AutoModelForTokenClassification.from_pretrained(run / "exported")
    model.save_pretrained(run / "saved", safe_serialization=True)
    ours, theirs = (
        read_arrays(run / "bert/finetune/weights.safetensors"),
        read_foreign(run / "saved"),
    )
    assert ours.keys() == theirs.weights.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs.weights[name], err_msg=name)
