"""The speed of a training: a table, TensorBoard files and the loggers of `run.loggers`.

They contain times, so they are not outputs of the graph: they are in ``logs/<run>/<stage>/<node>/``
next to the log, the TensorBoard files in Cloud Storage if `devices.cloud_folder` names a folder.
"""

import csv
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.errors import storage_error
from t5repro.train.event_file import EventFile
from t5repro.train.loggers import Loggers

TABLE = "speed.csv"
SAMPLE_COLUMNS = ("task", "inputs", "targets", "prediction")
MARKUP = re.compile(r"[\\`*_{}\[\]()<>#+.!|~-]")
COLUMNS = (
    "step",
    "loss",
    "learning_rate",
    "validation_loss",
    "steps_per_second",
    "tokens_per_second",
    "padding_share",
    "model_flops",
    "model_flops_per_second",
)


class Monitor:
    """Rows of speeds, one for each row of the history.

    Args:
        folder: receives the table; if absent, nothing is written.
        events: folder of the TensorBoard files, a path or an address of Cloud Storage.
        positions: positions of inputs and targets of one step, padding included.
        flops: operations of one step.
        first_step: step that training resumes from; later rows of the table are removed, since
            an interrupted attempt wrote them.
        loggers: receive the same rows, if there are any.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        events: str,
        positions: int,
        flops: int,
        first_step: int,
        loggers: Loggers | None = None,
    ) -> None:
        self._loggers = loggers
        self._table = None if folder is None else folder / TABLE
        self.positions = positions
        self._flops = flops
        self._events: EventFile | None = None
        self._begin_row()
        self._timed = False  # until the first call, which compiles, has ended
        if self._table is not None:
            _keep_rows(self._table, first_step)
            self._events = EventFile(events)

    def _begin_row(self) -> None:
        self._steps = self._filled = 0
        self._timed_steps = self._timed_filled = 0
        self._started = time.monotonic()

    def add(self, steps: int, filled: int) -> None:
        """Count steps and their positions without padding."""
        self._steps += steps
        self._filled += filled
        if self._timed:
            self._timed_steps += steps
            self._timed_filled += filled
        else:
            # The first call compiles: speeds count from its end.
            self._timed, self._started = True, time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Do not count the last `seconds` as training."""
        self._started += seconds  # as if the row had begun later

    def write(
        self, step: int, loss: float, learning_rate: float, validation_loss: float | None = None
    ) -> None:
        """Write the row of the steps since the previous one."""
        if self._table is None or self._events is None:
            return
        speeds: dict[str, float] = {}
        if self._timed_steps:
            seconds = max(time.monotonic() - self._started, 1e-9)
            speeds = {
                "steps_per_second": self._timed_steps / seconds,
                "tokens_per_second": self._timed_filled / seconds,
                "model_flops_per_second": self._timed_steps * self._flops / seconds,
            }
        # Padding is counted over all steps, speeds only over steps without compilation.
        row: dict[str, float] = {
            "step": step,
            "loss": loss,
            "learning_rate": learning_rate,
            "padding_share": 1 - self._filled / (self._steps * self.positions),
            "model_flops": step * self._flops,  # of the whole training so far
            **speeds,
        }
        if validation_loss is not None:
            row["validation_loss"] = validation_loss
        try:
            with self._table.open("a", newline="", encoding="utf-8") as handle:
                csv.DictWriter(handle, COLUMNS).writerow(row)
        except OSError as error:
            raise storage_error(self._table, error) from error
        for name in COLUMNS[1:]:
            if name in row:
                self._events.scalar(name, row[name], step)
        self._events.flush()
        if self._loggers is not None:
            self._loggers.write(step, {name: row[name] for name in COLUMNS[1:] if name in row})
        self._begin_row()

    def write_samples(self, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write predictions for examples to TensorBoard, as a table.

        Args:
            step: steps so far.
            rows: texts with the keys ``task``, ``inputs``, ``targets`` and ``prediction``.
        """
        if self._events is not None:
            self._events.text("samples", _markdown_table(rows), step)
            self._events.flush()

    def close(self) -> None:
        """Close the TensorBoard file and the loggers."""
        if self._loggers is not None:
            self._loggers.finish()
        if self._events is not None:
            self._events.close()


def _markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of texts as a table, with markup in the texts escaped."""
    lines = [f"|{'|'.join(SAMPLE_COLUMNS)}|", "|---" * len(SAMPLE_COLUMNS) + "|"]
    for row in rows:
        cells = [MARKUP.sub(r"\\\g<0>", str(row[name])) for name in SAMPLE_COLUMNS]
        lines.append(f"|{'|'.join(' '.join(cell.split()) for cell in cells)}|")
    return "\n".join(lines)


def _keep_rows(table: Path, first_step: int) -> None:
    """Start the table, with its rows up to step `first_step` if there are any."""
    # A table with other columns is of an earlier version: it starts again.
    rows: list[dict[str, Any]] = []
    if first_step and table.is_file():
        with table.open(newline="", encoding="utf-8") as handle:
            reader = csv.DictReader(handle)
            if tuple(reader.fieldnames or ()) == COLUMNS:
                rows = [row for row in reader if (row["step"] or "").isdigit()]
    try:
        table.parent.mkdir(parents=True, exist_ok=True)
        with table.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(row for row in rows if int(row["step"]) <= first_step)
    except OSError as error:
        raise storage_error(table, error) from error
