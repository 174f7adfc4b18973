"""Steps of a training measured before the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.cli.main import main
from t5repro.estimate.rates import read_rates

TINY = """
run: {name: tiny}
model: {d_model: 32, d_ff: 64, d_kv: 8, num_encoder_layers: 1, num_decoder_layers: 1}
pretrain: {batch_size: 4, inputs_length: 32, targets_length: 16}
finetune: {batch_size: 6, inputs_length: 32, targets_length: 8, micro_batches: 2}
devices: {intra_op_threads: 1}
"""


CORES = sorted(os.sched_getaffinity(0))[:2]


def probe(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command for the demo in a tiny size, in a process of its own on `CORES`."""
    (folder / "tiny.yaml").write_text(TINY)
    command = ["estimate", "--configfile", "configs/demo.yaml", f"{folder}/tiny.yaml", *words]
    return subprocess.run(
        [sys.executable, "-m", "t5repro", *command, "--probe", f"{folder}/rates.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=check,
        preexec_fn=lambda: os.sched_setaffinity(0, CORES),
    )


@pytest.mark.keras
@pytest.mark.parametrize(
    ("words", "together"),
    [(("--machine", "cpu-2"), 2), ((), len(CORES))],
    ids=["machine", "all_cores"],
)
def test_every_distinct_training_is_measured_once_as_many_at_a_time_as_there_are_cores(
    tmp_path: Path, words: tuple[str, ...], together: int
) -> None:
    process = probe(tmp_path, *words)
    measured = [line for line in process.stderr.splitlines() if line.startswith("probe: ")]
    assert [line.rsplit(", ", 1)[1] for line in measured] == [f"{together} at a time"] * 2
    rates = read_rates(tmp_path / "rates.json")
    shapes = [(rate.machine, rate.d_model, rate.length, rate.rows_per_chip) for rate in rates]
    assert shapes == [("cpu", 32, 48, 4), ("cpu", 32, 40, 6)]
    assert all(rate.flops_per_second > 0 for rate in rates)
    assert all(rate.start_seconds for rate in rates)
    lines = [line for line in process.stdout.splitlines() if line.startswith("finetune baseline")]
    assert len(lines) == 3
    assert all("rates" in line.split() for line in lines)


@pytest.mark.keras
def test_a_missing_device_is_an_error(tmp_path: Path) -> None:
    process = probe(tmp_path, "--machine", "h100-1", check=False)
    assert process.returncode == 1
    assert "devices.kind is 'gpu' but TensorFlow sees no GPU" in process.stderr
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "rates.json").exists()


def test_a_tpu_is_measured_by_a_short_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", "--machine", "v5e-8", "--probe", str(tmp_path / "r.json")]) == 2
    assert "--probe measures CPUs and GPUs, not v5e; take" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
