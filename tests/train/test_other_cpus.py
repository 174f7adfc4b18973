"""Training and decoding give equal bytes on other CPUs, imitated on this one (D-043)."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import other_cpu
import pytest
from checkout import ROOT, SUPPORT

pytestmark = [
    pytest.mark.keras,
    pytest.mark.skipif(bool(other_cpu.obstacle()), reason=other_cpu.obstacle()),
]

TRAINING = SUPPORT / "exact_training.py"
OPERATIONS = ROOT / "tools" / "operation_hashes.py"
L2_CACHES = {"rome": "512 KiB", "genoa": "1 MiB", "haswell": "256 KiB", "skylake": "1 MiB"}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The audit library that imitates a CPU."""
    return other_cpu.build(tmp_path_factory.mktemp("other_cpu"))


@pytest.fixture(scope="module")
def train(library, tmp_path_factory):
    """Train and decode as on a CPU; return the process and the hashes."""

    def start(cpu, *arguments):
        folder = tmp_path_factory.mktemp(f"on_{cpu}")
        run = other_cpu.run(library, cpu, [sys.executable, str(TRAINING), str(folder), *arguments])
        assert run.status == 0, run.errors
        return run, json.loads(run.output.splitlines()[-1])

    return start


def side_by_side(function, *calls):
    """Call a function that waits for a process with each of some arguments, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda arguments: function(*arguments), calls))


def test_training_and_decoding_give_equal_bytes_on_an_intel_haswell_as_here(train):
    (here, expected), (there, hashes) = side_by_side(
        train, (other_cpu.OWN, "encoder_decoder"), ("haswell", "encoder_decoder")
    )
    assert hashes == expected
    assert set(hashes["encoder_decoder"]) == {
        "weights", "optimizer", "history", "greedy", "one_row", "beam"
    }  # fmt: skip
    # The imitation was at work, and no instruction ran whose result a maker chooses.
    assert there.patched == here.patched > 600
    assert there.cpuids > 50
    assert there.approximations == here.approximations == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["encoder_decoder", "prefix_language_model"], ["demo"]], ids=["small", "demo"]
)
def test_training_and_decoding_give_equal_bytes_on_four_cpus_of_two_makers(train, arguments):
    cpus = (other_cpu.OWN, *other_cpu.MODELS)
    runs = side_by_side(train, *((cpu, *arguments) for cpu in cpus))
    expected = runs[0][1]
    assert {cpu: hashes for cpu, (_, hashes) in zip(cpus, runs, strict=True)} == dict.fromkeys(
        cpus, expected
    )
    assert [run.approximations for run, _ in runs] == [0] * len(cpus)


@pytest.mark.slow
def test_with_rsqrt_each_maker_trains_other_weights(train):
    cpus = (other_cpu.OWN, "rome", "haswell")
    runs = side_by_side(train, *((cpu, "encoder_decoder", "--rsqrt") for cpu in cpus))
    for result in ("weights", "optimizer"):
        assert len({hashes["encoder_decoder"][result] for _, hashes in runs}) == len(cpus)
    executed = {run.approximations for run, _ in runs}
    assert len(executed) == 1
    assert min(executed) > 1000


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="needs qemu-x86_64 (qemu-user)")
@pytest.mark.parametrize("cpu", ["EPYC-Rome", "Haswell"])
def test_an_emulated_cpu_computes_trains_and_decodes_as_this_one(cpu, train, tmp_path):
    def emulated(program, *arguments):
        return subprocess.run(
            ["qemu-x86_64", "-cpu", cpu, sys.executable, str(program), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    operations = emulated(OPERATIONS)
    assert operations.returncode == 0, operations.stdout + operations.stderr
    training = emulated(TRAINING, str(tmp_path), "encoder_decoder")
    assert training.returncode == 0, training.stderr
    _, expected = train(other_cpu.OWN, "encoder_decoder")
    assert json.loads(training.stdout.splitlines()[-1]) == expected


@pytest.mark.slow
@pytest.mark.parametrize("cpu", other_cpu.MODELS)
def test_every_operation_that_must_not_vary_is_equal_on_another_cpu(cpu, library, tmp_path):
    run = other_cpu.run(
        library,
        cpu,
        [sys.executable, str(OPERATIONS), "--all", "--output", str(tmp_path / "hashes.json")],
    )
    assert run.status == 0, run.output + run.errors
    from t5repro.model.operations import hashes
    from t5repro.model.operations.operation import L2_CACHE, MAKER

    computed = json.loads((tmp_path / "hashes.json").read_text())
    amd = next(reference for reference in hashes.references() if reference.cpu.startswith("AMD"))
    differing = {name for name, value in computed.items() if value != amd.hashes[name]}
    varies = {item.name: item.varies_with for item in hashes.operations(quick=False)}
    assert {varies[name] for name in differing} <= {MAKER, L2_CACHE}
    # The imitated RSQRTPS and RCPPS are neither this CPU's nor those of the reference.
    assert sum(varies[name] == MAKER for name in differing) == 12
    # An L2 cache of less than 1 MiB divides a product of one row among threads.
    small = L2_CACHES[cpu].endswith("KiB")
    assert ("matmul/row1_k512/forward" in differing) == small
