"""The phases of pre-training of every experiment that continues another one's."""

from collections.abc import Sequence
from dataclasses import dataclass

from t5repro.config.experiments import pretraining_flops, pretraining_phases, settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.report.experiments import Experiment
from t5repro.report.loss_curves import PETA


@dataclass(frozen=True)
class PhaseRow:
    """A phase of the pre-training of an experiment, as text.

    Attributes:
        experiment: name of the experiment.
        phase: experiment that trains the phase, of the first seed.
        steps: optimizer steps.
        rows: rows of a batch and their length in tokens.
        optimizer: state of the optimizer at its start, ``continue`` or ``fresh``.
        operations: floating-point operations until its end, in multiples of 10^15.
    """

    experiment: str
    phase: str
    steps: str
    rows: str
    optimizer: str
    operations: str


def phase_rows(settings: Settings, experiments: Sequence[Experiment]) -> list[PhaseRow]:
    """Return the phases of each experiment with several, in the order of training.

    Args:
        settings: settings of the run.
        experiments: the experiments of the page.
    """
    return [
        _row(settings, experiment.name, phase)
        for experiment in experiments
        for names in [pretraining_phases(settings, experiment.name)]
        for phase in (names if len(names) > 1 else ())
    ]


def _row(settings: Settings, experiment: str, phase: str) -> PhaseRow:
    pretrain = settings_of_experiment(settings, phase).pretrain
    length = pretrain.packed_inputs_length or pretrain.targets_length
    return PhaseRow(
        experiment=experiment,
        phase=phase,
        steps=f"{pretrain.steps:,}",
        rows=f"{pretrain.batch_size:,} × {length}",
        optimizer=pretrain.optimizer_state if pretrain.from_experiment else "fresh",
        operations=f"{pretraining_flops(settings, phase) / PETA:,.3g}",
    )
