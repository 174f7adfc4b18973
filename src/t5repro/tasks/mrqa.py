"""The JSON lines of the MRQA shared task of 2019, one form for questions of several data sets.

Source: MRQA-Shared-Task-2019, section "MRQA Format" of its README.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.tasks.lines import invalid_data
from t5repro.tasks.records import list_in, read_records, text_in, texts_in
from t5repro.tasks.task import Row

HEADER = "header"  # key of the first line, which has no questions


def read_mrqa(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield the questions of MRQA's files: id, question, context, accepted answers and spans.

    The spans are in the order of the text, and the first one is the target, as an accepted answer
    may be spelt otherwise in the text or not be in it. A test file may lack answers.
    """
    return read_records(files, split, excluded, to_rows=_rows)


def _rows(
    record: Mapping[str, Any], location: str, split: str, excluded: Counter[str]
) -> Iterator[Row]:
    """Yield the questions on one text."""
    if HEADER in record:
        return
    context = text_in(record, "context", location)
    for question in list_in(record, "qas", location):
        idx = text_in(question, "qid", location)
        row: dict[str, Any] = {
            "question": text_in(question, "question", location),
            "context": context,
            "answers": None,
            "spans": (),
            "idx": idx,
        }
        if "answers" in question or split != "test":
            answers = texts_in(question, "answers", location)
            if not answers:
                raise invalid_data(
                    f"{location} (qid {idx})", "answers are", [], "at least one answer"
                )
            spans = _spans(question, context, location)
            target = context[slice(*spans[0])] if spans else answers[0]
            row |= {"answers": answers, "spans": spans, "target": target}
        yield row


def _spans(question: Mapping[str, Any], context: str, location: str) -> tuple[tuple[int, int], ...]:
    """Return first character and end of every place of an answer.

    Source: SpanBERT ``run_mrqa.read_mrqa_examples``, which trains on the first place.
    """
    spans = set()
    for answer in list_in(question, "detected_answers", location):
        for span in answer.get("char_spans", ()):
            if not _is_inside(span, context):
                raise invalid_data(
                    location,
                    "char_spans contains",
                    span,
                    f"[first, last] of {len(context)} characters",
                )
            first, last = span  # of the answer itself, not behind it
            spans.add((first, last + 1))
    return tuple(sorted(spans))


def _is_inside(span: Any, context: str) -> bool:
    return (
        isinstance(span, list)
        and len(span) == 2
        and all(type(character) is int for character in span)
        and 0 <= span[0] <= span[1] < len(context)
    )
