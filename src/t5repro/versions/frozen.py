"""Are the raw inputs in place the ones that a .dvc file froze?

A fresh clone that brings its raw inputs from the bundled source has them in place but not in DVC's
cache, and `dvc status` reports only that. Here the folder is hashed as DVC hashes it and compared
with the recorded hash; equal content enters the cache, so that DVC's own commands agree from then.
"""

from pathlib import Path

from t5repro.errors import RawDataError


def check_frozen(record: Path) -> str:
    """Compare what lies in place with a .dvc file; return the hash they share.

    Raises:
        RawDataError: the record is missing, or the files differ from it.
    """
    from dvc.repo import Repo

    if not record.is_file():
        raise RawDataError(f"{record} is missing; it is committed with the project")
    with Repo(str(record.parent)) as repo:
        (output,) = repo.stage.load_one(str(record)).outs
        if not output.exists:
            raise RawDataError(f"{output} is missing; run snakemake --profile local data")
        found, expected = output.get_hash().value, output.hash_info.value
        if found != expected:
            raise RawDataError(
                f"{output}/ hashes to {found}, {record} says {expected}: a raw file was changed, "
                f"added or removed; delete {output}/ and run again to restore it"
            )
        if output.changed_cache():
            repo.commit(target=str(record), force=True)
    return str(expected)
