"""The kinds of answers of a network of labels, and the columns of its head.

The answer of a row is one of the labels of its task, a number, one of several options, a span of
its text, or a tag for each of its words. Labels have a column each; a number has one column, and so
has the score of an option; the ends of spans have a head of their own, and tags a column each in a
third head.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from t5repro.errors import ArtifactError
from t5repro.strict_json import parse_json

Kind = Literal["label", "number", "choice", "span", "tags"]
Words = tuple[str, ...]

KINDS: tuple[Kind, ...] = get_args(Kind)
LABEL, NUMBER, CHOICE, SPAN, TAGS = range(len(KINDS))


Head = Literal["pooled", "san"]


class TaskAnswer(NamedTuple):
    """The answer to the rows of one task.

    Attributes:
        kind: of the answer.
        words: of its labels, options or tags by index; of a span, the text of no answer, if a
            question may have none; empty for a number.
        segments: of each example; 0 if examples differ.
        scale: of a number, which the head predicts divided by it.
        head: of its labels: the one of all tasks, or a stochastic answer network of its own.
        reverses: whether the second of two segments is read first.
    """

    kind: Kind
    words: Words = ()
    segments: int = 0
    scale: float = 1.0
    head: Head = "pooled"
    reverses: bool = False

    def as_trained(self, head: Head, *, reverses: bool) -> "TaskAnswer":
        """Return the answer as a training has it: two texts have a head and an order.

        Args:
            head: of labels of two segments.
            reverses: whether the second of two segments is read first.
        """
        if self.segments != 2 or self.kind not in ("label", "number"):
            return self
        return self._replace(head=head if self.kind == "label" else "pooled", reverses=reverses)

    @property
    def columns(self) -> int:
        """Columns of its head; a span has none."""
        return len(self.words) if self.kind in ("label", "tags") else int(self.kind != "span")

    @property
    def options(self) -> int:
        """Texts that the network reads of a row."""
        return len(self.words) if self.kind == "choice" else 1


TaskAnswers = Mapping[str, TaskAnswer]


class Columns(NamedTuple):
    """The columns of one task.

    Attributes:
        first: the first column.
        width: number of columns.
        kind: index of the kind of its answer in `KINDS`.
    """

    first: int
    width: int
    kind: int


class LabelColumns:
    """The columns of all tasks, one task after another in the order of their names.

    Tags have their own head, whose columns count from 0 as well.

    Several tasks share one head and read their own columns, which equals a head for each
    (MT-DNN, section 3.1).

    Args:
        answers: task -> its kind of answer.
    """

    def __init__(self, answers: TaskAnswers) -> None:
        self.answers = {task: answers[task] for task in sorted(answers)}
        self.columns: dict[str, Columns] = {}
        self.total = self.tags = 0
        for task, answer in self.answers.items():
            has_tags = answer.kind == "tags"
            first = self.tags if has_tags else self.total
            self.columns[task] = Columns(first, answer.columns, KINDS.index(answer.kind))
            self.tags += answer.columns if has_tags else 0
            self.total += 0 if has_tags else answer.columns
        # The columns of answer networks have no matrix: the other tasks share one.
        self.networks = {
            task: self.columns[task]
            for task, answer in self.answers.items()
            if answer.head == "san"
        }
        self.pooled = self.total - sum(columns.width for columns in self.networks.values())
        self.has_spans = any(answer.kind == "span" for answer in self.answers.values())
        self.options = max((answer.options for answer in self.answers.values()), default=1)

    def as_text(self) -> str:
        """Return the answers as JSON, for the file of the weights."""
        answers = {task: _as_fields(answer) for task, answer in self.answers.items()}
        return json.dumps(answers, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str, source: str) -> "LabelColumns":
        """Return the labels of `as_text`.

        Args:
            text: JSON.
            source: name of the file with it, for errors.

        Raises:
            ArtifactError: it is not an object of answers.
        """
        try:
            values = parse_json(text.encode())
            answers = {task: _answer(**fields) for task, fields in values.items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise ArtifactError(
                f"{source}: its labels are damaged ({error}); rerun the rule finetune"
            ) from error
        return cls(answers)


NO_COLUMNS = LabelColumns({})


def _as_fields(answer: TaskAnswer) -> dict[str, Any]:
    """Return an answer by name, without what most trainings have as it is by default."""
    usual = {"scale": 1.0, "head": "pooled", "reverses": False}
    fields = answer._asdict()
    return {name: value for name, value in fields.items() if (name, value) not in usual.items()}


def _answer(
    kind: Kind,
    words: list[str],
    segments: int,
    scale: float = 1.0,
    head: Head = "pooled",
    reverses: bool = False,
) -> TaskAnswer:
    """Return an answer of `LabelColumns.as_text`."""
    if kind not in KINDS or not isinstance(segments, int):
        raise TypeError(f"{kind!r} is none of {KINDS}, or {segments!r} no number of segments")
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise TypeError(f"{words!r} are no texts")
    if not isinstance(scale, int | float) or not scale > 0:
        raise TypeError(f"{scale!r} is no scale of numbers")
    if head not in get_args(Head) or not isinstance(reverses, bool):
        raise TypeError(f"{head!r} is none of {get_args(Head)}, or {reverses!r} no truth value")
    return TaskAnswer(kind, tuple(words), segments, scale, head, reverses)
