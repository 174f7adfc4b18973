"""The kernels of deduplication without a cluster."""

import numpy as np
import pyarrow as pa
import pytest
from c4_rules import stage

from t5repro.c4 import tables
from t5repro.c4.clean import clean_shard
from t5repro.c4.dedup import duplicates
from t5repro.c4.dedup.removals import Removals
from t5repro.c4.spark import dedup
from t5repro.c4.spark.dedup import COPIES, UNIT, UNITS, URL, PieceReader, divide, later_of_key
from t5repro.c4.spark.rows import note_batch, notes_first, with_columns
from t5repro.config.schema import Settings
from t5repro.jobs.corpus import CleanJob


def numbers(**columns):
    return with_columns(COPIES, {name: np.array(values) for name, values in columns.items()})


def keyed(*keys, positions):
    values = np.array(keys, dtype=np.int64)
    zeros = np.zeros(len(values), dtype=np.int64)
    columns = {"key": values, "key_low": zeros, "url_md5": zeros, "url_md5_low": zeros}
    return with_columns(UNITS, columns | {"position": np.array(positions, dtype=np.int64)})


def test_all_but_the_first_of_a_key_lose_also_across_batches():
    batches = [keyed(1, 2, 2, positions=[10, 11, 12]), keyed(2, 3, positions=[(7 << 32) | 13, 14])]
    copies = pa.Table.from_batches(list(later_of_key(iter(batches), UNIT)))
    assert copies.column("number").to_pylist() == [12, 13]
    assert copies.column("piece").to_pylist() == [0, 7]
    assert set(copies.column("kind").to_pylist()) == {UNIT}


def cleaned_file(path, write_wet, wet_record, pages, unit):
    shared = "The very same sentence stands on each of these pages for ever."
    records = [
        wet_record(
            f"http://page/{number}",
            "\n".join(f"{shared[:-1]} {tail}." for tail in ("", "again", f"but {number}")),
        )
        for number in range(pages)
    ]
    settings = Settings(c4={"dedup": {"unit": unit}})
    manifest = path.with_suffix(".json")
    clean_shard(CleanJob(stage("c4_clean", settings), [path], manifest, wet=[write_wet(records)]))
    return path


def test_of_a_line_on_a_thousand_pages_a_piece_sends_one_row(tmp_path, write_wet, wet_record):
    path = cleaned_file(tmp_path / "0.parquet", write_wet, wet_record, 1000, "line")
    pieces = divide([path], ("line_keys",), 1)
    assert [piece.first_row for piece in pieces] == [0, 512]
    reader = PieceReader(pieces, "line", {"pages.warc.wet.gz": 0})
    requests = numbers(piece=[0, 1], kind=[0, 0], number=[0, 0])
    sent = pa.Table.from_batches(list(dedup.first_units(iter([requests]), reader)))
    assert len(sent) == (512 + 2) + (488 + 2)  # each page's own line, and the two they share
    assert (
        sum(1 for _ in duplicates.first_units(reader.unit_rows(pieces[0], np.zeros(0, int)))) == 514
    )


@pytest.mark.parametrize("unit", ["line", "three_sentence_span"])
def test_a_corpus_decided_piece_by_piece_loses_what_it_loses_as_a_whole(unit):
    random = np.random.default_rng(7)
    pages = np.sort(random.integers(0, 60, 900))
    rows = np.zeros(900, dtype=duplicates.UNIT_ROW)
    rows["high"] = random.integers(0, 40, 900)
    rows["row"] = pages
    rows["url_md5_high"] = random.permutation(60)[pages]
    rows["line"] = random.integers(0, 3, 900)
    rows["start"] = random.integers(0, 5, 900)
    rows["count"] = 0 if unit == "line" else 3
    rows = rows[np.lexsort((rows["start"], rows["line"], rows["row"]))]
    removals = duplicates.duplicate_spans(rows)
    parts_removals = []
    parts = [rows[rows["row"] < 25], rows[rows["row"] >= 25]]
    firsts = [part[duplicates.first_units(part)] for part in parts]
    first_ranks = {}
    for first in firsts:
        for row in first:
            page_rank = (row["url_md5_high"], row["row"])
            key = int(row["high"])
            first_ranks[key] = min(first_ranks.get(key, page_rank), page_rank)
    for part in parts:
        numbers = duplicates.first_units(part)
        earlier_exists = np.zeros(len(part), dtype=bool)
        for number in numbers:
            row = part[number]
            earlier_exists[number] = first_ranks[int(row["high"])] != (
                row["url_md5_high"],
                row["row"],
            )
        parts_removals.append(duplicates.duplicate_spans(part, earlier_exists=earlier_exists))
    together = np.concatenate(parts_removals)
    order = ["row", "line", "start", "count"]
    assert np.sort(together, order=order).tolist() == np.sort(removals, order=order).tolist()
    assert 0 < len(removals) < 900


def test_pieces_are_whole_row_groups_and_cover_a_file(tmp_path, write_wet, wet_record):
    path = cleaned_file(tmp_path / "0.parquet", write_wet, wet_record, 1100, "line")
    groups = tables.open_parquet(path, tables.CLEANED).metadata.num_row_groups
    for most_bytes in (1, 9000, 10**9):
        pieces = divide([path], ("line_keys",), most_bytes)
        assert sorted(group for piece in pieces for group in piece.groups) == list(range(groups))
    assert len(pieces) == 1
    assert URL != UNIT


def test_an_error_without_a_shard_reaches_the_driver_beside_the_decisions_of_others(tmp_path):
    error = {"error": ["ArtifactError", "damaged"]}
    rows = with_columns(
        dedup.DECISIONS, {"shard": [1], "row": [4], "duplicate_url": [True], "places": [b""]}
    )
    batches = [
        note_batch(dedup.DECISIONS, error),
        note_batch(dedup.DECISIONS, {"units": 5}, shard=0),
        note_batch(dedup.DECISIONS, {"units": 7}, shard=1),
        rows,
    ]
    shards = [["a.parquet", 9], ["b.parquet", 9]]
    notes, rest = notes_first(dedup.write_decisions(iter(batches), shards, tmp_path))
    assert notes[0] == error
    assert [note["counts"]["units"] for note in notes[1:]] == [5, 7]
    assert list(rest) == []
    assert Removals(tmp_path / "b.parquet").of(4) is not None
    assert Removals(tmp_path / "a.parquet").of(4) is None
