from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from t5repro.config.stages import TokensStage, VocabSampleStage, VocabStage
from t5repro.errors import ArtifactError, CorpusError, StorageError, VocabularyError
from t5repro.files import read_json
from t5repro.vocab import encode
from t5repro.vocab.encode import Vocabulary, encode_corpus, id_dtype, read_ids, read_offsets
from t5repro.vocab.train import sample_corpus, train_vocabulary


def settings(*languages: str) -> TokensStage:
    return TokensStage.model_validate({"tokens": {"languages": languages}})


@pytest.fixture
def model(write_corpus, four_languages, tmp_path: Path) -> Path:
    path = tmp_path / "vocab" / "sentencepiece.model"
    sample_corpus(
        VocabSampleStage.model_validate(
            {"vocab": {"language_parts": dict.fromkeys(four_languages, 1), "sample_chars": 12_000}}
        ),
        corpus=write_corpus(four_languages),
        output=tmp_path / "sample.txt",
        manifest=tmp_path / "sample.json",
    )
    train_vocabulary(
        VocabStage.model_validate(
            {"vocab": {"vocab_size": 150, "extra_ids": 10, "character_coverage": 1.0}}
        ),
        sample=tmp_path / "sample.txt",
        model=path,
        pieces=tmp_path / "vocab" / "sentencepiece.vocab",
        manifest=tmp_path / "vocab" / "manifest.json",
    )
    return path


def encode_to(folder: Path, corpus: Path, model: Path, *languages: str) -> dict:
    encode_corpus(
        settings(*languages),
        corpus=corpus,
        vocabulary=model,
        folder=folder,
        manifest=folder / "manifest.json",
    )
    return read_json(folder / "manifest.json")


def test_text_goes_to_ids_and_back(model: Path):
    vocabulary = Vocabulary.load(model)
    text = "Die Mühle dreht sich, moara se învârte."
    ids = vocabulary.encode(text)
    assert 1 not in ids
    assert vocabulary.decode(ids) == text
    assert vocabulary.encode_batch([text, ""]) == [ids, []]
    assert vocabulary.encode_batch([text] * 50, threads=3) == [ids] * 50


def test_the_vocabulary_says_its_ids_and_rows(model: Path):
    vocabulary = Vocabulary.load(model)
    assert (vocabulary.total_ids, vocabulary.extra_ids) == (160, 10)
    assert vocabulary.embedding_rows == 256
    assert [vocabulary.extra_id(number) for number in (0, 9)] == [159, 150]
    assert vocabulary.encode("<extra_id_0> mill <extra_id_9>")[0] == 159


@pytest.mark.parametrize("number", [-1, 10])
def test_a_sentinel_past_the_last_is_refused(model: Path, number: int):
    with pytest.raises(VocabularyError, match=r"the vocabulary has 10, from 0; raise vocab.extra"):
        Vocabulary.load(model).extra_id(number)


def test_decoding_stops_at_the_end_mark_and_reads_padding_rows_as_unknown(model: Path):
    vocabulary = Vocabulary.load(model)
    ids = vocabulary.encode("The mill")
    assert vocabulary.decode([*ids, 1, *ids]) == "The mill"
    assert vocabulary.decode([*ids, 160, 255]) == "The mill ⁇  ⁇ "
    assert vocabulary.decode([]) == ""
    assert vocabulary.decode(np.array([0, *ids, 0, 0])) == "The mill"


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


