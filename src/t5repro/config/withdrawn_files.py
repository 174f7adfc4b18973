"""Settings of a run without the withdrawn raw files.

A module of its own: `withdrawn` is code of `c4_clean`, which must not depend on the tasks.
"""

from typing import Any

from pydantic import ValidationError

from t5repro.config.known_tasks import known_tasks
from t5repro.config.schema import Settings
from t5repro.config.task_files import task_files
from t5repro.config.withdrawn import FILES, WithdrawnFiles
from t5repro.errors import SettingsError


def without_withdrawn(settings: Settings, withdrawn: WithdrawnFiles) -> Settings:
    """Return the settings of a run without withdrawn raw files and the tasks that need them.

    Args:
        settings: settings of the run.
        withdrawn: raw files to remove.

    Raises:
        SettingsError: the remaining settings are invalid, such as a mixture without tasks.
    """
    files = set(withdrawn.files)
    if not any(files & source.files.keys() for source in settings.data.sources):
        return settings
    tree = settings.model_dump(mode="json")
    for source in tree["data"]["sources"]:
        source["files"] = {name: sha for name, sha in source["files"].items() if name not in files}
    tasks = _tasks_with(settings, files)
    tree["tasks"]["names"] = [name for name in tree["tasks"]["names"] if name not in tasks]
    for experiment in tree["experiments"]:
        _drop_tasks(experiment["change"], tasks)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        raise SettingsError(
            f"without the files that {FILES} withdraws, {name} is {fault['input']!r}: "
            f"{fault['msg']}; name other sources or tasks in the run file"
        ) from error


def _drop_tasks(change: dict[str, Any], tasks: set[str]) -> None:
    """Remove tasks from the mixture of an experiment, in place."""
    section, key = change, "tasks.names"
    if isinstance(change.get("tasks"), dict):
        section, key = change["tasks"], "names"
    if key in section:
        section[key] = [name for name in section[key] if name not in tasks]


def _tasks_with(settings: Settings, files: set[str]) -> set[str]:
    """Return the tasks that read one of the files."""
    tasks = set()
    for task in known_tasks(settings.tasks):
        try:
            splits = task_files(settings, task)
        except SettingsError:  # the run has no files of this task
            continue
        if any(files.intersection(paths) for paths in splits.values()):
            tasks.add(task)
    return tasks
