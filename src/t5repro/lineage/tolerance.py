"""The tolerances of this project: which stages are exact, and how close the others must agree.

On a CPU every stage gives the same bytes (docs/decisions/D-043). On GPUs and TPUs, and under the
settings that D-043 names, training and decoding agree to a tolerance. Later stages are exact
functions of predictions, so they differ only as far as the predictions do.

`files_agree` judges files, for `rebuild`; `compare_numbers` judges losses, scores and counts, for
the certificate.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST
from t5repro.config.reproducibility import EXACT, Reproducibility, training_reproducibility
from t5repro.config.sections.devices import DevicesSettings
from t5repro.files import read_json
from t5repro.lineage.graph import Job
from t5repro.stages import BY_NAME

# These bound the effect of reordered float32 sums over a run. They were chosen, not measured: no
# accelerator was available.
MAX_RELATIVE_DISTANCE = 0.05  # of weights and losses
MAX_DIFFERING_LINES = 0.05  # share of the predictions

# Relative, of a number that rounding has hardly changed. Measured with the approximate roots of two
# makers of CPUs: 4e-7 at step 12.
ROUNDING = 1e-5
EARLY = re.compile(r"loss_of_step\.(\d+)")
ROUNDED = re.compile(
    r"final_(?:validation_)?loss"
    r"|tasks\.(?P<task>[^.]+)\.(?:metrics\..+|(?P<count>invalid|answers_without_eos))"
)
DEVIATIONS = 3 * math.sqrt(2)  # the committed run and this one each deviate
STANDARD_ERRORS = 2 * math.sqrt(2)


def reproducibility_of(job: Job) -> Reproducibility:
    """Return how closely a job with equal inputs is repeated."""
    if job.rule in BY_NAME and BY_NAME[job.rule].on_device:
        return training_reproducibility(job.settings)
    return EXACT


def depends_on_rounding(name: str) -> bool:
    """Return whether a number of a job is a loss, a score or a count of predictions."""
    return bool(EARLY.fullmatch(name) or ROUNDED.fullmatch(name))


def rounding_of(settings: Mapping[str, Any]) -> float:
    """Return the relative difference that rounding by itself makes in an early loss of a job.

    Args:
        settings: of the job, as JSON.
    """
    devices = DevicesSettings.model_construct(**settings.get("devices", {}))
    is_float32 = devices.kind == "cpu" and devices.precision == "float32"
    return ROUNDING if is_float32 else MAX_RELATIVE_DISTANCE


@dataclass(frozen=True)
class NumberComparison:
    """A number of a job, as committed and as computed here.

    Attributes:
        name: dotted, as in the record.
        expected: as committed; None if the committed job did not have it.
        actual: as computed here; None if it is absent.
        allowed: the largest difference that agrees; None if it was never measured.
    """

    name: str
    expected: float | None
    actual: float | None
    allowed: float | None = 0.0

    @property
    def agrees(self) -> bool:
        """Whether the two are equal or within the allowed difference."""
        if self.expected is None or self.actual is None:
            return self.expected == self.actual
        difference = abs(self.actual - self.expected)
        return difference == 0 or (self.allowed is not None and difference <= self.allowed)

    @property
    def share(self) -> float:
        """The difference as a share of the allowed one."""
        if self.expected is None or self.actual is None or not self.allowed:
            return 0.0
        return abs(self.actual - self.expected) / self.allowed

    def __str__(self) -> str:
        actual, expected = (
            "missing" if value is None else f"{value:.9g}" for value in (self.actual, self.expected)
        )
        text = f"{self.name} is {actual}, committed is {expected}"
        if self.expected is None or self.actual is None:
            return text
        if self.allowed is None:
            return f"{text}, no spread was measured for it"
        limit = f"allowed difference {self.allowed:.2g}" if self.allowed else "must be equal"
        return f"{text}, {limit}"


@dataclass(frozen=True)
class JobKind:
    """What decides how closely the numbers of a job are compared.

    Attributes:
        same_inputs: whether the job read the committed bytes.
        on_device: whether it trains or predicts, so that rounding may change its bytes.
        rounding: relative difference allowed to a number that rounding has hardly changed.
        deviations: name -> standard deviation in the measured spread.
        growth: name of an early loss -> its standard deviation over twins with equal inputs.
        same_noise: whether dropout drew what it drew in the committed job.
    """

    same_inputs: bool
    on_device: bool
    rounding: float
    deviations: Mapping[str, float]
    growth: Mapping[str, float]
    same_noise: bool = True

    def allowed_difference(self, name: str, value: float, examples: float) -> float | None:
        """Return how far a number may be from the committed one; None if it was not measured.

        Args:
            name: of the number.
            value: as committed.
            examples: number of examples of its task, 0 without one.
        """
        if not depends_on_rounding(name):
            return 0.0
        rounded = ROUNDED.fullmatch(name)
        is_early = rounded is None
        least = self.rounding * abs(value)
        if self.same_inputs and self.same_noise and is_early:
            return max(least, DEVIATIONS * self.growth.get(name, 0.0))
        if self.same_inputs and not self.on_device:
            return least
        # No default: without a measured spread nothing can be called rounding.
        if name not in self.deviations:
            return None
        error = binomial_error(value, examples, is_count=bool(rounded and rounded["count"]))
        return max(least, DEVIATIONS * self.deviations[name], STANDARD_ERRORS * error)


def compare_numbers(
    expected: Mapping[str, float], actual: Mapping[str, float], kind: JobKind
) -> Iterator[NumberComparison]:
    """Compare the numbers of a job with the committed ones: early losses first."""
    for name in sorted(expected.keys() | actual.keys(), key=_order):
        value, allowed = expected.get(name), None
        if value is not None:
            rounded = ROUNDED.fullmatch(name)
            task = rounded["task"] if rounded else None
            examples = expected.get(f"tasks.{task}.examples", 0)
            allowed = kind.allowed_difference(name, value, examples)
        yield NumberComparison(name, value, actual.get(name), allowed)


def _order(name: str) -> tuple[int, int, str]:
    """Sort early losses by step before all other numbers."""
    early = EARLY.fullmatch(name)
    return (0, int(early[1]), "") if early else (1, 0, name)


def binomial_error(value: float, examples: float, *, is_count: bool) -> float:
    """Return the standard error of a score in percent, or of a count, over so many examples.

    The share is moved towards a half by one example of either kind (Laplace's rule), so that a
    score of 0 or 100 has an error, too.
    """
    if examples <= 0:
        return 0.0
    whole = examples if is_count else 100.0
    share = (min(max(value / whole, 0.0), 1.0) * examples + 1) / (examples + 2)
    return whole * math.sqrt(share * (1 - share) / examples)


def files_agree(expected: Path, actual: Path) -> tuple[bool, str]:
    """Compare two files of one kind.

    Returns:
        Whether they are within tolerance, and their distance as text.
    """
    if expected.name.endswith(MANIFEST):
        return _manifests_agree(expected, actual)
    if expected.suffix not in MEASURES:
        return False, f"{expected.suffix or 'such'} files have no tolerance and must be equal"
    measure, limit = MEASURES[expected.suffix]
    distance = measure(expected, actual)
    return distance <= limit, f"distance {distance:.2g}, allowed {limit:g}"


def _weights_distance(expected: Path, actual: Path) -> float:
    """Return the largest relative distance of an array, in the Euclidean norm."""
    import numpy as np
    from safetensors.numpy import load_file

    first, second = load_file(expected), load_file(actual)
    if {n: v.shape for n, v in first.items()} != {n: v.shape for n, v in second.items()}:
        return math.inf
    largest = 0.0
    for name in first:
        # float64, because the norm of a large float32 array would itself be rounded
        array, other_array = first[name].astype(np.float64), second[name].astype(np.float64)
        norm = float(np.linalg.norm(array))
        distance = float(np.linalg.norm(array - other_array))
        if not math.isfinite(distance):
            return math.inf
        # Per array, so that a large embedding does not hide a broken norm.
        largest = max(largest, distance / norm if norm else distance)
    return largest


def _table_distance(expected: Path, actual: Path) -> float:
    """Return the largest relative distance of two numbers in the same cell."""
    with expected.open(newline="") as first, actual.open(newline="") as second:
        rows, other_rows = list(csv.reader(first)), list(csv.reader(second))
    if [len(row) for row in rows] != [len(row) for row in other_rows]:
        return math.inf
    return max(
        (
            _cell_distance(cell, other_cell)
            for row, other_row in zip(rows, other_rows, strict=True)
            for cell, other_cell in zip(row, other_row, strict=True)
        ),
        default=0.0,
    )


def _cell_distance(cell: str, other_cell: str) -> float:
    if cell == other_cell:
        return 0.0
    try:
        first, second = float(cell), float(other_cell)
    except ValueError:
        return math.inf
    if first == second:  # such as 0 and 0.0
        return 0.0
    distance = abs(first - second) / max(abs(first), abs(second))
    return distance if math.isfinite(distance) else math.inf


def _lines_distance(expected: Path, actual: Path) -> float:
    """Return the share of lines that differ."""
    first, second = expected.read_bytes().splitlines(), actual.read_bytes().splitlines()
    if len(first) != len(second):
        return math.inf
    differing = sum(line != other_line for line, other_line in zip(first, second, strict=True))
    return differing / max(len(first), 1)


def _manifests_agree(expected: Path, actual: Path) -> tuple[bool, str]:
    """Compare two manifests without the hashes and counters of results."""
    first, second = (read_json(path) for path in (expected, actual))
    agree = first["settings"] == second["settings"] and first["inputs"] == second["inputs"]
    return agree, "same settings and inputs" if agree else "other settings or inputs"


MEASURES: dict[str, tuple[Callable[[Path, Path], float], float]] = {
    ".safetensors": (_weights_distance, MAX_RELATIVE_DISTANCE),
    ".csv": (_table_distance, MAX_RELATIVE_DISTANCE),
    ".jsonl": (_lines_distance, MAX_DIFFERING_LINES),
}
