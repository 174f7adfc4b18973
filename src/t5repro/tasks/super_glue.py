"""SuperGLUE as text to text (paper section 2.4 and appendix D); WSC is in `winograd`.

To add a task of labelled JSON rows, append a `classification` entry to `SUPER_GLUE` and a row to
`task_table`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.tasks.baselines import copy_baseline, most_frequent
from t5repro.tasks.glue import ENTAILMENT, classification, format_fields
from t5repro.tasks.lines import invalid_data
from t5repro.tasks.predictions import is_blank, is_invalid_label, label_index, unchanged
from t5repro.tasks.records import label_in, list_in, number_in, object_in, read_records, text_in
from t5repro.tasks.task import NO_TARGET, Baseline, Example, Reader, Row, Task

TRUTH = ("False", "True")
COMMITMENT = ("entailment", "contradiction", "neutral")
CHOICES = ("choice1", "choice2")

LINE_BREAK = re.compile("<br>")
BOLD = re.compile("</?b>")
HIGHLIGHT_AFTER_STOP = re.compile(r"([.?!\"'])\n@highlight\n")
HIGHLIGHT = "\n@highlight\n"


def labelled_rows(
    record: Mapping[str, Any],
    location: str,
    split: str,
    excluded: Counter[str],
    *,
    fields: Mapping[str, str],
    values: tuple[Any, ...],
) -> Iterator[Row]:
    """Yield the one row of a JSON object: its `fields`, label and idx.

    Args:
        record: the object.
        location: its file and line.
        split: only the rows of ``test`` may lack a label.
        excluded: unused.
        fields: name of a field -> key of the object.
        values: value of each label in the object.
    """
    yield {
        **{name: text_in(record, key, location) for name, key in fields.items()},
        "label": label_in(record, location, split, values=values),
        "idx": number_in(record, "idx", location),
    }


def _reader(fields: Mapping[str, str], values: tuple[Any, ...]) -> Reader:
    return partial(read_records, to_rows=partial(labelled_rows, fields=fields, values=values))


def _same(*names: str) -> dict[str, str]:
    """Return the mapping of fields that have the names of their keys."""
    return {name: name for name in names}


# WiC


def wic_rows_with_pos(
    record: Mapping[str, Any], location: str, split: str, excluded: Counter[str]
) -> Iterator[Row]:
    """Yield the one row of a WiC object with its part of speech, which not every release has."""
    if "pos" not in record:
        raise invalid_data(
            location,
            "no 'pos' among",
            sorted(record),
            "a record with 'pos': N or V",
            "name files that have it under tasks.files, or set tasks.text.wic_part_of_speech: code",
        )
    fields = _same("pos", "sentence1", "sentence2", "word")
    yield from labelled_rows(record, location, split, excluded, fields=fields, values=(False, True))


# COPA

COPA_FIELDS = ("choice1", "choice2", "premise", "question")
# Texts of the questions in the task's original instructions (Roemmele et al., 2011).
COPA_QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}


def format_copa(row: Row, *, labels: tuple[str, ...] = CHOICES) -> tuple[Example]:
    """Write the choices, the premise and the question; a network of labels reads each choice apart.

    Args:
        row: one record of COPA.
        labels: words of the answers, by index.
    """
    (example,) = format_fields(row, prefix="copa", fields=COPA_FIELDS, labels=labels)
    question: str = row["question"]
    segments = (row["premise"], COPA_QUESTIONS.get(question, question))
    return (replace(example, segments=segments, options=(row["choice1"], row["choice2"])),)


# MultiRC


def multirc_rows(
    record: Mapping[str, Any], location: str, split: str, excluded: Counter[str]
) -> Iterator[Row]:
    """Yield one row per answer option of every question about a paragraph."""
    passage = object_in(record, "passage", location)
    for question in list_in(passage, "questions", location):
        for answer in list_in(question, "answers", location):
            yield {
                "paragraph": text_in(passage, "text", location),
                "question": text_in(question, "question", location),
                "answer": text_in(answer, "text", location),
                "label": label_in(answer, location, split, values=(0, 1)),
                "idx": {
                    "paragraph": number_in(record, "idx", location),
                    "question": number_in(question, "idx", location),
                    "answer": number_in(answer, "idx", location),
                },
            }


def read_multirc(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield MultiRC's answer options; a question's id must belong to one paragraph."""
    # The exact match groups rows by the question's id alone, as the released code does: an id of
    # two paragraphs would merge two questions, and the score would still look right.
    paragraph_of: dict[int, int] = {}
    for row in read_records(files, split, excluded, to_rows=multirc_rows):
        paragraph, question = row["idx"]["paragraph"], row["idx"]["question"]
        if paragraph_of.setdefault(question, paragraph) != paragraph:
            raise invalid_data(
                row["location"],
                "repeats the question id",
                question,
                f"ids of one paragraph only; paragraph {paragraph_of[question]} has it, too",
            )
        yield row


def format_multirc(row: Row, *, keep_markup: bool = False) -> tuple[Example]:
    """Write question, answer option and paragraph, without the paragraph's HTML.

    The metrics need the label together with the question's id.

    Args:
        row: one answer option.
        keep_markup: whether the texts keep ``<b>`` and ``<br>``.

    Source: released code, `preprocessors.glue`; the paper's appendix D keeps the HTML.
    """
    (example,) = format_fields(
        row, prefix="multirc", fields=("question", "answer", "paragraph"), labels=TRUTH
    )
    inputs, segments, label = example.inputs, example.segments, example.answer
    if not keep_markup:
        inputs = without_markup(inputs)
        segments = tuple(map(without_markup, segments))
    answer = None if label is None else {"label": label, "group": row["idx"]["question"]}
    return (replace(example, inputs=inputs, segments=segments, answer=answer),)


