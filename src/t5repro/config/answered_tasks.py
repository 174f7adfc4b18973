"""Check that a network of labels is trained on the tasks that it answers.

Its head has columns for the tasks with training rows only. A network that writes text answers any
task.
"""

from collections.abc import Collection, Iterable

from t5repro.config.known_tasks import named_files
from t5repro.config.schema import Settings
from t5repro.config.sections.model import tuned_family
from t5repro.errors import SettingsError
from t5repro.task_groups import ANSWERED_AS


def tasks_with_training_files(settings: Settings) -> set[str]:
    """Return the tasks of a fine-tuning that have files of training rows, listed or not."""
    return {name for name in settings.tasks.names if named_files(settings.tasks, name).get("train")}


def check_answered(settings: Settings, trained: Iterable[Collection[str]]) -> None:
    """Refuse tasks for which the head of a network of labels has no columns.

    Args:
        settings: settings of a fine-tuning and its predictions.
        trained: the tasks that it was trained on; of an ensemble, those of each member.

    Raises:
        SettingsError: there is such a task. It would only be noticed after the training.
    """
    family = tuned_family(settings.model, settings.finetune)
    if family.writes_text:
        return
    for names in trained:
        for task in settings.tasks.names:
            answering = (task, *ANSWERED_AS.get(task, ()))
            if not set(answering) & set(names):
                raise SettingsError(
                    f"tasks.names contains {task!r}, and {family.title} has labels only for tasks "
                    f"that it is trained on, which are {sorted(names)}; add "
                    f"{' or '.join(answering[1:]) or 'its training file'} to the same fine-tuning, "
                    f"or leave {task} out",
                    keys=("tasks", "names"),
                )
