"""The decisions about a cleaned file: rows in order, bytes, and what a reader has to read."""

from pathlib import Path

import numpy as np
import pytest

from t5repro.c4 import tables
from t5repro.c4.dedup.duplicates import REMOVAL_ROW
from t5repro.c4.dedup.removals import Removals, decisions_of, read_counts, write_decisions
from t5repro.c4.deduplicate import cleaned_files
from t5repro.config.sections.c4 import DedupStage
from t5repro.errors import ArtifactError
from t5repro.jobs.corpus import DedupJob

PAGES = 3000


def removals(pages):
    """Return older pages and two removed lines of every page, in an arbitrary order."""
    units = np.zeros(2 * len(pages), dtype=REMOVAL_ROW)
    units["row"] = np.repeat(pages, 2)
    units["line"] = np.tile([7, 2], len(pages))
    older = np.zeros(len(pages[::10]), dtype=REMOVAL_ROW)
    older["row"] = pages[::10]
    return older, np.random.default_rng(1).permutation(units)


@pytest.fixture
def decisions(tmp_path):
    path = tmp_path / "00000.parquet"
    pages = np.arange(PAGES, dtype=np.uint32)
    write_decisions(path, ["00000.parquet", PAGES], {"units": 9000}, decisions_of(*removals(pages)))
    return path


def test_every_page_has_its_removals_in_order(decisions):
    reader = Removals(decisions)
    for row in range(PAGES):
        is_older, positions = reader.of(row)
        assert is_older == (row % 10 == 0)
        assert positions["line"].tolist() == [2, 7]
    assert reader.of(PAGES) is None


def test_a_reader_of_later_pages_does_not_read_what_comes_before(decisions):
    data = bytearray(decisions.read_bytes())
    groups = tables.open_parquet(decisions, tables.DECISIONS).metadata
    end = groups.row_group(4).column(0).data_page_offset  # of the pages from 2048 on
    data[4 : end - 64] = bytes(end - 68)
    decisions.write_bytes(bytes(data))
    assert Removals(decisions, 2100).of(2100)[0]
    with pytest.raises(ArtifactError, match="is damaged"):
        Removals(decisions)


def test_the_bytes_do_not_depend_on_the_pieces_that_decided(decisions, tmp_path):
    pages = np.arange(PAGES, dtype=np.uint32)
    parts = np.split(pages, [1000, 1001, 2990])
    batches = (batch for part in parts for batch in decisions_of(*removals(part)))
    older = set(pages[::10].tolist())
    fixed = (
        batch.set_column(1, "duplicate_url", [row in older for row in batch["row"].to_pylist()])
        for batch in batches
    )
    path = tmp_path / "again.parquet"
    write_decisions(path, ["00000.parquet", PAGES], {"units": 9000}, fixed)
    assert path.read_bytes() == decisions.read_bytes()


def test_no_batch_of_decisions_grows_with_the_cleaned_file():
    pages = np.arange(100_000, dtype=np.uint32)
    batches = list(decisions_of(*removals(pages)))
    assert {len(batch) for batch in batches[:-1]} == {tables.BATCH_PAGES}
    assert sum(map(len, batches)) == 100_000


def test_a_cleaned_file_without_removals_has_decisions_without_rows(tmp_path):
    nothing = np.zeros(0, dtype=REMOVAL_ROW)
    path = tmp_path / "00000.parquet"
    counts = write_decisions(
        path, ["00000.parquet", 5], {"units": 3}, decisions_of(nothing, nothing)
    )
    assert counts == {
        "units": 3,
        "removed_units": 0,
        "pages_with_removed_units": 0,
        "duplicate_url": 0,
    }
    assert Removals(path).of(0) is None


def test_decisions_without_a_cleaned_file_are_refused(decisions, tmp_path):
    with pytest.raises(ArtifactError, match=r"00000.parquet with 3000 pages, .* none here; rerun"):
        read_counts(tmp_path, [])


def test_cleaned_files_with_one_name_are_refused():
    cleaned = [Path("a/0.parquet"), Path("b/0.parquet"), Path("b/1.parquet")]
    settings = DedupStage.model_validate({"c4": {"dedup": {}}})
    job = DedupJob(settings, cleaned, Path("decisions"), Path("manifest.json"))
    with pytest.raises(ArtifactError, match=r"2 cleaned files are called 0.parquet, .* rename"):
        cleaned_files(job)
