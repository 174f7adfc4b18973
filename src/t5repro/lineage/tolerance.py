"""What each stage promises of a second run, and how near two results are where it is not all.

On a CPU every stage gives the same bytes (docs/decisions/D-043). On a GPU or a TPU training and
decoding agree to a tolerance; stages after them are exact, given the same predictions.
"""

import csv
import json
import math
from pathlib import Path

from t5repro.lineage.graph import Job

EXACT, TOLERANT = "exact", "tolerance"
ON_DEVICES = ("pretrain", "finetune", "evaluate_predict")

# Relative distance of weights and losses, and share of predictions that may differ. They bound
# what reordered sums in float32 do over a run; they were not measured on an accelerator.
TOLERANCES = {".safetensors": 0.05, ".csv": 0.05, ".jsonl": 0.05}


def promise_of(job: Job) -> str:
    """Return whether a job promises the same bytes, or the same up to a tolerance."""
    if job.rule not in ON_DEVICES:
        return EXACT
    kind = job.settings.get("devices", {}).get("kind", "cpu")
    used = (job.record.get("end") or {}).get("devices") or {}
    if kind == "cpu" or (kind == "auto" and used and set(used) == {"CPU"}):
        return EXACT
    return TOLERANT


def distance(ours: Path, theirs: Path) -> tuple[bool, str]:
    """Return whether two files of one kind are near enough, and how near they are."""
    limit = TOLERANCES.get(ours.suffix)
    if ours.name.endswith("manifest.json"):
        return _manifests(ours, theirs)
    if limit is None:
        return False, f"{ours.suffix or 'such'} files have no tolerance and must be equal"
    measure = {".safetensors": _weights, ".csv": _table, ".jsonl": _lines}[ours.suffix]
    found = measure(ours, theirs)
    return found <= limit, f"distance {found:.2g}, allowed {limit:g}"


def _weights(ours: Path, theirs: Path) -> float:
    """Return the largest relative distance of an array, in the Euclidean norm."""
    import numpy as np
    from safetensors.numpy import load_file

    a, b = load_file(ours), load_file(theirs)
    if {n: v.shape for n, v in a.items()} != {n: v.shape for n, v in b.items()}:
        return math.inf
    worst = 0.0
    for name, value in a.items():
        first, second = value.astype(np.float64), b[name].astype(np.float64)
        norm = float(np.linalg.norm(first))
        apart = float(np.linalg.norm(first - second))
        if not math.isfinite(apart):
            return math.inf
        worst = max(worst, apart / norm if norm else apart)
    return worst


def _table(ours: Path, theirs: Path) -> float:
    """Return the largest relative distance of numbers in the same place of two tables."""
    with ours.open(newline="") as first, theirs.open(newline="") as second:
        a, b = list(csv.reader(first)), list(csv.reader(second))
    if [len(row) for row in a] != [len(row) for row in b]:
        return math.inf
    worst = 0.0
    for row_a, row_b in zip(a, b, strict=True):
        for x, y in zip(row_a, row_b, strict=True):
            worst = max(worst, _apart(x, y))
    return worst


def _apart(x: str, y: str) -> float:
    if x == y:
        return 0.0
    try:
        first, second = float(x), float(y)
    except ValueError:
        return math.inf
    found = abs(first - second) / max(abs(first), abs(second))
    return found if math.isfinite(found) else math.inf


def _lines(ours: Path, theirs: Path) -> float:
    """Return the share of lines that differ."""
    a, b = ours.read_bytes().splitlines(), theirs.read_bytes().splitlines()
    if len(a) != len(b):
        return math.inf
    return sum(x != y for x, y in zip(a, b, strict=True)) / max(len(a), 1)


def _manifests(ours: Path, theirs: Path) -> tuple[bool, str]:
    """Return whether two manifests agree in everything but hashes and counts of results."""
    a, b = (json.loads(path.read_bytes()) for path in (ours, theirs))
    same = a["settings"] == b["settings"] and a["inputs"] == b["inputs"]
    return same, "same settings and inputs" if same else "other settings or inputs"
