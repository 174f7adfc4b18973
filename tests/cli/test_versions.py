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
WITH_REFERENCES = """
import sys
from pathlib import Path
from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment
set_environment(DevicesSettings())
from t5repro.model.operations import hashes
hashes.FOLDER = Path(sys.argv.pop(1))
from t5repro.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_operations_that_differ_from_another_cpu_are_named(tmp_path: Path) -> None:
    def compare() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITH_REFERENCES, str(tmp_path), "certificate", "--machine"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            cwd=tmp_path,  # no results, no lock and no repository are needed
            capture_output=True,
            text=True,
            check=False,
        )

    reference = tmp_path / "reference.json"
    first = {"cpu": "another CPU", "versions": {}, "hashes": {}}
    reference.write_text(json.dumps(first))
    ran = compare()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "0 of 0 operations equal those of another CPU\n"
    reference.write_text(json.dumps({**first, "hashes": {"tanh": "0", "elementwise/tanh": "0"}}))
    ran = compare()
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout.startswith("0 of 1 operations equal those of another CPU\n  differs: ")
    assert "tanh" in ran.stdout
