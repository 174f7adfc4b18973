"""Snakemake's parameters are written the same way with pandas and without it."""

import subprocess
import sys

import pytest

COMPARE = """
import sys
from snakemake.persistence import PersistenceBase
from snakemake.persistence.file import FilePersistence
persistence = FilePersistence.__new__(FilePersistence)
values = ["text", '{"steps": 6}', 1, 2.5, True, None, ["a=b", "c"], ("x",), {"k": 1}, {1, 2}]
before = [PersistenceBase._serialize_param_builtin(persistence, value) for value in values]
from t5repro.versions.plain_params import compare_params_without_pandas
compare_params_without_pandas()
assert [persistence._serialize_param(value) for value in values] == before
assert "pandas" not in sys.modules
assert [persistence._serialize_param_pandas(value) for value in values] == before
assert "pandas" in sys.modules
"""


@pytest.mark.workflow
def test_parameters_are_written_as_with_pandas_and_pandas_is_not_imported() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COMPARE], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
