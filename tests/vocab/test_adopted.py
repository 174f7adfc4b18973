"""Vocabularies of other libraries: read as they are, or refused with file, value and cure."""

import json
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from foreign_vocabularies import WRITERS, by_id, write_bert, write_gpt, write_roberta, write_xlnet
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import ArtifactError, T5ReproError, VocabularyError
from t5repro.vocab.added_tokens import read_added_tokens
from t5repro.vocab.adopted.files import files_beside, published_vocabulary
from t5repro.vocab.id_order import MovedOrder
from t5repro.vocab.piece_offsets import PieceOffsets
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.vocabulary import Vocabulary

LINES = [
    "The old mill by the river turns slowly, while Ana's café sells 12,000 cakes a year.",
    "Die alte Mühle am Fluss dreht sich langsam; der Bauer trägt sein Korn hinauf (bergauf).",
    "Moara veche de lângă râu se învârte încet, iar țăranul își duce grâul în sus!",
    "Le vieux moulin, près de la rivière, tourne \u201cdoucement\u201d... n\u2019est-ce pas?",
] * 5


OTHER_SPELLINGS = ("<s>", "</s>", "<cls>", "<sep>", "<mask>")


@pytest.fixture(scope="module", params=WRITERS)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    path: Path = WRITERS[request.param](folder, LINES, 420)
    return path


def adopted(source: Path) -> Vocabulary:
    data = published_vocabulary(source, files_beside(source)).data
    return Vocabulary.from_bytes(data, source)


def test_special_ids_are_in_our_places_and_the_order_returns_to_theirs(source: Path) -> None:
    vocabulary = adopted(source)
    order = vocabulary.pieces.order
    rows = -(-vocabulary.total_ids // 128) * 128
    assert rows - vocabulary.total_ids >= 8  # the special pieces have rows
    assert vocabulary.extra_ids == 0
    assert isinstance(order, MovedOrder)
    table = np.arange(1.0, order.foreign_ids + 1)[:, None] * [1, 2]
    moved = order.to_ours(table)
    assert moved.shape == (rows, 2)
    np.testing.assert_array_equal(order.to_foreign(moved), table)
    np.testing.assert_array_equal(order.to_foreign(order.to_ours(table.T, 1), 1), table.T)
    for piece in ("[CLS]", "[SEP]", "[MASK]"):
        number = special_id(piece, vocabulary.total_ids)
        if order.foreign_id(number) is not None:
            assert vocabulary.pieces.spelling(number) in (piece, *OTHER_SPELLINGS)


@given(text=st.text(max_size=60))
def test_no_text_makes_a_special_id_and_every_id_has_characters_of_the_text(
    source: Path, text: str
) -> None:
    vocabulary = KEPT.setdefault(source, adopted(source))
    hostile = f"[CLS]{text}</s> <pad> [MASK] <unk>{text}[PAD]<|endoftext|>"
    ids, ranges = vocabulary.encode_with_ranges(hostile)
    assert ids == vocabulary.encode(hostile)
    assert all(2 <= number < vocabulary.total_ids for number in ids)
    starts = [start for start, _ in ranges]
    assert starts == sorted(starts)
    assert all(0 <= start <= end <= len(hostile) for start, end in ranges)


KEPT: dict[Path, Vocabulary] = {}


def test_characters_of_pieces_are_those_of_the_text_before_its_normalisation(
    tmp_path: Path,
) -> None:
    """Lower case, accents that are stripped and spaces around CJK change lengths."""
    vocabulary = adopted(write_bert(tmp_path, [*LINES, "istanbul 東 京"], 420, lower=True))
    text = "\u0130STANBUL  Cafe\u0301 東京 Moara"
    _, ranges = vocabulary.encode_with_ranges(text)
    spelled = "".join(text[start:end] for start, end in ranges)
    # The accent is in no piece; between the first and the last character of an answer it stays.
    assert spelled.replace(" ", "") == text.replace(" ", "").replace("\u0301", "")
    assert text[ranges[0][0] : ranges[-1][1]] == text
    last = [text[start:end] for start, end in ranges if start >= text.index("Moara")]
    assert "".join(last) == "Moara"


@pytest.mark.parametrize("name", ["bert uncased", "roberta", "albert", "xlnet"])
def test_pieces_that_begin_a_word_are_those_after_a_space(name: str, tmp_path: Path) -> None:
    source = WRITERS[name](tmp_path, LINES, 420)
    vocabulary = adopted(source)
    (tmp_path / "v.model").write_bytes(vocabulary.pieces.with_sentinels(0))
    offsets = PieceOffsets.load(tmp_path / "v.model")
    starts = offsets.word_starts()
    assert len(starts) == vocabulary.total_ids
    text = " turns slowly while slowly turns"
    (pieces,) = offsets.encode_batch([text])
    begins = pieces.begins[starts[pieces.ids].astype(bool)]
    spaces = [match.start() for match in re.finditer(" ", text)]
    assert [int(begin) - (text[begin] != " ") for begin in begins] == spaces


def test_a_gpt_vocabulary_does_not_tell_which_piece_begins_a_word(tmp_path: Path) -> None:
    vocabulary = adopted(write_gpt(tmp_path, LINES, 420))
    with pytest.raises(VocabularyError, match=r"of GPT mark the ends of words.*masked_lm"):
        vocabulary.pieces.word_starts()


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        ("bert uncased", "The old Mill, by Ana.", "the old mill, by ana."),
        ("roberta", "The old Mill,  by Ana.", "The old Mill,  by Ana."),
        ("gpt", "The old mill by the river", "the old mill by the river"),
        ("albert", "The old Mill, by Ana.", "the old mill, by ana."),
        ("xlnet", "The old mill, by Ana.", "The old mill, by Ana."),
    ],
)
def test_text_comes_back_as_the_vocabulary_normalises_it(
    name: str, text: str, written: str, tmp_path: Path
) -> None:
    vocabulary = adopted(WRITERS[name](tmp_path, LINES, 420))
    assert vocabulary.decode([0, *vocabulary.encode(text), 1, 5]) == written


