"""What every command that writes does first: it keeps runs away, and completes what was stopped."""

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from t5repro.cli.parsers import OutputFile
from t5repro.config.project_files import is_project
from t5repro.config.withdrawn import UNFINISHED
from t5repro.errors import SettingsError
from t5repro.lineage.command_leftovers import remove_leftovers_of_commands
from t5repro.lineage.dvc_lock import LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE
from t5repro.lineage.leftovers import writing_beside
from t5repro.lineage.run_lock import run_lock
from t5repro.lineage.store import RECORDS, RESULTS
from t5repro.progress import announce

OF_DVC = (LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE)
OF_RUNS = ((RESULTS,), (RECORDS,))  # folders


@contextlib.contextmanager
def writing(arguments: argparse.Namespace) -> Iterator[None]:
    """Hold the run lock during a command that writes into the checkout.

    What killed commands left beside the files that it writes for its user is removed.

    Raises:
        SettingsError: a file for the user would replace one of a run.
        StorageError: a run is at work in this checkout, or in its results.
    """
    writes = arguments.writes(arguments) if callable(arguments.writes) else arguments.writes
    outputs = _outputs([path for path in vars(arguments).values() if isinstance(path, OutputFile)])
    # Elsewhere the command says that it is in a wrong folder, and leaves no lock there.
    if not writes or not (is_project() or Path(RESULTS).is_dir()):
        with writing_beside(outputs):
            yield
        return
    with run_lock():
        remove_leftovers_of_commands(Path())
        if arguments.command != "withdraw" and Path(UNFINISHED).exists():  # it tells more itself
            from t5repro.audit.removal import complete_unfinished

            if completed := complete_unfinished(Path()):
                announce(f"completed the withdrawal of {completed.name}, which had been stopped")
        yield


def _outputs(paths: Sequence[OutputFile]) -> Sequence[OutputFile]:
    """Return the files that a command writes for its user, none of which is one of a run."""
    root = Path().resolve()
    for path in paths:
        name = path.resolve()
        below = name.relative_to(root) if name.is_relative_to(root) else Path()
        if name.is_file() and (below.as_posix() in OF_DVC or below.parts[:1] in OF_RUNS):
            raise SettingsError(f"{path} is a file of a run or of DVC; name another file")
    return paths
