"""The search on a local Spark session: what it finds is what one process finds."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from planted import pages, rows, write_pages

from t5repro.c4.spark.session import session
from t5repro.config.sections.c4 import SparkSettings
from t5repro.contamination import spark as on_spark
from t5repro.contamination.methods import METHODS
from t5repro.contamination.rows import fields_of_rows
from t5repro.contamination.search import Search, search_parts
from t5repro.contamination.texts import Part
from t5repro.tasks.registry import task_named

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("no Java here", allow_module_level=True)

pytestmark = [
    # PySpark leaves the sockets through which results come to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_spark_finds_what_one_process_finds(tmp_path: Path) -> None:
    methods = [method for method in METHODS if method.unit == "words"]
    search = Search(fields_of_rows(task_named("glue_rte"), rows()), methods)
    parts = [Part(path) for path in write_pages(tmp_path, pages())]
    with session(SparkSettings(master="local[2]"), "contamination") as spark:
        found, units = partial(on_spark.search_parts, spark)(search, parts)
    expected, expected_units = search_parts(search, parts)
    assert (found, units) == (expected, expected_units)
    assert len(found) > 5
