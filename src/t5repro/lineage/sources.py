"""The source files that a module runs: its own and those of everything it imports from here.

Snakemake sees only a rule's shell line; a rule that names these files as inputs reruns when the
code behind it changes, and only then.
"""

import ast
from functools import cache
from pathlib import Path

import t5repro
from t5repro.files import sha256_of

PACKAGE = Path(t5repro.__file__).parent
RESOURCES = {".css", ".j2", ".json"}  # what modules read from beside themselves

MODULES = {  # rule -> the module that its job runs
    "data_fetch": "data.raw",
    "data": "data.raw",
    "c4_punkt": "c4.punkt",
    "c4_clean": "c4.build",
    "c4_dedup": "c4.build",
    "c4": "c4.build",
    "vocab_sample": "vocab.sample",
    "vocab": "vocab.train",
    "tokens": "vocab.encode",
    "pretrain": "train.loop",
    "tasks": "tasks.build",
    "finetune": "train.loop",
    "evaluate_predict": "evaluate.predict",
    "evaluate_score": "evaluate.score",
    "report": "report.page",
}


@cache
def source_files(module: str) -> tuple[str, ...]:
    """Return the files of `module` and of all it imports, sorted, relative to this checkout.

    Args:
        module: dotted name below the package, such as ``c4.build``.
    """
    found: set[Path] = set()
    queue = [f"t5repro.{module}"]
    while queue:
        path = _file_of(queue.pop())
        if path is None or path in found:
            continue
        found.add(path)
        queue.extend(imported_names(path))
    folders = {path.parent for path in found} - {PACKAGE}
    found |= {path for folder in folders for path in folder.iterdir() if path.suffix in RESOURCES}
    root = _checkout()
    return tuple(sorted(path.relative_to(root).as_posix() for path in found))


def hashes_of_sources(module: str) -> dict[str, str]:
    """Return the SHA-256 of each file that `source_files` names."""
    root = _checkout()
    return {name: sha256_of(root / name) for name in source_files(module)}


def hashes_of_rule(rule: str) -> dict[str, str]:
    """Return the SHA-256 of each file that a rule's job runs, as the files are now."""
    source_files.cache_clear()  # an edited file may import others
    return hashes_of_sources(MODULES[rule])


def _checkout() -> Path:
    return PACKAGE.parent.parent


def _file_of(name: str) -> Path | None:
    """Return the file of a dotted name; of its parent if the last word is no module."""
    parts = name.split(".")
    if parts[0] != "t5repro":
        return None
    base = PACKAGE.joinpath(*parts[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file() and base != PACKAGE:
            return candidate
    return None


def imported_names(path: Path) -> list[str]:
    """Return every dotted name a file imports, inside functions too."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
            names.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return names
