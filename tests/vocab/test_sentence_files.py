"""Damaged or foreign files of sentences are refused with the cure."""

from pathlib import Path

import numpy as np
import pytest

from t5repro.errors import ArtifactError
from t5repro.vocab.sentence_files import read_sentences, read_word_starts

OFFSETS = np.array([0, 10, 30])


def sentences(folder: Path, *starts: int) -> Path:
    np.array(starts, "<i8").tofile(folder / "train.sentences")
    return folder / "train.sentences"


def test_sentences_are_read_as_they_were_written(tmp_path: Path) -> None:
    starts = read_sentences(sentences(tmp_path, 0, 4, 10, 29), OFFSETS)
    assert starts.tolist() == [0, 4, 10, 29]


def test_a_corpus_without_documents_has_no_sentence(tmp_path: Path) -> None:
    assert read_sentences(sentences(tmp_path), np.array([0])).tolist() == []


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 10, 10], "does not ascend: it is damaged; delete it and rerun the rule sentences"),
        ([0, 11], "no sentence at the start of every document .* rerun the rule sentences"),
        ([], "no sentence at the start of every document"),
        ([0, 10, 30], "or one after their end"),
    ],
)
def test_sentences_of_other_ids_are_refused(tmp_path: Path, starts, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_sentences(sentences(tmp_path, *starts), OFFSETS)


def test_a_missing_or_cut_file_of_sentences_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is missing; run the rule sentences"):
        read_sentences(tmp_path / "train.sentences", OFFSETS)
    (tmp_path / "train.sentences").write_bytes(b"123")
    with pytest.raises(ArtifactError, match="has 3 bytes, not a whole number of 8-byte values"):
        read_sentences(tmp_path / "train.sentences", OFFSETS)


def test_word_starts_belong_to_a_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "word_starts"
    with pytest.raises(ArtifactError, match="is missing; run the rule sentences"):
        read_word_starts(path, 3)
    path.write_bytes(b"\x01\x00\x01")
    assert read_word_starts(path, 3).tolist() == [True, False, True]
    with pytest.raises(ArtifactError, match="has 3 entries, the vocabulary has 4 ids"):
        read_word_starts(path, 4)
    path.write_bytes(b"\x01\x07\x01")
    with pytest.raises(ArtifactError, match="contains the value 7, 0 or 1 is allowed"):
        read_word_starts(path, 3)
