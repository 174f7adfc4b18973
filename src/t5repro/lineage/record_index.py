"""The index of a run: the hash of every sealed record, and of its stage's folder.

`seal` writes ``records/<run>.index.json``, and git keeps it, so a chain leads from a commit to
every byte: commit, index, records, manifests, artifacts. The entry `shared` has the files of
`shared_facts`. The hashes of the folders are those in
`dvc.lock`: index and lock attest each other.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import write_json
from t5repro.lineage.dvc_lock import Lock
from t5repro.lineage.store import RECORDS, Store
from t5repro.strict_json import parse_json

ENDING = ".index.json"
FORMAT = 1


@dataclass(frozen=True)
class SealedStage:
    """The entry of a stage in an index.

    Attributes:
        md5: DVC's hash of its folder; of the raw files for the rule that fetches them.
        records: path -> SHA-256 of the records of its jobs.
    """

    md5: str
    records: Mapping[str, str]


Index = dict[str, SealedStage]  # by name of the stage


def index_path(run: str) -> str:
    """Return the path of the index of a run."""
    return f"{RECORDS}/{run}{ENDING}"


def parse_index(data: bytes, name: str) -> Index:
    """Return an index from its bytes.

    Raises:
        ArtifactError: it is not an index.
    """
    try:
        values = parse_json(data)
        if values["format"] != FORMAT:
            raise ValueError(f"format {values['format']!r}; expected {FORMAT}")
        return {stage: _sealed(entry) for stage, entry in values["stages"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"not an index of records ({type(error).__name__}: {error}); restore {name} with git "
            "checkout, or run t5repro seal"
        ) from error


def _sealed(entry: Mapping[str, Any]) -> SealedStage:
    records = entry["records"]
    return SealedStage(str(entry["md5"]), {str(path): str(records[path]) for path in records})


def read_indexes(store: Store, faults: list[tuple[str, str]]) -> dict[str, Index]:
    """Return run -> index for every index of a state.

    Args:
        store: the state.
        faults: receives (path, message) of files that cannot be read as an index.
    """
    indexes: dict[str, Index] = {}
    for path in store.names(RECORDS, ENDING):
        run = path.removeprefix(f"{RECORDS}/").removesuffix(ENDING)
        if "/" in run:  # a record of a job with such a name
            continue
        try:
            indexes[run] = parse_index(store.read(path), path)
        except ArtifactError as error:
            faults.append((path, str(error)))
    return indexes


def records_in(index: Index) -> dict[str, str]:
    """Return path -> SHA-256 of all records in an index."""
    return {path: sha256 for stage in index.values() for path, sha256 in stage.records.items()}


def sealed_stage(md5: str, records: Iterable[Path]) -> SealedStage:
    """Return the entry of a stage with the records of its jobs as they are now."""
    return SealedStage(
        md5, {path.as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in records}
    )


def write_index(run: str, stages: Index) -> bool:
    """Write the index of a run, sorted; return whether it changed."""
    path = Path(index_path(run))
    values = {
        "format": FORMAT,
        "stages": {
            name: {"md5": stage.md5, "records": dict(stage.records)}
            for name, stage in stages.items()
        },
    }
    former_bytes = path.read_bytes() if path.is_file() else b""
    write_json(path, values)
    return former_bytes != path.read_bytes()


def stages_by_folder(lock: Lock) -> dict[str, str]:
    """Return folder -> stage of `dvc.lock` that writes it."""
    return {path: name for name, stage in lock.stages.items() for path in stage.outs}


def stage_of_path(path: str, folders: Mapping[str, str]) -> str:
    """Return the stage with the folder that contains a file; empty if none does."""
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in folders:
            return folders[path]
    return ""
