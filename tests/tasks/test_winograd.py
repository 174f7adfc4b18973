"""Pronouns: the rows whose indices the release has wrong, and where the rules end."""

import json
from collections import Counter
from pathlib import Path

import pytest

from t5repro.config.sections.tasks import TaskRows, TasksStage, TextSettings
from t5repro.inputs.labelled_examples import read_labelled
from t5repro.jobs.tasks import TasksJob
from t5repro.tasks.build import write_examples
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
    return f"wsc: {row['text']}", row["candidate"]


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


LABELLED = TasksStage(tasks=TaskRows(segments=True, text=TextSettings(winograd="labels")))
WNLI = """index\tsentence1\tsentence2\tlabel
0\tThe drain is clogged with hair. It should be cleaned.\tThe hair should be cleaned.\t0
1\tThe drain is clogged with hair. It should be cleaned.\tThe drain should be cleaned.\t1
"""


def wsc_record(idx: int, candidate: str, first: int, *, label: bool) -> str:
    target = {"span1_index": first, "span1_text": candidate, "span2_index": 4, "span2_text": "he"}
    text = "Mitchell asked Tom if he could lend some money."
    return json.dumps({"text": text, "target": target, "idx": idx, "label": label}) + "\n"


WSC = wsc_record(1, "Tom", 2, label=True) + wsc_record(2, "Mitchell", 0, label=False)
WSC_TEXT = "Mitchell asked Tom if *he* could lend some money."


@pytest.mark.parametrize(
    ("task", "text", "words", "targets", "segments"),
    [
        (
            "glue_wnli",
            WNLI,
            ("not_entailment", "entailment"),
            [0, 1],
            tuple(WNLI.splitlines()[1].split("\t")[1:3]),
        ),
        ("super_glue_wsc", WSC, ("False", "True"), [1, 0], (WSC_TEXT, "Tom")),
    ],
)
def test_winograd_schemas_are_classifications_of_two_texts_for_networks_of_labels(
    tmp_path: Path, task: str, text: str, words: tuple[str, ...], targets: list[int], segments
) -> None:
    file = tmp_path / "train"
    file.write_text(text, encoding="utf-8")
    folder = tmp_path / task
    write_examples(
        TasksJob(LABELLED, task=task, files={"train": [file]}, folder=folder,
                 manifest=tmp_path / "manifest.json")
    )  # fmt: skip
    read = read_labelled(folder / "train.jsonl", predicts_spans=True)
    assert (read.answer.kind, read.answer.words, read.targets) == ("label", words, targets)
    assert read.texts[0].segments == segments
