"""Apply methods to the passages of the fields: dirty, clean, neither, or unchecked.

A row is dirty if one of its input fields is; its context and its answer are counted apart. A row
without an input field that is long enough is unchecked, and never counted as clean.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from t5repro.contamination.methods import FEWEST_WORDS, NGRAM_WORDS, Method
from t5repro.contamination.passages import FieldPassages
from t5repro.contamination.rows import Field

Verdict = Literal["dirty", "between", "clean", "unchecked"]
ORDER: tuple[Verdict, ...] = ("dirty", "between", "clean", "unchecked")
NOTHING = FieldPassages()


def thresholds(
    method: Method, fields: Sequence[Field], lengths: Sequence[int]
) -> dict[tuple[str, str], float]:
    """Return (task, field) -> value from which on a field is dirty.

    The percentile is by nearest rank: the smallest length that 5 % of the rows do not exceed.

    Args:
        method: the method.
        fields: fields of all rows.
        lengths: of each field in units.
    """
    by_name: dict[tuple[str, str], list[int]] = defaultdict(list)
    for field, length in zip(fields, lengths, strict=True):
        by_name[field.task, field.name].append(length)
    if not method.percentile:
        return dict.fromkeys(by_name, method.dirty)
    ranks = {name: sorted(values)[_rank(len(values))] for name, values in by_name.items()}
    return {name: min(max(rank, method.seed), method.dirty) for name, rank in ranks.items()}


def _rank(count: int) -> int:
    return max(-(-count * 5 // 100), 1) - 1


def verdict_of(
    method: Method, threshold: float, length: int, passages: FieldPassages = NOTHING
) -> Verdict:
    """Return the verdict on a field.

    Args:
        method: the method.
        threshold: of the field (`thresholds`).
        length: units of the field.
        passages: its passages.
    """
    if method.whole and length >= FEWEST_WORDS and passages.longest >= length:
        return "dirty"
    fewest = FEWEST_WORDS if method.whole else threshold if method.percentile else method.seed
    # Llama 2 needs runs longer than the seed.
    if length < fewest or (method.measure == "covered_share" and length <= method.seed):
        return "unchecked"
    value = measure_of(method, length, passages)
    if value >= threshold:
        return "dirty"
    return "clean" if method.clean is None or value < method.clean else "between"


def measure_of(method: Method, length: int, passages: FieldPassages) -> float:
    """Return the measure of a method: a number of units, or a share."""
    ngrams = max(length - NGRAM_WORDS + 1, 1)
    measures = {
        "longest": passages.longest,
        "page_share": passages.page_ngrams / ngrams,
        "share": len(passages.ngrams) / ngrams,
        "aligned_share": passages.aligned / length,
        "covered_share": len(passages.covered) / length,
    }
    return measures[method.measure]


def verdict_of_row(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a row from those on its fields: the first in the order of `ORDER`."""
    return min(verdicts, key=ORDER.index, default="unchecked")


def counts_of(verdicts: Mapping[int, Verdict]) -> dict[str, int]:
    """Return verdict -> number of rows."""
    values = list(verdicts.values())
    return {verdict: values.count(verdict) for verdict in ORDER}
