"""TensorFlow and NumPy compute on this machine what they computed on an Intel and an AMD CPU."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from checkout import ROOT

pytest.importorskip("tensorflow")
from t5repro import cpu_dispatch
from t5repro.model.operations import hashes
from t5repro.model.operations.operation import L2_CACHE, MAKER

pytestmark = pytest.mark.keras

PROGRAM = ROOT / "tools" / "operation_hashes.py"
VARIES_WITH = {
    operation.name: operation.varies_with for operation in hashes.operations(quick=False)
}


@pytest.fixture(scope="module")
def program_run(tmp_path_factory):
    """The exit status, the printed comparison and the hashes of a process of its own.

    The process of the tests may have imported NumPy before this package.
    """
    output = tmp_path_factory.mktemp("hashes") / "hashes.json"
    process = subprocess.run(
        [sys.executable, str(PROGRAM), "--output", str(output)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert output.is_file(), process.stderr
    return process.returncode, process.stdout, json.loads(output.read_text())


@pytest.mark.skipif(
    not cpu_dispatch.has_required_instructions(),
    reason="equal bytes are promised for x86-64 CPUs with AVX2 and FMA (D-043)",
)
def test_this_machine_computes_the_bytes_of_an_intel_and_of_an_amd_cpu(program_run):
    _, printed, computed = program_run
    for reference in hashes.references():
        comparison = hashes.compare(computed, reference)
        assert comparison.compared > 150
        assert comparison.differing == (), f"\n{printed}"
    assert program_run[0] == 0


def test_the_references_are_of_both_makers_and_of_the_locked_versions():
    references = hashes.references()
    assert {reference.cpu.split()[0] for reference in references} == {"AMD", "Intel"}
    for reference in references:
        here = hashes.library_versions()
        versions = {name: reference.versions[name] for name in ("numpy", "tensorflow")}
        assert versions == {name: here[name] for name in versions}, (
            "write new references: python tools/operation_hashes.py --reference FILE --cpu CPU"
        )


def test_intel_and_amd_differ_in_the_approximate_operations_and_in_no_other():
    amd, intel = hashes.references()
    both = amd.hashes.keys() & intel.hashes.keys()
    differing = {name for name in both if amd.hashes[name] != intel.hashes[name]}
    approximate = {name for name in both if VARIES_WITH[name] == MAKER}
    # Five values are fewer than a vector of the kernel, which computes them exactly.
    assert differing == approximate - {"norm/rsqrt/5x32128"}
    assert len(both) - len(differing) == 258


def test_every_operation_has_a_name_of_its_own_and_every_reference_names_operations():
    names = [operation.name for operation in hashes.operations(quick=False)]
    assert len(set(names)) == len(names)
    for reference in hashes.references():
        assert set(reference.hashes) <= set(names)


def test_a_comparison_names_operations_that_differ_and_leaves_out_those_that_may():
    amd = hashes.references()[0]
    changed = dict(amd.hashes)
    changed["softmax/64x512"] = changed["elementwise/rsqrt"] = "0" * 32
    changed[next(name for name, varies in VARIES_WITH.items() if varies == L2_CACHE)] = "0" * 32
    older = dataclasses.replace(amd, versions={**amd.versions, "numpy": "1.26.4"})
    comparison = hashes.compare(changed, older)
    assert comparison.differing == ("softmax/64x512",)
    assert comparison.other_versions == {"numpy": "1.26.4"}
    assert str(comparison) == (
        f"278 of 279 operations equal those of {amd.cpu}\n"
        "  differs: softmax/64x512\n"
        "  its numpy is 1.26.4"
    )
