"""Runs on machines without a shared file system: `snakemake --default-storage-provider s3`.

Snakemake then moves the files of every job through the storage, and names them by their local
copies below ``.snakemake/storage/``. Here the folder of the copies becomes a link to the checkout:
each file is at its usual path on the machine that reads or writes it, and the rules stay as they
are. The process that plans the run uploads the inputs that no rule writes, and at the end it
downloads results, logs and records.
"""

import os
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from t5repro.data.paths import leaves_folder
from t5repro.errors import StorageError
from t5repro.lineage.record import record_path
from t5repro.lineage.storage_folder import VARIABLE, checkout_paths

COMPARED_BYTES = 1_000_000  # larger inputs are compared by size: they are raw files, with a hash


def is_used(workflow: Any) -> bool:
    """Return whether a storage moves the files of the jobs."""
    return workflow.storage_settings.default_storage_provider is not None


def link_to_checkout(workflow: Any) -> None:
    """Make the folder of the local copies a link to the checkout, and name it to the jobs.

    Raises:
        StorageError: the folder contains files.
    """
    # Snakemake would delete the local copies after a job: here, the files of the checkout.
    workflow.storage_registry.default_storage_provider.keep_local = True
    folder = Path(_object(workflow, "any").local_path()).parent
    os.environ[VARIABLE] = folder.as_posix()
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.symlink_to(os.path.relpath(Path(), folder.parent), target_is_directory=True)
    except FileExistsError:
        if not folder.is_symlink():
            raise StorageError(
                f"{folder} must be a link to the checkout, but it is a folder; remove it"
            ) from None


def store_records(workflow: Any) -> None:
    """Make the record of each job one of its logs, which Snakemake stores even if a job fails."""
    for rule in workflow.rules:
        for log in list(rule.log):
            (path,) = checkout_paths([str(log)])
            if record := record_path(Path(path)):
                rule.set_log(str(record))


def upload(workflow: Any, paths: Iterable[str]) -> None:
    """Store the files of this checkout that the storage lacks or has with other content.

    Raises:
        StorageError: a path leaves the checkout, as with a `data.folder` elsewhere.
    """
    for path in paths:
        if leaves_folder(path):
            raise StorageError(
                f"{path} is outside of the checkout, whose files alone a storage moves; make a "
                "link to its folder in the checkout and name the link in data.folder"
            )
        stored = _object(workflow, path)
        if Path(path).is_file() and _differs(workflow, stored, Path(path)):
            workflow.async_run(stored.managed_store())


def download(workflow: Any) -> None:
    """Retrieve the files that the jobs of the graph have written, with their logs and records."""
    workflow.async_run(_retrieve(workflow.dag.jobs))


async def _retrieve(jobs: Iterable[Any]) -> None:
    for job in jobs:
        for file in chain(job.output, job.log, [job.benchmark] if job.benchmark else []):
            # Snakemake creates an empty log if a job wrote none, and an empty record is no record.
            empty = file in job.log and await _is_empty(file)
            if file.is_storage and await file.exists_in_storage() and not empty:
                await file.retrieve_from_storage()


async def _is_empty(file: Any) -> bool:
    return bool(await file.exists_in_storage() and await file.storage_object.managed_size() == 0)


def _object(workflow: Any, path: str) -> Any:
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    return workflow.storage_registry.default_storage_provider.object(f"{prefix}/{path}")


def _differs(workflow: Any, stored: Any, path: Path) -> bool:
    size = path.stat().st_size
    if not workflow.async_run(stored.managed_exists()):
        return True
    if workflow.async_run(stored.managed_size()) != size:
        return True
    if size > COMPARED_BYTES:
        return False
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        stored.set_local_path(copy)
        workflow.async_run(stored.managed_retrieve())
        stored.set_local_path(None)
        return copy.read_bytes() != path.read_bytes()
