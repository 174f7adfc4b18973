"""Measures how far losses and scores of a run move if only rounding changes: `configs/spread/`.

    python benchmarks/spread.py [--run-file configs/demo.yaml] [--experiment baseline] [--twins 5]
        [--jobs 2]

Run it in a checkout with a finished run. A twin is the same training with one initial weight of
pre-training moved by one unit in the last place; fine-tuning, prediction and scoring follow. The
jobs are those that Snakemake plans, with other output folders, below `work/spread/<run>`. The
sample standard deviation of each loss and score over the twins is written to a file of the run's
name in `configs/spread/`, which `t5repro certificate` reads once it is committed.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import stdev

import numpy as np
from safetensors.numpy import load_file, save_file

from t5repro.config import load
from t5repro.errors import ArtifactError, SettingsError
from t5repro.files import sha256_of, write_json
from t5repro.lineage import environment
from t5repro.lineage.record import numbers_of
from t5repro.lineage.sources import closure
from t5repro.lineage.spread import Spread, spread_path
from t5repro.lineage.tolerance import depends_on_rounding
from t5repro.plan.run_plan import RunPlan
from t5repro.randomness import stream
from t5repro.versions.dvc_pipeline import leaves_of
from t5repro.versions.snakemake_graph import PlannedStage, planned, stage_name, stages_of_plan

RULES = ("pretrain", "finetune", "evaluate_predict", "evaluate_score")
WEIGHTS, MANIFEST = "weights.safetensors", "manifest.json"
DIGITS = 4  # significant ones of a deviation


@dataclass(frozen=True)
class PlannedCommand:
    """A stage of the experiment and the command line of its job."""

    stage: PlannedStage
    words: tuple[str, ...]


def main() -> None:
    """Measure and write the spread of a run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run-file", type=Path, default=Path("configs/demo.yaml"))
    parser.add_argument("--experiment", help="the first one of the run file if not given")
    parser.add_argument("--twins", type=int, default=5)
    parser.add_argument("--jobs", type=int, help="twins at a time; by default what the cores allow")
    arguments = parser.parse_args()
    if arguments.twins < 2:
        parser.error("--twins must be at least 2: one training has no deviation")
    settings = load.load_run_file(arguments.run_file)
    experiment = arguments.experiment or settings.experiments[0].name
    commands = commands_of(arguments.run_file, experiment)
    folder = Path("work/spread") / settings.run.name
    shutil.rmtree(folder, ignore_errors=True)

    def measure(number: int) -> Mapping[str, Mapping[str, float]]:
        twin = run_twin(commands, folder / str(number), number)
        check_moved(commands, folder / str(number))
        print(f"twin {number}: {', '.join(final_losses(twin))}", flush=True)
        return twin

    cores = len(os.sched_getaffinity(0))
    jobs = arguments.jobs or max(1, cores // settings.devices.intra_op_threads)
    with ThreadPoolExecutor(jobs) as pool:
        twins = list(pool.map(measure, range(arguments.twins)))
    spread = Spread(
        run=settings.run.name,
        experiment=experiment,
        twins=arguments.twins,
        machine={
            "processor": environment.processor() or "unknown",
            **{name: environment.library_versions()[name] for name in ("numpy", "tensorflow")},
        },
        code={rule: hash_of(closure(rule)) for rule in RULES},
        settings={command.stage.name: leaves_of(settings, command.stage) for command in commands},
        deviations=deviations(twins),
    )
    write_json(spread_path(settings.run.name), asdict(spread))
    print(f"wrote {spread_path(settings.run.name)}")


def commands_of(run_file: Path, experiment: str) -> list[PlannedCommand]:
    """Return the jobs of an experiment from pre-training to its scores, in order.

    Raises:
        SettingsError: the experiment starts from a published checkpoint.
    """
    plan = RunPlan.of_run_file(run_file)
    with planned(run_file) as workflow:
        words = {
            stage_name(job): tuple(shlex.split(job.shellcmd))
            for job in workflow.dag.jobs
            if job.rule.name in RULES
        }
    last = f"{RULES[-1]}-{plan.node_of(RULES[-1], experiment)}"
    stages = ancestors(stages_of_plan(plan), last)
    chain = [PlannedCommand(stage, words[stage.name]) for stage in stages]
    if any(starts_from_published(command.words) for command in chain):
        raise SettingsError(
            f"{experiment} starts from a published checkpoint; twins start from fresh weights, so "
            "name an experiment that does, with --experiment"
        )
    return chain


def starts_from_published(words: tuple[str, ...]) -> bool:
    """Return whether a pre-training has a folder to start from: a word after its option."""
    following = dict(pairwise(words)).get("--start-from", "--")
    return not following.startswith("--")


def ancestors(stages: list[PlannedStage], last: str) -> list[PlannedStage]:
    """Return a stage and all stages of `RULES` that it depends on, in order."""
    names = {last}
    folders: set[str] = set()
    for stage in reversed(stages):
        if stage.rule in RULES and (stage.name in names or stage.folder in folders):
            names.add(stage.name)
            folders |= {Path(path).parent.as_posix() for path in stage.inputs}
    return [stage for stage in stages if stage.name in names]


def run_twin(
    commands: list[PlannedCommand], folder: Path, number: int
) -> Mapping[str, Mapping[str, float]]:
    """Train, predict and score with one weight moved; return rule -> numbers of its jobs.

    Args:
        commands: the jobs of the experiment.
        folder: receives the outputs of the jobs; `.` replaces the results of the run.
        number: of the twin, which decides the weight.
    """
    numbers: dict[str, dict[str, float]] = {}
    folders = [command.stage.folder for command in commands]
    for command in commands:
        words = [moved_word(word, folders, folder) for word in command.words]
        if command.stage.rule == "pretrain":
            initial = folder / "work/initial" / command.stage.node
            write_initial(words, initial, number)
            words += ["--start-from", str(initial)]
        run(words)
        manifest = folder / command.stage.folder / MANIFEST
        numbers.setdefault(command.stage.rule, {}).update(numbers_of(manifest))
    return numbers


def check_moved(commands: list[PlannedCommand], folder: Path) -> None:
    """Refuse a twin with the same weights as the run.

    Raises:
        ArtifactError: they are.
    """
    for command in commands:
        weights = Path(command.stage.folder) / WEIGHTS
        if weights.is_file() and sha256_of(weights) == sha256_of(folder / weights):
            raise ArtifactError(f"{folder / weights} has the bytes of {weights}: nothing has moved")


def moved_word(word: str, stage_folders: list[str], folder: Path) -> str:
    """Return a word of a command line with its outputs moved below a folder."""
    outputs = (*stage_folders, "work", "logs")
    is_output = any(word == output or word.startswith(f"{output}/") for output in outputs)
    return str(folder / word) if is_output else word


def write_initial(words: list[str], folder: Path, number: int) -> None:
    """Write the initial weights of a pre-training, with one weight moved."""
    options = dict(pairwise(words))
    settings = json.loads(options["--settings"])
    settings["pretrain"]["steps"] = 0
    fresh = folder.with_name(f"{folder.name}-fresh")
    run(
        [
            *("t5repro", "stage", "pretrain", "--settings", json.dumps(settings)),
            *("--tokens", options["--tokens"], "--folder", str(fresh), "--work", f"{fresh}-work"),
            *("--manifest", str(fresh / MANIFEST), "--log", f"{fresh}.log"),
        ]
    )
    arrays = load_file(fresh / WEIGHTS)
    move_one_weight(arrays, number)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(arrays, folder / WEIGHTS)
    shutil.copy(fresh / MANIFEST, folder / MANIFEST)  # tells the shape of the network


def move_one_weight(arrays: dict[str, np.ndarray], number: int) -> None:
    """Move one weight of a projection, where every weight counts, by one unit in the last place."""
    random = stream(number, "spread")
    names = sorted(name for name, x in arrays.items() if x.ndim > 1 and is_projection(name))
    name = names[random.integers(len(names))]
    moved = arrays[name].copy()
    index = tuple(int(random.integers(length)) for length in moved.shape)
    moved[index] = np.nextafter(moved[index], np.float32(np.inf), dtype=np.float32)
    arrays[name] = moved


def is_projection(name: str) -> bool:
    """Return whether all rows of an array are used, unlike embeddings and relative biases."""
    return not any(word in name for word in ("embedding", "bias"))


def run(words: list[str]) -> None:
    """Run a job of this checkout.

    Raises:
        ArtifactError: it failed; its log is on the terminal.
    """
    command = [sys.executable, "-m", *words]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        raise ArtifactError(f"{shlex.join(words[:2])} failed; see its messages above")


def deviations(twins: list[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return rule -> number -> sample standard deviation, of numbers that depend on rounding."""
    return {
        rule: {
            name: float(f"{stdev(twin[rule][name] for twin in twins):.{DIGITS}g}")
            for name in sorted(set.intersection(*(set(twin[rule]) for twin in twins)))
            if depends_on_rounding(name)
        }
        for rule in RULES
    }


def final_losses(twin: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the final losses of a twin for the terminal."""
    for rule in ("pretrain", "finetune"):
        if "final_loss" in twin[rule]:
            yield f"final loss of {rule} {twin[rule]['final_loss']:.6f}"


def hash_of(code: Mapping[str, str]) -> str:
    """Return one hash of the code of a rule."""
    return hashlib.sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    main()
