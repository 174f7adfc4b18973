"""GLUE as text to text (paper section 2.4 and appendix D).

To add a task of labelled rows, append a `classification` entry to `GLUE`; nothing else registers
it. WNLI is in `winograd`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.errors import TaskDataError
from t5repro.metrics.classification import (
    INVALID,
    accuracy,
    f1_with_invalid,
    matthews_correlation,
    pearson_correlation,
    spearman_correlation,
)
from t5repro.tasks.lines import read_lines
from t5repro.tasks.tables import Columns, parse_score, parse_word, read_tsv
from t5repro.tasks.task import (
    NO_TARGET,
    Baseline,
    Example,
    Metric,
    Read,
    Row,
    Scored,
    Task,
    label_index,
    majority,
    mean_answer,
    metric,
)

ACCURACY = metric("accuracy", accuracy)
F1 = metric("f1", f1_with_invalid)
MATTHEWS = metric("matthews_corrcoef", matthews_correlation)
PEARSON = metric("pearson_corrcoef", pearson_correlation)
SPEARMAN = metric("spearman_corrcoef", spearman_correlation)

MAJORITY = Baseline("majority", majority)

SIMILARITY_STEPS = np.float32(5)  # targets are multiples of 1/5
UNREADABLE_SIMILARITY = -1.0
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("entailment", "neutral", "contradiction")
ROW_NUMBERS = ("index", "id")  # what GLUE calls them; some files have neither
QQP_SHORT_ROWS = 50  # the original files break a few lines in two; TFDS leaves those out


def format_fields(
    row: Row, *, prefix: str, fields: tuple[str, ...], labels: tuple[str, ...]
) -> tuple[Example]:
    """Write a row as ``prefix field: value ...`` and its label as a word.

    Before: ``{"question1": "Why?", "question2": "Why so?", "label": 1}``; after:
    ``"qqp question1: Why? question2: Why so?"`` and ``"duplicate"``.

    Args:
        row: one record with every name of `fields` and a label's index, or None.
        prefix: first word of the inputs; tells the model which task this is.
        fields: names to print, in this order.
        labels: the words the model must write, by index.

    Source: released code, `preprocessors.glue`. It sorts the fields where the paper's section
    2.4 puts the premise first (decision on field order).
    """
    inputs = " ".join([prefix, *(f"{field}: {row[field]}" for field in fields)])
    label = row["label"]
    targets = NO_TARGET if label is None else labels[label]
    return (Example(inputs, targets, row["idx"], label),)


def classification(
    name: str,
    *,
    read: Read,
    prefix: str,
    fields: tuple[str, ...],
    labels: tuple[str, ...],
    metrics: tuple[Metric, ...],
    train_rows: int,
) -> Task:
    """Make the task of writing one label's word for a row."""
    return Task(
        name=name,
        read=read,
        to_examples=partial(format_fields, prefix=prefix, fields=fields, labels=labels),
        read_prediction=partial(label_index, labels=labels, invalid=INVALID),
        is_invalid=is_no_label,
        metrics=metrics,
        baseline_of=MAJORITY,
        train_rows=train_rows,
    )


def is_no_label(found: Any) -> bool:
    """Return whether a prediction was no label."""
    return bool(found == INVALID)


# STS-B


def format_similarity(
    row: Row, *, lowest_target: float = 0.0, rounded_answer: bool = True
) -> tuple[Example]:
    """Write a pair and its score, rounded to the nearest fifth, as text.

    ``3.25`` becomes ``"3.2"``: halves go to the even fifth, computed in single precision.

    Args:
        row: two sentences and a score from 0 to 5, or None.
        lowest_target: lower scores are written as this; 0.0 to 5.0.
        rounded_answer: whether metrics compare with the rounded score or the row's own.

    Source: released code, `preprocessors.stsb`.
    """
    inputs = f"stsb sentence1: {row['sentence1']} sentence2: {row['sentence2']}"
    if row["label"] is None:
        return (Example(inputs, NO_TARGET, row["idx"], None),)
    fifths = np.round(np.float32(row["label"]) * SIMILARITY_STEPS)
    rounded = f"{fifths / SIMILARITY_STEPS:.1f}"
    targets = rounded if float(rounded) >= lowest_target else f"{lowest_target:.1f}"
    answer = float(rounded) if rounded_answer else float(row["label"])
    return (Example(inputs, targets, row["idx"], answer),)


def read_similarity(text: str, row: Scored, *, low: float = -np.inf, high: float = np.inf) -> float:
    """Return the number that a prediction spells, else -1.0.

    Infinities and NaN count as unreadable.

    Args:
        text: the prediction.
        row: not looked at.
        low: smaller numbers count as unreadable.
        high: larger ones, too.

    Source: released code, `postprocessors.string_to_float`, which has no bounds.
    """
    try:
        value = float(text)
    except ValueError:
        return UNREADABLE_SIMILARITY
    return value if np.isfinite(value) and low <= value <= high else UNREADABLE_SIMILARITY


