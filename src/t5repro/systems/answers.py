"""The answers of a model to the examples of all tasks, before they are written."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t5repro.model.span_answers import TaskTexts

Rows = Sequence[Mapping[str, Any]]


class Answers(NamedTuple):
    """Answers of one or more sets of weights.

    Attributes:
        texts: for each set of weights, task -> the text of each row.
        counts: task -> counts of its examples, for the manifest.
    """

    texts: list[dict[str, TaskTexts]]
    counts: dict[str, dict[str, int]]
