"""A row of the table of runs: one experiment with one seed, as one state of the project has it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from t5repro.runs.terms import Value

SCORE, COUNTER = "score.", "counter."  # prefixes of keys; a setting has its path in a run file
RECORDED = ("date", "seconds", "commit", "machine")  # known from records only
FACTS = (
    *("run", "experiment", "seed", "state", "places", "flops", "tokens", "parameters"),
    *RECORDED,
)
FINISHED, UNSCORED, STALE = "finished", "unscored", "stale"


@dataclass(frozen=True)
class Row:
    """The known values of one experiment.

    Attributes:
        values: key -> value, of facts, settings, scores (`SCORE`) and counters (`COUNTER`).
        job: its last job: that of its scores, or the last that has finished.
        jobs: its trainings, predictions and scores.
        headlines: keys of the first metric of each task and of the averages.
        places: the states that have it.
    """

    values: Mapping[str, Value]
    job: str
    jobs: tuple[str, ...]
    headlines: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def get(self, key: str) -> Value:
        """Return a value; None if it is missing."""
        return ", ".join(self.places) if key == "places" else self.values.get(key)

    def at(self, *places: str) -> "Row":
        """Return this row in other places."""
        return replace(self, places=places)


def to_cache(rows: tuple[Row, ...]) -> dict[str, Any]:
    """Return the rows of a run as JSON values; their common values are in it once."""
    shared = dict(rows[0].values) if rows else {}
    for row in rows[1:]:
        shared = {
            key: value
            for key, value in shared.items()
            if key in row.values and _is(row.values[key], value)
        }
    return {
        "shared": shared,
        "rows": [
            {
                "own": {key: value for key, value in row.values.items() if key not in shared},
                "job": row.job,
                "jobs": row.jobs,
                "headlines": row.headlines,
            }
            for row in rows
        ],
    }


def _is(first: Value, second: Value) -> bool:
    # True and 1 are equal, and so are 1 and 1.0.
    return type(first) is type(second) and first == second


def from_cache(values: Mapping[str, Any], place: str) -> tuple[Row, ...]:
    """Return the rows that `to_cache` wrote; KeyError, TypeError or ValueError for other values."""
    shared = dict(values["shared"])
    return tuple(
        Row(
            {**shared, **row["own"]},
            str(row["job"]),
            tuple(map(str, row["jobs"])),
            tuple(map(str, row["headlines"])),
            (place,),
        )
        for row in values["rows"]
    )
