"""Predictions read back as answers: labels, numbers, texts, referents of pronouns."""

import math
from typing import Any

from t5repro.tasks.numbers import number_of
from t5repro.tasks.task import INVALID_LABEL, ScoredRow

UNREADABLE_NUMBER = -1.0

# Words that do not decide which noun phrase names whom.
DETERMINERS = frozenset(
    (
        *("a", "an", "few", "her", "his", "each", "every", "many", "much", "my", "our"),
        *("some", "that", "the", "their", "these", "this", "those", "which", "whose", "your"),
    )
)

# Labels


def label_index(text: str, row: ScoredRow, *, labels: tuple[str, ...]) -> int:
    """Return the index of the label spelled exactly `text`, else `INVALID_LABEL`.

    Nothing is repaired: a near miss is wrong.

    Source: released code, `postprocessors.string_label_to_class_id`.
    """
    return labels.index(text) if text in labels else INVALID_LABEL


def is_invalid_label(prediction: Any) -> bool:
    """Return whether a prediction was not a label."""
    return bool(prediction == INVALID_LABEL)


# Numbers


def read_number(
    text: str, row: ScoredRow, *, low: float = -math.inf, high: float = math.inf
) -> float:
    """Return the number that `text` spells, else `UNREADABLE_NUMBER`.

    Infinities and NaN are unreadable, and so are numbers outside `low` to `high`.

    Source: released code, `postprocessors.string_to_float`, which has no bounds and reads what
    Python reads, such as "1_1".
    """
    value = number_of(text)
    return value if value is not None and low <= value <= high else UNREADABLE_NUMBER


def is_unreadable_number(prediction: Any) -> bool:
    """Return whether a prediction was not a number."""
    return bool(prediction == UNREADABLE_NUMBER)


# Texts


def unchanged(text: str, row: ScoredRow) -> str:
    """Return the prediction itself."""
    return text


def is_blank(prediction: Any) -> bool:
    """Return whether a text is empty or whitespace."""
    return not prediction.strip()


# Winograd schemas


def names_candidate(text: str, row: ScoredRow) -> int:
    """Return whether a prediction names the candidate of its row, see `names_referent`."""
    return names_referent(text, row["targets"])


def names_referent(prediction: str, referent: str) -> int:
    """Return 1 if `prediction` names `referent`, 0 if another, `INVALID_LABEL` if nothing.

    Case and determiners do not count. One phrase may be more specific (``"fuzzy bunny"`` for
    ``"bunny"``), unless only one has an apostrophe (``"Bob's hat"`` is not ``"Bob"``).

    Source: released code, `postprocessors.wsc_simple`.
    """
    predicted_phrase, referent_phrase = _bare_phrase(prediction), _bare_phrase(referent)
    if not predicted_phrase:
        return INVALID_LABEL
    # The words of "hat" are among those of "Bob's hat", and yet it may be another hat: a possessive
    # in only one of the phrases counts as a different referent.
    if ("'" in predicted_phrase) != ("'" in referent_phrase):
        return 0
    predicted_words = set(predicted_phrase.split(" "))
    referent_words = set(referent_phrase.split(" "))
    return int(predicted_words <= referent_words or referent_words <= predicted_words)


def _bare_phrase(text: str) -> str:
    text_words = text.strip().lower().split(" ")
    return " ".join(word for word in text_words if word not in DETERMINERS)
