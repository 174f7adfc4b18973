"""Trainings and predictions of a run, repeated on the other engine: a second calculation.

Of each training the first steps are repeated by both engines, without dropout:

1. in float32, each step from the state that the run's engine had before it: losses and updates
   differ by rounding only;
2. in float32, freely from the same first state: rounding grows from step to step;
3. in float64, freely: what was rounding shrinks by nine digits, and what was not stays.

Predictions are repeated from the run's weights, and their texts compared.
"""

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST, STEPS
from t5repro.errors import DeviceError, LineageError, SettingsError
from t5repro.files import read_json
from t5repro.lineage.store import RESULTS
from t5repro.plan.run_plan import Node, RunPlan
from t5repro.progress import announce

TRAININGS, PREDICTIONS = ("pretrain", "finetune"), "evaluate_predict"
OTHER = {"tensorflow": "jax", "jax": "tensorflow"}
ENVIRONMENTS = {"tensorflow": ".venv", "jax": ".venv-jax"}
# Greatest relative differences of a loss, and of the weights as a share of the way they moved. An
# optimizer that divides by the size of gradients makes the rounding of weights grow by four digits.
BARS = {"float32": (1e-6, 1e-5), "float64": (1e-10, 1e-8)}


@dataclass(frozen=True)
class Measure:
    """A comparison of a node.

    Attributes:
        node: rule and name.
        what: the compared quantity.
        value: relative difference; of answers, the share that differs.
        bar: greatest value that is rounding; None if rounding has no known limit.
        where: where the value was found.
    """

    node: str
    what: str
    value: float
    bar: float | None
    where: str

    @property
    def agrees(self) -> bool:
        """Whether the value is at most the bar."""
        return self.bar is None or self.value <= self.bar

    def __str__(self) -> str:
        if self.bar is None:
            verdict = "rounding grows"
        else:
            verdict = f"{'at most' if self.agrees else 'ABOVE'} {self.bar:.0e}"
        return f"  {self.node:36} {self.what:34} {self.value:.1e}  {verdict:16} {self.where}"