def test_the_spellings_of_pieces_show_their_spaces(tmp_path: Path) -> None:
    spelled = {}
    for name in ("bert uncased", "roberta", "gpt", "albert"):
        pieces = adopted(WRITERS[name](tmp_path / name, LINES, 420)).pieces
        spelled[name] = "".join(pieces.spelling(number) for number in pieces.encode("the mill"))
    assert spelled == {
        "bert uncased": "▁the▁mill",
        "roberta": "the▁mill",
        "gpt": "the▁mill▁",
        "albert": "▁the▁mill",
    }


def test_an_xlnet_with_the_marks_of_its_release_has_the_ids_of_sentencepiece(
    tmp_path: Path,
) -> None:
    """Yang et al., 2019, prepare lines so: quotes and accents; a comma leaves the digit before."""
    source = write_xlnet(tmp_path, LINES, 420, marks='.()"-–£€')
    vocabulary = adopted(source)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(source))
    compared = 0
    for line in LINES:
        if re.search(r"\d,", line):
            continue
        letters = unicodedata.normalize("NFKD", " ".join(line.split()))
        prepared = "".join(letter for letter in letters if not unicodedata.combining(letter))
        foreign = [vocabulary.pieces.order.foreign_id(number) for number in vocabulary.encode(line)]
        assert foreign == processor.encode(prepared)
        compared += len(foreign)
    assert compared > 300


# A vocabulary with few free rows


@pytest.mark.parametrize("pieces", [117, 118, 119, 125, 126, 127, 128, 130])
def test_special_pieces_always_have_rows(pieces: int) -> None:
    """The multilingual BERT would leave seven rows of a multiple of 128."""
    order = MovedOrder.of_roles(pieces, {"pad": 0, "unk": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4})
    assert -order.total_ids % 128 >= 8
    assert order.to_ours(np.ones(pieces)).sum() == pieces


# Damaged files


def changed(path: Path, change: Any) -> Path:
    path.write_bytes(change(path.read_bytes()))
    return path


