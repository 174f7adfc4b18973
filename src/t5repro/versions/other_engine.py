"""Trainings and predictions of a run, repeated on the other engine: a second calculation.

Of each training the first steps are repeated by both engines, without dropout:

1. in float32, each step from the state that the run's engine had before it: losses and updates
   differ by rounding only;
2. in float32, freely from the same first state: rounding grows from step to step;
3. in float64, freely: what was rounding shrinks by nine digits, and what was not stays.

Predictions are repeated from the run's weights, and their texts compared. Where greedy decoding
gives another text, two ids must have tied: the difference of their logits is the margin.
"""

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST, REPEATED_ANSWERS, STEPS
from t5repro.config.sections.model import tuned_family
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
# Greatest difference of two logits, as a share of the larger one, that rounding can turn round: 30
# times the distance of the engines' logits that was seen.
MARGIN = 1e-5


@dataclass(frozen=True)
class Measure:
    """A comparison of a node.

    Attributes:
        node: rule and name.
        what: the compared quantity.
        value: relative difference; of answers, the largest margin of one that differs, 0 if all are
            equal.
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
        """Return the comparison as plain JSON values; None for a value that is no number."""
        values = {"holds": self.holds, **asdict(self)}
        for measure in values["measures"]:
            measure["value"] = measure["value"] if math.isfinite(measure["value"]) else None
        return values

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
        heading = f"{self.engines[1]} beside {self.engines[0]}"
        heading += f" ({versions})" if versions else ""
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
            measures += _Answers(run_plan, node, node_folder, pythons).compare(own, engine)
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
        _run(self._pythons[engine], "t5repro.cli.repeated_job", *arguments, *self._words)
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


class _Answers:
    """The answers of a prediction, by the run and by the other engine."""

    def __init__(
        self, run_plan: RunPlan, node: Node, folder: Path, pythons: Mapping[str, str]
    ) -> None:
        self._words = run_plan.words(node.rule, node.name)
        self._node = node
        self._folder = folder
        self._results = Path(RESULTS, run_plan.settings.run.name, node.rule, node.name)
        self._pythons = pythons

    def compare(self, own: str, engine: str) -> Iterator[Measure]:
        """Yield how far the answers of each task agree."""
        self._predict(engine)
        pairs = {
            path.stem: list(zip(_texts(path), _texts(self._folder / path.name), strict=True))
            for path in sorted(self._results.glob("*.jsonl"))
        }
        others = {
            task: [row for row, (answer, other) in enumerate(texts) if answer != other]
            for task, texts in pairs.items()
        }
        tying = {task for task, rows in others.items() if rows and self._can_tie(task)}
        sides = self._repeat(own, engine) if tying else ()
        for task, texts in pairs.items():
            margins = [
                (margin_of(sides, task, row, texts[row][0]) if task in tying else math.inf, row + 1)
                for row in others[task]
            ]
            yield answers_measure(self._node.label, task, len(texts), margins)

    def _can_tie(self, task: str) -> bool:
        """Return whether answers of a task are decoded greedily: their margins are known."""
        settings = self._node.settings
        writes_text = tuned_family(settings.model, settings.finetune).writes_text
        return writes_text and task not in settings.evaluate.beam_tasks

    def _predict(self, engine: str) -> None:
        """Run the job of the prediction on the other engine."""
        words = list(self._words)
        settings = json.loads(words[words.index("--settings") + 1])
        settings["devices"] |= {"engine": engine, "kind": "cpu"}
        words[words.index("--settings") + 1] = json.dumps(settings)
        words[words.index("--folder") + 1] = str(self._folder)
        words[words.index("--manifest") + 1] = str(self._folder / MANIFEST)
        _run(self._pythons[engine], "t5repro", "stage", *words)

    def _repeat(self, own: str, engine: str) -> Sequence[Any]:
        """Return ids, texts and logits of both engines; see `evaluate.repeated_answers`."""
        folders = {name: self._folder / name for name in (own, engine)}

        def repeat(name: str, *reference: str) -> None:
            options = ("--engine", name, "--folder", str(folders[name]), *reference)
            _run(self._pythons[name], "t5repro.cli.repeated_job", *options, *self._words)

        repeat(own)
        repeat(engine, "--reference", str(folders[own]))
        repeat(own, "--reference", str(folders[engine]))
        return [read_json(folder / REPEATED_ANSWERS) for folder in folders.values()]


def margin_of(sides: Sequence[Any], task: str, row: int, answer: str) -> float:
    """Return how far the two first other ids of an answer are from a tie.

    Args:
        sides: the content of `REPEATED_ANSWERS` of both engines, the run's first.
        task: of the answer.
        row: of the answer.
        answer: as the run wrote it.

    Returns:
        The difference of their logits as a share of the larger logit, at least of 1; the larger one
        of both engines. Infinite if the engine of the run gives another answer now: then the
        difference is not one of engines.
    """
    pairs = [side["logits"].get(task, {}).get(str(row)) for side in sides]
    if sides[0]["answers"][task][row]["text"] != answer or None in pairs:
        return math.inf
    margins: list[float] = [abs(a - b) / max(1.0, abs(a), abs(b)) for a, b in pairs]
    return max(margins)


def answers_measure(
    label: str, task: str, rows: int, margins: Sequence[tuple[float, int]]
) -> Measure:
    """Return the comparison of the answers of a task.

    Args:
        label: of the node.
        task: of the answers.
        rows: number of answers.
        margins: margin and line of each answer that is another text, see `margin_of`.
    """
    where = f"{task}: {rows - len(margins)} of {rows} equal"
    if margins:
        (least, first), (most, last) = min(margins), max(margins)
        where += f"; margin {least:.0e} in line {first}"
        where += f" to {most:.0e} in line {last}" if len(margins) > 1 else ""
    value = max((margin for margin, _ in margins), default=0.0)
    return Measure(label, "answers", value, MARGIN, where)


def _texts(path: Path) -> list[str]:
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
