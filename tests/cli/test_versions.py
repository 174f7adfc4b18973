"""The options of the certificate that need no results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.keras
# Runs the command with the references of each folder; the operations are computed once.
WITH_REFERENCES = """
import functools, sys
from pathlib import Path
from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment
set_environment(DevicesSettings())
from t5repro.model.operations import hashes
hashes.operation_hashes = functools.cache(hashes.operation_hashes)
from t5repro.cli.main import main
for folder in sys.argv[1:]:
    hashes.FOLDER = Path(folder)
    print("code", main(["certificate", "--machine"]))
"""


def test_operations_that_differ_from_another_cpu_are_named(tmp_path: Path) -> None:
    first = {"cpu": "another CPU", "versions": {}, "hashes": {}}
    second = {**first, "hashes": {"tanh": "0", "elementwise/tanh": "0"}}
    for name, reference in (("none", first), ("other", second)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "reference.json").write_text(json.dumps(reference))
    ran = subprocess.run(
        [sys.executable, "-c", WITH_REFERENCES, "none", "other"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        cwd=tmp_path,  # no results, no lock and no repository are needed
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    equal, code, other, differs, code_of_other = ran.stdout.splitlines()
    assert (equal, code) == ("0 of 0 operations equal those of another CPU", "code 0")
    assert (other, code_of_other) == ("0 of 1 operations equal those of another CPU", "code 2")
    assert differs.startswith("  differs: ")
    assert "tanh" in differs
