"""The committed studies, unpacked once a process; inside the checkout, so git knows the commits."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from checkout import ROOT

from t5repro.lineage.study_archive import ARCHIVE, unpack_study

STUDIES = sorted(path.parent for path in (ROOT / "studies").glob(f"*/{ARCHIVE}"))


@cache
def _unpacked(study: Path) -> "TemporaryDirectory[str]":
    (ROOT / "work").mkdir(exist_ok=True)
    folder = TemporaryDirectory(prefix="study-", dir=ROOT / "work")  # removed at exit
    unpack_study(study, Path(folder.name))
    return folder


def unpacked(name: str) -> Path:
    """Return the folder with the files of a study."""
    return Path(_unpacked(ROOT / "studies" / name).name)
