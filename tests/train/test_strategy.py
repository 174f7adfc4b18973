"""Trainings on several logical devices of one CPU, and trainings that are killed many times."""

import csv
import json
import random
import re
import signal

import numpy as np
import pytest

pytest.importorskip("tensorflow")

pytestmark = [pytest.mark.keras, pytest.mark.slow]

RESULTS = ("weights.safetensors", "optimizer.safetensors", "history.csv")
# Without dropout: replicas draw noise of their own. A rate that training of T5 uses.
CURVE = {
    "steps": 100,
    "dropout_rate": 0.0,
    "log_every_steps": 1,
    "checkpoint_every_steps": 100,
    "learning_rate": {"schedule": "constant", "factor": 0.01},
}


def losses_of(job):
    with (job.folder / "history.csv").open() as handle:
        return [float(row["loss"]) for row in csv.DictReader(handle)]


TOKENS = {**CURVE, "loss_normaliser": "target_tokens"}
PARTS = {**CURVE, "micro_batches": 2}
CLIPPED = {  # at a rate of 0.01 rounding grows with Adam from step 60 on
    **CURVE,
    "optimizer": "adam_fairseq",
    "max_grad_norm": 0.1,
    "weight_decay": 0.01,
    "learning_rate": {"schedule": "constant", "factor": 0.001},
}


# Masked pieces, pairs and borders of spans have divisors of their own.
ENCODER = {**CLIPPED, "encoder": True, "micro_batches": 2}
# Of ELECTRA both means; the rows bring their random numbers, wherever they are.
ELECTRA = {**CLIPPED, "electra": True, "micro_batches": 2}
XLNET = {**CLIPPED, "two_stream": True}  # replicas have the memory of their rows


@pytest.fixture(scope="module")
def one_device(tiny, tmp_path_factory, in_a_new_process):
    folder = tmp_path_factory.mktemp("one")
    runs = {"whole": CURVE, "tokens": TOKENS, "clipped": CLIPPED}
    runs |= {"encoder": ENCODER, "electra": ELECTRA, "xlnet": XLNET}
    done = in_a_new_process(folder, runs)
    assert done.returncode == 0, done.stderr
    return {name: losses_of(tiny.make_job(folder / name)) for name in runs}


@pytest.mark.parametrize(
    ("replicas", "more"),
    [
        (
            2,
            {
                "parts": PARTS,
                "clipped": CLIPPED,
                "encoder": ENCODER,
                "electra": ELECTRA,
                "xlnet": XLNET,
            },
        ),
        (8, {}),
    ],
    ids=["2, also in parts, clipped, an encoder only, ELECTRA and XLNet", "8"],
)
def test_the_loss_over_a_hundred_steps_does_not_depend_on_the_number_of_devices(
    tiny, tmp_path, in_a_new_process, one_device, replicas, more
):
    runs = {"whole": CURVE, "tokens": TOKENS, **more}
    done = in_a_new_process(tmp_path, runs, replicas=replicas)
    assert done.returncode == 0, done.stderr
    for name in runs:
        losses = losses_of(tiny.make_job(tmp_path / name))
        expected = one_device["whole" if name == "parts" else name]
        assert len(losses) == CURVE["steps"]
        np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert one_device["whole"][-1] < one_device["whole"][0]


@pytest.mark.parametrize("network", [{}, {"encoder": True, "optimizer": "lamb"}])
def test_two_devices_that_are_killed_and_resumed_end_in_the_same_bytes(
    tiny, tmp_path, in_a_new_process, network
):
    """Weights of replicas are equal to the bit, since a checkpoint has those of one."""
    for name, killed in (("whole", []), ("cut", [6])):
        done = in_a_new_process(tmp_path, {name: network}, replicas=2, kill_at=killed)
        assert done.returncode == 0, done.stderr
    for name in RESULTS:
        cut, whole = ((tmp_path / run / "results" / name).read_bytes() for run in ("cut", "whole"))
        assert cut == whole, name


@pytest.mark.parametrize(
    "network",
    [{}, {"encoder": True, "optimizer": "lamb"}, {"electra": True, "optimizer": "adam_bert"}],
    ids=["T5", "ALBERT", "ELECTRA"],
)
def test_a_training_killed_at_ten_random_steps_ends_in_the_bytes_of_one_that_was_not(
    tiny, tmp_path, in_a_new_process, network
):
    options = {"steps": 60, "checkpoint_every_steps": 3, "keep_checkpoints": "all", **network}
    steps = sorted(random.Random(6).sample(range(4, 60), 10))
    whole = in_a_new_process(tmp_path, {"whole": options})
    assert whole.returncode == 0, whole.stderr
    killed = in_a_new_process(tmp_path, {"run": options}, kill_at=steps)
    assert json.loads(killed.stdout) == [-signal.SIGKILL] * 10 + [0], killed.stderr
    last = [(step - 1) // 3 * 3 for step in steps]
    resumed = [int(step) for step in re.findall(r"resuming from \S+step-(\d+)", killed.stderr)]
    assert resumed == last
    folders = [tmp_path / name / "results" for name in ("whole", "run")]
    kept = [f"step-{step}/weights.safetensors" for step in range(3, 61, 3)]
    for name in (*RESULTS, *kept):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
