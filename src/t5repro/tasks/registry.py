"""Every task, found by name.

The tuples are literal; nothing registers itself. Names are those of `config.task_files`, where
each task's original files are.
"""

import difflib
from collections.abc import Sequence

from t5repro.errors import SettingsError
from t5repro.tasks.generation import GENERATION
from t5repro.tasks.glue import GLUE
from t5repro.tasks.super_glue import SUPER_GLUE
from t5repro.tasks.task import Task
from t5repro.tasks.winograd import WINOGRAD


def index_by_name(tasks: Sequence[Task]) -> dict[str, Task]:
    """Return the tasks by name, in their order.

    Raises:
        SettingsError: two have the same name.
    """
    index: dict[str, Task] = {}
    for task in tasks:
        if task.name in index:
            raise SettingsError(
                f"two tasks are named {task.name!r}; names must differ: rename one of them"
            )
        index[task.name] = task
    return index


TASKS = index_by_name((*GLUE, *SUPER_GLUE, *WINOGRAD, *GENERATION))


def all_tasks() -> tuple[Task, ...]:
    """Return every task."""
    return tuple(TASKS.values())


def task_named(name: str) -> Task:
    """Return a task.

    Raises:
        SettingsError: there is none of this name; the nearest one is named.
    """
    if name not in TASKS:
        close = difflib.get_close_matches(name, TASKS, n=1, cutoff=0.4)
        nearest = f"; nearest: {close[0]!r}" if close else ""
        raise SettingsError(f"unknown task {name!r}{nearest}; tasks are {sorted(TASKS)}")
    return TASKS[name]
