"""What is checked and said when a run starts on this machine."""

from pathlib import Path
from typing import Any

import pytest

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.sections.devices import DevicesSettings
from t5repro.errors import DeviceError, SettingsError
from t5repro.estimate import start as module
from t5repro.estimate.machines import Machine, machine_named
from t5repro.estimate.plan import estimate_run
from t5repro.estimate.start import memory_faults, start, wall_seconds
from t5repro.files import write_manifest
from t5repro.plan.run_plan import RunPlan

LARGE = {
    "run.name": "large",
    "use": ["sizes/small"],
    "tasks.names": ["glue_sst2"],
    "data.sources": [{"include": "configs/sources/tasks.yaml", "tasks": ["glue_sst2"]}],
}


def started(settings: Settings, *rules: str) -> str:
    nodes = RunPlan(settings).nodes
    needed = [node.key for node in nodes if not rules or node.rule in rules]
    return start(nodes, needed, settings, cores=2)


@pytest.fixture
def _small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "machine_bytes", lambda: 8e9)


def test_the_start_of_a_run_names_time_memory_and_disk(demo: Settings) -> None:
    line = started(demo)
    assert line.startswith("this run takes about ")
    assert line.endswith(" MB of disk (t5repro estimate: job by job)")
    assert " minutes, " in line
    assert " GB of memory and " in line


def test_a_disk_without_room_for_the_run_is_named_with_both_sizes(
    demo: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # nothing of the run is built there
    usage = module.shutil.disk_usage(".")
    assert module.run_faults(demo) == []
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    (fault,) = module.run_faults(demo)
    assert " GB and this disk has 1 kB free; make room, or clone onto another disk" in fault
    assert started(demo).splitlines()[1] == fault


def test_only_the_jobs_that_are_left_count(demo: Settings) -> None:
    assert " seconds and " in started(demo, "report")  # no training: no memory


@pytest.mark.usefixtures("_small_machine")
def test_a_run_that_does_not_fit_is_refused_with_the_setting_that_makes_it_fit() -> None:
    with pytest.raises(
        SettingsError,
        match=r"^pretrain baseline needs about .* GB of memory and this machine has 8\.00 GB: set "
        r"pretrain\.micro_batches to \d+; --config 'run=\{check_memory: false\}' starts it anyway$",
    ):
        started(load_settings(LARGE))
    # A run up to the vocabulary has no training.
    assert started(load_settings(LARGE), "vocab")
    assert started(load_settings({**LARGE, "run.check_memory": False}))


@pytest.mark.parametrize(
    ("change", "rule", "cure"),
    [
        ({"pretrain.micro_batches": 64}, "finetune", "set finetune.micro_batches to "),
        (
            {"use": ["sizes/11b"]},
            "pretrain",
            "no batch makes it fit: lower the lengths, or use a s",
        ),
        ({"evaluate.batch_size": 4096}, "evaluate_predict", "set evaluate.batch_size to "),
    ],
)
@pytest.mark.usefixtures("_small_machine")
def test_each_rule_has_a_cure_of_its_own(change: dict[str, Any], rule: str, cure: str) -> None:
    faults = memory_faults(RunPlan(load_settings({**LARGE, **change})).nodes)
    (fault,) = [fault for fault in faults if fault.startswith(f"{rule} baseline needs about ")]
    assert f": {cure}" in fault


def test_a_missing_device_is_refused_before_the_corpus_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[DevicesSettings] = []

    def fault(settings: DevicesSettings) -> str:
        asked.append(settings)
        return "TensorFlow sees no GPU"

    monkeypatch.setattr(module, "device_fault", fault)
    on_gpu = load_settings({**LARGE, "devices.kind": "gpu"})
    with pytest.raises(DeviceError, match="TensorFlow sees no GPU"):
        started(on_gpu)
    assert len(asked) == 1  # not once a job
    assert "--machine KIND" in started(on_gpu, "c4", "vocab")  # a corpus needs no GPU


def test_jobs_share_the_cores_and_a_chain_takes_its_whole_time(demo: Settings) -> None:
    estimate = estimate_run(demo, machine_named("cpu-1"))
    seconds = [entry.seconds for entry in estimate.nodes]
    assert wall_seconds(estimate, 1) == pytest.approx(sum(seconds))
    assert wall_seconds(estimate, 2) == pytest.approx(sum(seconds) / 2)
    longest = wall_seconds(estimate, 1000)
    assert max(seconds) < longest < sum(seconds) / 2


def test_an_accelerator_has_one_job_at_a_time(demo: Settings) -> None:
    estimate = estimate_run(demo, machine_named("v5e-1"))
    on_chips = sum(entry.seconds for entry in estimate.nodes if entry.on_device)
    assert wall_seconds(estimate, 1000) >= on_chips


def test_the_memory_of_a_named_machine_is_unknown() -> None:
    assert machine_named("cpu-2") == Machine(machine_named("cpu").kind, 2)


def test_a_start_names_the_experiments_that_the_present_report_would_lose(
    demo: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESULTS", str(tmp_path))
    assert "\n" not in started(demo, "report")
    names = [*(experiment.name for experiment in demo.experiments), "spans", "wide"]
    write_manifest(
        tmp_path / demo.run.name / "report/manifest.json",
        rule="report",
        settings={"settings": {"experiments": [{"name": name} for name in names]}},
        inputs=[],
        outputs=[],
        counters={},
    )
    assert started(demo, "report").endswith(
        f"the report of {tmp_path}/{demo.run.name} also has the experiments spans, wide, and the "
        "new one will not; another run.name keeps it"
    )
    assert "\n" not in started(demo, "vocab")
