"""Faults of the crawl itself, such as damaged gzip members: counted, or a reason to stop.

A fault loses the data it damages and nothing else; `NOT_CONVERSION`, `FILE_CUT` and
`MERGED_RECORDS` lose nothing that the released code keeps. With `c4.on_bad_record` `skip` it is
counted and recorded with file and position; with `fail` the first one stops the run with an error
that names both.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from t5repro.c4.reasons import INVALID_UTF8, NO_TIMESTAMP, NO_URL, RECORD_TOO_LARGE
from t5repro.errors import CrawlError

OnBadRecord = Literal["skip", "fail"]

MISSING_FILE = "missing_file"
OUTSIDE_FOLDER = "outside_folder"
EMPTY_FILE = "empty_file"
NOT_WET = "not_wet"
NOT_CONVERSION = "not_conversion"
FILE_SHRANK = "file_shrank"
FILE_CUT = "file_cut"
MERGED_RECORDS = "merged_records"
GZIP_DAMAGED = "gzip_damaged"
GZIP_CUT = "gzip_cut"
GZIP_BOMB = "gzip_bomb"
WAT_RECORD = "wat_record"
# The record reasons are faults of one record; its page is counted as dropped for them too.
REASONS = (
    MISSING_FILE,
    OUTSIDE_FOLDER,
    EMPTY_FILE,
    NOT_WET,
    NOT_CONVERSION,
    FILE_SHRANK,
    FILE_CUT,
    MERGED_RECORDS,
    GZIP_DAMAGED,
    GZIP_CUT,
    GZIP_BOMB,
    WAT_RECORD,
    NO_URL,
    NO_TIMESTAMP,
    INVALID_UTF8,
    RECORD_TOO_LARGE,
)

# Named once a file: a file of WARC in place of WET has thousands, which would leave no room.
ONCE_A_FILE = (NOT_CONVERSION, MERGED_RECORDS)
MAX_EXAMPLES = 1000  # faults of one job that are recorded with their position; all are counted
DETAIL_CHARS = 300


class Fault(NamedTuple):
    """One fault of the crawl.

    Attributes:
        file: the WET file.
        place: position in it, such as ``byte 1024`` or ``record 3``; empty for the whole file.
        reason: one of `REASONS`.
        detail: description of the fault.
    """

    file: str
    place: str
    reason: str
    detail: str

    def message(self) -> str:
        """Return the text of an error for the user, with the cure."""
        return (
            f"{self.file}: {self.detail}; fetch the file again, remove it from the list, or "
            "set c4.on_bad_record to skip"
        )


OnFault = Callable[[Fault], None]


def stop(fault: Fault) -> None:
    """Raise an error for the fault.

    Raises:
        CrawlError: always; it names file and position.
    """
    raise CrawlError(fault.message())


class FaultLog:
    """Counts and records the faults of one job, or stops at the first.

    Args:
        on_bad_record: `c4.on_bad_record`, `skip` or `fail`.
    """

    def __init__(self, on_bad_record: OnBadRecord = "skip") -> None:
        self._stops = on_bad_record == "fail"
        self._counts: Counter[str] = Counter()
        self._examples: list[Fault] = []
        self._named: set[tuple[str, str]] = set()  # reason, file

    def add(self, fault: Fault) -> None:
        """Count and record a fault; a fault of `ONCE_A_FILE` is recorded once for each file.

        Raises:
            CrawlError: `on_bad_record` is `fail`.
        """
        if self._stops:
            stop(fault)
        self._counts[fault.reason] += 1
        if fault.reason in ONCE_A_FILE:
            if (fault.reason, fault.file) in self._named:
                return
            self._named.add((fault.reason, fault.file))
        if len(self._examples) < MAX_EXAMPLES:
            name = fault.file.rpartition("/")[2]
            self._examples.append(fault._replace(file=name, detail=fault.detail[:DETAIL_CHARS]))

    def merge(self, log: dict[str, Any]) -> None:
        """Add the result of `to_json` of another job."""
        self._counts.update(log["counts"])
        self._examples.extend(Fault(**fault) for fault in log["named"])

    def to_json(self) -> dict[str, Any]:
        """Return counts by reason and recorded faults, ordered by file and position."""
        return {
            "counts": dict(sorted(self._counts.items())),
            "named": [
                fault._asdict() for fault in sorted(self._examples, key=_order)[:MAX_EXAMPLES]
            ],
        }

    def summary(self) -> str:
        """Return the counts as one line of text; empty without faults."""
        return ", ".join(f"{reason} {count}" for reason, count in sorted(self._counts.items()))


def _order(fault: Fault) -> tuple[str, int, Fault]:
    digits = "".join(filter(str.isdecimal, fault.place.partition(" to ")[0]))
    return fault.file, int(digits or 0), fault
