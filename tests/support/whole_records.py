"""Complete records for tests that are about a few of their facts."""

from collections.abc import Mapping
from typing import Any

from t5repro.lineage.record import FORMAT

MACHINE = {
    "system": "Linux x86_64",
    "processor": "A processor",
    "processors": 2,
    "python": "CPython 3.11.7",
    "libraries": {},
}
START = {
    "at": "2100-01-02T03:04:05+00:00",
    "attempt": 1,
    "commit": None,
    "uncommitted": None,
    "code": {},
    "settings": {},
    "seeds": {},
    "machine": MACHINE,
}
END = {"at": "2100-01-02T03:04:08+00:00", "seconds": 2.9, "ok": True}


def whole_record(
    job: str, start: Mapping[str, Any] | None = None, end: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a record of a job that ended, with some facts in place of the usual ones."""
    run, rule, *node = job.split("/")
    return {
        "format": FORMAT,
        "run": run,
        "rule": rule,
        "node": "/".join(node),
        "start": {**START, **(start or {})},
        "end": {**END, **(end or {})},
    }