def refused(source: Path) -> str:
    with pytest.raises(T5ReproError) as error:
        adopted(source)
    assert isinstance(error.value, VocabularyError | ArtifactError)
    assert source.parent.name in str(error.value)
    return str(error.value).replace(f"{source.parent}/", "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data + b"[MASK]\n", r"vocab.txt, line \d+: '\[MASK\]' is also in line 6;"),
        (lambda data: data.replace(b"[SEP]\n", b"\n"), r"vocab.txt, line 5: it is empty"),
        (lambda data: data.replace(b"\n", b"\r\n"), r"line 1: '\[PAD\]\\r' has a carriage return"),
        (lambda data: data.replace(b"[UNK]", b"unk"), r"lacks '\[UNK\]'; BERT needs it as unk_tok"),
        (lambda data: data.replace(b"[CLS]", b"cls"), r"lacks '\[CLS\]'; BERT needs it as cls_tok"),
        (lambda data: data.replace(b"[PAD]", b"\x80"), r"vocab.txt is not UTF-8 at byte 0"),
        (lambda data: data.decode().encode("utf-16"), r"vocab.txt is text in UTF-16"),
        (lambda data: b"", r"vocab.txt, line 1: it is empty"),
    ],
)
def test_a_damaged_list_of_pieces_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    source = changed(write_bert(tmp_path / "bert", LINES, 300, lower=True), change)
    assert re.search(message, refused(source))


def documents(change: Any) -> Any:
    return lambda data: json.dumps(change(json.loads(data))).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (documents(lambda ids: {**ids, "zz": 7}), r"vocab.json has the id 7 twice, of '.*' and 'z"),
        (documents(lambda ids: {**ids, "zz": 9999}), r"vocab.json has [\d,]+ pieces and no id \d+"),
        (documents(lambda ids: {**ids, "zz": "8"}), r"has the piece 'zz' with id '8'; it must be"),
        (documents(lambda ids: {**ids, "zz": -1}), r"has the piece 'zz' with id -1"),
        (documents(lambda ids: {**ids, "zz": True}), r"has the piece 'zz' with id True"),
        (documents(list), r"vocab.json has a list of \d+ entries; it must be a mapping"),
        (lambda data: data[:-1] + b', "<s>": 0}', r"'<s>'"),
        (lambda data: data[:40], r"vocab.json"),
        (
            documents(lambda ids: without(ids, "<mask>")),
            r"lacks '<mask>'; RoBERTa needs it as mask",
        ),
        (documents(lambda ids: without(ids, "!")), r"lacks 1 of the 256 letters of bytes|'!'"),
    ],
)
def test_damaged_ids_are_refused(change: Any, message: str, tmp_path: Path) -> None:
    source = changed(write_roberta(tmp_path / "roberta", LINES, 420), change)
    assert re.search(message, refused(source))


def without(ids: dict[str, int], piece: str) -> dict[str, int]:
    return {p: n for n, p in enumerate(p for p in sorted(ids, key=ids.__getitem__) if p != piece)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [lines[0], *lines[:0:-1]], r"number \d+, needs '.*', which no merge before"),
        (lambda lines: lines[1:], r"merges.txt, line 1: '.*'; it must begin with '#version'"),
        (lambda lines: [*lines, lines[5]], r"number \d+, is there twice; merges must be in the"),
        (lambda lines: [*lines, "a q z"], r"line \d+: 'a q z'; it must be two pieces"),
        (lambda lines: [*lines, "q z"], r"merge 'q z', number \d+, makes 'qz', which the vocabul"),
        (lambda lines: lines[:60], r"59 merges, which do not make \d+ of \d+ pieces"),
        (lambda lines: [f"{line}\r" for line in lines], r"line 1: .* has a carriage return"),
    ],
)
@pytest.mark.parametrize("write", [write_roberta, write_gpt])
def test_damaged_merges_are_refused(write: Any, change: Any, message: str, tmp_path: Path) -> None:
    source = write(tmp_path / "pairs", LINES, 420)
    merges = source.with_name("merges.txt")
    lines = merges.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    merges.write_bytes(("\n".join(change(lines)) + "\n").encode())
    assert re.search(message, refused(source))


def test_merges_that_are_missing_are_named(tmp_path: Path) -> None:
    source = write_roberta(tmp_path / "roberta", LINES, 420)
    source.with_name("merges.txt").unlink()
    assert "vocab.json has no merges.txt next to it" in refused(source)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"do_basic_tokenize": False}, r"do_basic_tokenize is False; only True or None can be"),
        ({"never_split": ["x"]}, r"never_split is \['x'\]; only None or \[\] can be read"),
        ({"do_lower_case": "yes"}, r"do_lower_case is 'yes'; allowed are true and false"),
        ({"word_tokenizer_type": "mecab"}, r"word_tokenizer_type is 'mecab', an option that the"),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, r"tokenizer_class is 'BertJapaneseTok"),
        ({"sep_token": "[END]"}, r"lacks '\[END\]', which .*tokenizer_config.json names"),
        ({"sep_token": "[CLS]"}, r"names '\[CLS\]' as sep_token, which is another special"),
        ([], r"tokenizer_config.json has a list; it must be a mapping"),
    ],
)
def test_options_are_used_or_refused_by_name(options: Any, message: str, tmp_path: Path) -> None:
    source = write_bert(tmp_path / "bert", LINES, 300, lower=True)
    config = source.with_name("tokenizer_config.json")
    stated = json.loads(config.read_text())
    config.write_text(json.dumps({**stated, **options} if isinstance(options, dict) else options))
    assert re.search(message, refused(source))


