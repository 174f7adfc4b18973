"""The likeliest span of a text from the logits of its windows.

Source: BERT ``run_squad.write_predictions``. There an answer is the words of the text that equal
its pieces; here each piece has its characters.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t5repro.model.task_rows import TaskRows
from t5repro.model.windows import Window, best_windows

NO_ANSWER = ""


class SpanLimits(NamedTuple):
    """Limits of the spans that are considered.

    Attributes:
        length: most pieces of an answer.
        candidates: likeliest first and last positions of a window.
    """

    length: int
    candidates: int


LIMITS_OF_BERT = SpanLimits(length=30, candidates=20)


def best_spans(rows: TaskRows, logits: Sequence[np.ndarray], limits: SpanLimits) -> list[str]:
    """Return the text with the largest sum of both logits for each example; empty without any.

    Args:
        rows: windows of the examples.
        logits: of each window, float32 ``(length, 2)``: that a position is the first of the answer,
            and that it is the last.
        limits: of the spans.
    """
    answers = [NO_ANSWER] * rows.examples
    numbered = zip(rows.windows, logits, strict=True)
    for example, group in itertools.groupby(numbered, key=lambda pair: pair[0].example):
        windows = list(group)
        piece_ranges = [window.pieces for window, _ in windows]
        best = best_windows(piece_ranges[-1][1], piece_ranges)
        score = -np.inf
        for number, (window, values) in enumerate(windows):
            for total, first, last in _spans(window, values, limits):
                # A span counts only in the window with the most context around its first piece.
                piece = window.pieces[0] + first - window.row.first_length
                if total > score and best[piece] == number:
                    score, answers[example] = total, window.answer(first, last)
    return answers


def _spans(
    window: Window, values: np.ndarray, limits: SpanLimits
) -> Iterator[tuple[float, int, int]]:
    """Yield score, first and last position of the spans that a window may answer with."""
    text_start = window.row.first_length
    text_stop = text_start + len(window.ranges)
    # Stable: of equal logits the earlier position comes first, on every machine.
    firsts, lasts = (
        np.argsort(-values[: len(window.row.ids), side], kind="stable")[: limits.candidates]
        for side in range(2)
    )
    for first, last in itertools.product(firsts.tolist(), lasts.tolist()):
        if text_start <= first <= last < min(text_stop, first + limits.length):
            yield float(values[first, 0] + values[last, 1]), first, last
