"""What happens between training steps: history, progress, checkpoints, a request to stop.

Keras calls these after each call from the host, which is one step or `steps_per_execution`.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import keras
import numpy as np

from t5repro.errors import T5ReproError
from t5repro.model.checkpoints import Arrays
from t5repro.progress import Progress
from t5repro.train.checkpoint_manager import StateFiles
from t5repro.train.monitor import Monitor

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINATED = 143  # what a shell reports for a process that SIGTERM ended


class TrainingDivergedError(T5ReproError):
    """The loss is not a number."""


class History:
    """Rows of the training history, and the sums of the row that is not finished.

    Attributes:
        rows: step, mean loss since the row before, learning rate of the last update, target ids
            since the row before that are not padding.
        loss_sum: sum of the losses of the steps since the last row.
        steps: steps since the last row.
        tokens: target ids since the last row.
    """

    HEADER = "step,loss,learning_rate,tokens"

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float, int]] = []
        self.loss_sum = 0.0
        self.steps = 0
        self.tokens = 0

    def add(self, loss: float, steps: int, tokens: int) -> None:
        """Count `steps` steps with the mean loss `loss`."""
        self.loss_sum += loss * steps
        self.steps += steps
        self.tokens += tokens

    def finish_row(self, step: int, learning_rate: float) -> None:
        """Write the row of the steps since the one before."""
        self.rows.append((step, self.loss_sum / self.steps, learning_rate, self.tokens))
        self.loss_sum, self.steps, self.tokens = 0.0, 0, 0

    def as_arrays(self) -> Arrays:
        """Return everything as float64, which holds every value exactly."""
        return {
            "history": np.asarray(self.rows, np.float64).reshape(-1, 4),
            "unfinished": np.asarray([self.loss_sum, self.steps, self.tokens], np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "History":
        """Return the history that `as_arrays` described."""
        history = cls()
        for step, loss, rate, tokens in arrays["history"]:
            history.rows.append((int(step), float(loss), float(rate), int(tokens)))
        loss_sum, steps, tokens = arrays["unfinished"]
        history.loss_sum, history.steps, history.tokens = float(loss_sum), int(steps), int(tokens)
        return history

    def as_csv(self) -> str:
        """Return the rows as a table; nine digits tell every float32 apart."""
        lines = (f"{step},{loss:.9g},{rate:.9g},{tokens}" for step, loss, rate, tokens in self.rows)
        return "\n".join([self.HEADER, *lines]) + "\n"

    @property
    def all_tokens(self) -> int:
        """Target ids of all steps that are not padding."""
        return self.tokens + sum(row[3] for row in self.rows)


def steps_of(model: Any) -> int:
    """Return how many updates the optimizer has made, those of earlier trainings included."""
    return int(model.optimizer.iterations.numpy())


class KeepHistory(keras.callbacks.Callback):
    """Keep the history, show the progress, save the state, and stop when asked to.

    SIGINT and SIGTERM save the state after the step that is running; a second one ends at once.

    Args:
        history: where rows go.
        states: where states go.
        progress: what a person sees.
        monitor: where speeds go.
        step_offset: updates before this training, which count for the learning rate only.
        last_step: steps when training ends.
        log_every_steps: steps between rows of the history.
        checkpoint_every_steps: steps between states.
        batch_rows: rows of a batch.
        learning_rate: rate of the update after a number of updates.
    """

    def __init__(
        self,
        *,
        history: History,
        states: StateFiles,
        progress: Progress,
        monitor: Monitor,
        step_offset: int,
        last_step: int,
        log_every_steps: int,
        checkpoint_every_steps: int,
        batch_rows: int,
        learning_rate: Callable[[int], Any],
    ) -> None:
        super().__init__()
        self._history = history
        self._states = states
        self._progress = progress
        self._monitor = monitor
        self._step_offset = step_offset
        self._last_step = last_step
        self._log_every_steps = log_every_steps
        self._checkpoint_every_steps = checkpoint_every_steps
        self._batch_rows = batch_rows
        self._learning_rate = learning_rate
        self._signal = 0
        self._handlers: dict[int, Any] = {}

    def on_train_begin(self, logs: Any = None) -> None:
        """Start counting and listening."""
        self._step = self._first_step = self._steps_done()
        self._tokens = 0
        self._started: float | None = None
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                self._handlers[number] = signal.signal(number, self._ask_to_stop)

    def stop_listening(self) -> None:
        """Give the signals back to whoever handled them before."""
        while self._handlers:
            signal.signal(*self._handlers.popitem())

    def obey(self) -> None:
        """End the process if a signal came after the last step was looked at."""
        if self._signal:
            self._stop()

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self.stop_listening()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Take note of the steps since the last call."""
        before, self._step = self._step, self._steps_done()
        loss, tokens = float(logs["loss"]), int(logs["tokens"])
        self.model.reset_metrics()
        if not math.isfinite(loss):
            raise TrainingDivergedError(
                f"the loss is {loss} at step {self._step}; lower learning_rate.factor or look at "
                "the inputs of this step"
            )
        self._history.add(loss, self._step - before, tokens)
        self._monitor.add(self._step - before, int(logs["filled"]))
        self._show(self._step - before, loss, tokens)
        if self._passed(self._log_every_steps, before) or self._step == self._last_step:
            self._history.finish_row(self._step, self._last_rate())
            self._monitor.write(*self._history.rows[-1][:3])
        # The last step too: results are written after it, and a fault there must not lose it.
        due = self._passed(self._checkpoint_every_steps, before) or self._step == self._last_step
        if due or self._signal:
            self._states.save(self._step, self.model, self._history)
        if self._signal:
            self._stop()

    def _steps_done(self) -> int:
        return steps_of(self.model) - self._step_offset

    def _passed(self, every_steps: int, before: int) -> bool:
        return self._step // every_steps > before // every_steps

    def _last_rate(self) -> float:
        """Return the rate of the update that was just made."""
        return float(self._learning_rate(steps_of(self.model) - 1))

    def _show(self, steps: int, loss: float, tokens: int) -> None:
        facts: dict[str, Any] = {"loss": f"{loss:.4f}"}
        if self._started is None:
            # The first call compiles: speeds count from its end.
            self._started, self._first_step = time.monotonic(), self._step
        else:
            self._tokens += tokens
            seconds = max(time.monotonic() - self._started, 1e-9)
            rows = (self._step - self._first_step) * self._batch_rows
            facts["rows_per_second"] = f"{rows / seconds:.1f}"
            facts["target_tokens_per_second"] = f"{self._tokens / seconds:.0f}"
        self._progress.advance(steps, **facts)

    def _stop(self) -> None:
        """End the process as the signal asks; the state is saved."""
        if self._signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(TERMINATED)
