"""File and line of every setting of a run file, so that an error states where to correct it.

PyYAML keeps the line of every node. `Origins` maps the path of a setting to its file and line, and
`Origins.located_errors` prepends them to the message of a `SettingsError`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from t5repro.config.bounded_yaml import construct, read_node, set_twice
from t5repro.config.project_files import project_file
from t5repro.errors import Keys, SettingsError
from t5repro.files import read_file

# Mappings with keys of the user:
FREE_KEYS = {
    "bad_word_lists",
    "punkt_parameters",
    "language_parts",
    "files",
    "change",
    "own",
    "mixture_weights",
    "conf",
    "groups",
}
# Of these, the values are settings again, so that their dots separate sections.
OF_SETTINGS = {"change", "groups"}

COMMAND_LINE = "--config"
INCLUDE = "include"  # key of a run file: the run files that it changes
NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
UNDOTTED = {"seed", "experiments"}  # settings without a dot; other single words are prose


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        SettingsError: the file is missing, not YAML, not a mapping, or sets a key twice.
    """
    return read_with_lines(path)[0]


def read_with_lines(path: Path) -> tuple[dict[str, Any], dict[Keys, int]]:
    """Read a YAML mapping.

    Returns:
        The mapping, and the line of every key and list entry.

    Raises:
        SettingsError: the file is missing, not YAML, not a mapping, or sets a key twice.
    """
    try:
        text = read_file(path).decode("utf-8")
    except FileNotFoundError as error:
        raise SettingsError(f"{path} is missing; run files are in configs/") from error
    except PermissionError:
        raise  # the command line names the file
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}; name a run file, such as configs/demo.yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not YAML: {error}") from error
    # Composed before it is constructed: only nodes have lines.
    root = read_node(text, str(path))
    if root is None:
        return {}, {}
    try:
        lines = dict(_lines(root, str(path)))
    except RecursionError as error:
        raise SettingsError(f"{path} is nested too deeply") from error
    values = construct(root, str(path))
    if values is None:
        return {}, {}
    if not isinstance(values, dict):
        raise SettingsError(
            f"{path} contains a {type(values).__name__}; it must map settings to values"
        )
    return values, lines


class Part(NamedTuple):
    """A run file, without its `include`.

    Attributes:
        file: its name.
        values: its settings, nested or dotted.
        lines: the line of every key and list entry.
    """

    file: str
    values: dict[str, Any]
    lines: dict[Keys, int]


def read_parts(file: str, earlier: set[str] | None = None) -> Iterator[Part]:
    """Yield the run files that a run file includes, each after those that it includes, and itself.

    Args:
        file: its name.
        earlier: names of the files that were read before for the same run file.

    Raises:
        SettingsError: a file cannot be read, `include` is not a list of files, or a file is
            included twice, perhaps by itself.
    """
    earlier = set() if earlier is None else earlier
    if file in earlier:
        raise SettingsError(
            f"{file} is included a second time, which would undo what replaces its settings; "
            "include it once"
        )
    earlier.add(file)
    values, lines = read_with_lines(Path(file))
    included = values.pop(INCLUDE, [])
    if not isinstance(included, list) or not all(isinstance(name, str) for name in included):
        raise SettingsError(
            f"{file}:{lines[INCLUDE,]}: {INCLUDE} is {included!r}; it must be a list of run files, "
            "such as [configs/base.yaml]"
        )
    for name in included:
        try:
            yield from read_parts(str(project_file(Path(name))), earlier)
        except SettingsError as error:
            raise SettingsError(f"{file}:{lines[INCLUDE,]}: {error}") from error
    yield Part(file, values, lines)


def _lines(root: yaml.Node, file: str) -> Iterator[tuple[Keys, int]]:
    leaf_lines: dict[Keys, int] = {}
    for keys, line, is_leaf in _nodes(root, (), free=False, file=file):
        # `a.b: 1` and `a: {b: 2}` are two YAML keys but one setting, which YAML cannot notice.
        if is_leaf and keys in leaf_lines:
            raise set_twice(file, line, ".".join(map(str, keys)), leaf_lines[keys])
        if is_leaf:
            leaf_lines[keys] = line
        yield keys, line


def _nodes(
    node: yaml.Node, keys: Keys, *, free: bool, file: str
) -> Iterator[tuple[Keys, int, bool]]:
    """Yield path, line and whether it is a leaf, for everything below a node.

    Args:
        node: node of the YAML file.
        keys: its path in the tree of settings.
        free: whether the user chooses the keys, so that a dot in them has no meaning.
        file: name of the file, for messages.
    """
    if isinstance(node, yaml.SequenceNode):
        for index, entry in enumerate(node.value):
            yield from _value_nodes(entry, (*keys, index), entry, free=free, file=file)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            # A dotted name is a path of sections, and each of them has the line of the name.
            parts = (name,) if free else tuple(name.split("."))
            for length in range(1, len(parts)):
                yield (*keys, *parts[:length]), line, False
            free_below = free or parts[-1] in FREE_KEYS - OF_SETTINGS
            yield from _value_nodes(value, (*keys, *parts), key, free=free_below, file=file)


