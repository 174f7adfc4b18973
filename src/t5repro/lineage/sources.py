"""The closure of a rule: its entry module and every module of this package that it imports.

A rule's code is one input file, ``configs/resolved/code/<rule>.json``: each source file of the
closure with a hash of its syntax tree. Snakemake and DVC compare this file, so a rule reruns when
its code changes. Docstrings, comments and layout are not in the tree: rewording reruns nothing.
Records keep the SHA-256 of every byte as well.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import t5repro
from t5repro.files import sha256_of, write_text
from t5repro.lineage.syntax import RememberedFacts, SourceFacts, facts_of
from t5repro.stages import BY_NAME, STAGES

PACKAGE = Path(t5repro.__file__).parent
SOURCES = PurePosixPath("src/t5repro")  # names of sources begin with it, in a wheel as well
CLOSURES = Path("configs/resolved/code")
PREFIX = "t5repro."
RESOURCES = {".css", ".j2", ".js", ".json"}  # data files that modules read from their own folder


class SourceTree:
    """The source files of the package as they are now, each read once.

    Rules share most of their modules, so one tree answers for all of them. A later edit needs a new
    tree.

    Args:
        facts_of: returns the facts about a source text, given its text and its name.
    """

    def __init__(self, facts_of: Callable[[str, str], SourceFacts] = facts_of) -> None:
        self._parse = facts_of
        self._facts: dict[Path, SourceFacts] = {}
        self._files: dict[str, tuple[Path, ...]] = {}
        self._resources: dict[Path, tuple[Path, ...]] = {}

    def files(self, module: str) -> tuple[str, ...]:
        """Return the closure of a module; see `source_files`."""
        files: set[Path] = set()
        queue = [f"{PREFIX}{module}"]
        while queue:
            for path in self._files_of(queue.pop()):
                if path not in files:
                    files.add(path)
                    imports = self._facts_of(path).imports
                    queue.extend(name for name in imports if name.startswith(PREFIX))
        for folder in {path.parent for path in files} - {PACKAGE}:
            files.update(self._resources_of(folder))
        return tuple(sorted(map(source_name, files)))

    def hashes(self, module: str) -> dict[str, str]:
        """Return source file -> hash of its syntax tree, for the closure of a module."""
        return {name: self._syntax_hash(_installed(name)) for name in self.files(module)}

    def closure(self, rule: str) -> dict[str, str]:
        """Return source file -> hash of its syntax tree, for the closure of a rule."""
        return self.hashes(BY_NAME[rule].module)

    def _syntax_hash(self, path: Path) -> str:
        return self._facts_of(path).syntax_hash if path.suffix == ".py" else sha256_of(path)

    def _facts_of(self, path: Path) -> SourceFacts:
        if path not in self._facts:
            self._facts[path] = self._parse(path.read_text(encoding="utf-8"), str(path))
        return self._facts[path]

    def _files_of(self, name: str) -> tuple[Path, ...]:
        if name not in self._files:
            self._files[name] = tuple(_files_of(name))
        return self._files[name]

    def _resources_of(self, folder: Path) -> tuple[Path, ...]:
        if folder not in self._resources:
            self._resources[folder] = tuple(
                path for path in folder.iterdir() if path.suffix in RESOURCES
            )
        return self._resources[folder]


def source_files(module: str) -> tuple[str, ...]:
    """Return the closure of a module, sorted, relative to the checkout.

    It holds the module, all modules of the package that it imports, inside functions too, the
    ``__init__.py`` of every package on the way (Python runs them), and the data files next to them.

    Args:
        module: dotted name below the package, such as ``c4.clean``.
    """
    return SourceTree().files(module)


def source_name(path: Path) -> str:
    """Return the name of a file of the package: its path in a checkout of the repository."""
    return (SOURCES / path.relative_to(PACKAGE)).as_posix()


def is_source(name: str) -> bool:
    """Return whether a record's name of a file is that of a file of the package."""
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


def hashes_of_rule(rule: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a rule's closure, as the files are now."""
    return {name: sha256_of(_installed(name)) for name in source_files(BY_NAME[rule].module)}


def closure_path(rule: str) -> Path:
    """Return the file that stands for the code of a rule."""
    return CLOSURES / f"{rule}.json"


def closure(rule: str) -> dict[str, str]:
    """Return source file -> hash of its syntax tree, for a rule's closure as it is now."""
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
    return {
        path: text
        for path, text in closure_texts(tree).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


def leftover_closures() -> list[Path]:
    """Return the files that stand for no rule; DVC hashes the whole folder."""
    rules = {closure_path(stage.name) for stage in STAGES}
    return sorted(path for path in CLOSURES.glob("*") if path not in rules)


def write_closures(tree: SourceTree | None = None) -> list[Path]:
    """Bring the folder of closures up to date; return the files that changed."""
    stale, leftovers = stale_closures(tree), leftover_closures()
    for path, text in stale.items():
        write_text(path, text)
    for path in leftovers:
        path.unlink()
    return [*stale, *leftovers]


def write_closures_for_plan() -> None:
    """Bring the folder of closures up to date; parse only sources that no earlier plan parsed."""
    facts = RememberedFacts()
    write_closures(SourceTree(facts))
    facts.save()


def write_closure(rule: str, hashes: Mapping[str, str]) -> None:
    """Write the file that stands for a rule's code, if it is out of date."""
    path, text = closure_path(rule), closure_text(hashes)
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def _syntax_hash(path: Path) -> str:
    """Return a hash of a module's syntax tree without docstrings; of a data file, its SHA-256."""
    return _facts(path).syntax_hash if path.suffix == ".py" else sha256_of(path)


def has_syntax_hash(path: Path, digest: str | None) -> bool:
    """Return whether a source file has the syntax tree with this hash, as the file is now."""
    if digest is None or not path.is_file():
        return False
    try:
        return _syntax_hash(path) == digest
    except (SyntaxError, ValueError):  # an edit that is not Python, or not UTF-8
        return False


def _files_of(name: str) -> Iterator[Path]:
    """Yield the files that Python runs to import a dotted name of the package.

    These are the ``__init__.py`` of each package above it, and its own file; the last word may be
    a name inside a module.
    """
    folder = PACKAGE
    yield folder / "__init__.py"
    for word in name.removeprefix(PREFIX).split("."):
        if (folder / f"{word}.py").is_file():
            yield folder / f"{word}.py"
            return
        folder = folder / word
        if not (folder / "__init__.py").is_file():
            return
        yield folder / "__init__.py"


def imported_names(path: Path) -> tuple[str, ...]:
    """Return every dotted name that a file imports, inside functions too."""
    return _facts(path).imports


def _facts(path: Path) -> SourceFacts:
    # Read anew each time: the file may have been edited. `facts_of` remembers texts.
    return facts_of(path.read_text(encoding="utf-8"), str(path))


def differing_files(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the source files in which two closures differ, sorted."""
    return sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
