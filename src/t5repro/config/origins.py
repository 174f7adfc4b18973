"""Which line of which run file states a setting, so that a refusal says where to look.

PyYAML keeps the line of every node it reads. `Origins` holds them by place in the tree of settings;
`naming` puts file and line in front of a `SettingsError` that is raised inside it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from t5repro.errors import SettingsError

Place = tuple[str | int, ...]

# Mappings whose keys the user invents:
FREE_KEYS = {
    "bad_word_lists",
    "punkt_parameters",
    "language_parts",
    "files",
    "change",
    "own",
    "mixture_weights",
    "conf",
}

COMMAND_LINE = "--config"
NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
ONE_WORD = {"seed", "experiments"}  # settings without a dot; other single words are prose


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        SettingsError: it is missing, not YAML, not a mapping, or states a key twice.
    """
    return read_with_lines(path)[0]


def read_with_lines(path: Path) -> tuple[dict[str, Any], dict[Place, int]]:
    """Read a YAML mapping, and the line of everything that it states.

    Raises:
        SettingsError: it is missing, not YAML, not a mapping, or states a key twice.
    """
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        lines = dict(_lines(root, str(path))) if root is not None else {}
        values = loader.construct_document(root) if root is not None else {}
    except FileNotFoundError as error:
        raise SettingsError(f"{path} is missing; run files are in configs/") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} is not YAML: {error}") from error
    if values is None:
        return {}, {}
    if not isinstance(values, dict):
        raise SettingsError(
            f"{path} holds a {type(values).__name__}; it must map settings to values"
        )
    return values, lines


def _lines(root: yaml.Node, path: str) -> Iterator[tuple[Place, int]]:
    stated: dict[Place, int] = {}
    for place, line, is_leaf in _nodes(root, (), free=False, path=path):
        if is_leaf and place in stated:
            raise _twice(path, line, ".".join(map(str, place)), stated[place])
        if is_leaf:
            stated[place] = line
        yield place, line


def _nodes(node: yaml.Node, place: Place, *, free: bool, path: str) -> Iterator[Any]:
    """Yield place, line and whether nothing is below it, for all that a node holds."""
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _named(item, (*place, number), item, free=free, path=path)
    elif isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in first:
                raise _twice(path, line, name, first[name])
            first[name] = line
            words = (name,) if free else tuple(name.split("."))
            for length in range(1, len(words)):
                yield (*place, *words[:length]), line, False
            below = words[-1] in FREE_KEYS and words[-1] != "change"
            yield from _named(value, (*place, *words), key, free=free or below, path=path)


def _named(
    node: yaml.Node, place: Place, mark: yaml.Node, *, free: bool, path: str
) -> Iterator[Any]:
    is_leaf = isinstance(node, yaml.ScalarNode) or not node.value
    yield place, mark.start_mark.line + 1, is_leaf
    yield from _nodes(node, place, free=free, path=path)


def _twice(path: str, line: int, name: str, first: int) -> SettingsError:
    return SettingsError(
        f"{path}:{line}: {name!r} is stated a second time, first in line {first}; "
        "state it once: YAML would drop one of the two without a word"
    )


class Origins:
    """Where the settings of a run are stated.

    Args:
        files: run files; a later one wins.
        overrides: dotted or nested settings of the command line, which win over files.

    Raises:
        SettingsError: a file cannot be read.
    """

    def __init__(self, files: Sequence[Path], overrides: Mapping[str, Any] | None = None) -> None:
        self.files = [_shown(path) for path in files]
        self._where: dict[Place, str] = {}
        self._arms: list[str] = []
        for shown in self.files:
            values, lines = read_with_lines(Path(shown))
            arms = values.get("experiments")
            if isinstance(arms, list):
                self._arms = [str(arm.get("name")) for arm in arms if isinstance(arm, dict)]
                self._forget(("experiments",))
            self._where |= {place: f"{shown}:{line}" for place, line in lines.items()}
        self._where |= dict.fromkeys(_places(overrides or {}), COMMAND_LINE)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Put file and line in front of a `SettingsError` that is raised inside."""
        try:
            yield
        except SettingsError as error:
            where = self.of(error)
            if str(error).startswith(where):  # the file's own fault, already named
                raise
            raise SettingsError(f"{where}: {error}") from error

    def of(self, error: SettingsError) -> str:
        """Return where the setting is stated that an error is about: file and line, or the file."""
        for place in self._candidates(error):
            if place in self._where:
                return self._where[place]
        return ", ".join(self.files) or "the run file"

    def _candidates(self, error: SettingsError) -> Iterator[Place]:
        """Yield where the setting may be stated, the most exact place first."""
        words = [tuple(name.split(".")) for name in NAME.findall(str(error))]
        named = [word for word in words if len(word) > 1 or word[0] in ONE_WORD]
        place = error.keys
        exact = [(*place, *word) for word in words] if place else []
        exact += [place[:length] for length in range(len(place), 1, -1)] or [place]
        arm = self._arm(error.experiment)
        for start in ((*arm, "change"), arm) if arm else ():
            yield from ((*start, *below) for below in (*exact, *named) if below)
        yield from (*exact, *named)
        yield from (arm, place[:1])

    def _arm(self, name: str) -> Place:
        """Return the place of an experiment, or of the one whose seed it is."""
        for number, known in enumerate(self._arms):
            if name == known or name.startswith(f"{known}_seed_"):
                return ("experiments", number)
        return ()

    def _forget(self, start: Place) -> None:
        self._where = {
            place: where for place, where in self._where.items() if place[: len(start)] != start
        }


def _shown(path: Path) -> str:
    """Return a path relative to the folder of the checkout where it lies there."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_absolute() and path.is_relative_to(here) else path)


def _places(values: Mapping[str, Any], start: Place = ()) -> Iterator[Place]:
    """Yield the places that overrides state, without those of whole sections."""
    for key, value in values.items():
        place = (*start, *str(key).split("."))
        if isinstance(value, Mapping) and value:
            yield from _places(value, place)
        else:
            yield place
