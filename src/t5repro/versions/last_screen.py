"""What a finished run prints last: its scores, where its report is, and commands to go on with."""

import subprocess
import sys
from collections.abc import Mapping

from t5repro.artifacts import SCORES, WEIGHTS
from t5repro.lineage.store import RESULTS
from t5repro.plan.run_plan import RunPlan


def last_screen(plan: RunPlan) -> str:
    """Return the last screen of a run that has built everything."""
    run = f"{RESULTS}/{plan.settings.run.name}"
    if not plan.tasks:  # it ends with pre-training
        files = dict.fromkeys(plan.by_experiment("pretrain", WEIGHTS).values())
        return _screen(
            "\n".join(f"weights: {path}" for path in files),
            {f"t5repro tasks new ROWS.csv --from {run}": "fine-tune on rows of your own"},
        )
    # A process of its own, as for the seal: the report is a layer above this package.
    shown = subprocess.run(
        [sys.executable, "-m", "t5repro", "show", run], capture_output=True, text=True, check=False
    )
    scores = next(iter(plan.by_experiment("evaluate_score", SCORES).values()))
    return _screen(
        (shown.stdout or shown.stderr).rstrip(),
        {
            f"t5repro pages {scores}": "the pages behind a score",
            f"t5repro predict {run} TEXT": "the answer to a line of your own",
        },
    )


def _screen(results: str, commands: Mapping[str, str]) -> str:
    width = max(map(len, commands))
    lines = (f"  {command.ljust(width)}  {meaning}" for command, meaning in commands.items())
    return "\n".join([results, "next:", *lines])
