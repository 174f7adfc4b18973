"""Compares the lists of withdrawn sources with git: no entry of HEAD's history may vanish.

A bad merge, a revert or a deleted file would make a withdrawn page part of the next run. An entry
that is to be used again is written below `lifted`, with the reason.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.field import Section
from t5repro.config.withdrawn import (
    FILE_LISTS,
    FILES,
    PAGE_LISTS,
    PAGES,
    UNFINISHED,
    WithdrawnFiles,
    WithdrawnPages,
    parse_list,
    read_files,
    read_pages,
)
from t5repro.errors import LineageError, SettingsError
from t5repro.lineage.findings import ALTERED, MISSING, NOT_COMPARED, Finding
from t5repro.lineage.git import contents, files_at, is_shallow, project_prefix, try_git
from t5repro.progress import announce

LISTS = {FILES: FILE_LISTS, PAGES: PAGE_LISTS}
SHALLOW = (
    "this clone is shallow: withdrawals of commits that it lacks were not compared with the lists "
    "of withdrawn sources; get them with git fetch --unshallow"
)


def lost_withdrawals(root: Path, revision: str = "") -> dict[tuple[str, str], str]:
    """Return (list, entry) -> commit of each withdrawn source that is neither listed nor lifted.

    Args:
        root: the checkout.
        revision: full hash of the commit that has the lists and the history; the lists of the
            checkout and the history of HEAD if empty.

    Raises:
        SettingsError: a list cannot be read.
    """
    now = {name: entries.model_dump() for name, entries in _lists(root, revision).items()}
    # --full-history: by default git leaves out the side of a merge whose list was dropped.
    question = ("log", "--full-history", "--format=%H", revision or "HEAD", "--", *map(str, LISTS))
    commits = (try_git(root, *question) or b"").decode().split()
    if not commits:
        return {}
    lost: dict[tuple[str, str], str] = {}
    prefix = project_prefix(root)
    texts = contents(root, [f"{commit}:{prefix}{name}" for commit in commits for name in LISTS])
    for commit in commits:  # newest first
        for name, keys in LISTS.items():
            data = texts[f"{commit}:{prefix}{name}"]
            for key, entry in _entries(data, keys) if data else ():
                if entry not in now[name][key] and entry not in now[name]["lifted"]:
                    lost.setdefault((name.as_posix(), entry), commit)
    return lost


def _lists(root: Path, revision: str) -> dict[Path, Section]:
    if not revision:
        return {FILES: read_files(root / FILES), PAGES: read_pages(root / PAGES)}
    committed = files_at(root, revision, [name.as_posix() for name in LISTS])
    models: dict[Path, type[Section]] = {FILES: WithdrawnFiles, PAGES: WithdrawnPages}
    return {
        name: parse_list(committed.get(name.as_posix(), b""), name, model)
        for name, model in models.items()
    }


def _entries(data: bytes, keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    try:
        values = parse_yaml(data.decode("utf-8"), "")
    except (SettingsError, UnicodeDecodeError):
        return  # a merge with marks of conflicts; both of its sides are read
    for key in keys if isinstance(values, Mapping) else ():
        entries: Any = values.get(key)
        if isinstance(entries, Mapping):
            yield from ((key, str(entry)) for entry in entries)


def _cure(name: str, commit: str) -> str:
    return (
        f"commit {commit[:12]} withdraws it; restore the line with git show {commit[:12]}:{name}, "
        "or write it below lifted: with the reason"
    )


def check_withdrawals(root: Path, revision: str = "") -> Iterator[Finding]:
    """Report entries that the lists have lost, and a withdrawal that was stopped.

    A shallow clone has a part of the history, which is a warning.

    Args:
        root: the checkout.
        revision: as of `lost_withdrawals`.
    """
    if not revision and (root / UNFINISHED).exists():
        message = "a withdrawal was stopped before its end; repeat it"
        yield Finding(ALTERED, UNFINISHED.as_posix(), "", message)
    try:
        removed = lost_withdrawals(root, revision)
    except SettingsError as error:
        yield Finding(ALTERED, f"{FILES.parent}", "", str(error))
        return
    if is_shallow(root):
        yield Finding(NOT_COMPARED, f"{FILES.parent}", "", SHALLOW)
    for (name, entry), commit in removed.items():
        yield Finding(MISSING, f"{name}: {entry}", "", _cure(name, commit))


def require_withdrawals(root: Path = Path()) -> None:
    """Refuse to plan a run that could use a source whose withdrawal was lost.

    In a shallow clone, which cannot show all of them, a line says so.

    Raises:
        LineageError: an entry of HEAD's history is neither listed nor lifted.
        SettingsError: a list cannot be read.
    """
    for (name, entry), commit in lost_withdrawals(root).items():
        raise LineageError(f"{name} has lost {entry}: {_cure(name, commit)}")
    if is_shallow(root):
        announce(SHALLOW)