@dataclass(frozen=True)
class Comparison:
    """The run's engine, the other one, and how far they agree.

    Attributes:
        engines: names of the engines, the run's first.
        libraries: of both, with versions.
        measures: of all nodes.
    """

    engines: tuple[str, str]
    libraries: dict[str, str]
    measures: tuple[Measure, ...]

    @property
    def holds(self) -> bool:
        """Whether something was compared, and everything agrees."""
        return bool(self.measures) and all(measure.agrees for measure in self.measures)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain JSON values."""
        return {"holds": self.holds, **asdict(self)}

    def to_text(self) -> str:
        """Return the comparison as human-readable text."""
        versions = ", ".join(f"{name} {version}" for name, version in self.libraries.items())
        above = [measure for measure in self.measures if not measure.agrees]
        if not self.measures:
            verdict = "nothing was compared: build the run first"
        elif above:
            verdict = f"{len(above)} differ by more than rounding; first: {above[0].node}"
        else:
            verdict = f"{self.engines[0]} and {self.engines[1]} calculate the same"
        heading = f"{self.engines[1]} beside {self.engines[0]} ({versions})"
        return "\n".join([heading, *map(str, self.measures), verdict])


def compare_engines(
    run_files: Sequence[Path],
    engine: str,
    *,
    folder: Path,
    steps: int,
    nodes: Sequence[str],
    python: str,
) -> Comparison:
    """Repeat trainings and predictions of a run on another engine.

    Args:
        run_files: of the run.
        engine: the other engine.
        folder: empty; receives states and predictions.
        steps: repeated steps of each training.
        nodes: rules or ``rule/node`` to repeat; all trainings and predictions if empty.
        python: interpreter with the other engine; searched if empty.

    Raises:
        DeviceError: an engine is not installed, or the run is of this engine.
        LineageError: no such node, or it is not built.
        SettingsError: there are no steps.
    """
    if steps < 1:
        raise SettingsError(f"--steps is {steps}; it must be at least 1")
    run_plan = RunPlan.of_run_file(*run_files)
    own = run_plan.settings.devices.engine
    if engine == own:
        raise DeviceError(f"--engine is {engine!r}, the engine of the run; name {OTHER[own]!r}")
    pythons = {own: interpreter(own), engine: python or interpreter(engine)}
    measures: list[Measure] = []
    for node in _selected(run_plan, nodes):
        announce(f"repeating {node.label} on {engine}")
        node_folder = folder / node.rule / node.name
        if node.rule == PREDICTIONS:
            measures += _compare_predictions(run_plan, node, node_folder, engine, pythons[engine])
            continue
        measures += _Repetition(run_plan, node, node_folder, steps, pythons).compare(own, engine)
    libraries = {
        name: version
        for path in sorted(folder.rglob(STEPS))
        for name, version in read_json(path)["libraries"].items()
    }
    return Comparison((own, engine), libraries, tuple(measures))


def interpreter(engine: str) -> str:
    """Return an interpreter that has an engine: this one, or of the environment beside it.

    Raises:
        DeviceError: there is none.
    """
    if importlib.util.find_spec(engine):
        return sys.executable
    path = Path(ENVIRONMENTS[engine], "bin/python")
    if path.is_file():
        return str(path)
    raise DeviceError(
        f"no interpreter with {engine} is here: {path} is missing; make {path.parents[1]}"
        "/installed makes it, or name one with --python"
    )


def _selected(run_plan: RunPlan, names: Sequence[str]) -> list[Node]:
    """Return the nodes to repeat, all of them built.

    Raises:
        LineageError: a name is of no node, or a node is not built.
    """
    repeatable = {
        f"{node.rule}/{node.name}": node for node in run_plan.nodes if _can_be_repeated(node)
    }
    if unknown := [name for name in names if name not in (*repeatable, *TRAININGS, PREDICTIONS)]:
        raise LineageError(
            f"--node {unknown[0]} does not name a training or prediction of the run; these are "
            f"{', '.join(repeatable)}"
        )
    nodes = [
        node for name, node in repeatable.items() if not names or {name, node.rule} & set(names)
    ]
    for node in nodes:
        path = Path(RESULTS, run_plan.settings.run.name, node.rule, node.name, MANIFEST)
        if not path.is_file():
            raise LineageError(f"{path} is missing: build the run, or name other nodes with --node")
    return nodes


def _can_be_repeated(node: Node) -> bool:
    if node.rule in TRAININGS:  # one without steps has only initial weights
        return bool(getattr(node.settings, node.rule).steps)
    return node.rule == PREDICTIONS


class _Repetition:
    """Both engines' first steps of a training."""

    def __init__(
        self, run_plan: RunPlan, node: Node, folder: Path, steps: int, pythons: dict[str, str]
    ) -> None:
        self._words = run_plan.words(node.rule, node.name)
        self._label = node.label
        self._folder = folder
        self._steps = str(steps)
        self._pythons = pythons

    def compare(self, own: str, engine: str) -> Iterator[Measure]:
        """Yield the differences between the engines."""
        first = self._repeat(own, "float32")
        yield from self._measures(
            "float32, each step from one state",
            self._repeat(engine, "float32", "--reference", str(first)),
            BARS["float32"],
        )
        yield from self._measures(
            "float32, free",
            self._repeat(engine, "float32", "--reference", str(first), "--free"),
            (None, None),
        )
        first = self._repeat(own, "float64")
        yield from self._measures(
            "float64, free",
            self._repeat(engine, "float64", "--reference", str(first), "--free"),
            BARS["float64"],
        )

    def _repeat(self, engine: str, precision: str, *options: str) -> Path:
        """Run the program of one engine; return its folder."""
        folder = self._folder / "-".join((engine, precision, *(o[2:] for o in options[::2])))
        step_options = ("--steps", self._steps, "--folder", str(folder))
        arguments = ("--engine", engine, "--precision", precision, *step_options, *options)
        _run(self._pythons[engine], "t5repro.cli.repeated_steps", *arguments, *self._words)
        return folder

    def _measures(
        self, comparison: str, folder: Path, bars: tuple[float | None, float | None]
    ) -> Iterator[Measure]:
        result = read_json(folder / STEPS)
        pairs = zip(result["losses"], result["losses_of_reference"], strict=True)
        losses = [abs(loss - reference) / max(abs(reference), 1e-30) for loss, reference in pairs]
        step = _worst(losses)
        yield Measure(self._label, f"loss, {comparison}", losses[step], bars[0], f"step {step + 1}")
        distances = [distance["share"] for distance in result["distances"]]
        step = _worst(distances)
        where = f"step {step + 1}, most in {result['distances'][step]['farthest']}"
        yield Measure(self._label, f"weights, {comparison}", distances[step], bars[1], where)


def _worst(values: Sequence[float]) -> int:
    """Return the index of the greatest value; NaN is greater than any."""
    return max(range(len(values)), key=lambda index: (math.isnan(values[index]), values[index]))


def _compare_predictions(
    run_plan: RunPlan, node: Node, folder: Path, engine: str, python: str
) -> Iterator[Measure]:
    """Yield the share of the answers of each task that are another text."""
    arguments = run_plan.words(node.rule, node.name)
    settings = json.loads(arguments[arguments.index("--settings") + 1])
    settings["devices"] |= {"engine": engine, "kind": "cpu"}
    arguments[arguments.index("--settings") + 1] = json.dumps(settings)
    arguments[arguments.index("--folder") + 1] = str(folder)
    arguments[arguments.index("--manifest") + 1] = str(folder / MANIFEST)
    _run(python, "t5repro", "stage", *arguments)
    results = Path(RESULTS, run_plan.settings.run.name, node.rule, node.name)
    for path in sorted(results.glob("*.jsonl")):
        pairs = list(zip(_answers(folder / path.name), _answers(path), strict=True))
        unequal = [
            number for number, (answer, own_answer) in enumerate(pairs, 1) if answer != own_answer
        ]
        where = f"{path.stem}: {len(pairs) - len(unequal)} of {len(pairs)} equal"
        where += f", first other in line {unequal[0]}" if unequal else ""
        yield Measure(node.label, "answers", len(unequal) / max(len(pairs), 1), 0.0, where)


def _answers(path: Path) -> list[str]:
    return [json.loads(line)["prediction"] for line in path.read_text("utf-8").splitlines()]


def _run(python: str, module: str, *arguments: str) -> None:
    """Run a program of this package in an environment.

    Raises:
        LineageError: it fails.
    """
    command = [python, "-m", module, *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = "\n".join(process.stderr.strip().splitlines()[-15:])
        raise LineageError(f"{python} -m {module} failed:\n{lines}")
