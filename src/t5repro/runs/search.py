"""The answer to a question about all runs of a project."""

from collections.abc import Iterable
from pathlib import Path

from t5repro.runs.cache import RunCache
from t5repro.runs.states import read_rows, states, with_records
from t5repro.runs.table import Query, RunTable, make_table
from t5repro.runs.used_by import Wanted, users_of


def search(
    root: Path, query: Query, wanted: Iterable[Wanted] = (), *, all_revisions: bool = False
) -> RunTable:
    """Return the rows of all runs that match.

    Args:
        root: the checkout.
        query: terms, order and columns.
        wanted: files that the rows must depend on.
        all_revisions: whether to read the revisions of git too.

    Raises:
        LineageError: the question has no answer: an unknown key, file or page.
    """
    places = states(root, all_revisions=all_revisions)
    cache = RunCache(root)
    faults: list[tuple[str, str]] = []
    rows = read_rows(places, cache, faults)
    if query.needs_records:
        rows = with_records(rows, places, cache)
    cache.save()
    uses = [users_of(places, file) for file in wanted]
    return make_table(rows, query, uses=uses, faults=faults)
