"""Questions with a part of a text as answer, or none: SQuAD 2.0."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from t5repro.tasks.generation import format_squad
from t5repro.tasks.records import read_squad
from t5repro.tasks.task import Baseline, Row, ScoredRow, Task

NO_ANSWER = "unanswerable"  # the text of T5 (D-051)


def read_optional_answer(text: str, row: ScoredRow, *, no_answer: str) -> dict[str, Any]:
    """Return a prediction as `metrics.squad_v2` compares it.

    Args:
        text: the prediction.
        row: its row, of a network of spans with its likeliest span and the odds of no answer.
        no_answer: the text that means no answer; an empty text does so always.

    Returns:
        ``text``, empty for no answer, and with odds ``span`` and ``null_odds``.
    """
    answer = {"text": "" if text.strip() == no_answer else text.strip()}
    if "null_odds" in row:
        answer |= {"span": row["span"], "null_odds": row["null_odds"]}
    return answer


def never_invalid(prediction: Any) -> bool:
    """Return False: any text is an answer, and an empty one says that there is none."""
    return False


def without_answer(rows: Sequence[ScoredRow], train_rows: Sequence[Row]) -> list[Any]:
    """Give every row no answer, which is right for about half of the development set."""
    return [{"text": ""}] * len(rows)


EXTRACTION = (
    Task(
        name="squad_2",
        read=partial(read_squad, version="2.0"),
        to_examples=partial(format_squad, no_answer=NO_ANSWER),
        read_prediction=partial(read_optional_answer, no_answer=NO_ANSWER),
        is_invalid=never_invalid,
        metrics=("squad_v2",),
        baseline=Baseline("majority", without_answer),
    ),
)
