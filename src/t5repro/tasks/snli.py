"""SNLI and SciTail: whether a premise entails a hypothesis, in the JSON lines of SNLI.

Neither is a task of T5's paper. The text is MNLI's with another first word (D-051).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.tasks.glue import INFERENCE, classification
from t5repro.tasks.lines import invalid_data
from t5repro.tasks.records import read_records, text_in
from t5repro.tasks.super_glue import HYPOTHESIS_FIRST
from t5repro.tasks.task import Row, Task

NO_LABEL = "-"  # the annotators do not agree
LABEL = "gold_label"


def read_snli(
    files: Sequence[Path], split: str, excluded: Counter[str], *, labels: tuple[str, ...]
) -> Iterator[Row]:
    """Yield the pairs with a label.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may lack the label.
        excluded: counts ``no_gold_label``, pairs on which the annotators disagree; the published
            numbers of rows are without them.
        labels: values of the label.

    Raises:
        TaskDataError: a line is not such a pair.
    """
    to_rows = partial(_pair, labels=labels)
    # Pairs have ids, of which nobody promises that they differ: rows are numbered as those of GLUE.
    for number, row in enumerate(read_records(files, split, excluded, to_rows=to_rows)):
        yield {**row, "idx": number}


def _pair(
    record: Mapping[str, Any],
    location: str,
    split: str,
    excluded: Counter[str],
    *,
    labels: tuple[str, ...],
) -> Iterator[Row]:
    label = None
    if LABEL in record or split != "test":
        word = text_in(record, LABEL, location)
        if word == NO_LABEL:
            excluded["no_gold_label"] += 1
            return
        if word not in labels:
            raise invalid_data(location, f"{LABEL} is", word, " or ".join((*labels, NO_LABEL)))
        label = labels.index(word)
    yield {
        "premise": text_in(record, "sentence1", location),
        "hypothesis": text_in(record, "sentence2", location),
        "label": label,
        "idx": location,
    }


def _inference(name: str, *labels: str) -> Task:
    return classification(
        name,
        read=partial(read_snli, labels=labels),
        prefix=name,
        fields=HYPOTHESIS_FIRST,
        labels=labels,
        metrics=("accuracy",),
    )


SNLI = (_inference("snli", *INFERENCE), _inference("scitail", "entailment", "neutral"))
