"""SuperGLUE as text to text (paper section 2.4 and appendix D); WSC is in `winograd`.

To add a task of labelled JSON rows, append a `classification` entry to `SUPER_GLUE`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.metrics.classification import INVALID, f1_with_invalid, grouped_exact_match, macro_f1
from t5repro.metrics.text import record
from t5repro.tasks.glue import ACCURACY, ENTAILMENT, classification, format_fields, is_no_label
from t5repro.tasks.lines import fault
from t5repro.tasks.records import label_in, list_in, number_in, object_in, read_records, text_in
from t5repro.tasks.task import (
    NO_TARGET,
    Baseline,
    Example,
    Metric,
    Read,
    Row,
    Task,
    as_it_is,
    copy_after,
    is_blank,
    label_index,
    majority,
    metric,
)

TRUTH = ("False", "True")
COMMITMENT = ("entailment", "contradiction", "neutral")
CHOICES = ("choice1", "choice2")
MACRO_F1 = metric("mean_3class_f1", partial(macro_f1, classes=len(COMMITMENT)))

LINE_BREAK = re.compile("<br>")
BOLD = re.compile("</?b>")
HIGHLIGHT_AFTER_STOP = re.compile(r"([.?!\"'])\n@highlight\n")
HIGHLIGHT = "\n@highlight\n"


def labelled_rows(
    item: Mapping[str, Any],
    where: str,
    split: str,
    left_out: Counter[str],
    *,
    fields: Mapping[str, str],
    values: tuple[Any, ...],
) -> Iterator[Row]:
    """Yield the one row of a JSON object: its `fields`, label and idx.

    Args:
        item: the object.
        where: its place.
        split: ``test`` may have no label.
        left_out: nothing is left out.
        fields: name of a field -> key of the object.
        values: what the object writes for each label.
    """
    yield {
        **{name: text_in(item, key, where) for name, key in fields.items()},
        "label": label_in(item, where, split, values=values),
        "idx": number_in(item, "idx", where),
    }


def _reader(fields: Mapping[str, str], values: tuple[Any, ...]) -> Read:
    return partial(read_records, to_rows=partial(labelled_rows, fields=fields, values=values))


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


# WiC


def wic_rows_with_pos(
    item: Mapping[str, Any], where: str, split: str, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield the one row of a WiC object with its part of speech, which not every release has."""
    if "pos" not in item:
        raise fault(
            where,
            "no 'pos' among",
            sorted(item),
            "a record with 'pos': N or V",
            "name files that have it under tasks.files, or set tasks.text.wic_part_of_speech: code",
        )
    fields = _same("pos", "sentence1", "sentence2", "word")
    yield from labelled_rows(item, where, split, left_out, fields=fields, values=(False, True))


# MultiRC


