"""Pronouns: the rows whose indices the release has wrong, and where the rules end."""

from collections import Counter

import pytest

from t5repro.tasks.registry import task_named
from t5repro.tasks.winograd import resolve, wsc_rows


def marked(text, pronoun, index, *, span="the", span_index=0, label=True):
    target = {
        "span1_text": span,
        "span1_index": span_index,
        "span2_text": pronoun,
        "span2_index": index,
    }
    record = {"text": text, "target": target, "label": label, "idx": 0}
    (row,) = wsc_rows(record, "here", "validation", Counter())
    return row["inputs"], row["candidate"]


def test_the_row_whose_pronoun_is_glued_to_a_quotation_mark_is_mended():
    text = 'The boy continued to whip the pony , and eventually it fell. "Good for him," he said. '
    inputs, _ = marked(text, "him", 13)
    assert inputs == (
        "wsc: The boy continued to whip the pony , and eventually it fell. "
        '"Good for *him* ," he said.'
    )


def test_the_row_whose_index_is_one_too_small_is_mended():
    text = "When they had eventually calmed down a bit , and had time to use it , the end"
    inputs, _ = marked(text, "it", 13)
    assert inputs == (
        "wsc: When they had eventually calmed down a bit , and had time to use *it* , the end"
    )


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("The dog", "the dog"),
        ("the dog.", "the dog"),
        ("the\ndog", "the dog"),
        ("the dog", "the dog"),
        ("Kamenev and Zinoviev", "Kamenev and Zinoviev"),
    ],
)
def test_a_candidate_is_written_as_in_its_text(span, expected):
    assert marked("Ann saw the dog when she ran .", "she", 5, span=span, span_index=2) == (
        "wsc: Ann saw the dog when *she* ran .",
        expected,
    )


def test_a_candidate_at_the_start_gets_its_capital():
    row = marked("The dog barked because it ran .", "it", 4, span="the dog", span_index=0)
    assert row[1] == "The dog"


def test_a_pronoun_at_the_end_is_marked():
    assert marked("the dog saw it", "it", 3)[0] == "wsc: the dog saw *it* "


@pytest.mark.parametrize(
    ("premise", "hypothesis", "marked_premise", "candidate"),
    [
        (
            "Tom gave Ralph a lift so he wouldn't have to walk.",
            "Ralph wouldn't have to walk.",
            "Tom gave Ralph a lift so *he* wouldn't have to walk.",
            "Ralph",
        ),
        (
            "The judge praised the girls' work, and they smiled at his words.",
            "They smiled at the judge's words.",
            "The judge praised the girls' work, and they smiled at *his* words.",
            "the judge",
        ),
        (
            "We painted the boys' room, since it was theirs and their toys were in it.",
            "The boys' toys were in it.",
            "We painted the boys' room, since it was theirs and *their* toys were in it.",
            "The boys",
        ),
        ("Is it big? It is!", "Is the (old) barn big?", "Is *it* big? It is!", "the (old) barn"),
    ],
)
def test_a_premise_and_its_hypothesis_give_pronoun_and_candidate(
    premise, hypothesis, marked_premise, candidate
):
    assert resolve(premise, hypothesis, "here") == (marked_premise, candidate)


def test_a_pronoun_inside_a_word_is_left_alone_in_dpr(tmp_path):
    path = tmp_path / "dpr"
    path.write_text("The whale ate her, there?\nhe\nThe whale,her\nher\n\n")
    task = task_named("dpr")
    (row,) = task.read([path], "train", Counter())
    (example,) = task.to_examples(row)
    assert example.inputs == "wsc: The whale ate her, there?"
