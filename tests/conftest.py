"""How tests are divided between workers, the runs that they share, and the guard against hanging.

No test judges by the clock: `make test` starts two workers, and other work may run beside them.
"""

from pathlib import Path

import hang_guard
import hypothesis
import pytest
from clones import small_run
from pytest_timeout import Settings
from task_chain import task_chain

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment

set_environment(DevicesSettings())  # before any test module imports TensorFlow

hypothesis.settings.register_profile(
    "no_clock",
    deadline=None,  # of one example; the first often imports a library
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # counts seconds as well
)
hypothesis.settings.load_profile("no_clock")


def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> bool:
    """Replace the timer of pytest-timeout by one that allows for a busy machine."""
    hang_guard.start(item, settings)
    return True


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the whole chain has run in small. Tests must not change it."""
    return small_run(tmp_path_factory.mktemp("finished") / "clone")


@pytest.fixture(scope="session")
def chain_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest chain, sealed and committed. Tests change copies of it."""
    return task_chain(tmp_path_factory.mktemp("chain") / "clone")


# Made once for a whole run, and costly, so one worker has all tests that need it.
SHARED = ("finished", "chain_once")
LONGEST_FIRST = ("finished", "chain_once", "workflow", "keras")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests in one worker, and all that need the finished clone; longest go first.

    Begun last, they would keep one worker busy while the other has nothing to do.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_rank)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop a worker that xdist gave no groups: shared runs would be made by every worker."""
    if getattr(session.config.option, "loadgroup", False):
        without = [item.nodeid for item in session.items if "@" not in item.nodeid]
        if without:
            raise pytest.UsageError(f"xdist lost the groups of {len(without)} tests; see conftest")


def _group(item: pytest.Item) -> str:
    names = getattr(item, "fixturenames", ())
    if item.get_closest_marker("browser"):
        return "finished"  # asked for only if a browser is there
    return next((name for name in SHARED if name in names), item.nodeid.partition("::")[0])


def _rank(item: pytest.Item) -> int:
    names = {_group(item), *(mark.name for mark in item.iter_markers())}
    ranks = (rank for rank, name in enumerate(LONGEST_FIRST) if name in names)
    return min(ranks, default=len(LONGEST_FIRST))
