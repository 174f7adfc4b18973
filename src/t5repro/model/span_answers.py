"""The likeliest span of a text from the logits of its windows.

Source: BERT ``run_squad.write_predictions``. There the words of an answer are looked for in the
text once more; here each piece knows its characters.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t5repro.model.task_rows import TaskRows
from t5repro.model.windows import Window

NO_ANSWER = ""


class SpanLimits(NamedTuple):
    """Which spans are considered.

    Attributes:
        length: most pieces of an answer.
        candidates: likeliest first and last positions of a window.
    """

    length: int = 30
    candidates: int = 20


LIMITS_OF_BERT = SpanLimits()


def best_spans(rows: TaskRows, logits: Sequence[np.ndarray], limits: SpanLimits) -> list[str]:
    """Return the text with the largest sum of both logits for each example; empty without any.

    Args:
        rows: windows of the examples.
        logits: of each window, float32 ``(length, 2)``: that a position is the first of the answer,
            and that it is the last.
        limits: of the spans.
    """
    answers = [NO_ANSWER] * rows.examples
    scores = [-np.inf] * rows.examples
    for window, values in zip(rows.windows, logits, strict=True):
        for score, first, last in _spans(window, values, limits):
            if score > scores[window.example]:
                scores[window.example] = score
                answers[window.example] = window.answer(first, last)
    return answers


def _spans(window: Window, values: np.ndarray, limits: SpanLimits) -> list[tuple[float, int, int]]:
    """Return score, first and last position of the spans that a window may answer with."""
    start = window.row.first_length
    end = start + len(window.ranges)
    firsts, lasts = (
        [int(place) for place in np.argsort(-values[: len(window.row.ids), side], kind="stable")]
        for side in range(2)
    )
    return [
        (float(values[first, 0] + values[last, 1]), first, last)
        for first in firsts[: limits.candidates]
        if start <= first < end and window.is_best[first - start]
        for last in lasts[: limits.candidates]
        if first <= last < min(end, first + limits.length)
    ]
