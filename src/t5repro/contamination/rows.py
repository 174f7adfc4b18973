"""The fields of evaluated rows, as texts that a page could have.

Prefix and names of fields are in no page, so a field is searched by itself. The labels of a
classification are not evidence; an answer of free text is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from t5repro.tasks.prefixes import field_names, fields_of, shared_prefix
from t5repro.tasks.task import Task

Role = Literal["input", "context", "answer", "prediction"]
TARGETS, PREDICTION, INPUTS = "targets", "prediction", "inputs"
# Web text that a question is about is in the crawl by construction, so it is counted apart.
CONTEXTS = frozenset({"context", "passage", "paragraph", "document"})


@dataclass(frozen=True)
class Field:
    """A field of an evaluated row.

    Attributes:
        task: name of the task.
        row: number of the row in its file.
        name: of the field.
        role: ``context`` is the text that a question is about; ``answer`` the free text of the
            target; ``prediction`` the answer of the model.
        text: its text.
    """

    task: str
    row: int
    name: str
    role: Role
    text: str


def fields_of_rows(task: Task, rows: Sequence[Mapping[str, Any]]) -> list[Field]:
    """Return the fields of the rows of a task.

    Args:
        task: the task.
        rows: with inputs and targets, and perhaps a prediction.
    """
    inputs = [str(row["inputs"]) for row in rows]
    names = field_names(inputs)
    prefix = "" if names else shared_prefix(inputs)
    fields = []
    for number, row in enumerate(rows):
        texts = fields_of(inputs[number].removeprefix(prefix), names)
        for name, text in texts.items():
            role: Role = "context" if name in CONTEXTS else "input"
            fields.append(Field(task.name, number, name, role, text))
        if not task.labels:
            fields.append(Field(task.name, number, TARGETS, "answer", str(row["targets"])))
            if PREDICTION in row:
                text = str(row[PREDICTION])
                fields.append(Field(task.name, number, PREDICTION, "prediction", text))
    return fields
