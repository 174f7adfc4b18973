"""Short forms of a run file: sources of another file, one experiment for each entry of a mapping.

They are expanded before validation. Settings, manifests and reports contain the expanded lists.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.field import Name, Section
from t5repro.config.origins import FREE_KEYS, read_parts
from t5repro.config.project_files import project_file
from t5repro.config.schema import Experiment
from t5repro.config.sections.data import RawFiles
from t5repro.config.tree import lookup, merged
from t5repro.config.validation import validate
from t5repro.errors import Keys, SettingsError, nearest
from t5repro.files import read_file
from t5repro.task_table import BY_NAME

TASK_SOURCES = Path("configs/sources/tasks.yaml")


class IncludedSources(Section):
    """Entry of `data.sources` that stands for the entries of another file."""

    include: str
    """File with a list of entries of `data.sources`, such as `configs/sources/tasks.yaml`."""
    tasks: list[str] = []
    """Tasks of the paper: their files are included. If empty, all entries are included."""


class ExperimentForEach(Experiment):
    """Entry of `experiments` that stands for one experiment per key of `for_each`."""

    for_each: dict[Name, dict[str, Any]] = Field(min_length=1)
    """Suffix of the experiment's name -> settings that it changes in addition to `change`. Suffix
    `b` of experiment `a` defines the experiment `a_b`.
    """


def expand(tree: dict[str, Any]) -> dict[Keys, Keys]:
    """Expand the short forms in a tree of settings, in place.

    Returns:
        path of a list entry in the expanded tree -> its path in the run file, where they differ.

    Raises:
        SettingsError: a short form is invalid, or an included file cannot be read.
    """
    original_paths: dict[Keys, Keys] = {}
    data = tree.get("data")
    if isinstance(data, dict) and isinstance(data.get("sources"), list):
        data["sources"] = _expand_list(
            data["sources"], ("data", "sources"), "include", _included_sources, original_paths
        )
    if isinstance(tree.get("experiments"), list):
        tree["experiments"] = _expand_list(
            tree["experiments"], ("experiments",), "for_each", _experiments, original_paths
        )
    return original_paths


def _expand_list(
    entries: list[Any], keys: Keys, marker: str, expand_entry: Any, original_paths: dict[Keys, Keys]
) -> list[Any]:
    """Return a list in which entries with the key `marker` are expanded."""
    expanded: list[Any] = []
    for index, entry in enumerate(entries):
        if isinstance(entry, Mapping) and marker in entry:
            expanded += expand_entry(entry, (*keys, index))
        else:
            if len(expanded) != index:
                original_paths[*keys, len(expanded)] = (*keys, index)
            expanded.append(entry)
    return expanded


def _included_sources(entry: Mapping[str, Any], keys: Keys) -> list[dict[str, Any]]:
    included = validate(IncludedSources, entry, keys=keys)
    try:
        sources = read_sources(Path(included.include))
        return select_sources(sources, included.tasks) if included.tasks else sources
    except SettingsError as error:
        error.keys = keys
        raise


def _experiments(entry: Mapping[str, Any], keys: Keys) -> list[dict[str, Any]]:
    template = validate(ExperimentForEach, entry, keys=keys)
    common = {key: value for key, value in entry.items() if key != "for_each"}
    return [
        {
            **common,
            "name": f"{template.name}_{suffix}",
            "change": _combined(template.change, change),
        }
        for suffix, change in template.for_each.items()
    ]


def _combined(change: Mapping[str, Any], addition: Mapping[str, Any]) -> dict[str, Any]:
    """Return both changes; the addition wins, also if one is dotted and the other nested."""
    combined = dict(change)
    for key, value in addition.items():
        # Appended at the end: a later key wins when dotted keys are expanded.
        present = combined.pop(key, None)
        is_section = isinstance(present, Mapping) and isinstance(value, Mapping)
        if is_section and key.rpartition(".")[2] not in FREE_KEYS:
            value = _combined(present, value)
        combined[key] = value
    return combined


def included_files(path: Path) -> list[Path]:
    """Return the files that a run file includes: other run files, and those of `data.sources`.

    Raises:
        SettingsError: a run file cannot be read.
    """
    *included, own = read_parts(path.as_posix())
    tree = merged(part.values for part in (*included, own))
    entries = lookup(tree, "data", "sources") or []
    sources = [Path(entry["include"]) for entry in entries if "include" in entry]
    return [*(Path(part.file) for part in included), *sources]


def read_sources(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a file of sources.

    Raises:
        SettingsError: the file cannot be read, or is not a list of entries of `data.sources`.
    """
    try:
        sources = parse_yaml(read_file(project_file(path)).decode("utf-8"), str(path))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not YAML: {error}") from error
    if not isinstance(sources, list):
        raise SettingsError(
            f"{path} contains a {type(sources).__name__}; it must be a list of entries of "
            "data.sources"
        )
    for index, source in enumerate(sources):
        validate(RawFiles, source, label=f"{path}, entry {index}: ")
    return sources


def select_sources(sources: Iterable[dict[str, Any]], tasks: Iterable[str]) -> list[dict[str, Any]]:
    """Return the entries with at least one file of the given tasks.

    Raises:
        SettingsError: a task is not one of the paper's.
    """
    paths: set[str] = set()
    for task in tasks:
        if task not in BY_NAME:
            raise SettingsError(
                f"unknown task {task!r}; tasks are {sorted(BY_NAME)}{nearest(task, BY_NAME)}"
            )
        paths |= {f"tasks/{path}" for files in BY_NAME[task].files.values() for path in files}
    return [source for source in sources if paths & set(source["files"])]


def task_sources(tasks: Iterable[str]) -> list[dict[str, Any]]:
    """Return the original sources of tasks of the paper, as entries of `data.sources`."""
    return select_sources(read_sources(TASK_SOURCES), tasks)
