"""The closure of a rule: its entry module and every module of this package that it imports.

A rule's code is one input file, ``configs/resolved/code/<rule>.json``: each source file of the
closure with a hash of its syntax tree. Snakemake and DVC compare this file, so a rule reruns when
its code changes. Docstrings, comments and layout are not in the tree: rewording reruns nothing.
Records keep the SHA-256 of every byte as well.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import t5repro
from t5repro.files import sha256_of, write_text
from t5repro.lineage.syntax import SourceFacts, facts_of
from t5repro.stages import BY_NAME, STAGES

PACKAGE = Path(t5repro.__file__).parent
CHECKOUT = PACKAGE.parent.parent
CLOSURES = Path("configs/resolved/code")
RESOURCES = {".css", ".j2", ".json"}  # data files that modules read from their own folder


def source_files(module: str) -> tuple[str, ...]:
    """Return the closure of a module, sorted, relative to this checkout.

    It holds the module, all modules of the package that it imports, inside functions too, the
    ``__init__.py`` of every package on the way (Python runs them), and the data files next to them.

    Args:
        module: dotted name below the package, such as ``c4.clean``.
    """
    files: set[Path] = set()
    queue = [f"t5repro.{module}"]
    while queue:
        for path in _files_of(queue.pop()):
            if path not in files:
                files.add(path)
                queue.extend(imported_names(path))
    folders = {path.parent for path in files} - {PACKAGE}
    files |= {path for folder in folders for path in folder.iterdir() if path.suffix in RESOURCES}
    return tuple(sorted(path.relative_to(CHECKOUT).as_posix() for path in files))


def hashes_of_rule(rule: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a rule's closure, as the files are now."""
    return {name: sha256_of(CHECKOUT / name) for name in source_files(BY_NAME[rule].module)}


def closure_path(rule: str) -> Path:
    """Return the file that stands for the code of a rule."""
    return CLOSURES / f"{rule}.json"


def closure(rule: str) -> dict[str, str]:
    """Return source file -> hash of its syntax tree, for a rule's closure as it is now."""
    return _closure(BY_NAME[rule].module)


def closure_text(hashes: Mapping[str, str]) -> str:
    """Return the text of the file that stands for the code of a rule."""
    return json.dumps(hashes, indent=1) + "\n"


def _closure(module: str) -> dict[str, str]:
    return {name: _syntax_hash(CHECKOUT / name) for name in source_files(module)}


def closure_texts() -> dict[Path, str]:
    """Return path -> text of the file that stands for the code of each rule."""
    return {closure_path(stage.name): closure_text(_closure(stage.module)) for stage in STAGES}


def stale_closures() -> dict[Path, str]:
    """Return path -> text of the files of `closure_texts` that are out of date."""
    return {
        path: text
        for path, text in closure_texts().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


def leftover_closures() -> list[Path]:
    """Return the files that stand for no rule; DVC hashes the whole folder."""
    rules = {closure_path(stage.name) for stage in STAGES}
    return sorted(path for path in CLOSURES.glob("*") if path not in rules)


def write_closures() -> list[Path]:
    """Bring the folder of closures up to date; return the files that changed."""
    stale, leftovers = stale_closures(), leftover_closures()
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
    """Yield the files that Python runs to import a dotted name.

    These are the ``__init__.py`` of each package above it, and its own file; the last word may be
    a name inside a module.
    """
    words = name.split(".")
    if words[0] != "t5repro":
        return
    folder = PACKAGE
    yield folder / "__init__.py"
    for word in words[1:]:
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
