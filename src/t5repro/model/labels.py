"""Columns of an encoder's head: the labels of each task, or one column for its numbers."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from t5repro.errors import ArtifactError

Words = tuple[str, ...]


class Columns(NamedTuple):
    """The columns of one task.

    Attributes:
        first: the first column.
        width: number of columns.
        is_number: 1 if the only column is a number, else 0.
    """

    first: int
    width: int
    is_number: int


class LabelColumns:
    """The columns of all tasks, one task after another in the order of their names.

    Several tasks share one head, of which each reads its own columns: that equals a head for each
    (MT-DNN, section 3.1).

    Args:
        words: task -> its labels by index; none if the task's targets are numbers.
    """

    def __init__(self, words: Mapping[str, Words]) -> None:
        self.words = {task: tuple(words[task]) for task in sorted(words)}
        self.columns: dict[str, Columns] = {}
        first = 0
        for task, labels in self.words.items():
            width = len(labels) or 1
            self.columns[task] = Columns(first, width, int(not labels))
            first += width
        self.total = first

    def as_text(self) -> str:
        """Return the labels as JSON, for the file of the weights."""
        return json.dumps(self.words, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str, source: str) -> "LabelColumns":
        """Return the labels of `as_text`.

        Args:
            text: JSON.
            source: name of the file with it, for errors.

        Raises:
            ArtifactError: it is no object of lists of texts.
        """
        try:
            words = json.loads(text)
            if not all(isinstance(word, str) for labels in words.values() for word in labels):
                raise TypeError("a label is no text")
        except (ValueError, AttributeError, TypeError) as error:
            raise ArtifactError(
                f"{source}: its labels are damaged ({error}); rerun the rule finetune"
            ) from error
        return cls({task: tuple(labels) for task, labels in words.items()})
