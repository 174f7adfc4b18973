"""What both programs of the fine-tuning benchmark share: the data's names and the clock."""

import json
import sys
import time
from pathlib import Path

import clock

sys.path.append(str(Path(__file__).parents[1]))
from glue_data import EXTRA_IDS, MAX_LENGTHS, PIECES, VOCABULARY, files_of

__all__ = ["EXTRA_IDS", "MAX_LENGTHS", "PIECES", "VOCABULARY", "Clock", "files_of"]


class Clock:
    """Time from the end of the warm-up to the end of the last step.

    Args:
        warm_up: steps that are not counted.
    """

    def __init__(self, warm_up: int) -> None:
        self._warm_up = warm_up
        self._steps = 0

    def tick(self) -> None:
        """Note the end of a step."""
        self._steps += 1
        if self._steps == self._warm_up:
            self._begin = self._now()
        self._end = self._now()

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), clock.busy_seconds(), time.process_time()

    def tell(self, *, examples: int, filled: int, positions: int, steps: int) -> None:
        """Print the time of an example.

        Args:
            examples: trained on.
            filled: positions of inputs that held an id.
            positions: positions of inputs.
            steps: that were timed.
        """
        spent, busy, own = (b - a for a, b in zip(self._begin, self._end, strict=True))
        print(
            json.dumps(
                {
                    "seconds": spent / examples,
                    "examples_a_step": examples / steps,
                    "fill": filled / positions,
                    "others": max(0.0, (busy - own) / spent),
                }
            )
        )
