"""The estimate of a run: the costs of its nodes, and of experiments with or without others.

A node counts once, however many experiments use it. A node that is done costs nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError
from t5repro.estimate.machines import KINDS, Machine, machine_of
from t5repro.estimate.rates import (
    DATA_START,
    MeasuredRate,
    Rate,
    data_rate,
    decoding_seconds,
    device_rate,
    device_start,
    written_share,
)
from t5repro.estimate.records import Records, Sample, done_nodes, examples_in, samples_of, shape_of
from t5repro.estimate.volumes import absent_files, input_bytes, output_bytes
from t5repro.estimate.work import Work, examples_of, prediction_work, training_work
from t5repro.files import read_json
from t5repro.plan.memory import (
    ON_DEVICE,
    TRAININGS,
    Memory,
    cpu_memory,
    texts_of_row,
    training_memory,
)
from t5repro.plan.nodes import Key
from t5repro.plan.run_plan import Node, RunPlan

HOUR = 3600
NO_EXAMPLES: Mapping[str, int] = {}


@dataclass(frozen=True)
class Calibration:
    """Known speeds and numbers of examples.

    Attributes:
        samples: earlier jobs.
        measured: speeds of a file.
        examples: task -> rows to predict, where they are known.
    """

    samples: Sequence[Sample] = ()
    measured: Sequence[MeasuredRate] = ()
    examples: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeEstimate:
    """The estimate of one node.

    Attributes:
        node: the node.
        work: its work.
        rate: the speed that was used.
        is_done: whether it is sealed already; then its time, hours and bytes are 0.
        seconds: time from start to end; of jobs without the model on one core.
        chips: chips or cores that it uses all this time.
        disk_bytes: bytes that it writes.
        memory: of a training on a chip, or of any job with the model on a CPU; else None.
    """

    node: Node
    work: Work
    rate: Rate
    is_done: bool
    seconds: float
    chips: int
    disk_bytes: float
    memory: Memory | None

    @property
    def on_device(self) -> bool:
        """Whether it computes with the model."""
        return self.node.rule in ON_DEVICE

    @property
    def hours(self) -> float:
        """Chip-hours, or core-hours of jobs on a CPU."""
        return self.seconds * self.chips / HOUR


@dataclass(frozen=True)
class Cost:
    """The cost of a set of nodes.

    Attributes:
        flops: operations of trainings and predictions.
        chip_hours: hours of the chips of an accelerator.
        core_hours: hours of processor cores.
        seconds: time of the jobs on the machine's device, one after another.
        disk_bytes: bytes that they write.
    """

    flops: float = 0
    chip_hours: float = 0
    core_hours: float = 0
    seconds: float = 0
    disk_bytes: float = 0


@dataclass(frozen=True)
class Estimate:
    """The estimate of a run.

    Attributes:
        run: name of the run.
        machine: machine of trainings and predictions.
        experiments: names, in the order of the run file.
        rows: experiment -> row of the paper that it reproduces; empty for none.
        nodes: nodes, in the order of the stages.
        absent: number of raw files with assumed sizes.
    """

    run: str
    machine: Machine
    experiments: tuple[str, ...]
    rows: Mapping[str, str]
    nodes: tuple[NodeEstimate, ...]
    absent: int

    @cached_property
    def total(self) -> Cost:
        """The cost of the run."""
        return self.cost(lambda node: True)

    def cost(self, counts: Callable[[Node], bool]) -> Cost:
        """Return the cost of the nodes that `counts` selects."""
        nodes = [entry for entry in self.nodes if counts(entry.node) and not entry.is_done]
        chip_entries = [entry for entry in nodes if self.is_on_chips(entry)]
        core_entries = [entry for entry in nodes if not self.is_on_chips(entry)]
        return Cost(
            flops=sum(entry.work.flops for entry in nodes),
            chip_hours=sum(entry.hours for entry in chip_entries),
            core_hours=sum(entry.hours for entry in core_entries),
            seconds=sum(entry.seconds for entry in nodes if entry.on_device),
            disk_bytes=sum(entry.disk_bytes for entry in nodes),
        )

    def is_on_chips(self, entry: NodeEstimate) -> bool:
        """Whether a node takes chip-hours and not core-hours."""
        return entry.on_device and self.machine.unit == "chip"

    def hours(self, cost: Cost) -> float:
        """Return the hours that a budget counts: of chips, or of cores if the machine is a CPU."""
        return cost.chip_hours if self.machine.unit == "chip" else cost.core_hours

    def hours_between(self) -> tuple[float, float]:
        """Return the range of the hours that a budget counts."""
        # A budget on an accelerator does not count the hours of cores.
        counted = [
            entry for entry in self.nodes if self.is_on_chips(entry) or self.machine.unit == "core"
        ]
        return (
            sum(entry.hours * entry.rate.low for entry in counted),
            sum(entry.hours * entry.rate.high for entry in counted),
        )

    def alone(self, experiments: Collection[str]) -> Cost:
        """Return the cost of experiments without the others: all nodes that one of them needs."""
        names = set(experiments)
        return self.cost(lambda node: bool(names.intersection(node.experiments)))

    def additional(self, experiments: Collection[str]) -> Cost:
        """Return the cost of the nodes that no other experiment needs."""
        names = set(experiments)
        return self.cost(lambda node: names.issuperset(node.experiments))

    def attributed(self, experiment: str) -> Cost:
        """Return the cost of the nodes that no earlier experiment needs.

        Over all experiments the sum is the total.
        """
        # A node names its experiments in the order of the run file.
        return self.cost(lambda node: node.experiments[0] == experiment)

    def of_rule(self, rule: str) -> Cost:
        """Return the cost of the nodes of a rule."""
        return self.cost(lambda node: node.rule == rule)


@dataclass
class _Estimator:
    """Estimates nodes in the order of the stages: later ones read the outputs of earlier ones."""

    machine: Machine
    calibration: Calibration
    done: Collection[Key]
    preflight: Callable[[Node], Memory | None]
    written: dict[Key, float] = field(default_factory=dict)

    def estimate(self, node: Node) -> NodeEstimate:
        if node.rule in ON_DEVICE:
            work, rate, seconds, chips = self._on_device(node)
            read = 0.0
        else:
            read = input_bytes(node, self.written, self.calibration.examples)
            # Jobs without the model use one core.
            work, chips = Work(input_bytes=read), 1
            # Shards share the bytes, and each has a start of its own.
            jobs = _jobs(node)
            rate = data_rate(node.rule, read / jobs, self.calibration.samples)
            seconds = DATA_START * jobs + read / rate.per_second
        share = written_share(node.rule, read / _jobs(node), self.calibration.samples)
        # Also of nodes that are done: later nodes read their outputs.
        disk_bytes = self.written[node.key] = output_bytes(
            node, read, share, self.calibration.examples
        )
        is_done = node.key in self.done
        return NodeEstimate(
            node=node,
            work=work,
            rate=rate,
            is_done=is_done,
            seconds=0.0 if is_done else seconds,
            chips=chips,
            disk_bytes=0.0 if is_done else disk_bytes,
            memory=self._memory(node),
        )

    def _on_device(self, node: Node) -> tuple[Work, Rate, float, int]:
        settings, chips = node.settings, _chips(node, self.machine)
        rate = device_rate(
            node.rule,
            shape_of(node.rule, settings, chips),
            machine=self.machine,
            precision=settings.devices.precision,
            samples=self.calibration.samples,
            measured=self.calibration.measured,
        )
        work = node_work(node, self.calibration.examples)
        seconds = work.flops / (rate.per_second * chips)
        # A measured speed contains the time of memory; the table's peak does not.
        if rate.source == "table" and node.rule == "evaluate_predict":
            seconds = max(seconds, decoding_seconds(work, self.machine) / chips)
        return work, rate, device_start(self.machine, rate) + seconds, chips

    def _memory(self, node: Node) -> Memory | None:
        settings, kind = node.settings, self.machine.kind
        if node.rule in ON_DEVICE and kind.device == "cpu":
            return cpu_memory(node.rule, settings, available=self.machine.memory)
        if node.rule not in TRAININGS:
            return None
        # The compiler's figures are exact; the formula is not.
        return self.preflight(node) or training_memory(
            settings.model,
            getattr(settings, node.rule),
            embedding_rows=settings.vocab.embedding_rows,
            texts=texts_of_row(node.rule, settings),
            precision=settings.devices.precision,
            chips=max(self.machine.chips * kind.replicas // settings.devices.mesh.model, 1),
            available=kind.memory / kind.replicas,
            shares=settings.devices.mesh.model,
            remat=settings.devices.remat,
        )


def node_work(node: Node, row_counts: Mapping[str, int] = NO_EXAMPLES) -> Work:
    """Return the work of a training or prediction.

    Args:
        node: the node.
        row_counts: task -> rows to predict, where they are known.
    """
    settings = node.settings
    if node.rule in TRAININGS:
        return training_work(node.rule, settings)
    evaluate = settings.evaluate
    checkpoints = len(settings.finetune.kept_steps) if evaluate.checkpoints == "all" else 1
    return prediction_work(
        settings.model,
        evaluate,
        settings.vocab,
        examples_of(settings.tasks.names, evaluate, row_counts),
        layers=settings.finetune,
        own=settings.tasks.own,
        models=max(checkpoints, 1) * (len(evaluate.ensemble) or 1),
        precision=settings.devices.precision,
    )


def estimate_run(
    settings: Settings,
    machine: Machine,
    *,
    root: Path | None = None,
    calibration: Calibration = Calibration(),
    nodes: Sequence[Node] | None = None,
    done: Collection[Key] | None = None,
) -> Estimate:
    """Return the estimate of a run.

    Args:
        settings: settings of the run.
        machine: machine of trainings and predictions.
        root: checkout with the sealed nodes, which are done; if absent, every node is to do.
        calibration: known speeds and numbers of examples.
        nodes: the nodes of the run, if they are planned already.
        done: nodes that need not run; if absent, those that are sealed in `root`.
    """
    nodes = RunPlan(settings).nodes if nodes is None else nodes
    if done is None:
        done = done_nodes(root, settings.run.name, nodes) if root else set()

    # Without a checkout there are no reports to read.
    def preflight(node: Node) -> Memory | None:
        return _preflight(root, settings.run.name, node, machine) if root else None

    estimator = _Estimator(machine, calibration, done, preflight)
    return Estimate(
        run=settings.run.name,
        machine=machine,
        experiments=tuple(experiment.name for experiment in settings.experiments),
        rows={experiment.name: experiment.row for experiment in settings.experiments},
        nodes=tuple(map(estimator.estimate, nodes)),
        absent=len(absent_files(settings)),
    )


def estimated_seconds(settings: Settings, records: Records) -> dict[str, float]:
    """Return rule -> seconds of its recorded jobs, for a comparison with their records.

    Speeds come from records of other runs only, and every node counts as to do.

    Args:
        settings: settings of the run.
        records: records of the checkout.

    Raises:
        SettingsError: the settings name no machine.
    """
    run = settings.run.name
    calibration = Calibration(
        samples=[entry for entry in samples_of(records) if entry.job.partition("/")[0] != run],
        examples=examples_in(records, run),
    )
    estimate = estimate_run(settings, machine_of(settings.devices), calibration=calibration)
    # A job is run/rule, run/rule/node, or run/rule/node/shard.
    recorded = {tuple(job.split("/")[:3]) for job in records}
    seconds: dict[str, float] = {}
    for entry in estimate.nodes:
        rule = entry.node.rule
        if recorded & {(run, rule), (run, rule, entry.node.name)}:
            seconds[rule] = seconds.get(rule, 0.0) + entry.seconds
    return seconds


def _preflight(root: Path, run: str, node: Node, machine: Machine) -> Memory | None:
    """Return the memory that the rule `preflight` reports for this step on these chips."""
    path = root / "logs" / run / "preflight" / f"{node.name}.json"
    if node.rule != "pretrain" or not path.is_file():
        return None
    try:
        facts = read_json(path)
        kind, rows_per_core = facts["slice"].partition(":")[0], facts["rows_per_core"]
        needed, available = float(facts["needed_bytes"]), float(facts["hbm_bytes"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{path} is no report of the rule preflight ({type(error).__name__}: {error}); delete "
            "it, and the next run writes it again"
        ) from error
    training = node.settings.pretrain
    rows = training.batch_size / (machine.chips * machine.kind.replicas)
    if (kind, rows_per_core) != (machine.kind.name, rows):
        return None
    # Only steps that fit have a report.
    return Memory(needed, available, training.micro_batches, "preflight")


def _chips(node: Node, machine: Machine) -> int:
    """Return the chips of a job: all of them, or on a CPU one core per thread."""
    if machine.kind is KINDS["cpu"]:
        return min(machine.chips, node.settings.devices.intra_op_threads)
    return machine.chips


def _jobs(node: Node) -> int:
    """Return the number of jobs of a node: cleaning has one for each shard."""
    return node.settings.c4.clean_shards if node.rule == "c4_clean" else 1
