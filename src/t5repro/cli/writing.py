"""What every command that writes does first: it keeps runs away, and completes what was stopped."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from t5repro.cli.parsers import OutputFile
from t5repro.config.project_files import is_project
from t5repro.config.withdrawn import UNFINISHED
from t5repro.lineage.command_leftovers import remove_leftovers_of_commands
from t5repro.lineage.leftovers import writing_beside
from t5repro.lineage.run_lock import run_lock
from t5repro.lineage.store import RESULTS
from t5repro.progress import announce


@contextlib.contextmanager
def writing(arguments: argparse.Namespace) -> Iterator[None]:
    """Hold the run lock during a command that writes into the checkout.

    What killed commands left beside the files that it writes for its user is removed.

    Raises:
        StorageError: a run is at work in this checkout, or in its results.
    """
    writes = arguments.writes(arguments) if callable(arguments.writes) else arguments.writes
    outputs = [path for path in vars(arguments).values() if isinstance(path, OutputFile)]
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
