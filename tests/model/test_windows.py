"""Questions and texts longer than a row: windows, the place of an answer, the likeliest span."""

import json
import re

import numpy as np
import pytest
from checkout import SHARED_DATA
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.tasks import WindowSettings
from t5repro.config.sections.vocab import VocabStage
from t5repro.errors import SettingsError
from t5repro.jobs.corpus import VocabJob
from t5repro.model.span_answers import SpanLimits, best_spans, span_texts
from t5repro.model.task_rows import TaskRows
from t5repro.model.windows import WindowEncoder, best_windows, window_ranges
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.train import make_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

CLS, SEP = special_id("[CLS]", 100), special_id("[SEP]", 100)
WORD = re.compile(r"\s*\S+")


class Words:
    """A vocabulary of one id a word: its number of letters."""

    total_ids = 100

    def encode_batch(self, texts):
        return [self.encode_with_ranges(text)[0] for text in texts]

    def encode_with_ranges(self, text):
        words = list(WORD.finditer(text))
        return [len(word[0].strip()) for word in words], [word.span() for word in words]


def windows(question, text, *, length=12, question_length=3, stride=2, **model):
    encoder = WindowEncoder(
        Words(),
        model=ModelSettings.model_construct(**({"architecture": "encoder"} | model)),
        length=length,
        windows=WindowSettings(question_length=question_length, stride=stride),
    )
    return encoder.windows([(question, text)])


def test_windows_of_a_text_overlap_by_all_but_the_stride():
    found = windows("aa a aa aaa", "b bb bbb bbbb bbbbb b bb bbb", length=9)
    start = [CLS, 2, 1, 2, SEP]  # the question is cut to three words
    assert [window.row.ids for window in found] == [
        [*start, 1, 2, 3, SEP],
        [*start, 3, 4, 5, SEP],
        [*start, 5, 1, 2, SEP],
        [*start, 2, 3, SEP],
    ]
    assert all(window.row.first_length == 5 and window.row.cut for window in found)
    assert windows("a", "b bb", pair_separators=2)[0].row.ids == [CLS, 1, SEP, SEP, 1, 2, SEP]


def test_an_answer_has_the_positions_of_its_pieces_or_those_of_the_first():
    found = windows("a", "one two three four five six seven", length=8, stride=3)
    assert [window.positions_of((4, 13)) for window in found] == [(4, 5), (0, 0)]
    assert [window.positions_of((19, 27)) for window in found] == [(0, 0), (4, 5)]
    assert found[0].positions_of((5, 6)) == (4, 4)  # a part of a word
    assert found[0].answer(4, 5) == "two three"
    assert found[1].answer(4, 6) == "five six seven"


def best_by_bert(pieces, parts):
    """The window of the greatest score of each piece, as run_squad tries all of them."""
    best = []
    for position in range(pieces):
        best_score, best_index = None, None
        for index, (first, end) in enumerate(parts):
            if position < first or position > end - 1:
                continue
            score = min(position - first, end - 1 - position) + 0.01 * (end - first)
            if best_score is None or score > best_score:
                best_score, best_index = score, index
        best.append(best_index)
    return best


@given(st.integers(1, 80), st.integers(1, 30), st.integers(1, 40))
def test_every_piece_has_one_best_window(pieces, room, stride):
    parts = window_ranges(pieces, room, WindowSettings(stride=stride))
    assert {piece for first, end in parts for piece in range(first, end)} == set(range(pieces))
    assert all(end - first <= room for first, end in parts)
    assert len({end for _, end in parts}) == len(parts)  # none is inside another
    assert best_windows(pieces, parts) == best_by_bert(pieces, parts)


def likeliest_by_hand(found, logits, limits):
    """Try all pairs of positions."""
    best, answer = -np.inf, ""
    parts = [window.pieces for window in found]
    bests = best_by_bert(parts[-1][1], parts)
    for number, (window, values) in enumerate(zip(found, logits, strict=True)):
        values = values[: len(window.row.ids)]  # without padding
        ranks = np.argsort(np.argsort(-values, axis=0, kind="stable"), axis=0)
        offset = window.row.first_length
        for first in range(len(window.ranges)):
            for last in range(first, min(first + limits.length, len(window.ranges))):
                places = (first + offset, last + offset)
                if max(ranks[places[0], 0], ranks[places[1], 1]) >= limits.candidates:
                    continue
                score = values[places[0], 0] + values[places[1], 1]
                if bests[window.pieces[0] + first] == number and score > best:
                    best, answer = (
                        score,
                        window.text[window.ranges[first][0] : window.ranges[last][1]].strip(),
                    )
    return answer


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12))
def test_the_answer_is_the_likeliest_span_of_all_windows(seed, length, candidates):
    random = np.random.default_rng(seed)
    text = " ".join("x" * int(size) for size in random.integers(1, 9, random.integers(1, 25)))
    found = windows("why not", text, length=12, stride=3)
    # Padding after a row, as in a batch.
    logits = [random.normal(size=(len(window.row.ids) + 3, 2)) for window in found]
    limits = SpanLimits(length, candidates)
    answers = best_spans(TaskRows([w.row for w in found], found, 1), logits, limits)
    assert [answer.span for answer in answers] == [likeliest_by_hand(found, logits, limits)]


