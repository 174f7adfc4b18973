"""The closure of a rule, which decides whether edited code makes the rule stale.

It is the definitions that the rule's entry module reaches (`lineage/reach.py`). A rule's code is
one input file, ``configs/resolved/code/<rule>.json``: each source file of the closure with a hash
of the syntax trees of its counted definitions. Snakemake and DVC compare this file, so a rule
reruns when its code changes. Docstrings, comments and layout are not in the trees: rewording reruns
nothing. Records keep the SHA-256 of every byte of the files that Python runs.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import t5repro
from t5repro.files import sha256_of, write_text
from t5repro.lineage.reach import Modules, Reach, reach_of
from t5repro.lineage.remembered_closures import remembered_closures
from t5repro.lineage.syntax import SourceFacts, facts_of
from t5repro.stages import BY_NAME, STAGES

PACKAGE = Path(t5repro.__file__).parent
SOURCES = PurePosixPath("src/t5repro")  # names of sources begin with it, in a wheel as well
RESOLVED = Path("configs/resolved")  # settings of runs, and code of rules
CLOSURES = RESOLVED / "code"
PREFIX = "t5repro."
RESOURCES = {".css", ".j2", ".js", ".json"}  # data files that modules read from their own folder


class SourceTree:
    """The source files of a package as they are now, each read once.

    Rules share most of their modules, so one tree answers for all of them. A later edit needs a new
    tree.

    Args:
        facts_of: returns the facts about a source text, given its text and its name.
        package: folder of the package; by default the one that runs.
    """

    def __init__(
        self, facts_of: Callable[[str, str], SourceFacts] = facts_of, package: Path | None = None
    ) -> None:
        self._package = package or PACKAGE
        self._parse = facts_of
        self._modules = Modules(self._package, self._read)
        self._reached: dict[str, Reach] = {}
        self._hashes: dict[str, dict[str, str]] = {}

    def files(self, module: str) -> tuple[str, ...]:
        """Return the files that Python runs for a module; see `source_files`."""
        reach = self._reach(module)
        return tuple(sorted(map(self._name, {*reach.files, *self._resources(reach)})))

    def hashes(self, module: str) -> dict[str, str]:
        """Return source file -> hash of its counted definitions, for the closure of a module."""
        if module not in self._hashes:
            reach = self._reach(module)
            hashes = {
                self._name(path): hashlib.sha256("".join(digests).encode()).hexdigest()
                for path, digests in reach.definitions.items()
            }
            hashes |= {self._name(path): sha256_of(path) for path in self._resources(reach)}
            self._hashes[module] = dict(sorted(hashes.items()))
        return self._hashes[module]

    def closure(self, rule: str) -> dict[str, str]:
        """Return source file -> hash of its counted definitions, for the closure of a rule."""
        return self.hashes(BY_NAME[rule].module)

    def _reach(self, module: str) -> Reach:
        if module not in self._reached:
            self._reached[module] = reach_of(self._modules, f"{PREFIX}{module}")
        return self._reached[module]

    def _resources(self, reach: Reach) -> set[Path]:
        """Return the data files in the folders of counted definitions."""
        folders = {path.parent for path in reach.definitions} - {self._package}
        return {path for folder in folders for path in folder.iterdir() if path.suffix in RESOURCES}

    def _read(self, path: Path) -> SourceFacts:
        return self._parse(path.read_text(encoding="utf-8"), str(path))

    def _name(self, path: Path) -> str:
        return (SOURCES / path.relative_to(self._package)).as_posix()


def source_files(module: str) -> tuple[str, ...]:
    """Return the files that Python runs for a module, sorted, relative to the checkout.

    They are the module, all modules of the package that it imports, those that its reached
    definitions import, the ``__init__.py`` of every package on the way, and the data files next to
    reached definitions.

    Args:
        module: dotted name below the package, such as ``c4.clean``.
    """
    return SourceTree().files(module)


def source_name(path: Path) -> str:
    """Return the name of a file of the package: its path in a checkout of the repository."""
    return (SOURCES / path.relative_to(PACKAGE)).as_posix()


def tree_of(root: Path) -> SourceTree:
    """Return the sources of a project; without any, the installed package."""
    package = root / SOURCES
    return SourceTree(package=package if package.is_dir() else PACKAGE)


def is_source(name: str) -> bool:
    """Return whether a file that a record names is one of the package."""
    return PurePosixPath(name).is_relative_to(SOURCES)


def source_path(root: Path, name: str) -> Path:
    """Return the path of a file that a record names, relative to a project.

    A project of `t5repro init` has no ``src/``; its jobs run the installed package.

    Args:
        root: the project.
        name: of a file of the package, or of another file of the project.
    """
    return _installed(name) if is_source(name) and not (root / SOURCES).is_dir() else Path(name)


def _installed(name: str) -> Path:
    return PACKAGE / PurePosixPath(name).relative_to(SOURCES)


def hashes_of_rule(rule: str, tree: SourceTree | None = None) -> dict[str, str]:
    """Return the SHA-256 of each file that Python runs for a rule, as the files are now."""
    names = (tree or SourceTree()).files(BY_NAME[rule].module)
    return {name: sha256_of(_installed(name)) for name in names}


def closure_path(rule: str) -> Path:
    """Return the file that stands for the code of a rule."""
    return CLOSURES / f"{rule}.json"


def closure(rule: str) -> dict[str, str]:
    """Return source file -> hash of its counted definitions, for a rule's code as it is now."""
    return SourceTree().closure(rule)