def without_markup(text: str) -> str:
    """Return a text without ``<b>``, and with a space for each ``<br>``."""
    return BOLD.sub("", LINE_BREAK.sub(" ", text))


def _label(answer: Mapping[str, Any]) -> Any:
    return answer["label"]


# ReCoRD


def record_rows(
    record: Mapping[str, Any], location: str, split: str, excluded: Counter[str]
) -> Iterator[Row]:
    """Yield one row per query about a passage, with sorted and distinct entities and answers."""
    passage = object_in(record, "passage", location)
    text = text_in(passage, "text", location)
    entities = sorted(
        {_entity(text, span, location) for span in list_in(passage, "entities", location)}
    )
    for query in list_in(record, "qas", location):
        answers: list[str] | None = None
        if "answers" in query or split != "test":
            # A gold answer occurs once per mention in the passage; mentions of one spelling are
            # one answer, as in TFDS.
            answers = sorted(
                {text_in(gold, "text", location) for gold in list_in(query, "answers", location)}
            )
        yield {
            "passage": text,
            "query": text_in(query, "query", location),
            "entities": entities,
            "answers": answers,
            "idx": {
                "passage": number_in(record, "idx", location),
                "query": number_in(query, "idx", location),
            },
        }


def _entity(text: str, span: Mapping[str, Any], location: str) -> str:
    first, last = number_in(span, "start", location), number_in(span, "end", location)
    if not 0 <= first <= last < len(text):
        raise invalid_data(
            location,
            "an entity is at",
            [first, last],
            f"0 <= start <= end < {len(text)} characters",
        )
    return text[first : last + 1]


def format_record(row: Row) -> Iterable[Example]:
    """Write a query once per gold answer, in training and in evaluation.

    The ``@highlight`` marks between a passage and its summary become sentence ends.

    Source: released code, `preprocessors.record`.
    """
    # After a full stop the mark only needs a space; elsewhere it stands for the full stop, too.
    passage = HIGHLIGHT_AFTER_STOP.sub(r"\1 ", row["passage"]).replace(HIGHLIGHT, ". ")
    inputs = (
        f"record query: {row['query']} entities: {', '.join(row['entities'])} passage: {passage}"
    )
    answers = row["answers"]
    if not answers:
        return (Example(inputs, NO_TARGET, row["idx"], None),)
    # All rows of a query carry all its gold answers, and their group: the metric scores a query
    # once, against every answer.
    group = [row["idx"]["passage"], row["idx"]["query"]]
    answer = {"answers": answers, "group": group}
    return tuple(Example(inputs, gold, row["idx"], answer) for gold in answers)


def most_frequent_entity(row: Row) -> str:
    """Return the entity that the passage of a query names most often; of several, the first."""
    passage = row["passage"]
    entity: str = max(row["entities"], key=passage.count)  # sorted: the first of equal counts
    return entity


# Tasks

HYPOTHESIS_FIRST = ("hypothesis", "premise")
_READ_ENTAILMENT = _reader(_same("premise", "hypothesis"), ENTAILMENT)
# The broad-coverage set calls its two texts sentences.
_READ_AXB = _reader({"premise": "sentence1", "hypothesis": "sentence2"}, ENTAILMENT)


def _entailment(
    name: str, *, read: Reader, metrics: tuple[str, ...], evaluation_only: bool = False
) -> Task:
    return classification(
        name,
        read=read,
        prefix="rte",
        fields=HYPOTHESIS_FIRST,
        labels=ENTAILMENT,
        metrics=metrics,
        evaluation_only=evaluation_only,
    )


SUPER_GLUE = (
    classification(
        "super_glue_boolq",
        read=_reader(_same("passage", "question"), (False, True)),
        prefix="boolq",
        fields=("passage", "question"),
        labels=TRUTH,
        metrics=("accuracy",),
    ),
    classification(
        "super_glue_cb",
        read=_reader(_same("premise", "hypothesis"), COMMITMENT),
        prefix="cb",
        fields=HYPOTHESIS_FIRST,
        labels=COMMITMENT,
        metrics=("mean_3class_f1", "accuracy"),
    ),
    replace(
        classification(
            "super_glue_copa",
            read=_reader(_same(*COPA_FIELDS), (0, 1)),
            prefix="copa",
            fields=COPA_FIELDS,
            labels=CHOICES,
            metrics=("accuracy",),
        ),
        to_examples=format_copa,
    ),
    Task(
        name="super_glue_multirc",
        read=read_multirc,
        to_examples=format_multirc,
        read_prediction=partial(label_index, labels=TRUTH),
        is_invalid=is_invalid_label,
        metrics=("multirc",),
        baseline=Baseline("majority", partial(most_frequent, label=_label)),
        labels=TRUTH,
    ),
    Task(
        name="super_glue_record",
        read=partial(read_records, to_rows=record_rows),
        to_examples=format_record,
        read_prediction=unchanged,
        is_invalid=is_blank,
        metrics=("record",),
        baseline=copy_baseline(" passage: "),
        trivial_answer=most_frequent_entity,
    ),
    _entailment("super_glue_rte", read=_READ_ENTAILMENT, metrics=("accuracy",)),
    classification(
        "super_glue_wic",
        read=_reader(_same("sentence1", "sentence2", "word"), (False, True)),
        prefix="wic",
        fields=("sentence1", "sentence2", "word"),
        labels=TRUTH,
        metrics=("accuracy",),
    ),
    _entailment("super_glue_axb", read=_READ_AXB, metrics=(), evaluation_only=True),
    _entailment("super_glue_axg", read=_READ_ENTAILMENT, metrics=(), evaluation_only=True),
)
