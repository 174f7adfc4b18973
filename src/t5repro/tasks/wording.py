"""Tasks in the paper's words, where those are not the released code's (`tasks.text`).

Each function takes a task and returns it as the paper's text has it. To add a switch, add a
setting to `config.own_tasks.TextSettings` and an entry to `SWITCHES`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from t5repro.config.sections.tasks import TextSettings
from t5repro.metrics.classification import INVALID
from t5repro.tasks.generation import format_squad
from t5repro.tasks.glue import read_similarity
from t5repro.tasks.records import read_records
from t5repro.tasks.super_glue import TRUTH, format_multirc, wic_rows_with_pos
from t5repro.tasks.task import Example, Row, Task, label_index

PREMISE_FIRST = ("premise", "hypothesis")
SIMILARITY_RANGE = (1.0, 5.0)  # the paper's 21 classes


def _with(task: Task, **options: Any) -> Callable[[Row], Iterable[Example]]:
    """Return a task's formatter with other options than the task gives it."""
    to_examples: Any = task.to_examples
    formatter: Callable[[Row], Iterable[Example]] = partial(to_examples, **options)
    return formatter


def premise_first(task: Task) -> Task:
    """Put the premise before the hypothesis (paper section 2.4; D-001)."""
    return replace(task, to_examples=_with(task, fields=PREMISE_FIRST))


def similarity_from_one(task: Task) -> Task:
    """Use targets from 1.0, and call answers outside 1 to 5 wrong (paper section 2.4; D-006)."""
    low, high = SIMILARITY_RANGE
    return replace(
        task,
        to_examples=_with(task, lowest_target=low),
        read_prediction=partial(read_similarity, low=low, high=high),
    )


def similarity_as_in_file(task: Task) -> Task:
    """Score against the numbers of the file (D-035)."""
    return replace(task, to_examples=_with(task, rounded_answer=False))


def part_of_speech_first(task: Task) -> Task:
    """Begin with the part of speech (paper appendix D; D-007)."""
    return replace(
        task,
        read=partial(read_records, to_rows=wic_rows_with_pos),
        to_examples=_with(task, fields=("pos", "sentence1", "sentence2", "word")),
    )


def true_or_false(task: Task) -> Task:
    """Answer with ``False`` and ``True`` (paper appendix D; D-008)."""
    return replace(
        task,
        to_examples=_with(task, labels=TRUTH),
        read_prediction=partial(label_index, labels=TRUTH, invalid=INVALID),
    )


def with_markup(task: Task) -> Task:
    """Keep the paragraph's HTML (paper appendix D; D-009)."""
    return replace(task, to_examples=partial(format_multirc, keep_markup=True))


def unpadded(task: Task) -> Task:
    """Leave punctuation where it is (paper appendix D; D-010)."""
    return replace(task, to_examples=partial(format_squad, padded=False))


class Switch(NamedTuple):
    """What one setting of `tasks.text` does when it has `value`."""

    setting: str
    value: str
    tasks: tuple[str, ...]
    reword: Callable[[Task], Task]


INFERENCE_TASKS = (
    *("glue_mnli", "glue_mnli_matched", "glue_mnli_mismatched", "glue_ax"),
    *("super_glue_cb", "super_glue_rte", "super_glue_axb", "super_glue_axg"),
)

SWITCHES = (
    Switch("field_order", "paper", INFERENCE_TASKS, premise_first),
    Switch("stsb_classes", "paper", ("glue_stsb",), similarity_from_one),
    Switch("stsb_answer", "original", ("glue_stsb",), similarity_as_in_file),
    Switch("wic_part_of_speech", "paper", ("super_glue_wic",), part_of_speech_first),
    Switch("copa_target", "paper", ("super_glue_copa",), true_or_false),
    Switch("multirc_markup", "paper", ("super_glue_multirc",), with_markup),
    Switch("squad_punctuation", "paper", ("squad",), unpadded),
)


def in_words_of(task: Task, text: TextSettings) -> Task:
    """Return a task with every switch of `text` that concerns it."""
    for switch in SWITCHES:
        if task.name in switch.tasks and getattr(text, switch.setting) == switch.value:
            task = switch.reword(task)
    return task
