"""The last lines of a finished run: its scores, where its report is, and commands to go on with."""

import subprocess
import sys
from collections.abc import Mapping

from t5repro.artifacts import SCORES, WEIGHTS
from t5repro.config.sections.model import tuned_family
from t5repro.lineage.store import RESULTS
from t5repro.plan.run_plan import RunPlan


def last_screen(run_plan: RunPlan) -> str:
    """Return the last screen of a run that has built everything."""
    run = f"{RESULTS}/{run_plan.settings.run.name}"
    if not run_plan.tasks:  # it ends with pre-training
        files = dict.fromkeys(run_plan.by_experiment("pretrain", WEIGHTS).values())
        return _screen(
            "\n".join(f"weights: {path}" for path in files),
            {f"t5repro tasks new ROWS.csv --from {run}": "fine-tune on rows of your own"},
        )
    # A process of its own, as for the seal: the report is a layer above this package.
    process = subprocess.run(
        [sys.executable, "-m", "t5repro", "show", run], capture_output=True, text=True, check=False
    )
    experiment, scores = next(iter(run_plan.by_experiment("evaluate_score", SCORES).items()))
    has_corpus = experiment in run_plan.corpora("c4")
    question, answer = ("pages", "pages") if has_corpus else ("trace", "jobs")
    input_words = _input_of(run_plan, experiment)
    return _screen(
        (process.stdout or process.stderr).rstrip(),
        {
            f"t5repro {question} {scores}": f"the {answer} behind a score",
            f"t5repro predict {run} {input_words}": "the answer to a line of your own",
        },
    )


def _input_of(run_plan: RunPlan, experiment: str) -> str:
    """Return the words for an input: text, or a row of a task if the network writes none."""
    settings = run_plan.settings_at(experiment)
    if tuned_family(settings.model, settings.finetune).writes_text:
        return "TEXT"
    return f"--task {run_plan.tasks[0]} ROW"


def _screen(results: str, commands: Mapping[str, str]) -> str:
    width = max(map(len, commands))
    lines = (f"  {command.ljust(width)}  {meaning}" for command, meaning in commands.items())
    return "\n".join([results, "next:", *lines])
