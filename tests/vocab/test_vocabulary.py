from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from t5repro.errors import ArtifactError, VocabularyError
from t5repro.vocab.special_ids import EOS_ID
from t5repro.vocab.vocabulary import Vocabulary


def test_text_goes_to_ids_and_back(model: Path):
    vocabulary = Vocabulary.load(model)
    text = "Die Mühle dreht sich, moara se învârte."
    ids = vocabulary.encode(text)
    assert EOS_ID not in ids
    assert vocabulary.decode(ids) == text
    assert vocabulary.encode_batch([text, ""]) == [ids, []]
    assert vocabulary.encode_batch([text] * 50, threads=3) == [ids] * 50


def test_the_vocabulary_counts_its_ids_and_sentinels(model: Path):
    vocabulary = Vocabulary.load(model)
    assert (vocabulary.total_ids, vocabulary.extra_ids) == (160, 10)
    ids = vocabulary.encode("<extra_id_0> mill <extra_id_9>")
    assert (ids[0], ids[-1]) == (159, 150)


def test_decoding_stops_at_eos_and_reads_padding_rows_as_unknown(model: Path):
    vocabulary = Vocabulary.load(model)
    ids = vocabulary.encode("The mill")
    assert vocabulary.decode([*ids, EOS_ID, *ids]) == "The mill"
    assert vocabulary.decode([*ids, 160, 255]) == "The mill ⁇  ⁇ "
    assert vocabulary.decode([]) == ""
    assert vocabulary.decode(np.array([0, *ids, 0, 0])) == "The mill"


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (["the mill", "", "moara se învârte"], ""),
        (["the mill", "{x"], "1 of 2 targets have characters that the vocabulary lacks, such as "
         "'{'; the model writes ⁇ in their place"),
        (["the  mill", "the mill", "the  mill"],
         "2 of 3 targets are changed by the vocabulary, such as 'the  mill' to 'the mill'"),
        (["the mill "], "such as 'the mill ' to 'the mill'"),
        (["the\u00a0mill"], r"such as 'the\xa0mill' to 'the mill'"),
        (["ｍill"], "such as 'ｍill' to 'mill'"),
        (["i\u0302n"], r"such as 'i\u0302n' to '\xeen'"),
        (["the mill " * 9 + " end"], "the mill  end' to '"),
        (["{", "a  mill", "}"], "2 of 3 targets have characters that the vocabulary lacks, such as "
         "'{'; the model writes ⁇ in their place; 1 of 3 targets are changed by the vocabulary"),
    ],
)  # fmt: skip
def test_targets_that_the_model_cannot_write_are_counted_by_fault(model: Path, targets, expected):
    text = Vocabulary.load(model).unwritable_targets(targets)
    assert expected in text
    assert bool(text) == bool(expected)


def test_targets_are_counted_over_more_than_one_batch(model: Path, monkeypatch):
    monkeypatch.setattr("t5repro.vocab.vocabulary.TARGETS_AT_ONCE", 2)
    text = Vocabulary.load(model).unwritable_targets(["{", "mill", "a  b", "mill", "{", " mill"])
    assert "2 of 6 targets have characters" in text
    assert "2 of 6 targets are changed" in text


def test_a_missing_or_damaged_model_is_named(tmp_path: Path):
    path = tmp_path / "sentencepiece.model"
    with pytest.raises(ArtifactError, match=r"sentencepiece.model is missing; run the rule vocab"):
        Vocabulary.load(path)
    path.write_bytes(b"\xff\xfe not a model")
    with pytest.raises(ArtifactError, match="is not a SentencePiece model"):
        Vocabulary.load(path)


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path):
    path = tmp_path / "other.model"
    with path.open("wb") as handle:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["some words of text", "other words of another text here"]),
            model_writer=handle,
            vocab_size=20,
            minloglevel=2,
        )
    with pytest.raises(VocabularyError, match=r"pad, eos, unk, bos \(-1, 2, 0, 1\), T5 needs"):
        Vocabulary.load(path)
