"""Decide which pages and which units of text are duplicates, from their hashes.

Of the pages with one normalised URL the newest is kept. Then of each repeated unit of text one copy
is kept: the first in the page that has the smallest MD5 of the raw URL among the pages that contain
it.

Rows are ordered by their content and never by arrival, so the decisions depend neither on the
order nor on the division of the input.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t5repro.c4.tables import POSITION_FIELDS

TIMESTAMP_BYTES = 32  # a WARC-Date has 20

Rows = NDArray[Any]  # structured arrays with the dtypes below

KEY_FIELDS = [("high", "<u8"), ("low", "<u8")]
PAGE_FIELDS = [("shard", "<u4"), ("row", "<u4")]  # number of the cleaned file, and the row in it
URL_ROW = np.dtype(
    [
        *KEY_FIELDS,
        ("timestamp", f"S{TIMESTAMP_BYTES}"),
        ("file", "<u4"),
        ("record", "<u4"),
        *PAGE_FIELDS,
    ]
)
UNIT_ROW = np.dtype(
    [*KEY_FIELDS, ("url_md5_high", "<u8"), ("url_md5_low", "<u8"), *PAGE_FIELDS, *POSITION_FIELDS]
)
REMOVAL_ROW = np.dtype([*PAGE_FIELDS, *POSITION_FIELDS])


def duplicate_urls(rows: Rows) -> Rows:
    """Return the pages of `rows`, dtype `URL_ROW`, that are not the newest of their URL.

    The greatest timestamp wins; ties are won by the first file by name, then the first record.

    Source: released code, ``c4_utils.select_newest_page``, which leaves ties undefined.
    """
    shared = rows[_may_share_key(rows)]
    # lexsort needs numbers to invert the order of bytes: the newest page has the smallest rank.
    _, age_rank = np.unique(shared["timestamp"], return_inverse=True)
    # The last key of lexsort is the primary one.
    order = np.lexsort(
        (
            shared["row"],
            shared["shard"],
            shared["record"],
            shared["file"],
            -age_rank,
            shared["low"],
            shared["high"],
        )
    )
    ordered = shared[order]
    older: Rows = ordered[~_starts_key(ordered)]
    return older


def duplicate_spans(rows: Rows, *, earlier_exists: NDArray[np.bool_] | None = None) -> Rows:
    """Return the removals, dtype `REMOVAL_ROW`, for the units `rows`, dtype `UNIT_ROW`.

    The first unit of each key by (MD5 of the raw URL, line, sentence) is kept. A span that overlaps
    the kept copy loses only its other sentences.

    Args:
        rows: all units of the corpus, or of a part of it that contains whole pages.
        earlier_exists: for a part, shape ``(rows,)``: whether the row is the first of its key in
            this part and another part contains an earlier one. None if `rows` are all units.

    Source: released code, ``c4_utils.remove_duplicate_text``, for the choice of the page and, for
    lines, the choice within the page. For spans the choice within the page is our own.
    """
    elsewhere = np.zeros(len(rows), dtype=bool) if earlier_exists is None else earlier_exists
    # Most units are unique: only those that may have a copy are sorted.
    candidates = np.flatnonzero(_may_share_key(rows) | elsewhere)
    candidates = candidates[_unit_order(rows[candidates])]
    ordered = rows[candidates]
    starts_key = _starts_key(ordered)
    # cumsum numbers the keys, so `first` maps every row to the first row of its key: the kept copy.
    first = np.flatnonzero(starts_key)[np.cumsum(starts_key) - 1] if len(ordered) else candidates
    kept_copy, kept_elsewhere = ordered[first], elsewhere[candidates][first]
    removals = np.empty(len(ordered), dtype=REMOVAL_ROW)
    for name in REMOVAL_ROW.names or ():
        removals[name] = ordered[name]
    # Spans of one line overlap: in "A. B. A. B. A. B.", the span A B A at sentence 0 recurs at
    # sentence 2. The kept copy needs sentences 0 to 2, so of the second only 3 and 4 may go.
    # A whole line (`count` 0) overlaps no other unit.
    overlaps = (
        (ordered["shard"] == kept_copy["shard"])
        & (ordered["row"] == kept_copy["row"])
        & (ordered["line"] == kept_copy["line"])
        & (ordered["count"] > 0)
        & ~kept_elsewhere
    )
    # Units are ordered by `start`, so the overlap is always at the beginning of the later span.
    end = ordered["start"] + ordered["count"]
    kept_end = kept_copy["start"] + kept_copy["count"]
    begin = np.where(overlaps, np.maximum(ordered["start"], kept_end), ordered["start"])
    removals["start"] = begin
    removals["count"] = np.where(end > begin, end - begin, 0)
    # A span inside the kept copy loses nothing; its `count` of 0 must not mean "the whole line".
    inside_kept = (ordered["count"] > 0) & (removals["count"] == 0)
    # The first row of a key is removed only if a copy in another part comes before it.
    removed: Rows = removals[(~starts_key | kept_elsewhere) & ~inside_kept]
    return removed


def first_units(rows: Rows) -> NDArray[np.int64]:
    """Return the indices of the units that are the first of their key, ordered by key."""
    order = _unit_order(rows)
    return order[_starts_key(rows[order])]


def _unit_order(rows: Rows) -> NDArray[np.int64]:
    return np.lexsort(
        (
            rows["start"],
            rows["line"],
            rows["row"],
            rows["shard"],
            rows["url_md5_low"],
            rows["url_md5_high"],
            rows["low"],
            rows["high"],
        )
    )


def _may_share_key(rows: Rows) -> NDArray[np.bool_]:
    """Return whether another row has the same upper half of the key; it is rare."""
    # 64 of the 128 bits suffice to find candidates; the exact comparison is `_starts_key`'s.
    halves = rows["high"]
    order = np.argsort(halves)
    ordered = halves[order]
    equal = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(rows), dtype=bool)
    shared[1:] |= equal
    shared[:-1] |= equal
    result = np.empty(len(rows), dtype=bool)
    result[order] = shared
    return result


def _starts_key(ordered: Rows) -> NDArray[np.bool_]:
    """Return, for rows ordered by key, whether each row is the first of its key."""
    starts = np.ones(len(ordered), dtype=bool)
    starts[1:] = (ordered["high"][1:] != ordered["high"][:-1]) | (
        ordered["low"][1:] != ordered["low"][:-1]
    )
    return starts
