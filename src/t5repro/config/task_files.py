"""The raw files of a run's tasks, starting checkpoint and vocabulary.

The files of a task are in its row, unless `tasks.files` names others for a split; a
task of `tasks.own` names its own. A split with files missing in `data.sources` is not built.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from t5repro.config.answered_tasks import tasks_with_training_files
from t5repro.config.dependencies import check_answers
from t5repro.config.experiments import settings_of_experiment
from t5repro.config.known_tasks import known_tasks, named_files
from t5repro.config.schema import Settings
from t5repro.config.sections.vocab import MERGES, TOKENIZER_FILES
from t5repro.errors import Keys, SettingsError, nearest
from t5repro.task_facts import SPLITS
from t5repro.task_table import BY_NAME


def raw_files(settings: Settings) -> dict[str, str]:
    """Return every raw file of the run and its recorded SHA-256; empty if unknown."""
    return {
        path: sha256 for source in settings.data.sources for path, sha256 in source.files.items()
    }


def check_own_names(settings: Settings) -> None:
    """Refuse a task of `tasks.own` that has the name of a task of the paper.

    Raises:
        SettingsError: a name belongs to both.
    """
    if shared := sorted(set(settings.tasks.own) & set(BY_NAME)):
        raise SettingsError(
            f"tasks.own contains {shared}, which {'is a task' if len(shared) == 1 else 'are tasks'}"
            " of the paper; names of tasks are unique: choose another name"
        )


def check_file_names(settings: Settings) -> None:
    """Refuse names of raw files with braces, which Snakemake would take for wildcards.

    A line break in a name would look like another line of an answer.

    Raises:
        SettingsError: a name has some; the message names it and another name.
    """
    for name in (settings.data.folder, *raw_files(settings)):
        if braces := sorted(set(name) & set("{}")):
            plain_name = "".join("_" if character in "{}" else character for character in name)
            raise SettingsError(
                f"the raw file or folder {name!r} has {' and '.join(braces)} in its name, which "
                f"Snakemake takes for a wildcard; rename it, for example to {plain_name!r}"
            )
        if "\n" in name:
            raise SettingsError(
                f"the raw file or folder {name!r} has a line break in its name; rename it"
            )


def check_listed_files(settings: Settings) -> None:
    """Refuse a run with tasks, weights or a vocabulary of files that it does not list.

    Raises:
        SettingsError: `data.sources` lacks a file, a task is unknown, or a network of labels has no
            training rows of a task that it is to answer.
    """
    for experiment in settings.experiments:
        changed = settings_of_experiment(settings, experiment.name)
        start_files(changed)
        vocabulary_files(changed)
        for task in changed.tasks.names:
            task_files(settings, task)
        check_answers(settings, experiment.name, _trained_tasks)


def _trained_tasks(settings: Settings) -> set[str]:
    """Return the tasks of a fine-tuning whose training files are listed."""
    trained = tasks_with_training_files(settings)
    return {name for name in trained if "train" in task_files(settings, name)}


def start_files(settings: Settings) -> list[str]:
    """Return the raw files of the checkpoint that pre-training starts from; empty if none.

    Raises:
        SettingsError: `data.sources` lists no file of its folder.
    """
    folder = settings.pretrain.start_from
    if not folder:
        return []
    files = sorted(name for name in raw_files(settings) if name.startswith(f"{folder}/"))
    if not files:
        raise SettingsError(
            f"pretrain.start_from is {folder!r}, but data.sources lists no file below it; list "
            "the checkpoint's files there with origin, licence and sha256"
        )
    return files


def vocabulary_files(settings: Settings) -> list[str]:
    """Return the raw file of the run's ready-made vocabulary; empty if it trains one.

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


def tokenizer_files(settings: Settings) -> list[str]:
    """Return the listed files next to the ready-made vocabulary that may belong to it."""
    model, sources = settings.vocab.model_file, raw_files(settings)
    folder = PurePosixPath(model).parent
    names = [(folder / name).as_posix() for name in (*TOKENIZER_FILES, MERGES)]
    return [name for name in names if model and name in sources and name != model]


def task_files(settings: Settings, task: str) -> dict[str, list[str]]:
    """Return split -> raw files of a task, paths below `data.folder`.

    Raises:
        SettingsError: the task is unknown, or `data.sources` lists none of its files.
    """
    tasks = known_tasks(settings.tasks)
    if task not in tasks:
        names = sorted(tasks)
        raise SettingsError(
            f"tasks.names contains {task!r}{nearest(task, names)}; tasks are {names}",
            keys=_setting_of(settings, task),
        )
    sources, named = raw_files(settings), named_files(settings.tasks, task)
    key, own_files = _stated_files(settings, task)
    files: dict[str, list[str]] = {}
    for split in SPLITS:
        paths = _paths(settings, named.get(split, ()))
        missing = [path for path in paths if path not in sources]
        # A run need not have every split of the original download, but every file that it names.
        if own_files.get(split) and missing:
            raise _not_listed(f"{key}.{split}", missing)
        if paths and not missing:
            files[split] = paths
    if not files:
        originals = [name for paths in tasks[task].files.values() for name in paths]
        raise SettingsError(
            f"task {task!r} has no file in data.sources; its files are {originals} "
            f"below {settings.tasks.folder}/, or those that tasks.files.{task} names; "
            f"`t5repro tasks sources {task}` prints their origins as entries of data.sources",
            keys=_setting_of(settings, task),
        )
    return files


def _stated_files(settings: Settings, task: str) -> tuple[str, Mapping[Any, Sequence[str]]]:
    """Return the setting with the files that the run file names for a task, and these by split."""
    if task in settings.tasks.own:
        return f"tasks.own.{task}.files", settings.tasks.own[task].files
    return f"tasks.files.{task}", settings.tasks.files.get(task, {})


def _setting_of(settings: Settings, task: str) -> Keys:
    """Return the keys of the setting that names a task."""
    names = settings.tasks.names
    return ("tasks", "names", *((names.index(task),) if task in names else ()))


def _paths(settings: Settings, names: Iterable[str]) -> list[str]:
    return [PurePosixPath(settings.tasks.folder, name).as_posix() for name in names]


def _not_listed(key: str, missing: list[str]) -> SettingsError:
    return SettingsError(
        f"{key} names {missing}, which data.sources does not list; "
        "list it there with origin, licence and sha256"
    )
