"""The settings of `tasks.text`: tasks with the paper's texts instead of the released code's.

Each function returns a task with the texts of the paper. To add a switch, add a setting to
`config.sections.tasks.TextSettings` and an entry to `SWITCHES`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from t5repro.config.sections.tasks import TextSettings
from t5repro.tasks.extraction import EXTRACTION, read_optional_answer
from t5repro.tasks.generation import ASCII_PUNCTUATION, GENERATION, format_squad
from t5repro.tasks.glue import GLUE
from t5repro.tasks.predictions import label_index, read_number
from t5repro.tasks.records import read_records
from t5repro.tasks.snli import SNLI
from t5repro.tasks.super_glue import (
    HYPOTHESIS_FIRST,
    SUPER_GLUE,
    TRUTH,
    format_multirc,
    wic_rows_with_pos,
)
from t5repro.tasks.task import Example, Row, Task
from t5repro.tasks.winograd import AS_LABELS

PREMISE_FIRST = ("premise", "hypothesis")
SIMILARITY_RANGE = (1.0, 5.0)  # the paper's 21 classes


def _formatter(task: Task, **options: Any) -> Callable[[Row], Iterable[Example]]:
    """Return a task's `to_examples` with other options."""
    to_examples: Any = task.to_examples
    formatter: Callable[[Row], Iterable[Example]] = partial(to_examples, **options)
    return formatter


def premise_first(task: Task) -> Task:
    """Put the premise before the hypothesis (paper section 2.4; D-001)."""
    return replace(task, to_examples=_formatter(task, fields=PREMISE_FIRST))


def similarity_from_one(task: Task) -> Task:
    """Use targets from 1.0; predictions outside 1 to 5 are wrong (paper section 2.4; D-006)."""
    low, high = SIMILARITY_RANGE
    return replace(
        task,
        to_examples=_formatter(task, lowest_target=low),
        read_prediction=partial(read_number, low=low, high=high),
    )


def original_similarity(task: Task) -> Task:
    """Score against the numbers of the file instead of rounded ones (D-035)."""
    return replace(task, to_examples=_formatter(task, rounded_answer=False))


def part_of_speech_first(task: Task) -> Task:
    """Begin with the part of speech (paper appendix D; D-007)."""
    return replace(
        task,
        read=partial(read_records, to_rows=wic_rows_with_pos),
        to_examples=_formatter(task, fields=("pos", "sentence1", "sentence2", "word")),
    )


def true_or_false(task: Task) -> Task:
    """Answer with ``False`` and ``True`` (paper appendix D; D-008)."""
    return replace(
        task,
        to_examples=_formatter(task, labels=TRUTH),
        read_prediction=partial(label_index, labels=TRUTH),
        labels=TRUTH,
    )


def keep_markup(task: Task) -> Task:
    """Keep the paragraph's HTML (paper appendix D; D-009)."""
    return replace(task, to_examples=partial(format_multirc, keep_markup=True))


def without_padding(task: Task) -> Task:
    """Put no spaces around punctuation (paper appendix D; D-010)."""
    return replace(task, to_examples=_formatter(task, padded=None))


def padded_as_in_2022(task: Task) -> Task:
    """Put spaces only around ASCII punctuation (released code since 2022; D-010)."""
    return replace(task, to_examples=_formatter(task, padded=ASCII_PUNCTUATION))


def empty_without_answer(task: Task) -> Task:
    """Answer with an empty text where there is no answer (D-052)."""
    return replace(
        task,
        to_examples=_formatter(task, no_answer=""),
        read_prediction=partial(read_optional_answer, no_answer=""),
    )


def winograd_labels(task: Task) -> Task:
    """Answer with one of two labels for two texts (D-049)."""
    return AS_LABELS[task.name]


class Switch(NamedTuple):
    """The effect of one setting of `tasks.text`.

    Attributes:
        setting: name of the setting.
        value: value at which the switch applies.
        tasks: names of the tasks that it changes.
        change: task -> changed task.
    """

    setting: str
    value: str
    tasks: tuple[str, ...]
    change: Callable[[Task], Task]


def _writes_hypothesis_first(task: Task) -> bool:
    formatter = task.to_examples
    return isinstance(formatter, partial) and formatter.keywords.get("fields") == HYPOTHESIS_FIRST


INFERENCE_TASKS = tuple(
    task.name for task in (*GLUE, *SUPER_GLUE, *SNLI) if _writes_hypothesis_first(task)
)

# Tasks with the text of SQuAD.
PADDED_TASKS = tuple(
    task.name
    for task in (*GENERATION, *EXTRACTION)
    if getattr(task.to_examples, "func", task.to_examples) is format_squad
)

SWITCHES = (
    Switch("field_order", "paper", INFERENCE_TASKS, premise_first),
    Switch("stsb_classes", "paper", ("glue_stsb",), similarity_from_one),
    Switch("stsb_answer", "original", ("glue_stsb",), original_similarity),
    Switch("wic_part_of_speech", "paper", ("super_glue_wic",), part_of_speech_first),
    Switch("copa_target", "paper", ("super_glue_copa",), true_or_false),
    Switch("multirc_markup", "paper", ("super_glue_multirc",), keep_markup),
    Switch("squad_punctuation", "paper", PADDED_TASKS, without_padding),
    Switch("squad_punctuation", "code_2022", PADDED_TASKS, padded_as_in_2022),
    Switch("squad_no_answer", "empty", ("squad_2",), empty_without_answer),
    Switch("winograd", "labels", tuple(AS_LABELS), winograd_labels),
)


def apply_text_settings(task: Task, text: TextSettings) -> Task:
    """Return a task after every switch of `text` that concerns it."""
    for switch in SWITCHES:
        if task.name in switch.tasks and getattr(text, switch.setting) == switch.value:
            task = switch.change(task)
    return task
