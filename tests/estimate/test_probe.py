"""Steps of a training measured before the run."""

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
"""


@pytest.mark.keras
def test_every_distinct_training_is_measured_once(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    words = ["estimate", "--configfile", "configs/demo.yaml", f"{tmp_path}/tiny.yaml"]
    words += ["--probe", f"{tmp_path}/rates.json"]
    # In a process of its own: TensorFlow has one number of threads.
    process = subprocess.run(
        [sys.executable, "-m", "t5repro", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    rates = read_rates(tmp_path / "rates.json")
    shapes = [(rate.machine, rate.d_model, rate.length, rate.rows_per_chip) for rate in rates]
    assert shapes == [("cpu", 32, 48, 4), ("cpu", 32, 40, 6)]
    assert all(rate.flops_per_second > 0 for rate in rates)
    lines = [line for line in process.stdout.splitlines() if line.startswith("finetune baseline")]
    assert len(lines) == 3
    assert all("rates" in line.split() for line in lines)


def test_a_tpu_is_measured_by_a_short_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", "--machine", "v5e-8", "--probe", str(tmp_path / "r.json")]) == 2
    assert "--probe measures CPUs and GPUs, not v5e; take" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
