"""The likeliest span of a text from the logits of its windows, and the odds of no answer.

Source: BERT ``run_squad.write_predictions``. There an answer is the words of the text that equal
its pieces; here each piece has its characters.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from t5repro.model.task_rows import TaskRows
from t5repro.model.windows import Window, best_windows

DECIMALS = 4  # of odds


class SpanLimits(NamedTuple):
    """Limits of the spans that are considered.

    Attributes:
        length: most pieces of an answer.
        candidates: likeliest first and last positions of a window.
        null_threshold: odds above which a question has no answer.
    """

    length: int
    candidates: int
    null_threshold: float = 0.0


LIMITS_OF_BERT = SpanLimits(length=30, candidates=20)


class SpanAnswer(NamedTuple):
    """The answer to a question.

    Attributes:
        span: the likeliest part of the text; empty without any.
        null_odds: the logits of no answer, of the window where it is least likely, minus those of
            `span`, which count as 0 without any.
    """

    span: str
    null_odds: float


class TaskTexts(NamedTuple):
    """The answers to the examples of a task.

    Attributes:
        texts: of each example.
        spans: behind each text, for a task whose questions may have no answer; else none.
    """

    texts: list[str]
    spans: Sequence[SpanAnswer] = ()

    def fields(self) -> Iterator[dict[str, Any]]:
        """Yield what the file of predictions has of each example besides the example."""
        if not self.spans:
            yield from ({"prediction": text} for text in self.texts)
        for text, answer in zip(self.texts, self.spans, strict=False):
            yield {"prediction": text, **answer._asdict()}


def span_texts(
    answers: Sequence[SpanAnswer], words: Sequence[str], limits: SpanLimits
) -> TaskTexts:
    """Return the texts of answers.

    Args:
        answers: of each example.
        words: the text of no answer; none if every question has an answer.
        limits: with the threshold.
    """
    if not words:
        return TaskTexts([answer.span for answer in answers])
    texts = [
        answer.span if answer.span and answer.null_odds <= limits.null_threshold else words[0]
        for answer in answers
    ]
    return TaskTexts(texts, answers)


def best_spans(
    rows: TaskRows, logits: Sequence[np.ndarray], limits: SpanLimits
) -> list[SpanAnswer]:
    """Return the text with the largest sum of both logits for each example; empty without any.

    Args:
        rows: windows of the examples.
        logits: of each window, float32 ``(length, 2)``: that a position is the first of the answer,
            and that it is the last.
        limits: of the spans.
    """
    answers = [SpanAnswer("", 0.0)] * rows.examples
    numbered = zip(rows.windows, logits, strict=True)
    for example, group in itertools.groupby(numbered, key=lambda pair: pair[0].example):
        windows = list(group)
        piece_ranges = [window.pieces for window, _ in windows]
        best = best_windows(piece_ranges[-1][1], piece_ranges)
        score, text = -np.inf, ""
        for number, (window, values) in enumerate(windows):
            for total, first, last in _spans(window, values, limits):
                # A span counts only in the window with the most context around its first piece.
                piece = window.pieces[0] + first - window.row.first_length
                if total > score and best[piece] == number:
                    score, text = total, window.answer(first, last)
        # Position 0 is [CLS], where a row without the answer has it.
        null = min(float(values[0, 0] + values[0, 1]) for _, values in windows)
        odds = null - (score if np.isfinite(score) else 0.0)
        answers[example] = SpanAnswer(text, round(odds, DECIMALS))
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
