"""The tasks that a run knows: the rows of the table, and a row for each task of `tasks.own`."""

from collections.abc import Sequence

from t5repro.config.sections.tasks import OwnTask, TasksSettings, TaskTexts
from t5repro.task_facts import SPLITS, TaskFacts
from t5repro.task_table import BY_NAME, WINOGRAD_LABELS


def known_tasks(texts: TaskTexts) -> dict[str, TaskFacts]:
    """Return the row of each task by name.

    Args:
        texts: the run's own tasks, and its choice of the answers of WNLI and WSC.
    """
    labelled = WINOGRAD_LABELS if texts.text.winograd == "labels" else {}
    own = {name: own_facts(name, definition) for name, definition in texts.own.items()}
    return BY_NAME | labelled | own


def named_files(tasks: TasksSettings, task: str) -> dict[str, Sequence[str]]:
    """Return split -> files of a task below `tasks.folder`: those of the run file before its row's.

    An unknown task has none.
    """
    row, own_files = known_tasks(tasks).get(task), tasks.files.get(task, {})
    of_row = row.files if row else {}
    return {split: own_files.get(split) or of_row.get(split, ()) for split in SPLITS}


def own_facts(name: str, definition: OwnTask) -> TaskFacts:
    """Return the row of a task of the run file."""
    return TaskFacts(
        name,
        title=name,
        files={split: tuple(names) for split, names in definition.files.items()},
        answer=definition.answer_kind,
        options=len(definition.options) or 1,
    )
