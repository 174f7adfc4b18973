"""Every task by name.

The tuples are literal; importing a module registers nothing. `task_table` has a row for each name.
A run file may add tasks (`tasks.own`) and choose other texts (`tasks.text`).
"""

from collections.abc import Sequence

from t5repro.config.sections.tasks import TaskTexts
from t5repro.errors import SettingsError, nearest
from t5repro.tasks.extraction import EXTRACTION
from t5repro.tasks.generation import GENERATION
from t5repro.tasks.glue import GLUE
from t5repro.tasks.multiple_choice import MULTIPLE_CHOICE
from t5repro.tasks.own import own_task
from t5repro.tasks.snli import SNLI
from t5repro.tasks.super_glue import SUPER_GLUE
from t5repro.tasks.tagging import TAGGING
from t5repro.tasks.task import Task
from t5repro.tasks.winograd import WINOGRAD
from t5repro.tasks.wording import apply_text_settings


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


TASKS = index_by_name(
    (*GLUE, *SUPER_GLUE, *WINOGRAD, *MULTIPLE_CHOICE, *SNLI, *GENERATION, *EXTRACTION, *TAGGING)
)
DEFAULT_TEXTS = TaskTexts()


def task_named(name: str, texts: TaskTexts = DEFAULT_TEXTS) -> Task:
    """Return a task.

    Args:
        name: name of a task of the paper or of `texts.own`.
        texts: the run's choice of texts and its own tasks.

    Raises:
        SettingsError: no task has this name (the message suggests the nearest one), or a task of
            the paper and one of the run file share it.
    """
    if name in texts.own and name in TASKS:
        raise SettingsError(f"two tasks are named {name!r}; rename the one under tasks.own")
    if name in texts.own:
        return own_task(name, texts.own[name])
    if name not in TASKS:
        names = sorted({*TASKS, *texts.own})
        raise SettingsError(f"unknown task {name!r}{nearest(name, names)}; tasks are {names}")
    return apply_text_settings(TASKS[name], texts.text)
