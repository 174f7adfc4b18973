"""Speeds measured before a run: steps of each distinct training, on one chip of this machine.

On a CPU as many are measured at a time as a run takes: each is slower while others run.
"""

from collections.abc import Iterable

from t5repro.config.sections.devices import MeshSettings
from t5repro.config.stage_settings import step_settings
from t5repro.errors import SettingsError
from t5repro.estimate.machines import Machine
from t5repro.estimate.rates import MeasuredRate
from t5repro.estimate.records import shape_of
from t5repro.estimate.work import step_work
from t5repro.plan.memory import TRAININGS
from t5repro.plan.run_plan import Node
from t5repro.progress import announce


def probe_rates(nodes: Iterable[Node], machine: Machine) -> tuple[MeasuredRate, ...]:
    """Return the measured speed of every distinct training step of nodes.

    A chip gets its share of a batch. The exchange of gradients between chips is not measured. The
    cores of a CPU are divided among as many trainings as have room, of those that the run has.

    Args:
        nodes: nodes of a run.
        machine: the machine; one of its chips, or its cores, must be in this computer.

    Raises:
        SettingsError: it is a TPU, which is measured by a short training.
        DeviceError: the device is missing.
    """
    if machine.kind.device == "tpu":
        raise SettingsError(
            f"--probe measures CPUs and GPUs, not {machine.kind.name}; take the speeds from "
            "speed.csv of a short training, and name them with --rates"
        )
    from t5repro.train.probe import step_times

    trainings = [
        node for node in nodes if node.rule in TRAININGS and getattr(node.settings, node.rule).steps
    ]
    on_cpu = machine.kind.device == "cpu"
    rates: dict[tuple[float, ...], MeasuredRate] = {}
    for node in trainings:
        settings = node.settings
        chips = min(machine.chips, settings.devices.intra_op_threads) if on_cpu else machine.chips
        together = min(machine.chips // chips, len(trainings)) if on_cpu else 1
        shape = shape_of(node.rule, settings, chips)
        if shape in rates:
            continue
        training = getattr(settings, node.rule)
        rows = training.batch_size if on_cpu else max(training.batch_size // machine.chips, 1)
        devices = settings.devices.model_copy(
            update={"kind": machine.kind.device, "steps_per_execution": 1, "mesh": MeshSettings()}
        )
        step = step_settings(settings, node.rule).model_copy(update={"devices": devices})
        announce(f"probe: {node.label}, {rows} rows, {together} at a time")
        times = step_times(step, rows=rows, trainings=together)
        flops = step_work(node.rule, settings)
        rates[shape] = MeasuredRate(
            machine=machine.kind.name,
            d_model=settings.model.d_model,
            length=int(shape[1]),
            rows_per_chip=shape[2],
            flops_per_second=flops
            * rows
            / training.batch_size
            / times.step_seconds
            / (chips if on_cpu else 1),
            start_seconds=times.start_seconds,
        )
    return tuple(rates.values())
