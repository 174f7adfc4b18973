"""Every task, found by name.

The tuples are literal; nothing registers itself. Names are those of `config.task_layouts`, where
each task's original files are. A run file's own tasks and its choice of texts come on top.
"""

import difflib
from collections.abc import Sequence

from t5repro.config.sections.tasks import TaskTexts
from t5repro.errors import SettingsError
from t5repro.tasks.generation import GENERATION
from t5repro.tasks.glue import GLUE
from t5repro.tasks.own import own_task
from t5repro.tasks.super_glue import SUPER_GLUE
from t5repro.tasks.task import Task
from t5repro.tasks.winograd import WINOGRAD
from t5repro.tasks.wording import in_words_of


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
TEXTS_OF_THE_CODE = TaskTexts()


def all_tasks() -> tuple[Task, ...]:
    """Return every task of the paper."""
    return tuple(TASKS.values())


def task_named(name: str, texts: TaskTexts = TEXTS_OF_THE_CODE) -> Task:
    """Return a task.

    Args:
        name: of a task of the paper, or of the run file's own.
        texts: which texts the run chooses, and its own tasks.

    Raises:
        SettingsError: there is none of this name; the nearest one is named. Or an own task is
            called as one of the paper.
    """
    if name in texts.own and name in TASKS:
        raise SettingsError(f"two tasks are named {name!r}; rename the one under tasks.own")
    if name in texts.own:
        return own_task(name, texts.own[name])
    if name not in TASKS:
        known = sorted({*TASKS, *texts.own})
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        nearest = f"; nearest: {close[0]!r}" if close else ""
        raise SettingsError(f"unknown task {name!r}{nearest}; tasks are {known}")
    return in_words_of(TASKS[name], texts.text)
