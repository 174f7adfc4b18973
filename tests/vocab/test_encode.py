from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from t5repro.config.sections.tokens import TokensStage
from t5repro.errors import CorpusError, StorageError
from t5repro.files import read_json
from t5repro.jobs.corpus import TokensJob
from t5repro.vocab import encode
from t5repro.vocab.encode import encode_corpus
from t5repro.vocab.token_files import read_ids, read_offsets
from t5repro.vocab.vocabulary import Vocabulary


def settings(*languages: str) -> TokensStage:
    return TokensStage.model_validate({"tokens": {"languages": languages}})


def encode_to(folder: Path, corpus: Path, model: Path, *languages: str) -> dict:
    encode_corpus(
        TokensJob(
            settings(*languages),
            corpus=corpus,
            vocabulary=model,
            folder=folder,
            manifest=folder / "manifest.json",
        )
    )
    return read_json(folder / "manifest.json")


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
    monkeypatch.setattr("t5repro.vocab.corpus.PAGES_PER_BATCH", 3)
    encode_to(tmp_path / "b", corpus, model, "en")
    for name in ("train.ids", "train.offsets"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_bytes_do_not_depend_on_the_number_of_processes(
    write_corpus, four_languages, model: Path, tmp_path: Path, monkeypatch
):
    texts = {**four_languages, "de": ["", *four_languages["de"], ""]}
    corpus = write_corpus(texts, validation={"en": ["A page held out."]}, folder=tmp_path / "held")
    monkeypatch.setattr("t5repro.vocab.corpus.PAGES_PER_BATCH", 3)
    expected = encode_to(tmp_path / "one", corpus, model, "de", "en")
    assert expected["counters"]["train"]["empty_documents"] == 2
    # Small corpora are encoded in one process.
    monkeypatch.setattr("t5repro.vocab.batches.BYTES_OF_PROCESS", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.delattr(Vocabulary, "encode_batch")  # of this process
    manifest = encode_to(tmp_path / "two", corpus, model, "de", "en")
    assert manifest["counters"] == expected["counters"]
    for name in ("train.ids", "train.offsets", "validation.ids", "validation.offsets"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_empty_documents_are_left_out_and_named_by_row(
    write_corpus, model: Path, tmp_path: Path, monkeypatch
):
    texts = {"de": ["", "Eine."], "en": ["One page.", "  ", "Another page.", ""]}
    corpus = write_corpus(texts, folder=tmp_path / "gap")
    monkeypatch.setattr("t5repro.vocab.corpus.PAGES_PER_BATCH", 3)
    counters = encode_to(tmp_path / "tokens", corpus, model, "de", "en")["counters"]["train"]
    assert (counters["empty_documents"], counters["empty_rows"]) == (3, [0, 3, 5])
    assert counters["languages"]["en"]["empty_documents"] == 2
    assert len(read_offsets(tmp_path / "tokens" / "train.offsets")) == 4


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

    monkeypatch.setattr(Vocabulary, "encode_batch", stop)
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