def _value_nodes(
    node: yaml.Node, keys: Keys, position: yaml.Node, *, free: bool, file: str
) -> Iterator[tuple[Keys, int, bool]]:
    is_leaf = isinstance(node, yaml.ScalarNode) or not node.value
    yield keys, position.start_mark.line + 1, is_leaf
    yield from _nodes(node, keys, free=free, file=file)


class Origins:
    """Files and lines of the settings of a run.

    Attributes:
        values: settings of each file and of those that it includes, so that none is parsed twice.

    Args:
        files: run files. Later ones replace settings of earlier ones, and of those they include.
        overrides: settings of the command line, nested or dotted. They replace the files'.

    Raises:
        SettingsError: a file cannot be read.
    """

    def __init__(self, files: Sequence[Path], overrides: Mapping[str, Any] | None = None) -> None:
        self.files = [_display_name(path) for path in files]
        self.values: list[dict[str, Any]] = []
        self._origins: dict[Keys, str] = {}
        self._experiments: dict[str, Keys] = {}
        for file, values, lines in chain.from_iterable(map(read_parts, self.files)):
            self.values.append(values)
            if isinstance(values.get("experiments"), list):
                self._experiments = dict(_experiment_paths(values["experiments"]))
                # A later list replaces the earlier one as a whole, and its lines with it.
                self._drop(("experiments",))
            self._origins |= {keys: f"{file}:{line}" for keys, line in lines.items()}
        # Last, as the command line replaces what files set.
        self._origins |= dict.fromkeys(_leaf_paths(overrides or {}), COMMAND_LINE)

    @contextmanager
    def located_errors(self) -> Iterator[None]:
        """Prepend file and line to the message of a `SettingsError` raised in the block."""
        try:
            yield
        except SettingsError as error:
            if str(error).startswith(self.of(error)):  # about the file itself, already located
                raise
            # A setting that follows from another one repeats its fault, and is in no file.
            further = [fault for fault in error.further if self._is_set(fault.keys)]
            for fault in further:
                fault.experiment = error.experiment
            lines = [f"{self.of(fault)}: {fault.message}" for fault in (error, *further)]
            raise SettingsError("\n".join(lines)) from error

    def _is_set(self, keys: Keys) -> bool:
        """Return whether a setting, or what contains it, is in a file or on the command line."""
        return any(keys[:length] in self._origins for length in range(len(keys), 1, -1))

    def of(self, error: SettingsError) -> str:
        """Return file and line of the setting that an error concerns, or the files."""
        for keys in self._candidates(error):
            if keys in self._origins:
                return self._origins[keys]
        return ", ".join(self.files) or "the run file"

    def _candidates(self, error: SettingsError) -> Iterator[Keys]:
        """Yield the paths that the error may concern, the most exact first."""
        names = [tuple(name.split(".")) for name in NAME.findall(error.message)]
        settings: list[Keys] = [name for name in names if len(name) > 1 or name[0] in UNDOTTED]
        keys = error.keys
        exact: list[Keys] = [(*keys, *name) for name in names] if keys else []
        exact += [keys[:length] for length in range(len(keys), 1, -1)] or [keys]
        experiment = self._experiment_path(error.experiment)
        # Of `for_each`: its own changes, then those that it shares with the other suffixes.
        entry = experiment[:2]
        for prefix in (experiment, (*entry, "change"), entry) if experiment else ():
            yield from ((*prefix, *below) for below in (*exact, *settings) if below)
        yield from (*exact, *settings)
        yield from (experiment, entry, keys[:1])

    def _experiment_path(self, name: str) -> Keys:
        """Return the path of an experiment, or of the entry with the seeds of which it is one."""
        if name in self._experiments:
            return self._experiments[name]
        return next(
            (
                keys
                for entry_name, keys in self._experiments.items()
                if name.startswith(f"{entry_name}_seed_")
            ),
            (),
        )

    def _drop(self, prefix: Keys) -> None:
        self._origins = {
            keys: origin for keys, origin in self._origins.items() if keys[: len(prefix)] != prefix
        }


def _experiment_paths(entries: list[Any]) -> Iterator[tuple[str, Keys]]:
    """Yield the name of every experiment of a run file, and the path of its entry."""
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        keys = ("experiments", index)
        suffixes = entry.get("for_each")
        if isinstance(suffixes, dict):
            for suffix in suffixes:
                yield f"{entry.get('name')}_{suffix}", (*keys, "for_each", str(suffix))
        else:
            yield str(entry.get("name")), keys


def _display_name(path: Path) -> str:
    """Return a path relative to the checkout, if it is inside."""
    folder = Path.cwd()
    return str(
        path.relative_to(folder) if path.is_absolute() and path.is_relative_to(folder) else path
    )


def _leaf_paths(values: Mapping[str, Any], prefix: Keys = ()) -> Iterator[Keys]:
    """Yield the paths of overrides, without sections."""
    for key, value in values.items():
        keys = (*prefix, *str(key).split("."))
        if isinstance(value, Mapping) and value:
            yield from _leaf_paths(value, keys)
        else:
            yield keys
