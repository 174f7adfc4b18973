"""Each switch between the code's text and the paper's, on hand-written rows."""

import json
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.tasks import TaskTexts, TextSettings
from t5repro.errors import TaskDataError
from t5repro.tasks.generation import ASCII_PUNCTUATION, pad_punctuation, padded_span
from t5repro.tasks.registry import TASKS, task_named
from t5repro.tasks.wording import SWITCHES


def worded(name, **text):
    return task_named(name, TaskTexts(text=TextSettings(**text)))


def examples(task, row):
    return [(example.inputs, example.targets, example.answer) for example in task.to_examples(row)]


PAIR = {"premise": "It rains.", "hypothesis": "It is wet.", "label": 0, "idx": 0}


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("glue_mnli", "mnli"),
        ("glue_mnli_matched", "mnli"),
        ("glue_mnli_mismatched", "mnli"),
        ("glue_ax", "mnli"),
        ("super_glue_cb", "cb"),
        ("super_glue_rte", "rte"),
        ("super_glue_axb", "rte"),
        ("super_glue_axg", "rte"),
    ],
)
def test_the_paper_puts_the_premise_first_and_the_code_the_hypothesis(name, prefix):
    code = f"{prefix} hypothesis: It is wet. premise: It rains."
    paper = f"{prefix} premise: It rains. hypothesis: It is wet."
    assert examples(worded(name), PAIR) == [(code, "entailment", 0)]
    assert examples(worded(name, field_order="paper"), PAIR) == [(paper, "entailment", 0)]


@pytest.mark.parametrize(
    ("score", "code", "paper"),
    [
        (0.0, "0.0", "1.0"),
        (0.9, "0.8", "1.0"),
        (1.66, "1.6", "1.6"),
        (3.25, "3.2", "3.2"),
        (5.0, "5.0", "5.0"),
    ],
)
def test_the_papers_similarity_begins_at_one(score, code, paper):
    row = {"sentence1": "a", "sentence2": "b", "label": score, "idx": 0}
    text = "stsb sentence1: a sentence2: b"
    assert examples(worded("glue_stsb"), row) == [(text, code, float(code))]
    actual = examples(worded("glue_stsb", stsb_classes="paper"), row)
    assert actual == [(text, paper, float(code))]
    as_in_file = worded("glue_stsb", stsb_classes="paper", stsb_answer="original")
    assert examples(as_in_file, row) == [(text, paper, score)]


@pytest.mark.parametrize(
    ("prediction", "code", "paper"),
    [
        ("3.4", 3.4, 3.4),
        ("1.0", 1.0, 1.0),
        ("0.8", 0.8, -1.0),
        ("7.1", 7.1, -1.0),
        ("nan", -1.0, -1.0),
        ("similar", -1.0, -1.0),
    ],
)
def test_the_paper_calls_an_answer_outside_its_classes_wrong(prediction, code, paper):
    assert worded("glue_stsb").read_prediction(prediction, {}) == code
    task = worded("glue_stsb", stsb_classes="paper")
    assert task.read_prediction(prediction, {}) == paper
    assert task.is_invalid(task.read_prediction(prediction, {})) == (paper == -1.0)


def test_the_papers_wic_begins_with_the_part_of_speech(tmp_path):
    path = tmp_path / "wic.jsonl"
    row = {
        "word": "bank",
        "pos": "N",
        "sentence1": "A river bank.",
        "sentence2": "My bank.",
        "label": False,
        "idx": 4,
    }
    path.write_text(json.dumps(row) + "\n")
    task = worded("super_glue_wic", wic_part_of_speech="paper")
    (read,) = task.read([path], "train", Counter())
    text = "wic pos: N sentence1: A river bank. sentence2: My bank. word: bank"
    assert examples(task, read) == [(text, "False", 0)]


def test_a_wic_file_without_the_part_of_speech_is_refused_with_the_switch(tmp_path):
    path = tmp_path / "wic.jsonl"
    path.write_text('{"word": "w", "sentence1": "a", "sentence2": "b", "label": true, "idx": 0}\n')
    task = worded("super_glue_wic", wic_part_of_speech="paper")
    with pytest.raises(TaskDataError, match=r"wic.jsonl line 1: no 'pos' among .*N or V; .*: code"):
        list(task.read([path], "train", Counter()))