def test_no_answer_is_as_likely_as_the_first_position_of_the_window_where_it_is_least():
    found = windows("a", "one two three four", length=7, stride=2)
    assert len(found) == 2  # [CLS] a [SEP] and three words; two words
    logits = [np.full((7, 2), -5.0), np.full((7, 2), -5.0)]
    logits[0][0], logits[1][0] = (2.0, 2.5), (1.0, 0.25)
    logits[0][3, 0], logits[0][4, 1] = 1.5, 1.0
    rows = TaskRows([window.row for window in found], found, 1)
    (answer,) = best_spans(rows, logits, SpanLimits(9, 9))
    assert answer == ("one two", 1.25 - 2.5)
    for threshold, text in ((-1.25, "one two"), (-1.26, "none"), (0.0, "one two")):
        limits = SpanLimits(9, 9, threshold)
        answers = span_texts([answer], ["none"], limits)
        assert list(answers.fields()) == [
            {"prediction": text, "span": "one two", "null_odds": -1.25}
        ]
    # A task whose questions all have an answer has no odds in its file.
    plain = span_texts([answer], [], SpanLimits(9, 9, -9.0))
    assert list(plain.fields()) == [{"prediction": "one two"}]


def test_a_text_without_a_possible_span_has_no_answer():
    found = windows("a", "one two", length=9)
    logits = [np.zeros((9, 2))]
    logits[0][0] = 3.0, 0.5  # the only candidate of both sides
    (answer,) = best_spans(TaskRows([found[0].row], found, 1), logits, SpanLimits(9, 1))
    assert answer == ("", 3.5)
    assert span_texts([answer], ["none"], SpanLimits(9, 1, 9.0)).texts == ["none"]


def test_a_row_that_a_question_fills_is_refused():
    with pytest.raises(SettingsError, match=r"inputs_length is 6.*can take 6.*question_length"):
        windows("a", "b", length=6, question_length=3)


def trained_on(texts, folder):
    """Return a vocabulary of 1,500 pieces."""
    (folder / "sample.txt").write_text("\n".join(texts), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {"vocab_size": 1500, "character_coverage": 1.0}}),
            sample=folder / "sample.txt",
            model=folder / "vocab.model",
            pieces=folder / "vocab.pieces",
            manifest=folder / "vocab.json",
        )
    )
    return Vocabulary.load(folder / "vocab.model")


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no real data at ../shared/data")
def test_answers_of_squad_come_back_from_their_pieces(tmp_path):
    """Only where a piece is longer than the answer, letters around it come with it."""
    data = json.loads((SHARED_DATA / "tasks/squad/dev-v1.1.json").read_text(encoding="utf-8"))
    paragraphs = [text for article in data["data"][::8] for text in article["paragraphs"][:6]]
    encoder = WindowEncoder(
        trained_on([paragraph["context"] for paragraph in paragraphs], tmp_path),
        model=ModelSettings(),
        length=256,
        windows=WindowSettings(question_length=64, stride=64),
    )
    whole = total = 0
    for paragraph in paragraphs:
        context = paragraph["context"]
        for question in paragraph["qas"]:
            found = encoder.windows([(question["question"], context)])
            answer = question["answers"][0]
            start = answer["answer_start"]
            characters = (start, start + len(answer["text"]))
            places = [(window, window.positions_of(characters)) for window in found]
            inside = [(window, place) for window, place in places if place != (0, 0)]
            assert inside
            for window, place in inside:
                assert answer["text"].strip() in window.answer(*place)
            whole += any(w.answer(*place) == answer["text"].strip() for w, place in inside)
            total += 1
    assert total > 100
    assert whole / total > 0.9
