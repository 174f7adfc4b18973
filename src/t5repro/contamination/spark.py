"""The search on a Spark cluster: a task for each part, merged by the driver.

A task returns the passages of the evaluated fields in its part as a note; no page moves. The
result is the one of a single machine.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from t5repro.c4.spark.frames import from_numbers
from t5repro.c4.spark.rows import NOTES, Batches, driver_context, note_batch, task_numbers
from t5repro.c4.spark.session import collect_notes
from t5repro.contamination.passages import FieldPassages, Passages, Place
from t5repro.contamination.search import Search, merged
from t5repro.contamination.texts import Part


def search_parts(spark: Any, search: Search, parts: Sequence[Part]) -> tuple[Passages, int]:
    """Return the passages of the fields in a corpus, and the units of the corpus.

    Args:
        spark: session.
        search: the search.
        parts: parts of the corpus, in folders that every worker sees.

    Raises:
        ClusterError: the cluster could not finish the search.
    """
    kernel = partial(_search, search=search, parts=parts)
    frame = from_numbers(spark, len(parts), kernel, NOTES, driver_context())
    notes = collect_notes(frame, "contamination")
    return merged((dict(map(_of_json, note["found"])), note["units"]) for note in notes)


def _search(batches: Batches, search: Search, parts: Sequence[Part]) -> Batches:
    for number in task_numbers(batches):
        passages, units = search.in_part(parts[number], number)
        entries = [_to_json(field, values) for field, values in passages.items()]
        yield note_batch(NOTES, {"found": entries, "units": units})


def _to_json(field: int, passages: FieldPassages) -> dict[str, Any]:
    sets = {"ngrams": sorted(passages.ngrams), "covered": sorted(passages.covered)}
    return {**asdict(passages), **sets, "field": field}


def _of_json(values: dict[str, Any]) -> tuple[int, FieldPassages]:
    sets: dict[str, Any] = {name: set(values[name]) for name in ("ngrams", "covered")}
    field, place = values.pop("field"), Place(*values["place"])
    return field, FieldPassages(**{**values, **sets, "place": place})
