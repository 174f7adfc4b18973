"""The training history, and the loop's part of a checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t5repro.model.checkpoints import Arrays

CHANGED = "resumed_from_changed"  # key of the arrays, and of the manifest's counters
VALIDATION_LOSS = "validation_loss"  # last column of the table
# Their losses go into the manifest. Rounding has hardly grown by then, so they tell another
# calculation from another CPU (`lineage/tolerance.py`).
EARLY_STEPS = (1, 5, 10, 20)


class History:
    """Rows of the training history, and the sums of the unfinished row.

    Attributes:
        rows: step, mean loss since the previous row, learning rate of the last update, target ids
            since the previous row without padding.
        loss_sum: sum of the losses of the steps since the last row.
        steps: steps since the last row.
        tokens: target ids since the last row.
        early_losses: step -> loss, for the steps in `EARLY_STEPS` that the host called one by one.
        validation_losses: step of a row -> loss on held-out text after it.
    """

    HEADER = "step,loss,learning_rate,tokens"

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float, int]] = []
        self.loss_sum = 0.0
        self.steps = 0
        self.tokens = 0
        self.early_losses: dict[int, float] = {}
        self.validation_losses: dict[int, float] = {}

    def add(self, loss: float, steps: int, tokens: int) -> None:
        """Count `steps` steps with the mean loss `loss`."""
        self.loss_sum += loss * steps
        self.steps += steps
        self.tokens += tokens
        last_step = self.steps + (self.rows[-1][0] if self.rows else 0)
        if steps == 1 and last_step in EARLY_STEPS:
            self.early_losses[last_step] = loss

    def finish_row(self, step: int, learning_rate: float) -> None:
        """Append the row of the steps since the previous one."""
        self.rows.append((step, self.loss_sum / self.steps, learning_rate, self.tokens))
        self.loss_sum, self.steps, self.tokens = 0.0, 0, 0

    def as_arrays(self) -> Arrays:
        """Return rows and sums as float64, which represents every value exactly."""
        return {
            "history": np.asarray(self.rows, np.float64).reshape(-1, 4),
            "unfinished": np.asarray([self.loss_sum, self.steps, self.tokens], np.float64),
            "early_losses": _pairs(self.early_losses),
            "validation_losses": _pairs(self.validation_losses),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "History":
        """Return the history that `as_arrays` describes."""
        history = cls()
        for step, loss, rate, tokens in arrays["history"]:
            history.rows.append((int(step), float(loss), float(rate), int(tokens)))
        loss_sum, steps, tokens = arrays["unfinished"]
        history.loss_sum, history.steps, history.tokens = float(loss_sum), int(steps), int(tokens)
        history.early_losses = _losses(arrays["early_losses"])
        history.validation_losses = _losses(arrays["validation_losses"])
        return history

    def as_csv(self) -> str:
        """Return the rows as a table; nine digits distinguish every float32.

        A training with losses on held-out text has a last column of them, empty where none was
        measured.
        """
        lines = [f"{step},{loss:.9g},{rate:.9g},{tokens}" for step, loss, rate, tokens in self.rows]
        lines.insert(0, self.HEADER)
        if self.validation_losses:
            measured = {step: f"{loss:.9g}" for step, loss in self.validation_losses.items()}
            column = [VALIDATION_LOSS, *(measured.get(row[0], "") for row in self.rows)]
            lines = [f"{line},{cell}" for line, cell in zip(lines, column, strict=True)]
        return "\n".join(lines) + "\n"

    @property
    def all_tokens(self) -> int:
        """Target ids of all steps, without padding."""
        return self.tokens + sum(row[3] for row in self.rows)


def _pairs(losses: Mapping[int, float]) -> NDArray[np.float64]:
    return np.asarray(list(losses.items()), np.float64).reshape(-1, 2)


def _losses(pairs: NDArray[np.float64]) -> dict[int, float]:
    return {int(step): float(loss) for step, loss in pairs}


@dataclass
class LoopState:
    """The state of the training loop outside the model and the optimizer.

    Attributes:
        offset: optimizer updates before this training; they count for the learning rate only.
        history: rows of the steps so far.
        changed: if the training resumed from a checkpoint of another fingerprint, the event as
            the manifest reports it: its step, the differing parts, its fingerprint.
    """

    offset: int
    history: History = field(default_factory=History)
    changed: Mapping[str, Any] | None = None

    def as_arrays(self) -> Arrays:
        """Return the arrays that every checkpoint contains."""
        arrays = {"offset": np.asarray(self.offset), **self.history.as_arrays()}
        if self.changed is not None:
            # The event must outlive further interruptions, or the manifest would not report it.
            text = json.dumps(self.changed, sort_keys=True).encode()
            arrays[CHANGED] = np.frombuffer(text, np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "LoopState":
        """Return the state that `as_arrays` describes."""
        changed = json.loads(arrays[CHANGED].tobytes()) if CHANGED in arrays else None
        return cls(int(arrays["offset"]), History.from_arrays(arrays), changed)
