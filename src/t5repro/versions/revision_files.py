"""Files of a git revision as files on disk, from DVC's cache or its remote."""

import shutil
from pathlib import Path

from t5repro.errors import ArtifactError, storage_error
from t5repro.files import atomic_path

REVISIONS = Path("work/revisions")


def file_of_revision(root: Path, revision: str, name: str) -> Path:
    """Return a copy of a tracked file as it was at a revision; it is made once.

    DVC takes the file from its cache, and otherwise from the remote of the revision.

    Args:
        root: the checkout.
        revision: full hash of the commit.
        name: path of the file in the checkout.

    Raises:
        ArtifactError: the revision does not track it, or neither cache nor remote has it.
        StorageError: the copy cannot be written.
    """
    copy = root / REVISIONS / revision / name
    if copy.is_file():
        return copy
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException

    # The library passes errors of each kind of remote on as they are.
    try:
        files = DVCFileSystem(str(root), rev=revision)
        with files.open(name) as source, atomic_path(copy) as target, target.open("wb") as output:
            shutil.copyfileobj(source, output)
    except (FileNotFoundError, DvcException) as error:
        raise ArtifactError(
            f"{name} of revision {revision[:12]} is neither in DVC's cache nor in its remote "
            f"({error}); push it with dvc push where it was made, or check the revision out and "
            "run snakemake --profile local"
        ) from error
    except OSError as error:
        raise storage_error(copy, error) from error
    return copy
