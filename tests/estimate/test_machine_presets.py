"""Presets of machines: a run with each is valid and fits the machine that its source names."""

import re
from dataclasses import replace

import pytest

from t5repro.config.load import load_settings
from t5repro.config.presets.machines import PRESETS
from t5repro.config.schema import Settings
from t5repro.estimate.machines import KINDS, Machine
from t5repro.estimate.plan import Estimate, estimate_run
from t5repro.estimate.start import wall_seconds

TASKS = {
    "tasks.names": ["glue_sst2"],
    "data.sources": [{"include": "configs/sources/tasks.yaml", "tasks": ["glue_sst2"]}],
}
HOUR = 3600
# No source names the kind of the GPU, which decides its time and not its memory.
MACHINES = {"laptop": ("cpu", 2), "workstation": ("cpu", 8), "gpu": ("a100", 1)}


def settings_of(name: str, **values: object) -> Settings:
    return load_settings({"run.name": "sized", "use": [f"machines/{name}"], **TASKS, **values})


def gigabytes(name: str) -> float:
    """Return the memory that the source of a preset names."""
    (number,) = re.findall(r"([0-9]+) GB", PRESETS[name].source)
    return float(number) * 1e9


def estimated(name: str, settings: Settings) -> Estimate:
    """Return the estimate on the machine that a preset names, without measured speeds."""
    kind, chips = MACHINES[name]
    memory = gigabytes(name)
    return estimate_run(settings, Machine(replace(KINDS[kind], memory=memory), chips, memory))


def test_each_preset_of_a_machine_is_checked() -> None:
    assert MACHINES.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", PRESETS)
def test_a_run_with_the_preset_fits_the_machine_that_its_source_names(name: str) -> None:
    settings = settings_of(name)
    assert settings.devices.kind == KINDS[MACHINES[name][0]].device
    nodes = estimated(name, settings).nodes
    memories = {entry.node.rule: entry.memory for entry in nodes if entry.memory}
    assert {"pretrain", "finetune"} <= memories.keys()
    for memory in memories.values():
        assert memory.available == gigabytes(name)
        assert memory.fits


# "minutes" and "a night or two"
@pytest.mark.parametrize(("name", "hours"), [("laptop", 1), ("workstation", 24)])
def test_a_run_with_the_preset_ends_in_the_time_that_its_source_names(
    name: str, hours: int
) -> None:
    estimate = estimated(name, settings_of(name))
    assert wall_seconds(estimate, MACHINES[name][1]) < hours * HOUR


@pytest.mark.parametrize("name", PRESETS)
def test_a_run_that_is_too_large_for_the_machine_does_not_fit(name: str) -> None:
    large = settings_of(name, **{"pretrain.micro_batches": 1, "pretrain.batch_size": 4096})
    fits = {e.node.rule: e.memory.fits for e in estimated(name, large).nodes if e.memory}
    assert not fits["pretrain"]
