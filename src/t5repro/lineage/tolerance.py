"""The tolerances of this project: which stages are exact, and how close the others must agree.

On a CPU every stage gives the same bytes (docs/decisions/D-043). On GPUs and TPUs, and under the
settings that D-043 names, training and decoding agree to a tolerance. Later stages are exact
functions of predictions, so they differ only as far as the predictions do.
"""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

from t5repro.config.reproducibility import EXACT, Reproducibility, training_reproducibility
from t5repro.lineage.graph import Job
from t5repro.stages import BY_NAME

# These bound the effect of reordered float32 sums over a run. They were chosen, not measured: no
# accelerator was available.
MAX_RELATIVE_DISTANCE = 0.05  # of weights, losses and counters
MAX_DIFFERING_LINES = 0.05  # share of the predictions
MAX_SCORE_POINTS = 3.0  # of scores, which range from 0 to 100
SCORE_PREFIX = "tasks."  # of the names of scores among the numbers of a record


def reproducibility_of(job: Job) -> Reproducibility:
    """Return how closely a job with equal inputs is repeated."""
    if job.rule in BY_NAME and BY_NAME[job.rule].on_device:
        return training_reproducibility(job.settings)
    return EXACT


def numbers_agree(name: str, expected: float, actual: float) -> bool:
    """Return whether a counter, loss or score of a second run is within tolerance."""
    if math.isclose(expected, actual, rel_tol=MAX_RELATIVE_DISTANCE):
        return True
    return name.startswith(SCORE_PREFIX) and abs(expected - actual) <= MAX_SCORE_POINTS


def files_agree(expected: Path, actual: Path) -> tuple[bool, str]:
    """Compare two files of one kind.

    Returns:
        Whether they are within tolerance, and their distance as text.
    """
    if expected.name.endswith("manifest.json"):
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
    first, second = (json.loads(path.read_bytes()) for path in (expected, actual))
    agree = first["settings"] == second["settings"] and first["inputs"] == second["inputs"]
    return agree, "same settings and inputs" if agree else "other settings or inputs"


MEASURES: dict[str, tuple[Callable[[Path, Path], float], float]] = {
    ".safetensors": (_weights_distance, MAX_RELATIVE_DISTANCE),
    ".csv": (_table_distance, MAX_RELATIVE_DISTANCE),
    ".jsonl": (_lines_distance, MAX_DIFFERING_LINES),
}
