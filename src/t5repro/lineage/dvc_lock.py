"""The content of `dvc.lock` and of `data.dvc`, read without DVC.

Both are YAML files in git: the first names, for each stage of `dvc.yaml`, its command, settings,
dependencies and outputs with their MD5, the second the folder of raw files.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from t5repro.errors import LineageError
from t5repro.files import has_conflict, read_file
from t5repro.strict_json import MAX_DEPTH

PIPELINE_FILE = "dvc.yaml"
LOCK_FILE = "dvc.lock"
SCHEMA = "2.0"  # of dvc.lock
GENERATED_FOLDER = "configs/resolved/"  # outputs of the stage `settings`, with `cache: false`
RAW_DATA_FILE = "data.dvc"
# Type -> pattern in YAML 1.2's core schema, and the characters that such a value begins with.
SCALARS = {
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "int": (r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    "float": (
        r"^[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$"
        r"|^\.(?:nan|NaN|NAN)$",
        list("-+.0123456789"),
    ),
}
FOLDER_SUFFIX = ".dir"  # ends the hash of a folder, which is the hash of its sorted file list


class YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads what DVC writes: YAML 1.2, where `off` and `12:30` are texts and `1e-06` is a number.

    PyYAML reads YAML 1.1. With libyaml it is ten times as fast as a reader of 1.2.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 as PyYAML declares it
        first: [
            (tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in SCALARS
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


for _name, (_pattern, _first_characters) in SCALARS.items():
    YamlLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(_pattern), _first_characters
    )


@dataclass(frozen=True)
class TrackedPath:
    """A file or folder that DVC tracks.

    Attributes:
        path: relative to the checkout.
        md5: of the file, or of the sorted file list of a folder, then with `FOLDER_SUFFIX`.
        stage: the stage of `dvc.yaml` that writes it; empty for raw files.
        length: bytes; None if the lock does not record them.
    """

    path: str
    md5: str
    stage: str = ""
    length: int | None = None

    @property
    def is_folder(self) -> bool:
        """Whether the hash is of a file list."""
        return self.md5.endswith(FOLDER_SUFFIX)

    @property
    def source(self) -> str:
        """The file that records the hash."""
        return LOCK_FILE if self.stage else RAW_DATA_FILE


@dataclass(frozen=True)
class LockedStage:
    """The entry of a stage in `dvc.lock`.

    Attributes:
        cmd: its command, or a list of commands.
        deps: path -> MD5 of its dependencies, code included.
        params: dotted name -> value of its settings.
        tracked_params: the keys that DVC tracks: of one setting each, or of all that are below.
        outs: path -> MD5 of its outputs.
    """

    cmd: Any = None
    deps: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    outs: Mapping[str, str] = field(default_factory=dict)
    tracked_params: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lock:
    """The content of `dvc.lock` and `data.dvc`.

    Attributes:
        outputs: all tracked files and folders: raw files first, then the outputs of stages in the
            order of `dvc.lock`.
        stages: name -> entry.
    """

    outputs: tuple[TrackedPath, ...] = ()
    stages: Mapping[str, LockedStage] = field(default_factory=dict)

    @property
    def cached_outputs(self) -> tuple[TrackedPath, ...]:
        """The outputs that DVC caches; git tracks the others, which are generated."""
        return tuple(output for output in self.outputs if not is_in_git(output.path))


def is_in_git(path: str) -> bool:
    """Return whether an output of a stage is tracked by git and not cached by DVC."""
    return path.startswith(GENERATED_FOLDER)


def read_lock(root: Path = Path()) -> Lock:
    """Return the lock of a checkout; it is empty if the files do not exist.

    Raises:
        LineageError: a file is not in DVC's format.
    """
    return parse_lock(_bytes_of(root / LOCK_FILE), _bytes_of(root / RAW_DATA_FILE))


def _bytes_of(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise  # the command line names the file
    except OSError as error:
        raise LineageError(
            f"{path.name} cannot be read: {error.strerror}; restore it with git checkout"
        ) from error


def parse_lock(lock: bytes | None, raw_data: bytes | None = None) -> Lock:
    """Return the content of the two files.

    Args:
        lock: the bytes of `dvc.lock`, if the file exists.
        raw_data: the bytes of `data.dvc`, if the file exists.

    Raises:
        LineageError: a file is not in DVC's format, or has the marks of a conflict.
    """
    outputs: list[TrackedPath] = []
    stages: dict[str, LockedStage] = {}
    for name, data in ((RAW_DATA_FILE, raw_data), (LOCK_FILE, lock)):
        if data is not None and has_conflict(data):
            raise LineageError(
                f"{name} has the marks of a conflict of git: take one side, with git checkout "
                f"--ours {name} or --theirs, then run snakemake, which seals what is built"
            )
    name = RAW_DATA_FILE
    try:
        if raw_data is not None:
            outputs += [_tracked(entry, "") for entry in parse_yaml(raw_data)["outs"]]
        name = LOCK_FILE
        if lock is not None:
            content = parse_yaml(lock)
            if content in (None, {}):
                content = {"schema": SCHEMA}
            if content["schema"] != SCHEMA:
                raise TypeError(f"schema {content['schema']!r}; expected {SCHEMA!r}")
            for stage, entry in (content.get("stages") or {}).items():
                stages[stage] = _locked_stage(entry)
                outputs += [_tracked(output, stage) for output in entry.get("outs", [])]
    except (yaml.YAMLError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise LineageError(
            f"{name} is not in DVC's format ({error}); restore it with git checkout"
        ) from error
    return Lock(tuple(outputs), stages)


def _tracked(entry: Mapping[str, Any], stage: str) -> TrackedPath:
    path = entry["path"]
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} is outside the checkout")
    if not isinstance(entry["md5"], str):
        raise ValueError(f"the md5 of {path!r} is {entry['md5']!r}")
    return TrackedPath(path, entry["md5"], stage, entry.get("size"))


def _locked_stage(entry: Mapping[str, Any]) -> LockedStage:
    params: dict[str, Any] = {}
    for values in (entry.get("params") or {}).values():  # one mapping for each settings file
        params.update(values)
    return LockedStage(
        cmd=entry.get("cmd"),
        deps={dep["path"]: str(dep.get("md5", "")) for dep in entry.get("deps", [])},
        params=dict(_flat(params)),
        outs={output["path"]: output["md5"] for output in entry.get("outs", [])},
        tracked_params=tuple(params),
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted name and value of settings; older locks have the dotted names themselves."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def parse_yaml(data: bytes) -> Any:
    """Return the values of a YAML text that DVC wrote.

    Raises:
        yaml.YAMLError: it is not YAML, or has what DVC never writes: aliases, of which the
            expansion has no limit, or deep nesting.
    """
    depth = 0  # checked before: LibYAML ends the process at 100,000 levels
    for event in yaml.parse(data, Loader=YamlLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias (*name)")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"it is nested more than {MAX_DEPTH} levels deep")
    return yaml.load(data, Loader=YamlLoader)  # noqa: S506 a safe loader


def folder_md5(hashes: Mapping[str, str]) -> str:
    """Return DVC's hash of a folder, from relative path -> MD5 of its files."""
    # DVC sorts by path components, so `a/b` precedes `a.b`; sorted strings would differ.
    names = sorted(hashes, key=lambda name: name.split("/"))
    text = json.dumps([{"md5": hashes[name], "relpath": name} for name in names])
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() + FOLDER_SUFFIX
