"""Tasks that a run file describes: a file of rows, a prefix, fields, an answer (`tasks.own`).

Rows come from tab-separated files (quotes are text), comma-separated files (quotes may hold lines)
or JSON lines, told apart by the end of the name.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.config.sections.tasks import OwnTask
from t5repro.metrics.classification import INVALID, macro_f1
from t5repro.metrics.text import bleu_signature, rouge_signature, squad
from t5repro.tasks.generation import ROUGE, bleu_of_one_reference
from t5repro.tasks.glue import (
    ACCURACY,
    F1,
    MAJORITY,
    MATTHEWS,
    PEARSON,
    SPEARMAN,
    is_no_label,
    is_unreadable,
    read_similarity,
)
from t5repro.tasks.lines import fault, refuse_repeated
from t5repro.tasks.records import LONE_SURROGATE, read_records
from t5repro.tasks.tables import Columns, csv_rows, read_tsv
from t5repro.tasks.task import (
    NO_TARGET,
    Baseline,
    Example,
    Metric,
    Row,
    Task,
    as_it_is,
    copy_after,
    is_blank,
    label_index,
    mean_answer,
    metric,
)

CURE = "correct the row, or the description of the task under tasks.own"


def own_task(name: str, described: OwnTask) -> Task:
    """Return the task that a run file describes."""
    common: dict[str, Any] = {
        "name": name,
        "read": partial(read_rows, described=described),
        "to_examples": partial(format_row, described=described),
        "metrics": tuple(_metric(each, described) for each in described.metrics),
        "train_rows": None,
        "signature": _signature(described),
    }
    if described.answer_kind == "label":
        return Task(
            read_prediction=partial(label_index, labels=tuple(described.labels), invalid=INVALID),
            is_invalid=is_no_label,
            baseline_of=MAJORITY,
            **common,
        )
    if described.answer_kind == "number":
        return Task(
            read_prediction=read_similarity,
            is_invalid=is_unreadable,
            baseline_of=Baseline("majority", mean_answer),
            **common,
        )
    copied = Baseline("copy", partial(copy_after, marker=f"{described.prefix} "))
    return Task(read_prediction=as_it_is, is_invalid=is_blank, baseline_of=copied, **common)


def _metric(name: str, described: OwnTask) -> Metric:
    metrics = {
        "accuracy": ACCURACY,
        "f1": F1,
        "macro_f1": metric("macro_f1", partial(macro_f1, classes=len(described.labels))),
        "matthews_corrcoef": MATTHEWS,
        "pearson_corrcoef": PEARSON,
        "spearman_corrcoef": SPEARMAN,
        "squad": Metric(("em", "f1"), _squad_of_one_answer),
        "bleu": metric("bleu", bleu_of_one_reference),
        "rouge": ROUGE,
    }
    return metrics[name]


def _squad_of_one_answer(answers: list[Any], found: list[Any]) -> dict[str, float]:
    return squad([[answer] for answer in answers], found)


def _signature(described: OwnTask) -> Callable[[], str] | None:
    signatures = [
        signature
        for name, signature in (("bleu", bleu_signature), ("rouge", rouge_signature))
        if name in described.metrics
    ]
    return partial(_joined, signatures) if signatures else None


def _joined(signatures: list[Callable[[], str]]) -> str:
    return "; ".join(signature() for signature in signatures)


# Rows to text


def format_row(row: Row, *, described: OwnTask) -> tuple[Example]:
    """Write the fields of a row after the prefix; the target is the label's word or the text."""
    words = [
        f"{name}: {value}" if described.field_names else value
        for name, value in row["fields"].items()
    ]
    inputs = " ".join([described.prefix, *words])
    answer = row["label"]
    if answer is None:
        return (Example(inputs, NO_TARGET, row["idx"], None),)
    targets = described.labels[answer] if described.labels else row["target"]
    return (Example(inputs, targets, row["idx"], answer),)


def read_rows(
    files: Sequence[Path], split: str, left_out: Counter[str], *, described: OwnTask
) -> Iterator[Row]:
    """Yield the fields, the answer and the identity of each row.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may have no answer.
        left_out: nothing is left out.
        described: the task.

    Raises:
        TaskDataError: a file or a row does not fit the description.
    """
    seen: dict[Hashable, str] = {}
    count = 0
    for path in files:
        for where, cells in _cells(path, split, described):
            idx: Any = cells[described.id] if described.id else count
            count += 1
            if described.id:
                refuse_repeated(idx, where, seen)
            written = cells.get(described.target)
            yield {
                "fields": {name: cells[name] for name in described.fields},
                "target": written,
                "label": None if written is None else _answer(written, where, described),
                "idx": idx,
                "where": where,
            }


def _answer(written: str, where: str, described: OwnTask) -> Any:
    if described.answer_kind == "label":
        values = described.label_values or described.labels
        if written not in values:
            allowed = " or ".join(map(repr, values))
            raise fault(where, f"{described.target} is", written, allowed, CURE)
        return values.index(written)
    if described.answer_kind == "number":
        try:
            value = float(written)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise fault(where, f"{described.target} is", written, "a number", CURE)
        return value
    if not written.strip():
        raise fault(where, f"{described.target} is", written, "text that says something", CURE)
    return written


def _cells(path: Path, split: str, described: OwnTask) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and cells of each row of a file; the answer only if the row has one."""
    needed = tuple(dict.fromkeys([*described.fields, *([described.id] if described.id else [])]))
    if path.suffix == ".tsv":
        layout = Columns({name: name for name in needed}, described.target)
        for row in read_tsv([path], split, Counter(), layouts=(layout,), parse_label=str):
            cells = {name: row[name] for name in needed}
            answer = {} if row["label"] is None else {described.target: row["label"]}
            yield row["where"], cells | answer
    elif path.suffix == ".csv":
        if split == "test":
            yield from csv_rows(path, needed, optional=(described.target,))
        else:
            yield from csv_rows(path, (*needed, described.target))
    else:
        to_rows = partial(_record_cells, needed=needed, target=described.target)
        for row in read_records([path], split, Counter(), to_rows=to_rows):
            yield row["where"], row["cells"]


def _record_cells(
    item: Mapping[str, Any],
    where: str,
    split: str,
    left_out: Counter[str],
    *,
    needed: tuple[str, ...],
    target: str,
) -> Iterator[Row]:
    wanted = needed if split == "test" and target not in item else (*needed, target)
    # `read_records` wants an identity of its own; the place is one.
    yield {"cells": {name: _text_at(item, name, where) for name in wanted}, "idx": where}


def _text_at(item: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text, number or truth value of a record as text."""
    if key not in item:
        raise fault(where, f"no {key!r} among", sorted(item), f"a record with {key!r}", CURE)
    value = item[key]
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str) or LONE_SURROGATE.search(value):
        raise fault(where, f"{key} is", value, "text, a number, true or false", CURE)
    return value
