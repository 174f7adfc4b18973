"""Checks and messages when a run starts on this machine: memory, devices, time and disk."""

import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from t5repro.artifacts import MANIFEST
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError, DeviceError, SettingsError
from t5repro.estimate.machines import machine_of
from t5repro.estimate.plan import Calibration, Estimate, estimate_run
from t5repro.estimate.records import done_nodes, examples_in, samples_of
from t5repro.estimate.text import BYTES, quantity
from t5repro.files import read_manifest
from t5repro.lineage.record import read_records
from t5repro.lineage.store import RESULTS, Folder
from t5repro.model.device_check import device_fault
from t5repro.plan.memory import ON_DEVICE, Memory, cpu_memory, machine_bytes
from t5repro.plan.nodes import Key
from t5repro.plan.run_plan import Node, RunPlan

START_ANYWAY = "--config 'run={check_memory: false}'"
DURATIONS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def start(nodes: Sequence[Node], to_run: Iterable[Key], settings: Settings, cores: int) -> str:
    """Return the lines about the needs of a run, and about the results that it will replace.

    Args:
        nodes: all nodes of the run.
        to_run: the nodes that have jobs to run.
        settings: settings of the run.
        cores: cores that the jobs share.

    Raises:
        DeviceError: the device of a job is missing.
        SettingsError: a job needs more memory than the machine has.
    """
    needed = set(to_run)
    jobs = [node for node in nodes if node.key in needed]
    if faults := device_faults(jobs):
        raise DeviceError(faults[0])
    if settings.run.check_memory and (faults := memory_faults(jobs)):
        raise SettingsError(f"{faults[0]}; {START_ANYWAY} starts it anyway")
    lines = [_needs(nodes, {node.key for node in nodes} - needed, settings, cores)]
    if any(key.rule == "report" for key in needed) and (names := _left_out(settings)):
        lines.append(
            f"the report of {RESULTS}/{settings.run.name} also has the experiments "
            f"{', '.join(names)}, and the new one will not; another run.name keeps it"
        )
    return "\n".join(lines)


def _left_out(settings: Settings) -> list[str]:
    """Return the experiments of the present report that the next one will not have."""
    manifest = Path(RESULTS, settings.run.name, "report", MANIFEST)
    try:
        entries = read_manifest(manifest)["settings"]["settings"]["experiments"]
        present = [str(entry["name"]) for entry in entries]
    except (ArtifactError, LookupError, TypeError):  # none yet, or damaged: the next is whole
        return []
    names = {experiment.name for experiment in settings.experiments}
    return [name for name in present if name not in names]


def _needs(nodes: Sequence[Node], done: Collection[Key], settings: Settings, cores: int) -> str:
    """Return the time, memory and disk that the rest of a run will take."""
    estimate = _estimate(nodes, done, settings)
    if estimate is None:
        return "how long it takes: t5repro estimate --machine KIND, such as h100"
    needs = [entry.memory.needed for entry in estimate.nodes if entry.memory and not entry.is_done]
    memory = f", {_about(max(needs), BYTES)} of memory" if needs else ""
    line = (
        f"this run takes about {_about(wall_seconds(estimate, cores), DURATIONS)}{memory} and "
        f"{_about(estimate.total.disk_bytes, BYTES)} of disk (t5repro estimate: job by job)"
    )
    return "\n".join([line, *disk_faults(estimate)])


def _estimate(nodes: Sequence[Node], done: Collection[Key], settings: Settings) -> Estimate | None:
    """Return the estimate of a run here; None on a GPU, of which the settings name no kind."""
    try:
        machine = machine_of(settings.devices)
    except SettingsError:
        return None
    records = read_records(Folder(Path()))
    calibration = Calibration(
        samples=samples_of(records), examples=examples_in(records, settings.run.name)
    )
    return estimate_run(
        settings, machine, root=Path(), calibration=calibration, nodes=nodes, done=done
    )


def run_faults(settings: Settings) -> list[str]:
    """Return a line for everything that the jobs left to a run need and this machine lacks."""
    nodes = RunPlan(settings).nodes
    done = done_nodes(Path(), settings.run.name, nodes)
    remaining = [node for node in nodes if node.key not in done]
    estimate = _estimate(nodes, done, settings)
    disk = disk_faults(estimate) if estimate else []
    return [*device_faults(remaining), *memory_faults(remaining), *disk]


def disk_faults(estimate: Estimate) -> list[str]:
    """Return a line if the jobs that are left write more than the disk of the checkout has room."""
    needed, free = estimate.total.disk_bytes, shutil.disk_usage(Path()).free
    if needed <= free:
        return []
    return [
        f"{Path().resolve()}: the run writes about {_about(needed, BYTES)} and this disk has "
        f"{_about(free, BYTES)} free; make room, or clone onto another disk"
    ]


def wall_seconds(estimate: Estimate, cores: int) -> float:
    """Return the time from start to end on some cores: of all jobs, or of the longest chain."""
    ends: dict[Key, float] = {}
    for entry in estimate.nodes:  # earlier stages first
        begin = max((ends[key] for key in entry.node.upstream), default=0.0)
        ends[entry.node.key] = begin + entry.seconds
    # An accelerator has one job at a time; jobs on cores share them.
    shared = sum(entry.seconds for entry in estimate.nodes if estimate.is_on_chips(entry))
    on_cores = [entry for entry in estimate.nodes if not estimate.is_on_chips(entry)]
    shared += sum(entry.seconds * min(entry.chips, cores) for entry in on_cores) / cores
    return max([shared, *ends.values()])


def device_faults(nodes: Iterable[Node]) -> list[str]:
    """Return a line for each device that jobs need and this machine does not have."""
    devices = {node.settings.devices for node in nodes if node.rule in ON_DEVICE}
    return [fault for settings in devices if (fault := device_fault(settings))]


def memory_faults(nodes: Iterable[Node]) -> list[str]:
    """Return a line for each rule with a job that needs more memory than this machine has."""
    available = machine_bytes()
    faults: dict[str, tuple[float, str]] = {}
    for node in nodes:
        if node.rule not in ON_DEVICE or node.settings.devices.kind != "cpu":
            continue
        if node.rule == "pretrain" and not node.settings.pretrain.steps:
            continue  # weights are written and no rows read
        memory = cpu_memory(node.rule, node.settings, available=available)
        if not memory.fits:
            largest = faults.get(node.rule, (0.0, ""))
            faults[node.rule] = max(largest, (memory.needed, _fault(node, memory)))
    return [line for needed, line in faults.values()]


def _fault(node: Node, memory: Memory) -> str:
    if memory.micro_batches:
        cure = f"set {node.rule}.micro_batches to {memory.micro_batches}"
    elif memory.batch_size:
        cure = f"set evaluate.batch_size to {memory.batch_size}"
    else:
        cure = "no batch makes it fit: lower the lengths, or use a smaller network (use: [sizes/…])"
    return (
        f"{node.label} needs about {quantity(memory.needed, BYTES)} of memory and this machine has "
        f"{quantity(memory.available, BYTES)}: {cure}"
    )


def _about(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Return a value with two digits: an estimate is not more exact."""
    factor, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    text = f"{float(f'{value / factor:.2g}'):,g} {unit}"
    return text.removesuffix("s") if text.startswith("1 ") else text
