"""What `corpus.files` decides when settings are loaded: other settings, and raw files.

A run file names its own text once. The rules of C4, the languages and the entries of
`data.sources` follow from that, unless the run file sets them itself.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from t5repro.config.hub_address import hub_file
from t5repro.config.known_tasks import known_tasks
from t5repro.config.presets.table import named_in, values_of
from t5repro.config.schema import Settings
from t5repro.config.sections.corpus import ENDINGS, CorpusSettings, format_of
from t5repro.config.tree import lookup, merge
from t5repro.errors import SettingsError

ORIGIN = "own text, named by corpus.files"
LICENCE = "that of the owner"
HUB_LICENCE = "that of the data set on the Hub"
UNFILTERED = {
    "clean": {"enabled": False, "min_paragraphs": 0, "bad_words": "off"},
    "dedup": {"unit": "off"},
}
# Other settings follow from them, so experiments of a run on own text cannot change them:
SHARED = ("files", "validation_files", "filters", "language")


def apply_own_text(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Set what follows from own text that a run file or an experiment names, in place.

    Args:
        tree: complete settings, before `change` applies; not validated yet.
        change: nested settings of a run file or of an experiment.
    """
    # Only the layer that introduces own text has consequences; later layers may undo them.
    if lookup(tree, "corpus", "files") or not lookup(change, "corpus", "files"):
        return
    corpus, c4 = (_joined(tree, change, section) for section in ("corpus", "c4"))
    merge(tree, {"c4": {"punkt_training": False}})
    if corpus["filters"] == "off":
        merge(tree, {"c4": UNFILTERED})
    languages, language = c4["languages"], corpus["language"]
    if language and isinstance(language, str):  # validation refuses anything else
        languages = [language]
        merge(tree, {"c4": {"languages": languages}})
    # A text that is read is also trained on; of the crawl, T5 was pre-trained on English only.
    if isinstance(languages, list):
        merge(tree, {"tokens": {"languages": languages}})
        merge(tree, {"vocab": {"language_parts": {str(name): 1 for name in languages}}})


