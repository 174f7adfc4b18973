"""The dependencies of a stage in `dvc.yaml`: a folder, where the stage reads all of its files.

A stage would else name each of its raw files, and each shard with its manifest.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from t5repro.artifacts import MANIFEST
from t5repro.config.schema import Settings
from t5repro.data.check import raw_files
from t5repro.lineage.dvc_lock import RAW_DATA_FILE, folder_md5
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.verify_lock import folder_hashes
from t5repro.versions.snakemake_graph import PlannedStage

IGNORED = {"__pycache__"}  # in .dvcignore


def folder_contents(settings: Settings, stages: Iterable[PlannedStage]) -> dict[str, set[str]]:
    """Return folder -> its files, of the folders that a stage may depend on as a whole.

    These are the folders of stages, and of raw files those that `data.dvc` tracks: another folder
    may have files of which the run knows nothing.
    """
    contents = {
        stage.folder: {path for job in stage.jobs for path in job.outputs} for stage in stages
    }
    record = Path(RAW_DATA_FILE)
    if record.is_file() and settings.data.folder == record.stem:
        for file in raw_files(settings.data):
            for parent in file.path.parents[:-1]:
                contents.setdefault(parent.as_posix(), set()).add(file.path.as_posix())
    return contents


def dependencies(stage: PlannedStage, contents: Mapping[str, Collection[str]]) -> list[str]:
    """Return the inputs of a stage, with a folder in place of its files if the stage reads all.

    A manifest stands for its folder too, because it lists the files.

    Args:
        stage: the stage.
        contents: of `folder_contents`.
    """
    inputs = set(stage.inputs)
    whole = {
        folder
        for folder, files in contents.items()
        # A folder of one raw file may get others.
        if f"{folder}/{MANIFEST}" in inputs or (len(files) > 1 and inputs.issuperset(files))
    }
    return list(dict.fromkeys(_outermost(path, whole) for path in stage.inputs))


def _outermost(path: str, folders: Collection[str]) -> str:
    """Return the outermost of these folders that a file is in; the file if it is in none."""
    *_, outermost = (
        path,
        *(str(parent) for parent in Path(path).parents if str(parent) in folders),
    )
    return outermost


def md5_of(path: str, hasher: Hasher) -> str | None:
    """Return the MD5 that DVC records for a file or a folder; None if there is none."""
    if not Path(path).is_dir():
        return hasher.md5(path)
    hashes = folder_hashes(Path(), path, hasher)
    return folder_md5(
        {name: md5 for name, md5 in hashes.items() if not IGNORED & {*name.split("/")}}
    )
