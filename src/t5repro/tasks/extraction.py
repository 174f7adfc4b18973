"""Questions with a part of a text as answer, or none: SQuAD 2.0 and five sets of MRQA."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from t5repro.tasks.baselines import copy_baseline
from t5repro.tasks.generation import format_squad
from t5repro.tasks.mrqa import read_mrqa
from t5repro.tasks.predictions import is_blank, unchanged
from t5repro.tasks.records import read_squad
from t5repro.tasks.task import Baseline, Row, ScoredRow, Task

NO_ANSWER = "unanswerable"  # the text of T5 (D-052)


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


def mrqa_set(name: str) -> Task:
    """Return the task of a data set of the MRQA shared task, with the text of SQuAD."""
    return Task(
        name=name,
        read=read_mrqa,
        to_examples=format_squad,
        read_prediction=unchanged,
        is_invalid=is_blank,
        # The official script is SQuAD's of version 1.1, over all accepted answers.
        metrics=("squad",),
        baseline=copy_baseline(" context: "),
    )


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
    mrqa_set("newsqa"),
    mrqa_set("triviaqa"),
    mrqa_set("searchqa"),
    mrqa_set("hotpotqa"),
    mrqa_set("naturalquestions"),
)
