"""The code of a job, from its record or from `dvc.lock`.

A record has two hashes of a source file: of its bytes, and of the definitions that the job reached
in it, which neither a reworded comment nor an edit of another definition changes. A rule reruns if
its definitions change, so comparisons use them; older records have only the bytes.
"""

from collections.abc import Mapping
from typing import Any

from t5repro.lineage.dvc_lock import LockedStage
from t5repro.lineage.record import FORMAT
from t5repro.lineage.sources import CLOSURES, SourceTree


def recorded_bytes(record: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> SHA-256 of the source files that a job ran; empty if unknown."""
    return dict((record.get("start") or {}).get("code") or {})


def recorded_definitions(record: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> hash of the definitions that a job reached; empty if unknown.

    Older records have the hash of each whole file there, which no tree has today.
    """
    if record.get("format") != FORMAT:
        return {}
    return dict((record.get("start") or {}).get("closure") or {})


def has_definitions(tree: SourceTree, rule: str, name: str, digest: str | None) -> bool:
    """Return whether a source file has these definitions for a rule, as the tree is now.

    Args:
        tree: the sources.
        rule: the rule.
        name: path of the file, as records have it.
        digest: hash of the definitions; None if the rule reached none in the file.
    """
    try:
        return tree.closure(rule).get(name) == digest
    except (SyntaxError, ValueError):  # an edit that is not Python, or not UTF-8
        return False


def is_reworded(tree: SourceTree, rule: str, name: str, record: Mapping[str, Any]) -> bool:
    """Return whether a source file that a job ran still has the definitions of its record."""
    definitions = recorded_definitions(record)
    return bool(definitions) and has_definitions(tree, rule, name, definitions.get(name))


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
