"""The planned graph of a run file, remembered between commands.

Snakemake takes seconds to plan. The graph is a function of the rule files, the run file, the lists
of withdrawn sources, this package, the version of Snakemake and the raw files that are missing; the
key is a hash of all of them. As with every file in `work/`, deleting it is safe.
"""

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import t5repro
from t5repro.config.schema import Settings
from t5repro.config.withdrawn import FILES, PAGES
from t5repro.errors import StorageError
from t5repro.files import sha256_of, write_text

GRAPH_FILE = Path("work/lineage/graph.json")
RULE_FILES = ("Snakefile", "workflow/**/*.smk", "workflow/**/*.py", "configs/**/*.yaml")
PACKAGE = Path(t5repro.__file__).parent
CODE = {".py", ".json"}


def graph_key(settings: Settings, run_file: Path) -> str:
    """Return a hash of everything that decides the graph of a run file."""
    digest = hashlib.sha256()
    for fact in _facts(settings, run_file):
        digest.update(json.dumps(fact).encode() + b"\n")
    return digest.hexdigest()


def _facts(settings: Settings, run_file: Path) -> Iterator[Any]:
    yield run_file.as_posix(), settings.model_dump(mode="json")
    yield importlib.metadata.version("snakemake"), sys.version
    files = {path for pattern in RULE_FILES for path in Path().glob(pattern)}
    for path in sorted({*files, run_file, FILES, PAGES}):
        yield path.as_posix(), sha256_of(path) if path.is_file() else None
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in CODE:
            yield path.relative_to(PACKAGE).as_posix(), sha256_of(path)
    # A missing raw file has a rule that fetches it, or is refused.
    names = [name for source in settings.data.sources for name in source.files]
    yield [name for name in names if not (Path(settings.data.folder) / name).is_file()]


def recall_graph(key: str) -> str | None:
    """Return the text that was remembered under a key; None if there is none."""
    try:
        values = json.loads(GRAPH_FILE.read_bytes())
        text = values[key]
    except (OSError, ValueError, LookupError, TypeError):  # absent, damaged, or of another key
        return None
    return text if isinstance(text, str) else None


def remember_graph(key: str, text: str) -> None:
    """Remember a text under a key, and forget others; does nothing in a read-only folder."""
    try:
        write_text(GRAPH_FILE, json.dumps({key: text}))
    except StorageError:
        return
