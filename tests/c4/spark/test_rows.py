"""Rows, notes and errors between Spark and the kernels, without a cluster."""

import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.spark.dedup import COPIES
from t5repro.c4.spark.rows import (
    NO_VALUE,
    NOTES,
    driver_context,
    groups_of,
    guarded,
    installed_versions,
    note_batch,
    notes_first,
    runs_of,
    signed,
    unsigned,
    with_columns,
)
from t5repro.errors import CrawlError


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_unsigned_numbers_keep_their_order_as_signed_ones(numbers):
    values = np.array(numbers, dtype=np.uint64)
    assert np.argsort(values, kind="stable").tolist() == (
        np.argsort(signed(values), kind="stable").tolist()
    )
    assert unsigned(signed(values)).tolist() == numbers


def numbers(**columns):
    return with_columns(COPIES, {name: np.array(values) for name, values in columns.items()})


def test_notes_come_before_the_rows_they_stand_with():
    rows = numbers(piece=[1, 2], kind=[0, 0], number=[5, 6])
    mixed = pa.Table.from_batches([note_batch(COPIES, {"a": 1}), rows]).combine_chunks()
    notes, rest = notes_first(iter([note_batch(COPIES, {"b": 2}), *mixed.to_batches(), rows]))
    assert notes == [{"b": 2}, {"a": 1}]
    assert [batch.column("piece").to_pylist() for batch in rest] == [[1, 2], [1, 2]]
    notes, rest = notes_first(iter([note_batch(NOTES, {})]))
    assert (notes, list(rest)) == ([{}], [])


def test_runs_of_a_sorted_column_are_found():
    batch = numbers(piece=[1, 1, 4, 9, 9], kind=[0] * 5, number=[1, 2, 3, 4, 5])
    runs = [(value, rows.column("number").to_pylist()) for value, rows in runs_of(batch, "piece")]
    assert runs == [(1, [1, 2]), (4, [3]), (9, [4, 5])]
    assert list(runs_of(batch.slice(0, 0), "piece")) == []


def test_an_error_of_a_kernel_becomes_a_note():
    def kernel(batches):
        yield numbers(piece=[1], kind=[0], number=[0])
        raise CrawlError("a.wet.gz: damaged")

    outputs = list(guarded(kernel, COPIES, driver_context())(iter([])))
    assert outputs[0].column("note").to_pylist() == [None]
    assert outputs[1].column("note").to_pylist() == [
        '{"error": ["CrawlError", "a.wet.gz: damaged"]}'
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"versions": {**installed_versions(), "pyarrow": "1.0"}},
            "the driver 1.0; install the same",
        ),
        ({"folder": "/no/such/place"}, "cannot access the run's folder /no/such/place"),
    ],
)
def test_a_worker_that_differs_from_the_driver_refuses_to_work(change, message):
    kernel = guarded(iter, NOTES, driver_context()._replace(**change))
    (batch,) = kernel(iter([note_batch(NOTES, {})]))
    assert message in batch.column("note").to_pylist()[0]
    assert '"error": ["ClusterError", "worker ' in batch.column("note").to_pylist()[0]


def test_a_worker_finds_the_archive_that_was_sent_after_it_entered_the_run_folder(tmp_path):
    sent, run_folder = tmp_path / "sent", tmp_path / "run"
    sent.mkdir()
    run_folder.mkdir()
    with zipfile.ZipFile(sent / "archive.zip", "w") as archive:
        archive.writestr("module_of_the_archive.py", "")
    program = (
        "import sys\n"
        "from t5repro.c4.spark.rows import Context, _check_worker, installed_versions\n"
        "sys.path.insert(0, './archive.zip')\n"
        "_check_worker(Context(sys.argv[1], installed_versions()))\n"
        "import module_of_the_archive\n"
    )
    subprocess.run([sys.executable, "-c", program, str(run_folder)], cwd=sent, check=True)


def test_the_notes_and_rows_of_a_group_come_together_whatever_the_batches():
    batches = [
        note_batch(COPIES, {"error": "x"}),
        note_batch(COPIES, {"a": 1}, piece=0),
        numbers(piece=[0, 0], kind=[0, 0], number=[1, 2]),
        numbers(piece=[0, 3], kind=[0, 0], number=[3, 4]),
        note_batch(COPIES, {"b": 2}, piece=5),
    ]
    groups = [
        (value, notes, [number for batch in rows for number in batch.column("number").to_pylist()])
        for value, notes, rows in groups_of(iter(batches), "piece")
    ]
    assert groups == [
        (NO_VALUE, [{"error": "x"}], []),
        (0, [{"a": 1}], [1, 2, 3]),
        (3, [], [4]),
        (5, [{"b": 2}], []),
    ]
