"""The code of a job, from its record or from `dvc.lock`.

A record has two hashes of each source file: of its bytes, and of its syntax tree, which a reworded
comment or docstring does not change. A rule reruns if a syntax tree changes, so comparisons use it;
older records have the bytes alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.lineage.dvc_lock import LockedStage
from t5repro.lineage.sources import CLOSURES, has_syntax_hash


def recorded_bytes(record: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> SHA-256 of the source files that a job ran; empty if unknown."""
    return dict((record.get("start") or {}).get("code") or {})


def recorded_syntax(record: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> hash of the syntax tree of the source files; empty if unknown."""
    return dict((record.get("start") or {}).get("closure") or {})


def is_reworded(path: Path, name: str, record: Mapping[str, Any]) -> bool:
    """Return whether a source file still has the syntax tree of a record.

    Args:
        path: of the file.
        name: its path in the record.
        record: of the job.
    """
    return has_syntax_hash(path, recorded_syntax(record).get(name))


def locked_code(stage: LockedStage) -> dict[str, str]:
    """Return path -> MD5 of the code among the dependencies of a stage.

    That is one file of hashes per rule; older revisions list the source files themselves.
    """
    folder = f"{CLOSURES.as_posix()}/"
    return {
        path: md5
        for path, md5 in stage.deps.items()
        if path.startswith(folder) or path.endswith(".py")
    }
