"""The settings of a run without the raw files that were withdrawn.

Apart from `withdrawn`, which `c4_clean` runs: the names of tasks are no matter of the crawl's.
"""

from typing import Any

from pydantic import ValidationError

from t5repro.config.schema import Settings
from t5repro.config.task_files import task_files
from t5repro.config.task_layouts import TASK_FILES
from t5repro.config.withdrawn import FILES, WithdrawnFiles
from t5repro.errors import SettingsError


def without_withdrawn(settings: Settings, withdrawn: WithdrawnFiles) -> Settings:
    """Return the settings of a run without withdrawn raw files, and without tasks that need one.

    Args:
        settings: of the run.
        withdrawn: raw files that may not be used.

    Raises:
        SettingsError: nothing usable is left.
    """
    gone = withdrawn.files.keys()
    if not gone or not any(gone & source.files.keys() for source in settings.data.sources):
        return settings
    tree = settings.model_dump(mode="json")
    for source in tree["data"]["sources"]:
        source["files"] = {name: sha for name, sha in source["files"].items() if name not in gone}
    tasks = _tasks_of(settings, set(gone))
    tree["tasks"]["names"] = [name for name in tree["tasks"]["names"] if name not in tasks]
    for arm in tree["experiments"]:
        _drop_tasks(arm["change"], tasks)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise SettingsError(
            f"without what {FILES} withdraws, {where} is {fault['input']!r}: {fault['msg']}; "
            "name other sources or tasks in the run file"
        ) from error


def _drop_tasks(change: dict[str, Any], gone: set[str]) -> None:
    """Take tasks out of the mixture that an arm names, however it writes the key."""
    holder, key = change, "tasks.names"
    if isinstance(change.get("tasks"), dict):
        holder, key = change["tasks"], "names"
    if key in holder:
        holder[key] = [name for name in holder[key] if name not in gone]


def _tasks_of(settings: Settings, gone: set[str]) -> set[str]:
    """Return the tasks that read a file that is gone."""
    found = set()
    for task in (*TASK_FILES, *settings.tasks.own):
        try:
            splits = task_files(settings, task)
        except SettingsError:  # a task that this run has no files of
            continue
        if any(gone.intersection(paths) for paths in splits.values()):
            found.add(task)
    return found