def _joined(tree: Mapping[str, Any], change: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    """Return a section with the values that are stated."""
    values = change.get(section)
    return {**tree[section], **(values if isinstance(values, Mapping) else {})}


def state_no_tasks(change: dict[str, Any]) -> None:
    """State that a run on own text has no tasks, if its run file names none."""
    if (
        lookup(change, "corpus", "files")
        and "tasks" not in change
        and not lookup(values_of(named_in(change)), "tasks", "names")
    ):
        change["tasks"] = {"names": []}


def names_own_text(change: Mapping[str, Any], corpus: CorpusSettings) -> bool:
    """Return whether an experiment has own text while its run reads the crawl.

    Args:
        change: its nested changes.
        corpus: the section of the run.
    """
    return bool(lookup(change, "corpus", "files")) and not corpus.files


def check_same_text(name: str, change: Mapping[str, Any], corpus: CorpusSettings) -> None:
    """Refuse an experiment that has other own text than its run, which has some.

    Args:
        name: the experiment.
        change: its nested changes.
        corpus: the section of the run.

    Raises:
        SettingsError: it changes a setting that all experiments of a run share.
    """
    changed = change.get("corpus")
    if not isinstance(changed, Mapping) or names_own_text(change, corpus):
        return  # validation refuses other values
    for key in SHARED:
        if key in changed and changed[key] != (value := getattr(corpus, key)):
            raise SettingsError(
                f"experiment {name!r} changes corpus.{key} from {value!r} to {changed[key]!r}; all "
                f"experiments of a run share {[f'corpus.{shared}' for shared in SHARED]}: write a "
                "run file of its own for other text",
                keys=("corpus", key),
            )


def own_text_sources(settings: Settings) -> list[dict[str, Any]]:
    """Return the entries of `data.sources` for the files of own text that it does not list yet.

    Raises:
        SettingsError: a name matches no file, or a file of another format.
    """
    listed = {name for source in settings.data.sources for name in source.files}
    task_paths = files_of_tasks(settings)
    files_by_origin: dict[str, dict[str, str]] = {}  # origin -> files
    for key in ("files", "validation_files"):
        for index, pattern in enumerate(getattr(settings.corpus, key)):
            file = hub_file(pattern)
            names = (
                [file.path]
                if file
                else _files_of(settings, pattern, listed, task_paths, ("corpus", key, index))
            )
            entry = files_by_origin.setdefault(file.origin if file else ORIGIN, {})
            entry |= {name: "" for name in names if name not in listed}
    return [
        {"origin": origin, "licence": LICENCE if origin == ORIGIN else HUB_LICENCE, "files": files}
        for origin, files in files_by_origin.items()
        if files
    ]


def files_of_tasks(settings: Settings) -> frozenset[str]:
    """Return the names, below `data.folder`, of all files that a task of the run may read."""
    tasks = settings.tasks
    splits: list[Mapping[Any, Iterable[str]]] = [
        *(task.files for task in known_tasks(tasks).values()),
        *tasks.files.values(),
    ]
    return frozenset(
        PurePosixPath(tasks.folder, name).as_posix()
        for files in splits
        for names in files.values()
        for name in names
    )


def text_files(
    corpus: CorpusSettings, names: set[str], task_paths: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the raw files for training, and those for validation, ordered.

    Args:
        corpus: the section.
        names: all raw files of the run.
        task_paths: files of tasks (`files_of_tasks`). Patterns and folders leave them out, so that
            pre-training does not see texts of a score; a path names one of them.

    Raises:
        SettingsError: a file is for both.
    """
    train, validation = (
        sorted({name for pattern in patterns for name in _matching(names, pattern, task_paths)})
        for patterns in (corpus.files, corpus.validation_files)
    )
    # A held-out loss on rows of the training would say nothing.
    if shared := sorted(set(train) & set(validation)):
        raise SettingsError(
            f"corpus.files and corpus.validation_files both name {shared}; a row is in one split: "
            "name each file once",
            keys=("corpus", "validation_files"),
        )
    return train, validation


def _files_of(
    settings: Settings,
    pattern: str,
    listed: set[str],
    task_paths: Collection[str],
    keys: tuple[str, str, int],
) -> list[str]:
    """Return the files of a path, a pattern or a folder, below `data.folder` or listed."""
    path = PurePosixPath(pattern)
    folders = [folder for folder in (settings.data.source, settings.data.folder) if folder]
    if _is_plain(pattern) and format_of(pattern):  # it may still have to be fetched
        return [path.as_posix()]
    candidates = listed.union(*(_files_below(Path(folder), path) for folder in folders))
    names = sorted(_matching(candidates, pattern, task_paths))
    if not names and _is_plain(pattern) and not any((Path(f) / path).exists() for f in folders):
        raise SettingsError(
            f"corpus.{keys[1]} names {pattern!r}, and there is no such file or folder below "
            f"{' or '.join(folders)}; put it there (`dvc pull` fetches files of a clone), or "
            "correct the name",
            keys=keys,
        )
    if not names:
        raise SettingsError(
            f"corpus.{keys[1]} names {pattern!r}, which matches no file below "
            f"{' or '.join(folders)} and none of data.sources; put the files there (`dvc pull` "
            "fetches those of a clone), or correct the name (* stays within a folder, the name of "
            "a folder stands for all files below it, and a file of a task is named by its path)",
            keys=keys,
        )
    if unreadable := [name for name in names if format_of(name) is None]:
        raise SettingsError(
            f"corpus.{keys[1]} names {pattern!r}, which matches {unreadable[:3]}; files of own "
            f"text end in {ENDINGS}",
            keys=keys,
        )
    return names


def selected(
    names: Collection[str], pattern: str, matches: Callable[[str, str], bool]
) -> Iterable[str]:
    """Return the names that a pattern selects.

    A name with brackets that exists is that file, and its brackets are not a pattern.
    """
    if pattern in names:
        return [pattern]
    return (name for name in names if matches(name, pattern))


def _matching(names: Collection[str], pattern: str, task_paths: Collection[str]) -> Iterable[str]:
    exact = pattern if hub_file(pattern) else PurePosixPath(pattern).as_posix()
    return selected(names, exact, lambda name, text: _matches(name, text, task_paths))


def _is_plain(pattern: str) -> bool:
    return not any(mark in pattern for mark in "*?[")


def _matches(name: str, pattern: str, task_paths: Collection[str]) -> bool:
    """Return whether a file has a path, matches a pattern, or is readable and in a folder.

    A path may be an address of the Hub.
    """
    if hub := hub_file(pattern):
        return name == hub.path
    file, path = PurePosixPath(name), PurePosixPath(pattern)
    # Only its exact path selects a file with evaluated rows, never a pattern.
    if name in task_paths:
        return file == path
    if not _is_plain(pattern):  # part by part: * does not match a /
        return len(file.parts) == len(path.parts) and all(map(fnmatchcase, file.parts, path.parts))
    return file == path or (path in file.parents and format_of(name) is not None)


def _files_below(folder: Path, pattern: PurePosixPath) -> Iterator[str]:
    """Yield the files that a pattern may match, relative to the folder, without hidden ones."""
    if (folder / pattern).is_file():
        yield pattern.as_posix()
    start = pattern
    while not _is_plain(start.as_posix()):
        # The longest folder without a pattern: the walk need not begin at `data.folder`.
        start = start.parent
    for current, folders, files in os.walk(folder / start):
        # In place, so that `os.walk` skips hidden folders such as `.git` and `.cache`.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield (Path(current) / name).relative_to(folder).as_posix()
