"""Which pages and which text are repeats, decided from hashes alone.

Two decisions, in this order. Of the pages of one normalised URL the newest stays. Of each repeated
*unit* of text, a line or a span of three sentences, one copy stays: the first in the page whose raw
URL has the smallest MD5 among the pages that hold it. A unit is a 16-byte key (MD5 of the
lower-cased text) and its place; pages never move. `docs/three_sentence_spans.md` defines spans.

Rows are ordered by their contents and never by arrival, so the decisions do not depend on the
order or the division of the input.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t5repro.c4.text.rules import END_MARKS
from t5repro.c4.text.sentences import SentenceSplitter

SPAN_SENTENCES = 3
KEY_BYTES = 16
TIMESTAMP_BYTES = 32  # of a WARC-Date, which has 20

_SCHEME = re.compile(r"https?://(www\.)?")
_CAMPAIGN = re.compile(r"\?(utm_|ref|feed).*")

Rows = NDArray[Any]  # structured arrays; their fields are the dtypes below

KEY = [("high", "<u8"), ("low", "<u8")]
# Where a unit is in its page: `count` sentences of a line from `start` on; 0: the whole line.
PLACE = [("line", "<u4"), ("start", "<u4"), ("count", "<u4")]
LOCATOR = [("shard", "<u4"), ("row", "<u4")]
PLACE_TYPE = np.dtype(PLACE)
URL_ROW = np.dtype(
    [*KEY, ("timestamp", f"S{TIMESTAMP_BYTES}"), ("file", "<u4"), ("record", "<u4"), *LOCATOR]
)
UNIT_ROW = np.dtype([*KEY, ("owner_high", "<u8"), ("owner_low", "<u8"), *LOCATOR, *PLACE])
LOSER_ROW = np.dtype([*LOCATOR, *PLACE])


def normalize_url(url: str) -> str:
    """Return the form in which two addresses of one page are equal.

    Source: released code, ``c4_utils.normalize_url``: the scheme is removed wherever it occurs,
    the query only if a listed name begins it.
    """
    return _CAMPAIGN.sub("", _SCHEME.sub("", url)).rstrip("/")


def digest(text: str) -> bytes:
    """Return the 16-byte key of a text."""
    return hashlib.md5(text.encode("utf-8"), usedforsecurity=False).digest()


def is_held_out(url_key: bytes, modulus: int) -> bool:
    """Return whether the page with this key of its normalised URL is for validation."""
    return int.from_bytes(url_key, "big") % modulus == 0


def line_keys(text: str) -> bytes:
    r"""Return the keys of the lines of `text`, split at ``\n``, one after another.

    Source: released code, ``c4_utils._emit_url_to_lines``.
    """
    lines = [line.lower().strip().encode("utf-8") for line in text.split("\n")]
    return b"".join([hashlib.md5(line, usedforsecurity=False).digest() for line in lines])


def span_units(text: str, splitter: SentenceSplitter) -> tuple[bytes, bytes]:
    """Return keys and places of the spans of `text`: `SPAN_SENTENCES` sentences of one line.

    A line with fewer sentences is one span. Spans of nothing but end marks are left out.

    Source: released code of 2019, ``c4_utils._emit_url_to_sentences``.
    """
    keys: list[bytes] = []
    places: list[tuple[int, int, int]] = []
    for number, line in enumerate(text.splitlines()):
        sentences = [sentence.lower() for sentence in splitter.split(line.strip())]
        width = min(len(sentences), SPAN_SENTENCES)
        for start in range(len(sentences) - width + 1 if sentences else 0):
            span = sentences[start : start + width]
            if not all(sentence in END_MARKS for sentence in span):
                keys.append(digest("\n".join(span)))
                places.append((number, start, width))
    return b"".join(keys), np.array(places, dtype=PLACE_TYPE).tobytes()


def key_halves(keys: bytes) -> NDArray[np.uint64]:
    """Return keys as pairs of numbers that order as the bytes do, shape ``(keys, 2)``."""
    return np.frombuffer(keys, dtype=">u8").reshape(-1, 2).astype(np.uint64)


def losing_urls(rows: Rows) -> Rows:
    """Return the rows of `rows`, dtype `URL_ROW`, that are not the newest of their key.

    The greatest timestamp wins; of equal ones the first file by name, then the first record.

    Source: released code, ``c4_utils.select_newest_page``, which leaves ties open.
    """
    shared = rows[_shares_key(rows)]
    _, age_rank = np.unique(shared["timestamp"], return_inverse=True)
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
    older: Rows = ordered[~_begins_key(ordered)]
    return older


def losing_units(rows: Rows, *, lost: NDArray[np.bool_] | None = None) -> Rows:
    """Return what to remove, dtype `LOSER_ROW`, of the units `rows`, dtype `UNIT_ROW`.

    The first unit of each key by (MD5 of the raw URL, line, sentence) stays. A span that overlaps
    the copy that stays loses only the sentences beyond it.

    Args:
        rows: all units of the corpus, or of a part of it that holds whole pages.
        lost: for a part: whether a row is the first of its key here, and other parts hold an
            earlier one; None: `rows` are all.

    Source: released code, ``c4_utils.remove_duplicate_text``, for the page; the place within the
    page is ours for spans, and as there for lines.
    """
    elsewhere = np.zeros(len(rows), dtype=bool) if lost is None else lost
    chosen = np.flatnonzero(_shares_key(rows) | elsewhere)
    chosen = chosen[_unit_order(rows[chosen])]
    ordered = rows[chosen]
    begins = _begins_key(ordered)
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1] if len(ordered) else chosen
    keeper, kept_elsewhere = ordered[first], elsewhere[chosen][first]
    losers = np.empty(len(ordered), dtype=LOSER_ROW)
    for name in LOSER_ROW.names or ():
        losers[name] = ordered[name]
    same_line = (
        (ordered["shard"] == keeper["shard"])
        & (ordered["row"] == keeper["row"])
        & (ordered["line"] == keeper["line"])
        & (ordered["count"] > 0)
        & ~kept_elsewhere
    )
    end = ordered["start"] + ordered["count"]
    begin = np.where(
        same_line, np.maximum(ordered["start"], keeper["start"] + keeper["count"]), ordered["start"]
    )
    losers["start"] = begin
    losers["count"] = np.where(end > begin, end - begin, 0)
    nothing_left = (ordered["count"] > 0) & (losers["count"] == 0)
    removed: Rows = losers[(~begins | kept_elsewhere) & ~nothing_left]
    return removed


def first_units(rows: Rows) -> NDArray[np.int64]:
    """Return the numbers of the units that are the first of their key, in the order of keys."""
    order = _unit_order(rows)
    return order[_begins_key(rows[order])]


def _unit_order(rows: Rows) -> NDArray[np.int64]:
    return np.lexsort(
        (
            rows["start"],
            rows["line"],
            rows["row"],
            rows["shard"],
            rows["owner_low"],
            rows["owner_high"],
            rows["low"],
            rows["high"],
        )
    )


def _shares_key(rows: Rows) -> NDArray[np.bool_]:
    """Return whether another row may have the same key; for most none has."""
    halves = rows["high"]
    order = np.argsort(halves)
    ordered = halves[order]
    equal = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(rows), dtype=bool)
    shared[1:] |= equal
    shared[:-1] |= equal
    found = np.empty(len(rows), dtype=bool)
    found[order] = shared
    return found


def _begins_key(ordered: Rows) -> NDArray[np.bool_]:
    """Return, for rows in order of their key, whether each is the first of it."""
    begins = np.ones(len(ordered), dtype=bool)
    begins[1:] = (ordered["high"][1:] != ordered["high"][:-1]) | (
        ordered["low"][1:] != ordered["low"][:-1]
    )
    return begins


def places_of(rows: Rows) -> Rows:
    """Return the places of `rows`, dtype `PLACE_TYPE`."""
    places = np.empty(len(rows), dtype=PLACE_TYPE)
    for name in PLACE_TYPE.names or ():
        places[name] = rows[name]
    return places


def remove_lines(text: str, places: Rows) -> str:
    """Return `text` without the lines at `places`.

    Source: released code, ``c4_utils._remove_lines_from_text``.
    """
    gone = set(places["line"].tolist())
    return "\n".join(line for number, line in enumerate(text.split("\n")) if number not in gone)


def remove_spans(text: str, places: Rows, splitter: SentenceSplitter) -> str:
    """Return `text` without the sentences at `places`.

    What is left of a line is joined with spaces; a line that loses nothing is not touched, one
    that loses all vanishes.

    Source: released code of 2019, ``c4_utils._remove_sentences_from_text``.
    """
    gone: dict[int, set[int]] = {}
    for line, start, count in places.tolist():
        gone.setdefault(line, set()).update(range(start, start + count))
    kept: list[str] = []
    for number, line in enumerate(text.splitlines()):
        if number in gone:
            sentences = enumerate(splitter.split(line.strip()))
            line = " ".join(sentence for at, sentence in sentences if at not in gone[number])
        if line:
            kept.append(line)
    return "\n".join(kept)


def text_at(text: str, place: Rows, splitter: SentenceSplitter) -> str:
    """Return the unit at one place of `text`."""
    line, start, count = (int(place[name]) for name in PLACE_TYPE.names or ())
    if not count:
        return text.split("\n")[line]
    sentences = splitter.split(text.splitlines()[line].strip())
    return " ".join(sentences[start : start + count])


def has_enough_sentences(
    text: str, *, count: int, whole_text: bool, splitter: SentenceSplitter
) -> bool:
    """Return whether what is left of a page has `count` sentences or more.

    Args:
        text: what is left.
        count: the minimum; 0: any page has enough.
        whole_text: count in the page as one text, as line removal does, where Punkt can join
            lines; else line by line, as span removal does.
        splitter: counts sentences.

    Source: released code, ``c4_utils._remove_lines_from_text``, and of 2019,
    ``c4_utils._remove_sentences_from_text``.
    """
    if whole_text:
        return splitter.has_at_least(count, text)
    lines: Sequence[str] = [line for line in text.splitlines() if line.strip()]
    return splitter.lines_have_at_least(count, list(lines))
