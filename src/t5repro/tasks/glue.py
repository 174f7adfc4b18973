"""GLUE as text to text (paper section 2.4 and appendix D).

To add a task of labelled rows, append a `classification` entry to `GLUE` and a row to `task_table`.
WNLI is in `winograd`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.errors import TaskDataError
from t5repro.tasks.baselines import MAJORITY, MEAN
from t5repro.tasks.lines import read_lines
from t5repro.tasks.predictions import (
    is_invalid_label,
    is_unreadable_number,
    label_index,
    read_number,
)
from t5repro.tasks.tables import Columns, parse_label_word, parse_score, read_tsv
from t5repro.tasks.task import NO_TARGET, Example, Reader, Row, Task

SIMILARITY_STEPS = np.float32(5)  # targets are multiples of 1/5
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("entailment", "neutral", "contradiction")
ROW_NUMBERS = ("index", "id")  # GLUE's columns of row numbers; some files have neither
QQP_SHORT_ROWS = 50  # the original files break a few lines in two; TFDS excludes those


def format_fields(
    row: Row, *, prefix: str, fields: tuple[str, ...], labels: tuple[str, ...]
) -> tuple[Example]:
    """Write a row as ``prefix field: value ...`` and its label as a word.

    Before: ``{"question1": "Why?", "question2": "Why so?", "label": 1}``; after:
    ``"qqp question1: Why? question2: Why so?"`` and ``"duplicate"``.

    Args:
        row: one record with every name of `fields` and a label's index, or None.
        prefix: first word of the inputs; tells the model which task this is.
        fields: names to write, in this order.
        labels: words of the answers, by index.

    Source: released code, `preprocessors.glue`. It sorts the fields by name, while section 2.4 of
    the paper puts the premise first (D-001).
    """
    inputs = " ".join([prefix, *(f"{field}: {row[field]}" for field in fields)])
    label = row["label"]
    targets = NO_TARGET if label is None else labels[label]
    # Networks that read segments have the premise first, whatever the order of the text.
    segments = tuple(row[field] for field in sorted(fields, key=lambda name: name != "premise"))
    return (Example(inputs, targets, row["idx"], label, segments),)


def classification(
    name: str,
    *,
    read: Reader,
    prefix: str,
    fields: tuple[str, ...],
    labels: tuple[str, ...],
    metrics: tuple[str, ...],
    evaluation_only: bool = False,
) -> Task:
    """Return the task of writing the word of a row's label."""
    return Task(
        name=name,
        read=read,
        to_examples=partial(format_fields, prefix=prefix, fields=fields, labels=labels),
        read_prediction=partial(label_index, labels=labels),
        is_invalid=is_invalid_label,
        metrics=metrics,
        baseline=MAJORITY,
        labels=labels,
        evaluation_only=evaluation_only,
    )


# STS-B


def format_similarity(
    row: Row, *, lowest_target: float = 0.0, rounded_answer: bool = True
) -> tuple[Example]:
    """Write a pair and its score, rounded to the nearest fifth, as text.

    ``3.3`` becomes ``"3.2"``: halves of a fifth go to the even one.

    Args:
        row: two sentences and a score from 0 to 5, or None.
        lowest_target: lower scores are written as this; 0.0 to 5.0.
        rounded_answer: whether metrics compare with the rounded score or with the row's own.

    Source: released code, `preprocessors.stsb`.
    """
    segments = (row["sentence1"], row["sentence2"])
    inputs = "stsb sentence1: {} sentence2: {}".format(*segments)
    if row["label"] is None:
        return (Example(inputs, NO_TARGET, row["idx"], None, segments),)
    # Single precision and rounding of halves to even, as the released code's TensorFlow does it.
    fifths = np.round(np.float32(row["label"]) * SIMILARITY_STEPS)
    rounded = f"{fifths / SIMILARITY_STEPS:.1f}"
    targets = rounded if float(rounded) >= lowest_target else f"{lowest_target:.1f}"
    number = float(row["label"])
    answer = float(rounded) if rounded_answer else number
    return (Example(inputs, targets, row["idx"], answer, segments, number=number),)


# Files


def _table(
    fields: Mapping[str, str], label: str, labels: tuple[str, ...], **options: Any
) -> Reader:
    """Return the reader of TSV files that write the words `labels`."""
    return partial(
        read_tsv,
        layouts=(Columns(fields, label),),
        parse_label=_label_parser(labels),
        id_columns=ROW_NUMBERS,
        **options,
    )


def _label_parser(labels: tuple[str, ...]) -> Callable[[str], int]:
    return partial(parse_label_word, labels={label: index for index, label in enumerate(labels)})