def test_a_list_of_pieces_needs_a_word_on_lower_case(tmp_path: Path) -> None:
    source = write_bert(tmp_path / "bert", LINES, 300, lower=True)
    source.with_name("tokenizer_config.json").unlink()
    assert 'write tokenizer_config.json with {"do_lower_case": true}' in refused(source)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t["normalizer"].update(lowercase=False),
            r"tokenizer.json has normalizer.lowercase False, vocab.txt and .* make True",
        ),
        (
            lambda t: t["model"].update(max_input_chars_per_word=5),
            r"tokenizer.json has model.max_input_chars_per_word 5, .* make 100",
        ),
        (
            lambda t: t.update(pre_tokenizer={"type": "Whitespace"}),
            r"has pre_tokenizer.type 'White",
        ),
        (lambda t: t.pop("model"), r"tokenizer.json is not a definition of tokenizers"),
    ],
)
def test_a_tokenizer_json_that_says_otherwise_is_refused(
    change: Any, message: str, tmp_path: Path
) -> None:
    source = write_bert(tmp_path / "bert", LINES, 300, lower=True)
    data = published_vocabulary(source, files_beside(source)).data
    definition = json.loads(data)["tokenizer"]
    # Truncation and padding of rows are settings of a run.
    definition["truncation"] = {
        "max_length": 8,
        "stride": 0,
        "strategy": "LongestFirst",
        "direction": "Right",
    }
    path = source.with_name("tokenizer.json")
    path.write_text(json.dumps(definition))
    assert published_vocabulary(source, files_beside(source)).data == data
    change(definition)
    path.write_text(json.dumps(definition))
    assert re.search(message, refused(source))


def test_an_added_token_of_text_is_refused_by_its_name(tmp_path: Path) -> None:
    source = write_bert(tmp_path / "bert", LINES, 300, lower=True)
    vocabulary = adopted(source)
    added = source.with_name("added_tokens.json")
    for tokens in ({"[PAD]": 0, "[CLS]": 3, "[MASK]": 5}, {}):
        added.write_text(json.dumps(tokens))
        read_added_tokens([added]).check(vocabulary)
    for tokens, fault in (({"[ENTITY]": 300}, "lacks it"), ({"[CLS]": 4}, "has it as id 3")):
        added.write_text(json.dumps(tokens))
        with pytest.raises(VocabularyError, match=rf"has the token .* {fault}"):
            read_added_tokens([added]).check(vocabulary)


def test_sentinels_and_saved_models_are_refused_with_the_family(tmp_path: Path) -> None:
    pieces = adopted(write_bert(tmp_path, LINES, 300, lower=True)).pieces
    with pytest.raises(VocabularyError, match=r"extra_ids is 100, .* of BERT has no sentinels, so"):
        pieces.with_sentinels(100)
    with pytest.raises(VocabularyError, match=r"one of BERT, and only SentencePiece models can"):
        pieces.sentencepiece_model()


def test_the_file_of_a_run_is_a_function_of_the_files_and_damage_is_named(tmp_path: Path) -> None:
    first = write_bert(tmp_path / "a", LINES, 300, lower=True)
    second = Path(shutil.copytree(tmp_path / "a", tmp_path / "b")) / first.name
    data = published_vocabulary(first, files_beside(first)).data
    assert data == published_vocabulary(second, files_beside(second)).data
    for damaged in (data[:200], data.replace(b'"form": "bert"', b'"form": "x"'), b"{}"):
        with pytest.raises(ArtifactError, match="here is not an adopted vocabulary .*get it again"):
            Vocabulary.from_bytes(damaged, Path("here"))


def test_pieces_by_id_are_those_of_the_trainer() -> None:
    class Trained:
        def get_vocab(self) -> dict[str, int]:
            return {"b": 1, "a": 0}

    assert by_id(Trained()) == ["a", "b"]
