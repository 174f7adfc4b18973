"""Compares the raw files with the hash that a .dvc file records.

A fresh clone that fetches its raw files from the bundled source has them in the working tree but
not in DVC's cache, and `dvc status` reports only that. Here the folder is hashed as DVC does it. If
the hash is the recorded one, the files are added to the cache, so that DVC's own commands agree
from then on.
"""

from pathlib import Path

from t5repro.errors import RawDataError
from t5repro.lineage.dvc_cache import object_path
from t5repro.lineage.dvc_lock import RAW_DATA_FILE, Lock, folder_md5
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.verify_lock import folder_hashes


def raw_data_agrees(lock: Lock) -> bool:
    """Return whether the raw files are as `data.dvc` records them, and all in DVC's cache.

    DVC takes longer to start than to compare them here; it is needed for the rest only.
    """
    (tracked,) = (output for output in lock.outputs if not output.stage)
    hasher = Hasher()
    hashes = folder_hashes(Path(), tracked.path, hasher)
    hasher.save()
    objects = {tracked.md5, *hashes.values()}
    return folder_md5(hashes) == tracked.md5 and all(
        object_path(Path(), md5).is_file() for md5 in objects
    )


def check_raw_data(record: Path) -> str:
    """Compare the raw files with a .dvc file; return their common hash.

    Raises:
        RawDataError: the .dvc file is missing or another file, or the raw files differ from it.
    """
    from dvc.repo import Repo

    if record.suffix != ".dvc":
        raise RawDataError(f"{record} is no .dvc file of raw data, such as {RAW_DATA_FILE}")
    if not record.is_file():
        raise RawDataError(f"{record} is missing; it is committed with the project")
    with Repo(str(record.parent)) as repo:
        (output,) = repo.stage.load_one(str(record)).outs
        if not output.exists:
            raise RawDataError(f"{output} is missing; run snakemake --profile local data")
        # DVC hashes the files whose size or mtime differ from its state; a fresh clone has none.
        actual, expected = output.get_hash().value, output.hash_info.value
        if actual != expected:
            raise RawDataError(
                f"{output}/ hashes to {actual}, {record} says {expected}: a raw file was changed, "
                f"added or removed; delete {output}/ and run again to restore it; for raw files of "
                f"your own: rm {record}, then dvc add {output}"
            )
        if output.changed_cache():
            # Without `force` DVC would ask on the terminal whether to accept the change.
            repo.commit(target=str(record), force=True)
    return str(expected)