def read_mrpc(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield the pairs of the Microsoft paraphrase corpus.

    GLUE defines its validation split by a list of ids, ``dev_ids.tsv``. As the second file of
    ``train`` and of ``validation`` it divides the first file; without it a file is one split, and
    validation is the corpus's own test file.

    Args:
        files: the pairs, and optionally the ids.
        split: ``validation`` takes the pairs of the list, ``train`` all others.
        excluded: counts ``other_split``.
    """
    dev_ids = _read_dev_ids(files[1:])
    pairs = read_tsv(
        files[:1],
        split,
        excluded,
        layouts=(Columns(MRPC_FIELDS | {"id1": "#1 ID", "id2": "#2 ID"}, "Quality"),),
        parse_label=_label_parser(("0", "1")),
        byte_order_mark=True,
        id_columns=("#1 ID", "#2 ID"),
    )
    for row in pairs:
        if dev_ids and ((row["id1"], row["id2"]) in dev_ids) != (split == "validation"):
            excluded["other_split"] += 1
            continue
        yield row


def _read_dev_ids(files: Sequence[Path]) -> set[tuple[str, str]]:
    dev_ids: set[tuple[str, str]] = set()
    for path in files:
        for location, line in read_lines(path):
            ids = line.split("\t")
            if len(ids) != 2:
                raise TaskDataError(
                    f"{location}: found {line!r}; allowed: the two ids of a pair, separated by a "
                    "tab; the second file of glue_mrpc is dev_ids.tsv"
                )
            dev_ids.add((ids[0], ids[1]))
    return dev_ids


MRPC_FIELDS = {"sentence1": "#1 String", "sentence2": "#2 String"}
PAIR = {"sentence1": "sentence1", "sentence2": "sentence2"}
PREMISE_FIRST = {"premise": "sentence1", "hypothesis": "sentence2"}

READ_MNLI = _table(PREMISE_FIRST, "gold_label", INFERENCE)

# The diagnostic set exists in two layouts: with labels, and without them for the leaderboard.
READ_AX: Reader = partial(
    read_tsv,
    layouts=(
        Columns({"premise": "Premise", "hypothesis": "Hypothesis"}, "Label"),
        Columns(PREMISE_FIRST, "label"),
    ),
    parse_label=_label_parser(INFERENCE),
    id_columns=ROW_NUMBERS,
)


def _inference(
    name: str,
    *,
    read: Reader,
    metrics: tuple[str, ...] = ("accuracy",),
    evaluation_only: bool = False,
) -> Task:
    return classification(
        name,
        read=read,
        prefix="mnli",
        fields=("hypothesis", "premise"),
        labels=INFERENCE,
        metrics=metrics,
        evaluation_only=evaluation_only,
    )


GLUE = (
    classification(
        "glue_cola",
        read=_table(
            {"sentence": "sentence"},
            "label",
            ("0", "1"),
            columns_without_header=("source", "label", "star", "sentence"),
        ),
        prefix="cola",
        fields=("sentence",),
        labels=("unacceptable", "acceptable"),
        metrics=("matthews_corrcoef",),
    ),
    classification(
        "glue_sst2",
        read=_table({"sentence": "sentence"}, "label", ("0", "1")),
        prefix="sst2",
        fields=("sentence",),
        labels=("negative", "positive"),
        metrics=("accuracy",),
    ),
    classification(
        "glue_mrpc",
        read=read_mrpc,
        prefix="mrpc",
        fields=("sentence1", "sentence2"),
        labels=("not_equivalent", "equivalent"),
        metrics=("f1", "accuracy"),
    ),
    Task(
        name="glue_stsb",
        read=partial(
            read_tsv,
            layouts=(Columns(PAIR, "score"),),
            parse_label=partial(parse_score, low=0, high=5),
            id_columns=ROW_NUMBERS,
        ),
        to_examples=format_similarity,
        read_prediction=read_number,
        is_invalid=is_unreadable_number,
        metrics=("pearson_corrcoef", "spearman_corrcoef"),
        baseline=MEAN,
    ),
    classification(
        "glue_qqp",
        read=_table(
            {"question1": "question1", "question2": "question2"},
            "is_duplicate",
            ("0", "1"),
            max_short_rows=QQP_SHORT_ROWS,
        ),
        prefix="qqp",
        fields=("question1", "question2"),
        labels=("not_duplicate", "duplicate"),
        metrics=("f1", "accuracy"),
    ),
    _inference("glue_mnli", read=READ_MNLI),
    _inference("glue_mnli_matched", read=READ_MNLI, evaluation_only=True),
    _inference("glue_mnli_mismatched", read=READ_MNLI, evaluation_only=True),
    classification(
        "glue_qnli",
        read=_table({"question": "question", "sentence": "sentence"}, "label", ENTAILMENT),
        prefix="qnli",
        fields=("question", "sentence"),
        labels=ENTAILMENT,
        metrics=("accuracy",),
    ),
    classification(
        "glue_rte",
        read=_table(PAIR, "label", ENTAILMENT),
        prefix="rte",
        fields=("sentence1", "sentence2"),
        labels=ENTAILMENT,
        metrics=("accuracy",),
    ),
    _inference("glue_ax", read=READ_AX, metrics=(), evaluation_only=True),
)
