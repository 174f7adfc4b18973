"""The states of a project that have runs: the working tree, committed studies, revisions of git."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from t5repro.artifacts import MANIFEST, SCORES
from t5repro.errors import T5ReproError
from t5repro.lineage.impact import revisions
from t5repro.lineage.store import RECORDS, RESULTS, Folder, Revision, Store
from t5repro.lineage.study_archive import ARCHIVE, Archive
from t5repro.runs.cache import RunCache, identity_of_files
from t5repro.runs.read import Faults, read_run
from t5repro.runs.record_facts import facts_of_rows
from t5repro.runs.row import Row, from_cache, to_cache
from t5repro.runs.terms import Value

STUDIES = "studies"
READ = (MANIFEST, SCORES)


@dataclass(frozen=True)
class State:
    """A state of the project, and how its rows are read.

    Attributes:
        place: its name in answers.
        store: its files.
        root: the checkout.
        now: time at which the question was asked, in nanoseconds.
    """

    place: str
    store: Store
    root: Path
    now: int

    @cached_property
    def runs(self) -> dict[str, list[str]]:
        """Run -> its manifests and scores, sorted; a file of no run is one of the run "".

        Raises:
            T5ReproError: the state cannot be read.
        """
        runs: dict[str, list[str]] = {}
        for name in self.store.names(RESULTS, ".json"):
            if name.endswith(READ):
                parts = name.split("/")
                # results/RUN/RULE/NODE/FILE; a manifest above that depth was put there by hand.
                runs.setdefault(parts[1] if len(parts) > 3 else "", []).append(name)
        return runs

    @cached_property
    def identity(self) -> str | None:
        """What changes if an archive does, or the commit of a revision."""
        if isinstance(self.store, Archive):
            # A commit never changes; an archive in the checkout may be replaced.
            archive = f"{self.place}/{ARCHIVE}"
            return identity_of_files(self.root, [archive], now=self.now)
        return self.store.name

    def manifests(self, run: str) -> list[str]:
        """Return the paths of the manifests of a run."""
        return [name for name in self.runs[run] if name.endswith(MANIFEST)]

    def keys(self, cache: RunCache) -> Iterator[tuple[str, str | None, tuple[str, ...]]]:
        """Yield key, identity and runs of each entry of the cache that this state has."""
        if isinstance(self.store, Folder):
            # One entry a run: a finished job makes only the rows of its run stale.
            for run, names in self.runs.items():
                yield f"{RESULTS}/{run}", identity_of_files(self.root, names, now=self.now), (run,)
            return
        is_known = cache.get(self.place, self.identity) is not None
        yield self.place, self.identity, () if is_known else tuple(self.runs)


def states(root: Path, *, all_revisions: bool = False) -> list[State]:
    """Return the working tree, then the studies by name, then the revisions, newest first.

    Args:
        root: the checkout.
        all_revisions: whether to return revisions of git at all.

    Raises:
        LineageError: the revisions cannot be listed.
    """
    query_time = time.time_ns()
    all_states = [State(RESULTS, Folder(root), root, query_time)]
    for archive in sorted((root / STUDIES).glob(f"*/{ARCHIVE}")):
        all_states.append(
            State(f"{STUDIES}/{archive.parent.name}", Archive(archive.parent), root, query_time)
        )
    if all_revisions:
        all_states += [
            State(f"revision {commit[:12]}", Revision(root, commit), root, query_time)
            for commit in revisions(root)
        ]
    return all_states


def read_rows(states: Iterable[State], cache: RunCache, faults: list[tuple[str, str]]) -> list[Row]:
    """Return the rows of all states; a row that several states have is one with several places.

    Args:
        states: the states.
        cache: rows that were read earlier.
        faults: receives place and message of each file that cannot be read.
    """
    by_job: dict[str, list[Row]] = {}
    for state in states:
        try:
            rows = list(_rows_of(state, cache, faults))
        except T5ReproError as error:  # its archive is damaged, or its lists are not in the cache
            faults.append((state.place, str(error)))
            continue
        for row in rows:
            _merge(row, by_job.setdefault(row.job, []))
    return [row for rows in by_job.values() for row in rows]


def _merge(row: Row, known_rows: list[Row]) -> None:
    """Add a row, or its place to the row that is equal in everything else."""
    for number, known_row in enumerate(known_rows):
        # equal scores of other settings or machines stay two rows
        if known_row.values == row.values:
            known_rows[number] = known_row.at(*known_row.places, *row.places)
            return
    known_rows.append(row)


def _rows_of(state: State, cache: RunCache, faults: list[tuple[str, str]]) -> Iterator[Row]:
    for key, identity, runs in state.keys(cache):
        values = cache.get(key, identity)
        try:
            if values is not None:
                yield from from_cache(values, state.place)
                continue
        except (KeyError, TypeError, ValueError):  # somebody else wrote the cache
            pass
        run_faults: Faults = []
        rows: tuple[Row, ...] = ()
        for run in runs or tuple(state.runs):
            manifests = state.manifests(run)
            if run:
                rows += read_run(state.store, run, manifests, run_faults)
            else:
                run_faults += [(path, "it is in no folder of a run") for path in manifests]
        if not run_faults:  # a fault is said again, and may be gone
            cache.put(key, identity, to_cache(rows))
        faults += [(state.place, f"{path}: {message}") for path, message in run_faults]
        # The cache has rows without a place, since a study may be moved.
        yield from (row.at(state.place) for row in rows)


def with_records(rows: Iterable[Row], states: Iterable[State], cache: RunCache) -> list[Row]:
    """Return the rows with the facts of their jobs' records, in the first place of each."""
    by_place: dict[str, list[Row]] = {}
    for row in rows:
        by_place.setdefault(row.places[0], []).append(row)
    answer = []
    for state in states:
        for run, of_run in _by_run(by_place.get(state.place, ())).items():
            facts = _recorded(state, run, of_run, cache)
            answer += [
                replace(row, values={**row.values, **facts.get(row.job, {})}) for row in of_run
            ]
    return answer


def _by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(str(row.get("run")), []).append(row)
    return runs


def _recorded(
    state: State, run: str, rows: list[Row], cache: RunCache
) -> dict[str, dict[str, Value]]:
    """Return last job -> facts of its row's records, cached while these are unchanged."""
    key, identity = f"{RECORDS} of {state.place}/{run}", _identity_of_records(state, run)
    if identity is not None:
        # Rows of one state differ between questions: with other rows the facts are others.
        identity = " ".join([identity, *(row.job for row in rows)])
    values = cache.get(key, identity)
    # The cache is a file that anybody can write; its values are trusted in no form.
    if isinstance(values, dict) and all(isinstance(facts, dict) for facts in values.values()):
        return values
    facts = facts_of_rows(state.store, rows)
    cache.put(key, identity, facts)
    return facts


def _identity_of_records(state: State, run: str) -> str | None:
    if isinstance(state.store, Folder):
        names = state.store.names(f"{RECORDS}/{run}", ".json")
        return identity_of_files(state.root, names, now=state.now)
    return state.identity
