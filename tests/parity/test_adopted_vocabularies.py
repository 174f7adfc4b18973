"""Vocabularies of others have the ids of Hugging Face."""

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest
from checkout import ROOT
from foreign_vocabularies import WRITERS

from t5repro.errors import VocabularyError
from t5repro.vocab.adopted.files import UNIGRAMS, files_beside, published_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")
from foreign_checkpoints import RELEASE, with_ids_of_release  # noqa: E402 - needs both

pytestmark = [pytest.mark.parity, pytest.mark.keras]
CRAWL = ROOT.parent / "shared/data/wet"
NOVELS = ("novels_eng", "novels_deu", "novels_fra", "novels_ron")
LINES = 1000  # of each source
MOST_LINES = 27_000  # of a language, where all four together have 1e5 or more
# The slow classes that agree with their fast ones; BERT's composes accents if it keeps them, and
# ALBERT's breaks ties between cuts otherwise.
SLOW = ("bert uncased", "roberta", "gpt2", "gpt")


def lines_of(name: str, count: int) -> list[str]:
    """Return the first lines of the pages of a file, at most `count`, without its headers."""
    if not CRAWL.is_dir():
        pytest.skip("no real text: ../shared/data is absent")
    with gzip.open(CRAWL / f"{name}.warc.wet.gz", "rt", encoding="utf-8", newline="\n") as file:
        texts = (line.rstrip("\r\n") for line in file)
        page = (text for text in texts if text and not text.startswith(("WARC", "Content-")))
        return list(islice(page, count))


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Real lines in English, German, French and Romanian, and of web pages in further ones."""
    return [line for name in (*NOVELS, "real_html") for line in lines_of(name, LINES)]


@pytest.fixture(scope="module")
def novels() -> dict[str, list[str]]:
    """At least 1e5 real lines in four languages."""
    found = {name: lines_of(name, MOST_LINES) for name in NOVELS}
    assert sum(map(len, found.values())) >= 1e5
    assert min(map(len, found.values())) >= 20_000
    return found


def adopted(source: Path) -> Vocabulary:
    return Vocabulary.from_bytes(published_vocabulary(source, files_beside(source)).data, source)


def foreign_ids(vocabulary: Vocabulary, ids: list[int]) -> list[int | None]:
    return [vocabulary.pieces.order.foreign_id(number) for number in ids]


@pytest.mark.parametrize("name", WRITERS)
def test_ids_and_characters_are_those_of_hugging_face(
    name: str, lines: list[str], tmp_path: Path
) -> None:
    source = WRITERS[name](tmp_path, lines[::5], 4000)
    vocabulary = adopted(source)
    ours = [foreign_ids(vocabulary, ids) for ids in vocabulary.encode_batch(lines)]
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs = fast(lines, add_special_tokens=False, return_offsets_mapping=True)
    assert fast.is_fast
    assert ours == theirs.input_ids
    with_ranges = vocabulary.pieces.encode_ranges(lines, 1)
    assert [ids for ids, _ in with_ranges] == vocabulary.encode_batch(lines)
    # Theirs leave out the space before a word; those of `UNIGRAMS` since transformers 5.
    without_space = ("roberta", "gpt2", *(UNIGRAMS if RELEASE > 4 else ()))
    if not name.startswith(without_space):
        assert [ranges for _, ranges in with_ranges] == theirs.offset_mapping
    if name in SLOW and RELEASE == 4:  # transformers 5 has no slow classes
        slow = transformers.AutoTokenizer.from_pretrained(tmp_path, use_fast=False)
        assert not slow.is_fast
        assert ours == slow(lines, add_special_tokens=False).input_ids


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_ids_of_100_000_lines_in_four_languages_are_those_of_hugging_face(
    name: str, novels: dict[str, list[str]], tmp_path: Path
) -> None:
    sample = [line for texts in novels.values() for line in texts[::10]]
    source = WRITERS[name](tmp_path, sample, 8000)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path)
    vocabulary = adopted(with_ids_of_release(source, fast))
    compared, ids = {}, set()
    for novel, texts in novels.items():
        ours = [foreign_ids(vocabulary, row) for row in vocabulary.encode_batch(texts)]
        theirs = fast(texts, add_special_tokens=False).input_ids
        others = [
            text for text, *rows in zip(texts, ours, theirs, strict=True) if rows[0] != rows[1]
        ]
        assert others == [], novel
        compared[novel] = len(texts)
        ids.update(*ours)
    print(name, compared, f"{len(ids)} different ids")
    assert len(ids) > 4000  # the lines need most of the vocabulary


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_transformers_saved_is_the_same_vocabulary(
    name: str, lines: list[str], tmp_path: Path
) -> None:
    """Its `tokenizer.json` is compared with the other files, and is enough alone."""
    source = WRITERS[name](tmp_path / "made", lines[::5], 2000)
    transformers.AutoTokenizer.from_pretrained(tmp_path / "made").save_pretrained(
        tmp_path / "saved"
    )
    expected = published_vocabulary(source, files_beside(source)).data
    saved = tmp_path / "saved" / source.name
    if RELEASE == 4:  # transformers 5 saves tokenizer.json without other files
        assert published_vocabulary(saved, files_beside(saved)).data == expected
    alone = tmp_path / "saved/tokenizer.json"
    if RELEASE == 4 or not name.startswith(UNIGRAMS):  # another definition, tested next
        for beside in ([tmp_path / "saved/tokenizer_config.json"], []):
            assert published_vocabulary(alone, beside).data == expected


@pytest.mark.parametrize("name", ["albert", "albert with accents", "xlnet"])
def test_a_unigram_model_that_transformers_saved_has_the_ids_of_that_release(
    name: str, lines: list[str], tmp_path: Path
) -> None:
    """Release 5 cuts at spaces first: a space at the end is no piece."""
    WRITERS[name](tmp_path / "made", lines[::5], 2000)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "made")
    fast.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved/spiece.model").unlink(missing_ok=True)
    vocabulary = adopted(tmp_path / "saved/tokenizer.json")
    hard = [*lines, "two  spaces", " first", "last ", "tab\tand\u3000wide", "", " ", "it''s ``so``"]
    ours = [foreign_ids(vocabulary, ids) for ids in vocabulary.encode_batch(hard)]
    assert ours == fast(hard, add_special_tokens=False).input_ids
    last = adopted(tmp_path / "made/spiece.model")
    assert (vocabulary.encode("last ") == last.encode("last ")) is (RELEASE == 4)


def test_an_albert_without_a_space_before_words_is_refused_by_name(tmp_path: Path) -> None:
    source = WRITERS["albert"](tmp_path, ["a text of some words"] * 50, 40)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"do_lower_case": True, "add_prefix_space": False}))
    with pytest.raises(VocabularyError, match="add_prefix_space is False; only True or None"):
        published_vocabulary(source, [config])
