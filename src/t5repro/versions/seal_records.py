"""Writes and signs the index of a run's records; see `lineage.record_index`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from t5repro.errors import ArtifactError, LineageError
from t5repro.files import read_file, read_json
from t5repro.lineage.dvc_lock import RAW_DATA_FILE, parse_lock
from t5repro.lineage.record_index import (
    Index,
    SealedStage,
    index_path,
    parse_index,
    sealed_stage,
    write_index,
)
from t5repro.lineage.shared_facts import SHARED, hashes_in, share
from t5repro.lineage.signatures import configured_key, drop_outdated, sign, signature_path
from t5repro.lineage.store import RECORDS
from t5repro.versions.snakemake_graph import UNVERSIONED_RULES, PlannedStage


def seal_records(
    run: str, stages: Iterable[PlannedStage], proven: Mapping[str, str], data_folder: str
) -> bool:
    """Update the index of a run; return whether it changed.

    Args:
        run: name of the run.
        stages: all stages of its graph; the index keeps its entries of those that are not proven.
        proven: stage -> DVC's hash of its folder, for stages that their records prove.
        data_folder: the folder of the raw files.
    """
    former = _current_index(Path(index_path(run)))
    index: Index = {}
    for stage in stages:
        if stage.name in proven:
            records = [job.record for job in stage.jobs]
            for record in records:
                share(record)
            index[stage.name] = sealed_stage(proven[stage.name], records)
        elif stage.name in former:
            index[stage.name] = former[stage.name]
    index = {**_unversioned(run, data_folder), **index}
    shared = _shared_files(run)
    return write_index(run, {**index, SHARED: sealed_stage("", shared)} if shared else index)


def _shared_files(run: str) -> list[Path]:
    """Return the files of shared facts that records name; delete the others."""
    folder = Path(RECORDS, run)
    names = {
        f"{sha256}.json"
        for path in folder.rglob("*.json")
        if path.parent.name != SHARED
        for sha256 in _hashes_in_file(path)
    }
    files = sorted((folder / SHARED).glob("*.json"))
    for path in files:
        if path.name not in names:
            path.unlink()
    return [path for path in files if path.name in names]


def sign_records(run: str) -> str:
    """Sign a new index if a key is configured; return a message for the user, or nothing.

    A key that cannot be used does not undo the seal.
    """
    was_signed = drop_outdated(Path(), run)
    key = configured_key(Path())
    if key is None:
        return "no longer signed: no key is configured; see t5repro sign" if was_signed else ""
    try:
        return f"{signature_path(run)}: {sign(Path(), run, key).text}"
    except LineageError as error:
        return f"not signed: {error}"
    except ModuleNotFoundError as error:
        return f"not signed: {error.name} is not installed; pip install 't5repro[export]'"


def _current_index(path: Path) -> Index:
    """Return the index as it is; a missing or damaged one counts as empty."""
    try:
        return parse_index(read_file(path), path.as_posix())
    except (OSError, ArtifactError):
        return {}


def _hashes_in_file(path: Path) -> set[str]:
    """Return the shared facts that a record names; a damaged one names none."""
    try:
        return hashes_in(read_json(path))
    except ArtifactError:
        return set()


def _unversioned(run: str, data_folder: str) -> dict[str, SealedStage]:
    """Return the records of rules without a stage, which fetch raw files or only check."""
    record = Path(RAW_DATA_FILE)  # without dvc.lock, which takes longer to read
    lock = parse_lock(None, read_file(record) if record.exists() else None)
    raw = {tracked.path: tracked.md5 for tracked in lock.outputs}
    entries = {}
    for rule in sorted(UNVERSIONED_RULES):
        folder = Path(RECORDS, run, rule)
        records = sorted([*folder.rglob("*.json"), *folder.parent.glob(f"{rule}.json")])
        for path in records:
            share(path)
        if records:
            entries[rule] = sealed_stage(raw.get(data_folder, ""), records)
    return entries