def multirc_rows(
    item: Mapping[str, Any], where: str, split: str, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield one row per answer of every question about a paragraph."""
    passage = object_in(item, "passage", where)
    for question in list_in(passage, "questions", where):
        for answer in list_in(question, "answers", where):
            yield {
                "paragraph": text_in(passage, "text", where),
                "question": text_in(question, "question", where),
                "answer": text_in(answer, "text", where),
                "label": label_in(answer, where, split, values=(0, 1)),
                "idx": {
                    "paragraph": number_in(item, "idx", where),
                    "question": number_in(question, "idx", where),
                    "answer": number_in(answer, "idx", where),
                },
            }


def read_multirc(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield MultiRC's answers; a question's id must belong to one paragraph.

    The exact match groups rows by this id alone.
    """
    paragraph_of: dict[int, int] = {}
    for row in read_records(files, split, left_out, to_rows=multirc_rows):
        paragraph, question = row["idx"]["paragraph"], row["idx"]["question"]
        if paragraph_of.setdefault(question, paragraph) != paragraph:
            raise fault(
                row["where"],
                "repeats the question id",
                question,
                f"ids used by one paragraph; paragraph {paragraph_of[question]} has it, too",
            )
        yield row


def format_multirc(row: Row, *, keep_markup: bool = False) -> tuple[Example]:
    """Write question, answer and paragraph, without the paragraph's HTML.

    The answer that metrics need is the label with the question's id.

    Args:
        row: one answer.
        keep_markup: leave ``<b>`` and ``<br>`` where they are.

    Source: released code, `preprocessors.glue`; the paper's appendix D keeps the HTML.
    """
    (example,) = format_fields(
        row, prefix="multirc", fields=("question", "answer", "paragraph"), labels=TRUTH
    )
    answer = example.answer
    return (
        Example(
            inputs=example.inputs
            if keep_markup
            else BOLD.sub("", LINE_BREAK.sub(" ", example.inputs)),
            targets=example.targets,
            idx=example.idx,
            answer=None if answer is None else {"label": answer, "group": row["idx"]["question"]},
        ),
    )


def multirc_scores(answers: list[Any], found: list[Any]) -> dict[str, float]:
    """Return F1 over all answers, and the share of questions with every answer right."""
    labels = [answer["label"] for answer in answers]
    groups = [answer["group"] for answer in answers]
    return {
        "f1": f1_with_invalid(labels, found),
        "exact_match": grouped_exact_match(labels, found, groups),
    }


def _label(answer: Mapping[str, Any]) -> Any:
    return answer["label"]


# ReCoRD


def record_rows(
    item: Mapping[str, Any], where: str, split: str, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield one row per query about a passage: entities and gold answers sorted, each once."""
    passage = object_in(item, "passage", where)
    text = text_in(passage, "text", where)
    entities = sorted({_entity(text, span, where) for span in list_in(passage, "entities", where)})
    for query in list_in(item, "qas", where):
        answers: list[str] | None = None
        if "answers" in query or split != "test":
            answers = sorted(
                {text_in(one, "text", where) for one in list_in(query, "answers", where)}
            )
        yield {
            "passage": text,
            "query": text_in(query, "query", where),
            "entities": entities,
            "answers": answers,
            "idx": {
                "passage": number_in(item, "idx", where),
                "query": number_in(query, "idx", where),
            },
        }


def _entity(text: str, span: Mapping[str, Any], where: str) -> str:
    start, end = number_in(span, "start", where), number_in(span, "end", where)
    if not 0 <= start <= end < len(text):
        raise fault(
            where, "an entity is at", [start, end], f"0 <= start <= end < {len(text)} characters"
        )
    return text[start : end + 1]


def format_record(row: Row) -> Iterable[Example]:
    """Write a query once per gold answer, in training and evaluation alike.

    The marks between a passage and its summary become the end of a sentence.

    Source: released code, `preprocessors.record`.
    """
    passage = HIGHLIGHT_AFTER_STOP.sub(r"\1 ", row["passage"]).replace(HIGHLIGHT, ". ")
    inputs = (
        f"record query: {row['query']} entities: {', '.join(row['entities'])} passage: {passage}"
    )
    answers = row["answers"]
    if not answers:
        return (Example(inputs, NO_TARGET, row["idx"], None),)
    group = [row["idx"]["passage"], row["idx"]["query"]]
    return tuple(
        Example(inputs, one, row["idx"], {"answers": answers, "group": group}) for one in answers
    )


def record_scores(answers: list[Any], found: list[Any]) -> dict[str, float]:
    """Return exact match and F1 over the first row of each query."""
    return record(
        [answer["answers"] for answer in answers],
        found,
        [tuple(answer["group"]) for answer in answers],
    )


# Tasks

HYPOTHESIS_FIRST = ("hypothesis", "premise")
_READ_ENTAILMENT = _reader(_same("premise", "hypothesis"), ENTAILMENT)
# The broad-coverage set calls its two texts sentences.
_READ_AXB = _reader({"premise": "sentence1", "hypothesis": "sentence2"}, ENTAILMENT)


def _entailment(name: str, *, read: Read, metrics: tuple[Metric, ...], train_rows: int) -> Task:
    return classification(
        name,
        read=read,
        prefix="rte",
        fields=HYPOTHESIS_FIRST,
        labels=ENTAILMENT,
        metrics=metrics,
        train_rows=train_rows,
    )


SUPER_GLUE = (
    classification(
        "super_glue_boolq",
        read=_reader(_same("passage", "question"), (False, True)),
        prefix="boolq",
        fields=("passage", "question"),
        labels=TRUTH,
        metrics=(ACCURACY,),
        train_rows=9_427,
    ),
    classification(
        "super_glue_cb",
        read=_reader(_same("premise", "hypothesis"), COMMITMENT),
        prefix="cb",
        fields=HYPOTHESIS_FIRST,
        labels=COMMITMENT,
        metrics=(MACRO_F1, ACCURACY),
        train_rows=250,
    ),
    classification(
        "super_glue_copa",
        read=_reader(_same("choice1", "choice2", "premise", "question"), (0, 1)),
        prefix="copa",
        fields=("choice1", "choice2", "premise", "question"),
        labels=CHOICES,
        metrics=(ACCURACY,),
        train_rows=400,
    ),
    Task(
        name="super_glue_multirc",
        read=read_multirc,
        to_examples=format_multirc,
        read_prediction=partial(label_index, labels=TRUTH, invalid=INVALID),
        is_invalid=is_no_label,
        metrics=(Metric(("f1", "exact_match"), multirc_scores),),
        baseline_of=Baseline("majority", partial(majority, label=_label)),
        train_rows=27_243,
    ),
    Task(
        name="super_glue_record",
        read=partial(read_records, to_rows=record_rows),
        to_examples=format_record,
        read_prediction=as_it_is,
        is_invalid=is_blank,
        metrics=(Metric(("em", "f1"), record_scores),),
        baseline_of=Baseline("copy", partial(copy_after, marker=" passage: ")),
        train_rows=138_854,
    ),
    _entailment("super_glue_rte", read=_READ_ENTAILMENT, metrics=(ACCURACY,), train_rows=2_490),
    classification(
        "super_glue_wic",
        read=_reader(_same("sentence1", "sentence2", "word"), (False, True)),
        prefix="wic",
        fields=("sentence1", "sentence2", "word"),
        labels=TRUTH,
        metrics=(ACCURACY,),
        train_rows=5_428,
    ),
    _entailment("super_glue_axb", read=_READ_AXB, metrics=(), train_rows=0),
    _entailment("super_glue_axg", read=_READ_ENTAILMENT, metrics=(), train_rows=0),
)
