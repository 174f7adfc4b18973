"""Work between training steps: history, progress, checkpoints, signals.

Keras calls these methods after each call from the host: one step, or `steps_per_execution`.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

import keras

from t5repro.config.sections.training import TrainingSettings
from t5repro.errors import T5ReproError
from t5repro.progress import Progress
from t5repro.train.checkpoint_manager import CheckpointManager
from t5repro.train.history import LoopState
from t5repro.train.monitor import Monitor
from t5repro.train.schedules import schedule
from t5repro.train.validation import Validation

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINATED = 143  # what a shell reports for a process that SIGTERM ended


class TrainingDivergedError(T5ReproError):
    """The loss is not a number."""


class Samples(Protocol):
    """Predictions for the same examples at every interval, without an import of `samples`.

    With it, an edit of decoding would rerun pre-training, which decodes nothing.
    """

    every_steps: int

    def resume(self, first_step: int) -> None:
        """Forget what an interrupted attempt wrote after the step that training resumes from."""

    def write(self, step: int, model: Any) -> list[dict[str, Any]]:
        """Predict, log and return the rows."""


def steps_of(model: Any) -> int:
    """Return the number of updates of the optimizer, earlier trainings included."""
    return int(model.optimizer.iterations.numpy())


class TrainingCallback(keras.callbacks.Callback):
    """Records the history, shows the progress, saves checkpoints and handles signals.

    SIGINT and SIGTERM save a checkpoint after the running step; a second one ends the process at
    once.

    Args:
        training: intervals, batch and learning rate of the stage.
        state: state of the loop, which this updates.
        checkpoint_manager: saves checkpoints.
        progress: progress bar.
        monitor: receives speeds.
        validation: measures the loss on held-out text; optional.
        samples: decodes examples; optional.
    """

    def __init__(
        self,
        *,
        training: TrainingSettings,
        state: LoopState,
        checkpoint_manager: CheckpointManager,
        progress: Progress,
        monitor: Monitor,
        validation: Validation | None = None,
        samples: Samples | None = None,
    ) -> None:
        super().__init__()
        self._training = training
        self._state = state
        self._checkpoint_manager = checkpoint_manager
        self._progress = progress
        self._monitor = monitor
        self._validation = validation
        self._samples = samples
        self._learning_rate = schedule(
            training.learning_rate, steps=training.steps, offset=state.offset
        )
        self._signal = 0
        self._handlers: dict[int, Any] = {}

    def on_train_begin(self, logs: Any = None) -> None:
        """Start counting and handling signals."""
        self._step = self._first_step = self._steps_done()
        self._tokens = 0
        self._started: float | None = None
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                self._handlers[number] = signal.signal(number, self._note_signal)

    def stop_listening(self) -> None:
        """Restore the previous signal handlers."""
        while self._handlers:
            signal.signal(*self._handlers.popitem())

    def raise_if_interrupted(self) -> None:
        """End the process if a signal arrived after the last call of `on_train_batch_end`."""
        if self._signal:
            self._stop()

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        # Only a note: a checkpoint in the middle of a step would be inconsistent.
        self._signal = number
        self.stop_listening()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Record the steps since the last call."""
        previous_step, self._step = self._step, self._steps_done()
        loss, tokens = float(logs["loss"]), int(logs["tokens"])
        # Keras accumulates over the epoch; rows of the history need the means since the last call.
        self.model.reset_metrics()
        if not math.isfinite(loss):
            raise TrainingDivergedError(
                f"the loss is {loss} at step {self._step}; lower learning_rate.factor or inspect "
                "the inputs of this step"
            )
        history, training = self._state.history, self._training
        history.add(loss, self._step - previous_step, tokens)
        self._monitor.add(self._step - previous_step, int(logs["filled"]))
        self._show(self._step - previous_step, loss, tokens)
        last = self._step == training.steps
        # The last step ends a row of the history even off the interval.
        if last or self._passed(training.log_every_steps, previous_step):
            history.finish_row(self._step, self._last_rate())
            if self._validation and (
                last or self._passed(self._validation.every_steps, previous_step)
            ):
                loss = self._untimed(self._validation.loss, self.model)
                self._progress.advance(0, validation_loss=f"{loss:.4f}")
                history.validation_losses[self._step] = loss
            self._monitor.write(
                *history.rows[-1][:3], validation_loss=history.validation_losses.get(self._step)
            )
        if self._samples and (last or self._passed(self._samples.every_steps, previous_step)):
            rows = self._untimed(self._samples.write, self._step, self.model)
            self._monitor.write_samples(self._step, rows)
        # The last step too: results are written after it, and a failure there must not lose it.
        due = last or self._passed(training.checkpoint_every_steps, previous_step)
        if due or self._signal:
            self._checkpoint_manager.save(self._step, self.model, self._state.as_arrays())
        if self._signal:
            self._stop()

    def _untimed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function without counting its time as training."""
        started = time.monotonic()
        result = function(*arguments)
        seconds = time.monotonic() - started
        self._monitor.leave_out(seconds)
        if self._started is not None:
            self._started += seconds
        return result

    def _steps_done(self) -> int:
        return steps_of(self.model) - self._state.offset

    def _passed(self, every_steps: int, previous_step: int) -> bool:
        """Return whether a multiple of `every_steps` lies in the steps since `previous_step`."""
        # With `steps_per_execution` the multiple itself may lie between two calls.
        return self._step // every_steps > previous_step // every_steps

    def _last_rate(self) -> float:
        """Return the learning rate of the last update."""
        return float(self._learning_rate(steps_of(self.model) - 1))

    def _show(self, steps: int, loss: float, tokens: int) -> None:
        facts: dict[str, Any] = {"loss": f"{loss:.4f}"}
        if self._started is None:
            # The first call compiles: speeds count from its end.
            self._started, self._first_step = time.monotonic(), self._step
        else:
            self._tokens += tokens
            seconds = max(time.monotonic() - self._started, 1e-9)
            rows = (self._step - self._first_step) * self._training.batch_size
            facts["rows_per_second"] = f"{rows / seconds:.1f}"
            facts["target_tokens_per_second"] = f"{self._tokens / seconds:.0f}"
        self._progress.advance(steps, **facts)

    def _stop(self) -> None:
        """End the process as without a handler, after the checkpoint is saved."""
        if self._signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(TERMINATED)
