"""Which raw files each task of a run is read from.

Paths are below `tasks.folder`. A split whose files `data.sources` does not list is not built;
`tasks.files` names other files for a task, split by split; a task of `tasks.own` names its own.
"""

import difflib

from t5repro.config.schema import Settings
from t5repro.config.task_layouts import SPLITS, TASK_FILES
from t5repro.errors import SettingsError


def raw_files(settings: Settings) -> dict[str, str]:
    """Return every raw file of the run and its recorded SHA-256 (empty: not known)."""
    return {
        path: sha256 for source in settings.data.sources for path, sha256 in source.files.items()
    }


def check_own_names(settings: Settings) -> None:
    """Refuse a task of one's own that is called as a task of the paper is.

    Raises:
        SettingsError: it is.
    """
    if twice := sorted(set(settings.tasks.own) & set(TASK_FILES)):
        raise SettingsError(
            f"tasks.own holds {twice}, which {'is a task' if len(twice) == 1 else 'are tasks'} of "
            "the paper; two tasks of one name cannot be told apart: choose another name"
        )


def start_files(settings: Settings) -> list[str]:
    """Return the raw files of the checkpoint that pre-training begins with, maybe none.

    Raises:
        SettingsError: `data.sources` lists no file of its folder.
    """
    folder = settings.pretrain.start_from
    if not folder:
        return []
    found = sorted(name for name in raw_files(settings) if name.startswith(f"{folder}/"))
    if not found:
        raise SettingsError(
            f"pretrain.start_from is {folder!r}, but data.sources lists no file below it; list "
            "the checkpoint's files there with origin, licence and sha256"
        )
    return found


def vocabulary_files(settings: Settings) -> list[str]:
    """Return the raw file of the vocabulary, if the run brings one.

    Raises:
        SettingsError: `data.sources` does not list it.
    """
    name = settings.vocab.model_file
    if name and name not in raw_files(settings):
        raise SettingsError(
            f"vocab.model_file is {name!r}, which data.sources does not list; list it there with "
            "origin, licence and sha256"
        )
    return [name] if name else []


def task_files(settings: Settings, task: str) -> dict[str, list[str]]:
    """Return split -> raw files of a task, paths below `data.folder`.

    Raises:
        SettingsError: the task is unknown, or `data.sources` lists no file of it.
    """
    if task in settings.tasks.own:
        return _own_files(settings, task)
    if task not in TASK_FILES:
        known_tasks = sorted({*TASK_FILES, *settings.tasks.own})
        close = difflib.get_close_matches(task, known_tasks, n=1, cutoff=0.4)
        nearest = f"; nearest: {close[0]!r}" if close else ""
        raise SettingsError(
            f"tasks.names holds {task!r}; tasks are {known_tasks}{nearest}",
            place=_place(settings, task),
        )
    known = raw_files(settings)
    chosen: dict[str, list[str]] = {}
    for split in SPLITS:
        asked = settings.tasks.files.get(task, {}).get(split)
        files = asked or TASK_FILES[task].get(split, ())
        paths = [f"{settings.tasks.folder}/{name}" for name in files]
        absent = [path for path in paths if path not in known]
        if asked and absent:
            raise _not_listed(f"tasks.files.{task}.{split}", absent)
        if paths and not absent:
            chosen[split] = paths
    if not chosen:
        wanted = [name for files in TASK_FILES[task].values() for name in files]
        raise SettingsError(
            f"task {task!r} has no file in data.sources; it is read from {wanted} "
            f"below {settings.tasks.folder}/, or from what tasks.files.{task} names; "
            f"`t5repro list_sources {task}` prints where each can be had, for data.sources",
            place=_place(settings, task),
        )
    return chosen


def _place(settings: Settings, task: str) -> tuple[str | int, ...]:
    """Return where a run names a task."""
    names = settings.tasks.names
    return ("tasks", "names", *((names.index(task),) if task in names else ()))


def _own_files(settings: Settings, task: str) -> dict[str, list[str]]:
    known = raw_files(settings)
    chosen: dict[str, list[str]] = {}
    for split in SPLITS:
        names = settings.tasks.own[task].files.get(split, [])
        paths = [f"{settings.tasks.folder}/{name}" for name in names]
        if absent := [path for path in paths if path not in known]:
            raise _not_listed(f"tasks.own.{task}.files.{split}", absent)
        if paths:
            chosen[split] = paths
    return chosen


def _not_listed(key: str, absent: list[str]) -> SettingsError:
    return SettingsError(
        f"{key} names {absent}, which data.sources does not list; "
        "list it there with origin, licence and sha256"
    )