def test_files_hold_the_documents_one_after_another(
    write_corpus, four_languages, model: Path, tmp_path: Path
):
    corpus = write_corpus(
        four_languages, validation={"en": ["A page held out."]}, folder=tmp_path / "two", shards=2
    )
    manifest = encode_to(tmp_path / "tokens", corpus, model, "en", "ro")
    vocabulary = Vocabulary.load(model)
    ids = read_ids(tmp_path / "tokens" / "train.ids", vocabulary.total_ids)
    offsets = read_offsets(tmp_path / "tokens" / "train.offsets")
    in_order = [
        four_languages[language][number]
        for language in ("en", "ro")
        for shard in range(2)
        for number in range(shard, len(four_languages[language]), 2)
    ]
    assert ids.dtype == np.dtype("<u2")
    documents = [ids[low:high].tolist() for low, high in pairwise(offsets)]
    assert documents == [vocabulary.encode(text) for text in in_order]
    counters = manifest["counters"]
    assert counters["dtype"] == "uint16"
    assert counters["train"]["documents"] == 60
    assert counters["train"]["tokens"] == len(ids)
    assert counters["validation"]["documents"] == 1
    assert {Path(item["path"]).name for item in manifest["outputs"]} == {
        "train.ids",
        "train.offsets",
        "validation.ids",
        "validation.offsets",
    }


def test_bytes_depend_neither_on_threads_nor_on_batches(
    write_corpus, four_languages, model: Path, tmp_path: Path, monkeypatch
):
    corpus = write_corpus(four_languages)
    encode_to(tmp_path / "a", corpus, model, "en")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr("t5repro.vocab.corpus.PAGES_AT_ONCE", 3)
    encode_to(tmp_path / "b", corpus, model, "en")
    for name in ("train.ids", "train.offsets"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_empty_documents_are_left_out_and_counted(write_corpus, model: Path, tmp_path: Path):
    corpus = write_corpus({"en": ["One page.", "  ", "Another page."]}, folder=tmp_path / "gap")
    counters = encode_to(tmp_path / "tokens", corpus, model, "en")["counters"]
    assert counters["train"]["languages"]["en"]["empty_documents"] == 1
    assert len(read_offsets(tmp_path / "tokens" / "train.offsets")) == 3


def test_a_split_without_pages_gives_empty_files(write_corpus, model: Path, tmp_path: Path):
    encode_to(tmp_path, write_corpus({"en": ["A page."]}, folder=tmp_path / "one"), model, "en")
    assert read_offsets(tmp_path / "validation.offsets").tolist() == [0]
    assert len(read_ids(tmp_path / "validation.ids", 160)) == 0


def test_a_language_without_text_is_named(write_corpus, model: Path, tmp_path: Path):
    corpus = write_corpus({"en": ["A page."]}, folder=tmp_path / "one")
    with pytest.raises(CorpusError, match=r"no 'de' text to pre-train on; .* tokens.languages"):
        encode_to(tmp_path / "tokens", corpus, model, "en", "de")


def test_a_stop_in_the_middle_leaves_no_file(
    write_corpus, four_languages, model: Path, tmp_path: Path, monkeypatch
):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(encode.Vocabulary, "encode_batch", stop)
    with pytest.raises(KeyboardInterrupt):
        encode_to(tmp_path / "tokens", write_corpus(four_languages), model, "en")
    assert list((tmp_path / "tokens").iterdir()) == []


def test_a_full_disk_is_an_error_that_says_so(
    write_corpus, four_languages, model: Path, tmp_path: Path, monkeypatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(encode._Writer, "append", full)
    with pytest.raises(StorageError, match="the disk is full"):
        encode_to(tmp_path / "tokens", write_corpus(four_languages), model, "en")
    assert list((tmp_path / "tokens").iterdir()) == []


def test_ids_take_two_bytes_as_long_as_they_can():
    assert id_dtype(65_536) == np.dtype("<u2")
    assert id_dtype(65_537) == np.dtype("<u4")


def test_damaged_files_are_named(tmp_path: Path):
    ids, offsets = tmp_path / "train.ids", tmp_path / "train.offsets"
    with pytest.raises(ArtifactError, match=r"train.ids is missing; run the rule tokens"):
        read_ids(ids, 100)
    ids.write_bytes(b"abc")
    with pytest.raises(ArtifactError, match=r"train.ids has 3 bytes, not a whole number of 2-byte"):
        read_ids(ids, 100)
    for values in ([], [1, 2], [0, 5, 5], [0, 5, 4]):
        np.array(values, "<i8").tofile(offsets)
        with pytest.raises(ArtifactError, match=r"train.offsets does not ascend from 0"):
            read_offsets(offsets)
