"""The few numbers of an experiment by which runs are compared: `dvc metrics show`, `dvc exp show`.

`scores.json` has every count, baseline and signature as well, which would fill hundreds of columns.
"""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import read_json

BOOTSTRAPPED = "_bootstrap"


def metrics_text(scores: Path, histories: Mapping[str, Path]) -> str:
    """Return JSON: task -> metric -> score, and under ``loss`` the last loss of each phase.

    The last loss on held-out text of a phase is there as ``<phase>_validation``.

    Undefined scores, bootstrapped ones (they repeat others) and phases without a step are absent.

    Args:
        scores: ``scores.json`` of the experiment.
        histories: phase (``pretrain``, ``finetune``) -> ``history.csv``.

    Raises:
        ArtifactError: a file is missing or malformed.
    """
    losses = {
        f"{phase}{ending}": loss
        for phase, path in histories.items()
        for ending, loss in zip(("", "_validation"), last_losses(path), strict=True)
    }
    tasks = read_json(scores)["tasks"]
    values = {task: _defined(entry["metrics"]) for task, entry in tasks.items()}
    return json.dumps({**values, "loss": _defined(losses)}, indent=2, sort_keys=True) + "\n"


def last_losses(history: Path) -> tuple[float | None, float | None]:
    """Return the last training loss of a ``history.csv``, and its last loss on held-out text.

    None stands for a history without a step, and for losses that were not measured.

    Raises:
        ArtifactError: the file is missing, or its last line has no loss.
    """
    try:
        with history.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        if not rows:
            return None, None
        held_out = rows[-1].get("validation_loss")
        return float(rows[-1]["loss"]), float(held_out) if held_out else None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{history} has no loss in its last line; rerun its stage") from error


def _defined(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in values.items()
        if value is not None and not name.endswith(BOOTSTRAPPED)
    }
