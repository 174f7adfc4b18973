"""What is wrong with the crawl itself: counted and named, or a reason to stop.

A fault loses what it damages and nothing else. `c4.on_bad_record` says what follows: `skip` counts
it, names file and place, and goes on; `fail` stops at the first with an error that says both.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from t5repro.errors import CrawlError

OnBadRecord = Literal["skip", "fail"]

MISSING_FILE = "missing_file"
OUTSIDE_FOLDER = "outside_folder"
EMPTY_FILE = "empty_file"
NOT_WET = "not_wet"
GZIP_DAMAGED = "gzip_damaged"
GZIP_CUT = "gzip_cut"
GZIP_BOMB = "gzip_bomb"
# Of one record; the pages are counted as dropped for these reasons too.
NO_URL = "no_url"
NO_TIMESTAMP = "no_timestamp"
INVALID_UTF8 = "invalid_utf8"
RECORD_TOO_LARGE = "record_too_large"

REASONS = (
    MISSING_FILE,
    OUTSIDE_FOLDER,
    EMPTY_FILE,
    NOT_WET,
    GZIP_DAMAGED,
    GZIP_CUT,
    GZIP_BOMB,
    NO_URL,
    NO_TIMESTAMP,
    INVALID_UTF8,
    RECORD_TOO_LARGE,
)

MAX_NAMED = 1000  # faults of one job that are named; all are counted
DETAIL_CHARS = 300


class Fault(NamedTuple):
    """One thing wrong with the crawl.

    Attributes:
        file: the WET file.
        place: where in it, such as ``byte 1024`` or ``record 3``; empty: all of it.
        reason: one of `REASONS`.
        detail: what was found there.
    """

    file: str
    place: str
    reason: str
    detail: str

    def message(self) -> str:
        """Return what a person reads who wants to cure it."""
        return (
            f"{self.file}: {self.detail}; fetch the file again, take it off the list, or "
            "set c4.on_bad_record to skip"
        )


OnFault = Callable[[Fault], None]


def stop(fault: Fault) -> None:
    """Refuse the fault.

    Raises:
        CrawlError: always; it names file and place.
    """
    raise CrawlError(fault.message())


class FaultLog:
    """Counts and names the faults of one job, or stops at the first.

    Args:
        on_bad_record: `skip` or `fail`.
    """

    def __init__(self, on_bad_record: OnBadRecord = "skip") -> None:
        self._stops = on_bad_record == "fail"
        self._counts: Counter[str] = Counter()
        self._named: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Take in a fault.

        Raises:
            CrawlError: `on_bad_record` is `fail`.
        """
        if self._stops:
            stop(fault)
        self._counts[fault.reason] += 1
        if len(self._named) < MAX_NAMED:
            name = fault.file.rpartition("/")[2]
            self._named.append(fault._replace(file=name, detail=fault.detail[:DETAIL_CHARS]))

    def merge(self, other: dict[str, Any]) -> None:
        """Take in what `to_json` of another job returned."""
        self._counts.update(other["counts"])
        self._named.extend(Fault(**item) for item in other["named"])

    def to_json(self) -> dict[str, Any]:
        """Return counts by reason and the named faults, in the order of files and places."""
        return {
            "counts": dict(sorted(self._counts.items())),
            "named": [fault._asdict() for fault in sorted(self._named, key=_order)[:MAX_NAMED]],
        }

    def summary(self) -> str:
        """Return one line for a person; empty if nothing was wrong."""
        return ", ".join(f"{reason} {count}" for reason, count in sorted(self._counts.items()))


def _order(fault: Fault) -> tuple[str, int, Fault]:
    digits = "".join(filter(str.isdecimal, fault.place.partition(" to ")[0]))
    return fault.file, int(digits or 0), fault


def merged(others: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the faults of several jobs as those of one, whatever their order."""
    log = FaultLog()
    for other in others:
        log.merge(other)
    return log.to_json()