def is_unreadable(found: Any) -> bool:
    """Return whether a prediction was no number."""
    return bool(found == UNREADABLE_SIMILARITY)


# Files


def _table(fields: Mapping[str, str], label: str, words: tuple[str, ...], **options: Any) -> Read:
    """Return the reader of a TSV file whose labels are `words`, by index."""
    return partial(
        read_tsv,
        layouts=(Columns(fields, label),),
        parse_label=_words(words),
        id_columns=ROW_NUMBERS,
        **options,
    )


def _words(words: tuple[str, ...]) -> Any:
    return partial(parse_word, words={word: index for index, word in enumerate(words)})


def read_mrpc(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield the pairs of the Microsoft paraphrase corpus.

    GLUE's own validation split is named by a list of ids, ``dev_ids.tsv``. Given as the second
    file of ``train`` and of ``validation``, it splits the first; without it a file is one split,
    and validation is the corpus's own test file.

    Args:
        files: the pairs, and maybe the ids.
        split: ``validation`` takes the listed pairs, ``train`` the others.
        left_out: counts ``other_split``.
    """
    pairs = partial(
        read_tsv,
        layouts=(Columns(MRPC_FIELDS | {"id1": "#1 ID", "id2": "#2 ID"}, "Quality"),),
        parse_label=_words(("0", "1")),
        byte_order_mark=True,
        id_columns=("#1 ID", "#2 ID"),
    )
    listed = _read_dev_ids(files[1:])
    for row in pairs(files[:1], split, left_out):
        if listed and ((row["id1"], row["id2"]) in listed) != (split == "validation"):
            left_out["other_split"] += 1
            continue
        yield row


def _read_dev_ids(files: Sequence[Path]) -> set[tuple[str, str]]:
    listed: set[tuple[str, str]] = set()
    for path in files:
        for where, line in read_lines(path):
            ids = line.split("\t")
            if len(ids) != 2:
                raise TaskDataError(
                    f"{where}: found {line!r}; allowed: the two ids of a pair, separated by a tab; "
                    "the second file of glue_mrpc is dev_ids.tsv"
                )
            listed.add((ids[0], ids[1]))
    return listed


MRPC_FIELDS = {"sentence1": "#1 String", "sentence2": "#2 String"}
PAIR = {"sentence1": "sentence1", "sentence2": "sentence2"}
PREMISE_FIRST = {"premise": "sentence1", "hypothesis": "sentence2"}

READ_MNLI = _table(PREMISE_FIRST, "gold_label", INFERENCE)

# The diagnostic set exists as scored rows and, for the leaderboard, without labels.
READ_AX: Read = partial(
    read_tsv,
    layouts=(
        Columns({"premise": "Premise", "hypothesis": "Hypothesis"}, "Label"),
        Columns(PREMISE_FIRST, "label"),
    ),
    parse_label=_words(INFERENCE),
    id_columns=ROW_NUMBERS,
)


def _inference(
    name: str, *, read: Read, metrics: tuple[Metric, ...] = (ACCURACY,), train_rows: int
) -> Task:
    return classification(
        name,
        read=read,
        prefix="mnli",
        fields=("hypothesis", "premise"),
        labels=INFERENCE,
        metrics=metrics,
        train_rows=train_rows,
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
        metrics=(MATTHEWS,),
        train_rows=8_551,
    ),
    classification(
        "glue_sst2",
        read=_table({"sentence": "sentence"}, "label", ("0", "1")),
        prefix="sst2",
        fields=("sentence",),
        labels=("negative", "positive"),
        metrics=(ACCURACY,),
        train_rows=67_349,
    ),
    classification(
        "glue_mrpc",
        read=read_mrpc,
        prefix="mrpc",
        fields=("sentence1", "sentence2"),
        labels=("not_equivalent", "equivalent"),
        metrics=(F1, ACCURACY),
        train_rows=3_668,
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
        read_prediction=read_similarity,
        is_invalid=is_unreadable,
        metrics=(PEARSON, SPEARMAN),
        baseline_of=Baseline("majority", mean_answer),
        train_rows=5_749,
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
        metrics=(F1, ACCURACY),
        train_rows=363_849,
    ),
    _inference("glue_mnli", read=READ_MNLI, train_rows=392_702),
    _inference("glue_mnli_matched", read=READ_MNLI, train_rows=0),
    _inference("glue_mnli_mismatched", read=READ_MNLI, train_rows=0),
    classification(
        "glue_qnli",
        read=_table({"question": "question", "sentence": "sentence"}, "label", ENTAILMENT),
        prefix="qnli",
        fields=("question", "sentence"),
        labels=ENTAILMENT,
        metrics=(ACCURACY,),
        train_rows=104_743,
    ),
    classification(
        "glue_rte",
        read=_table(PAIR, "label", ENTAILMENT),
        prefix="rte",
        fields=("sentence1", "sentence2"),
        labels=ENTAILMENT,
        metrics=(ACCURACY,),
        train_rows=2_490,
    ),
    _inference("glue_ax", read=READ_AX, metrics=(), train_rows=0),
)