def closure_text(hashes: Mapping[str, str]) -> str:
    """Return the text of the file that stands for the code of a rule."""
    return json.dumps(hashes, indent=1) + "\n"


def closure_texts(tree: SourceTree | None = None) -> dict[Path, str]:
    """Return path -> text of the file that stands for the code of each rule."""
    tree = tree or SourceTree()
    return {closure_path(stage.name): closure_text(tree.closure(stage.name)) for stage in STAGES}


def stale_closures(tree: SourceTree | None = None) -> dict[Path, str]:
    """Return path -> text of the files of `closure_texts` that are out of date."""
    return _stale(closure_texts(tree))


def _stale(texts: Mapping[Path, str]) -> dict[Path, str]:
    return {
        path: text
        for path, text in texts.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


def leftover_closures() -> list[Path]:
    """Return the files that stand for no rule; DVC hashes the whole folder."""
    rules = {closure_path(stage.name) for stage in STAGES}
    return sorted(path for path in CLOSURES.glob("*") if path not in rules)


def write_closures() -> list[Path]:
    """Bring the folder of closures up to date; return the files that changed."""
    return _write(closure_texts())


def write_closures_for_plan() -> None:
    """Bring the folder of closures up to date; follow definitions only if a source has changed."""
    texts = remembered_closures(PACKAGE, frozenset({".py", *RESOURCES}), _texts_by_rule)
    _write({closure_path(rule): text for rule, text in texts.items()})


def _texts_by_rule() -> dict[str, str]:
    return {path.stem: text for path, text in closure_texts().items()}


def _write(texts: Mapping[Path, str]) -> list[Path]:
    stale, leftovers = _stale(texts), leftover_closures()
    for path, text in stale.items():
        write_text(path, text)
    for path in leftovers:
        path.unlink()
    return [*stale, *leftovers]


def write_closure(rule: str, hashes: Mapping[str, str]) -> None:
    """Write the file that stands for a rule's code, if it is out of date."""
    path, text = closure_path(rule), closure_text(hashes)
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def imported_names(path: Path) -> tuple[str, ...]:
    """Return every dotted name that a file imports, inside functions too."""
    return facts_of(path.read_text(encoding="utf-8"), str(path)).imports


def differing_files(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the source files in which two closures differ, sorted."""
    return sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
