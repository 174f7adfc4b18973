"""TensorBoard of the locked environment shows the numbers of a training."""

import re
import shutil
import subprocess
import time

import pytest
import urllib3

pytest.importorskip("tensorflow")
from t5repro.train.monitor import Monitor

pytestmark = pytest.mark.keras


@pytest.fixture
def address(tmp_path):
    """Start TensorBoard on the logs of a run; return its address."""
    folder = tmp_path / "logs" / "demo" / "pretrain" / "baseline"
    monitor = Monitor(folder, events=str(folder), positions=200, flops=1000, first_step=0)
    for step in (20, 40):
        monitor.add(20, 100)
        monitor.write(step, 100 / step, 0.01, validation_loss=120 / step)
    monitor.close()
    program = shutil.which("tensorboard")
    assert program is not None
    output = tmp_path / "output.txt"
    with output.open("w") as stream:
        server = subprocess.Popen(
            [program, "--logdir", str(tmp_path / "logs"), "--host", "127.0.0.1", "--port", "0"],
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        while not (found := re.search(r"http://\S+", output.read_text())):
            assert server.poll() is None, output.read_text()
            time.sleep(0.2)
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def answer(address, query):
    response = urllib3.request("GET", f"{address}data/plugin/scalars/{query}")
    assert response.status == 200
    return response.json()


def test_tensorboard_shows_training_and_validation_losses(address):
    while not (tags := answer(address, "tags")):  # it reads the files after it has started
        time.sleep(0.2)
    assert {"loss", "validation_loss", "steps_per_second"} <= set(tags["demo/pretrain/baseline"])
    query = "scalars?run=demo/pretrain/baseline&tag="
    for tag, expected in (("loss", [5.0, 2.5]), ("validation_loss", [6.0, 3.0])):
        assert [(step, loss) for _, step, loss in answer(address, query + tag)] == [
            (20, expected[0]),
            (40, expected[1]),
        ]
