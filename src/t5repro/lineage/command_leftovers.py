"""Remove the temporary files of a killed command, by the next command or run that writes."""

from pathlib import Path

from t5repro.lineage.dvc_lock import LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE
from t5repro.lineage.leftovers import remove_leftovers, remove_leftovers_below

COMMITTED_FOLDERS = ("configs", "docs", "records", "withdrawn")  # that commands write into


def remove_leftovers_of_commands(root: Path) -> None:
    """Delete the temporary files of commands; the caller has the run lock, so no other writes."""
    for folder in COMMITTED_FOLDERS:
        remove_leftovers_below(root / folder)
    remove_leftovers([root / name for name in (LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE)])