def test_the_papers_copa_answers_true_or_false():
    row = {
        "choice1": "a",
        "choice2": "b",
        "premise": "p",
        "question": "cause",
        "label": 1,
        "idx": 0,
    }
    text = "copa choice1: a choice2: b premise: p question: cause"
    assert examples(worded("super_glue_copa"), row) == [(text, "choice2", 1)]
    task = worded("super_glue_copa", copa_target="paper")
    assert examples(task, row) == [(text, "True", 1)]
    assert [
        task.read_prediction(prediction, {}) for prediction in ("False", "True", "choice2")
    ] == [0, 1, -1]


def test_the_papers_multirc_keeps_its_markup():
    row = {
        "question": "Who?",
        "answer": "Ann",
        "label": 1,
        "paragraph": "<b>Sent 1: </b>Ann won.<br>",
        "idx": {"paragraph": 0, "question": 1, "answer": 2},
    }
    head = "multirc question: Who? answer: Ann paragraph: "
    answer = {"label": 1, "group": 1}
    code = head + "Sent 1: Ann won. "
    assert examples(worded("super_glue_multirc"), row) == [(code, "True", answer)]
    paper = head + "<b>Sent 1: </b>Ann won.<br>"
    actual = examples(worded("super_glue_multirc", multirc_markup="paper"), row)
    assert actual == [(paper, "True", answer)]


def test_the_papers_squad_leaves_texts_alone():
    row = {
        "question": "Who  won?",
        "context": "Ann (and Bo).",
        "answers": ["Ann (and Bo)"],
        "spans": (),
        "idx": "q1",
    }
    padded = "question: Who won ? context: Ann ( and Bo ) . "
    assert examples(worded("squad"), row)[0][0] == padded
    task = worded("squad", squad_punctuation="paper")
    plain = ("question: Who  won? context: Ann (and Bo).", "Ann (and Bo)", ["Ann (and Bo)"])
    assert examples(task, row) == [plain]


def test_squad_of_2022_keeps_letters_with_an_accent_whole():
    row = {
        "question": "Où?", "context": "Au café_bar.", "answers": ["café"], "spans": (), "idx": "q1"
    }  # fmt: skip
    assert examples(worded("squad"), row)[0][1] == "caf é "
    inputs, target, _ = examples(worded("squad", squad_punctuation="code_2022"), row)[0]
    assert inputs == "question: Où ? context: Au café _ bar . "
    assert target == "café"


def test_every_setting_of_texts_is_a_switch_and_touches_only_its_tasks():
    assert {switch.setting for switch in SWITCHES} == set(TextSettings.model_fields)
    for switch in SWITCHES:
        for task in TASKS.values():
            changed = worded(task.name, **{switch.setting: switch.value}) != task
            assert changed == (task.name in switch.tasks)


@given(st.text(st.sampled_from("aé_9 .,-\n\t(")), st.data())
def test_a_part_of_a_padded_text_is_the_padded_part(text, data):
    first = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(first, len(text)))
    for pad in (pad_punctuation, partial(pad_punctuation, padded=ASCII_PUNCTUATION), str):
        padded = pad(text)
        start, stop = padded_span(text, padded, (first, end), pad)
        assert padded[start:stop] == pad(text[first:end]).strip()
        # It is the part that begins there, not an equal one further on.
        if pad is not str and start < stop:
            assert 0 <= start - len(pad(text[:first])) <= 1


UNANSWERED = {"question": "Why?", "context": "It rains.", "answers": [], "spans": (), "idx": "a"}


def test_a_question_without_an_answer_has_a_word_or_no_text():
    inputs = "question: Why ? context: It rains . "
    word = worded("squad_2")
    assert examples(word, UNANSWERED) == [(inputs, "unanswerable", [])]
    empty = worded("squad_2", squad_no_answer="empty", squad_punctuation="paper")
    assert examples(empty, UNANSWERED) == [("question: Why? context: It rains.", "", [])]
    for task in (word, empty):
        texts = [task.read_prediction(text, {})["text"] for text in ("", "rain", "unanswerable")]
        assert texts == ["", "rain", "" if task is word else "unanswerable"]
    row = {"span": "rain", "null_odds": 0.5}
    assert word.read_prediction("unanswerable", row) == {"text": "", **row}
