"""What `corpus.files` decides when settings are loaded: other settings, and raw files.

A run file names its own text once. The rules of C4, the languages and the entries of
`data.sources` follow from that, unless the run file sets them itself.
"""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from t5repro.config.schema import Settings
from t5repro.config.sections.corpus import ENDINGS, CorpusSettings, format_of
from t5repro.errors import SettingsError

ORIGIN = "own text, named by corpus.files"
LICENCE = "that of the owner"
UNFILTERED = {
    "clean": {"enabled": False, "min_paragraphs": 0, "bad_words": "off"},
    "dedup": {"unit": "off"},
}


def own_text_settings(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that follow from own text, for a tree of settings that names it.

    Args:
        tree: nested settings of a run file or an experiment.
    """
    corpus = tree.get("corpus")
    if not isinstance(corpus, Mapping) or not corpus.get("files"):
        return {}
    c4: dict[str, Any] = {"punkt_training": False}
    if corpus.get("filters", "off") == "off":
        c4 |= UNFILTERED
    settings: dict[str, Any] = {"c4": c4}
    if "tasks" not in tree:
        settings["tasks"] = {"names": []}
    if language := corpus.get("language"):
        c4["languages"] = [language]
        settings["tokens"] = {"languages": [language]}
        settings["vocab"] = {"language_parts": {language: 1}}
    return settings


def own_text_sources(settings: Settings) -> list[dict[str, Any]]:
    """Return the entries of `data.sources` for the files of own text that it does not list yet.

    Raises:
        SettingsError: a name matches no file, or a file of another format.
    """
    listed = {name for source in settings.data.sources for name in source.files}
    found = {
        name: ""
        for key in ("files", "validation_files")
        for index, pattern in enumerate(getattr(settings.corpus, key))
        for name in _files_of(settings, pattern, listed, ("corpus", key, index))
        if name not in listed
    }
    return [{"origin": ORIGIN, "licence": LICENCE, "files": found}] if found else []


def text_files(corpus: CorpusSettings, names: set[str]) -> tuple[list[str], list[str]]:
    """Return the raw files for training, and those for validation, ordered.

    Args:
        corpus: the section.
        names: all raw files of the run.

    Raises:
        SettingsError: a file is for both.
    """
    train, validation = (
        sorted(name for name in names if any(_matches(name, pattern) for pattern in patterns))
        for patterns in (corpus.files, corpus.validation_files)
    )
    if shared := sorted(set(train) & set(validation)):
        raise SettingsError(
            f"corpus.files and corpus.validation_files both name {shared}; a row is in one split: "
            "name each file once",
            keys=("corpus", "validation_files"),
        )
    return train, validation


def _files_of(
    settings: Settings, pattern: str, listed: set[str], keys: tuple[str, str, int]
) -> list[str]:
    """Return the files of a path, a pattern or a folder, below `data.folder` or listed."""
    if _is_plain(pattern) and format_of(pattern):
        return [pattern]  # it may still have to be fetched
    folders = [folder for folder in (settings.data.source, settings.data.folder) if folder]
    names = sorted(
        name
        for name in listed.union(*(_files_below(Path(folder), pattern) for folder in folders))
        if _matches(name, pattern)
    )
    if not names:
        raise SettingsError(
            f"corpus.{keys[1]} names {pattern!r}, which matches no file below "
            f"{' or '.join(folders)} and none of data.sources; put the files there (`dvc pull` "
            "fetches those of a clone), or correct the name",
            keys=keys,
        )
    if unreadable := [name for name in names if format_of(name) is None]:
        raise SettingsError(
            f"corpus.{keys[1]} names {pattern!r}, which matches {unreadable[:3]}; files of own "
            f"text end in {ENDINGS}",
            keys=keys,
        )
    return names


def _is_plain(pattern: str) -> bool:
    return not any(mark in pattern for mark in "*?[")


def _matches(name: str, pattern: str) -> bool:
    """Return whether a file has a path, matches a pattern, or is readable and in a folder."""
    if not _is_plain(pattern):
        return fnmatch(name, pattern)
    in_folder = name.startswith(pattern.rstrip("/") + "/") and format_of(name) is not None
    return name == pattern or in_folder


def _files_below(folder: Path, pattern: str) -> Iterator[str]:
    """Yield the files that a pattern may match, relative to the folder, without hidden ones."""
    start = PurePosixPath(pattern)
    while not _is_plain(start.as_posix()):
        start = start.parent
    if (folder / start).is_file():
        yield start.as_posix()
    for current, folders, files in os.walk(folder / start):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield (Path(current) / name).relative_to(folder).as_posix()
