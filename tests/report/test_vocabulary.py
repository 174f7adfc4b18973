"""The vocabulary of the corpus page: ranks, classes of characters, sentinels, use by language."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import ArtifactError
from t5repro.report.vocabulary import (
    PIECES_SHOWN,
    character_class,
    language_use,
    read_pieces,
    vocabulary_view,
)

SPECIAL = [("<pad>", "0"), ("</s>", "0"), ("<unk>", "0")]
SENTINELS = [(f"▁<extra_id_{number}>", "0") for number in (2, 1, 0)]


def listed(*pieces: str) -> list[tuple[str, str]]:
    return [*SPECIAL, *((piece, "-1.5") for piece in pieces), *SENTINELS]


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("▁the", "Latin letters, a to z"),
        ("Straße", "Latin letters, not only a to z"),
        ("ţ", "Latin letters, not only a to z"),
        ("▁мир", "Cyrillic letters"),
        ("λόγος", "Greek letters"),
        ("語", "CJK letters"),
        ("▁2019", "digits"),
        ("▁(", "punctuation and symbols"),
        ("€", "punctuation and symbols"),
        ("▁", "space alone"),
        ("don't", "mixed"),
        ("3D", "mixed"),
    ],
)
def test_a_piece_has_the_class_of_its_characters(piece: str, expected: str) -> None:
    assert character_class(piece) == expected


def test_pieces_are_counted_by_class_and_sentinels_apart() -> None:
    view = vocabulary_view("a, b", listed("▁the", "é", ".", "s"), [])
    assert (view.pieces, view.word_starts) == ("7", "1")
    assert view.sentinels == "3 sentinels (ids 9 down to 7)"
    assert [(entry.name, entry.count) for entry in view.classes] == [
        ("special ids", "3"),
        ("Latin letters, a to z", "2"),
        ("Latin letters, not only a to z", "1"),
        ("punctuation and symbols", "1"),
    ]
    assert view.classes[1].examples == ("▁the", "s")
    assert view.classes[1].share == "28.6 %"
    assert [(piece.number, piece.text) for piece in view.first[3:]] == [
        (3, "▁the"),
        (4, "é"),
        (5, "."),
        (6, "s"),
    ]
    assert view.last == ()


@given(st.lists(st.text(min_size=1, max_size=4), max_size=3 * PIECES_SHOWN))
def test_every_piece_is_in_one_class_and_few_pieces_are_all_shown(pieces: list[str]) -> None:
    view = vocabulary_view("a", listed(*pieces), [])
    total = len(SPECIAL) + len(pieces)
    assert sum(int(entry.count) for entry in view.classes) == total
    shown = [piece.number for piece in (*view.first, *view.last)]
    assert shown == sorted(set(shown))
    assert len(shown) == min(total, 2 * PIECES_SHOWN)
    assert {0, total - 1} <= set(shown)


def test_a_control_character_of_a_piece_is_replaced() -> None:
    view = vocabulary_view("a", listed("\u202ex"), [])
    assert view.first[3].text == "\N{REPLACEMENT CHARACTER}x"


def test_a_vocabulary_without_sentinels_has_none() -> None:
    assert vocabulary_view("a", SPECIAL, []).sentinels == "0 sentinels"


def test_the_use_by_a_language_counts_different_pieces_and_characters() -> None:
    use = language_use("en", ["aaaa", "bb"], [[5, 5, 6], [6]])
    assert (use.pages, use.pieces, use.characters_per_token) == ("2", "2", "1.50")
    assert language_use("en", [], []).characters_per_token == ""


def test_a_list_of_pieces_is_read_by_id(tmp_path: Path) -> None:
    path = tmp_path / "sentencepiece.vocab"
    path.write_text("<pad>\t0\n▁a\t-2.5\n\x85\t-3\n", encoding="utf-8")
    assert read_pieces(path) == [("<pad>", "0"), ("▁a", "-2.5"), ("\x85", "-3")]


def test_a_damaged_or_missing_list_of_pieces_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sentencepiece.vocab"
    with pytest.raises(ArtifactError, match="is missing; run the rule vocab"):
        read_pieces(path)
    path.write_text("<pad>\t0\nno score\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match="line 2: 'no score' is not a piece, a tab and its"):
        read_pieces(path)
