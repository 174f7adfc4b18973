"""Rows of an encoder only, and the labels of its head."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import SPECIAL_PIECES
from t5repro.errors import ArtifactError
from t5repro.model.labels import CHOICE, LABEL, NUMBER, SPAN, LabelColumns, TaskAnswer
from t5repro.model.segment_rows import SegmentEncoder, cut_pair
from t5repro.model.task_rows import texts_in
from t5repro.vocab.special_pieces import special_id


class Letters:
    """A vocabulary of one id a letter, from 10 on."""

    total_ids = 100

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [[10 + ord(letter) - ord("a") for letter in text if letter != " "] for text in texts]


CLS, SEP = special_id("[CLS]", 100), special_id("[SEP]", 100)


def rows(*segments: str, task: str = "", length: int = 12, **model: Any):
    settings = ModelSettings.model_construct(**({"architecture": "encoder"} | model))
    encoder = SegmentEncoder(Letters(), model=settings, length=length)  # type: ignore[arg-type]
    return encoder.rows([segments], task=task)[0]


def test_a_pair_has_a_separator_after_each_segment_and_types_change_after_the_first() -> None:
    row = rows("ab", "cde")
    assert row.ids == [CLS, 10, 11, SEP, 12, 13, 14, SEP]
    assert row.first_length == 4
    assert not row.cut


def test_roberta_has_two_separators_between_the_segments() -> None:
    row = rows("ab", "c", pair_separators=2)
    assert row.ids == [CLS, 10, 11, SEP, SEP, 12, SEP]
    assert row.first_length == 5


def test_gpt_has_a_delimiter_between_the_segments_and_classifies_at_the_end() -> None:
    start, delimiter, classify = (
        special_id(piece, 100) for piece in ("_start_", "_delimiter_", "_classify_")
    )
    gpt = {"architecture": "language_model"}
    assert rows("ab", **gpt).ids == [start, 10, 11, classify]
    row = rows("ab", "cde", task="glue_rte", **gpt)
    assert row.ids == [start, 10, 11, delimiter, 12, 13, 14, classify]
    assert row.swapped == ()
    row = rows("ab", "cde", task="glue_mrpc", **gpt)
    assert row.swapped == (start, 12, 13, 14, delimiter, 10, 11, classify)
    assert rows("ab", "cde", task="glue_mrpc").swapped == ()  # BERT reads one order


def test_both_orders_of_a_long_row_have_the_same_tokens() -> None:
    row = rows("abcdefghij", "kl", task="glue_qqp", architecture="language_model")
    assert row.cut
    assert len(row.swapped) == len(row.ids) == 12
    assert sorted(row.swapped) == sorted(row.ids)


def test_a_single_segment_is_of_the_first_type() -> None:
    row = rows("abc")
    assert row.ids == [CLS, 10, 11, 12, SEP]
    assert row.first_length == 5


def test_further_segments_belong_to_the_second() -> None:
    assert rows("a", "b", "c").ids == [CLS, 10, SEP, 11, 12, SEP]


def test_the_end_of_the_longer_segment_is_cut_off() -> None:
    row = rows("abcdefghij", "kl")
    assert row.ids == [CLS, *range(10, 17), SEP, 20, 21, SEP]
    assert row.cut
    assert len(rows("a" * 30).ids) == 12


def cut_one_by_one(first: int, second: int, room: int) -> tuple[int, int]:
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 70))
def test_a_pair_is_cut_as_if_ids_left_one_by_one(first: int, second: int, room: int) -> None:
    assert cut_pair(first, second, room) == cut_one_by_one(first, second, room)


def test_a_row_without_segments_names_the_setting() -> None:
    with pytest.raises(ArtifactError, match=r"t\.jsonl line 3 lacks segments.*tasks\.segments"):
        texts_in({"inputs": "a"}, Path("t.jsonl"), 3)


def test_columns_follow_the_names_of_the_tasks_and_numbers_and_options_have_one() -> None:
    columns = LabelColumns(
        {
            "stsb": TaskAnswer("number"),
            "squad": TaskAnswer("span"),
            "cola": TaskAnswer("label", ("no", "yes"), segments=1),
            "copa": TaskAnswer("choice", ("choice1", "choice2")),
        }
    )
    assert columns.columns == {
        "cola": (0, 2, LABEL),
        "copa": (2, 1, CHOICE),
        "squad": (3, 0, SPAN),
        "stsb": (3, 1, NUMBER),
    }
    assert (columns.total, columns.options, columns.has_spans) == (4, 2, True)
    assert LabelColumns.from_text(columns.as_text(), "w").answers == columns.answers


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "3",
        pytest.param("[" * 200_000, id="deep"),
        pytest.param("1" * 5000, id="digits"),
        '{"a": {"kind": "number", "words": [], "segments": 1, "segments": 2}}',
        '{"a": ["label", "no"]}',
        '{"a": {"kind": "label", "words": []}}',
        '{"a": {"kind": "x", "words": [], "segments": 1}}',
        '{"a": {"kind": "label", "words": "no", "segments": 1}}',
        '{"a": {"kind": "label", "words": [1], "segments": 1}}',
        '{"a": {"kind": "label", "words": ["no"], "segments": "1"}}',
    ],
)
def test_damaged_labels_are_refused(text: str) -> None:
    with pytest.raises(ArtifactError, match="labels are damaged"):
        LabelColumns.from_text(text, "weights.safetensors")


def test_special_pieces_have_the_ids_after_the_vocabulary() -> None:
    assert [special_id(piece, 100) for piece in SPECIAL_PIECES] == list(range(100, 108))
    assert len(SPECIAL_PIECES) == 8
