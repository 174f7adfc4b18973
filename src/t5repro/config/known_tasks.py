"""The tasks that a run knows: the rows of the table, and a row for each task of `tasks.own`."""

from collections.abc import Mapping

from t5repro.config.sections.tasks import OwnTask
from t5repro.task_facts import TaskFacts
from t5repro.task_table import BY_NAME


def known_tasks(own: Mapping[str, OwnTask]) -> dict[str, TaskFacts]:
    """Return the row of each task by name.

    Args:
        own: tasks of the run file, see `tasks.own`.
    """
    return BY_NAME | {name: own_facts(name, definition) for name, definition in own.items()}


def own_facts(name: str, definition: OwnTask) -> TaskFacts:
    """Return the row of a task of the run file."""
    return TaskFacts(
        name,
        title=name,
        files={split: tuple(names) for split, names in definition.files.items()},
        answer=definition.answer_kind,
    )
