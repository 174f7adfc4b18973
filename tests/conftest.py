"""How tests are divided between workers, the runs that they share, and the guard against hanging.

No test judges by the clock: `make test` starts two workers, and other work may run beside them.
"""

import fcntl
import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import hang_guard
import hypothesis
import pytest
from clones import LINKED, copy_clone, small_run
from pytest_timeout import Settings
from task_chain import task_chain

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment

PEERS = Path(__file__).parent / "parity"

set_environment(DevicesSettings())  # before any test module imports TensorFlow
# Before any test module imports them: these modules of `support` assert.
pytest.register_assert_rewrite("desk_page", "rate_search", "study_results")

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


@pytest.fixture(autouse=True)
def _environment_of_one_test() -> Iterator[None]:
    """Give the next test the environment that this one found; planning a run names its run file."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clone in which the whole chain has run in small. Tests must not change it."""
    yield from _made_once(tmp_path_factory, "finished", small_run)


@pytest.fixture(scope="session")
def chain_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The smallest chain, sealed and committed. Tests change copies of it."""
    yield from _made_once(tmp_path_factory, "chain_once", task_chain)


def _made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]
) -> Iterator[Path]:
    """Yield a worker's own copy of what the first worker that asks for it makes."""
    session = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent
    original, is_made = session / name / "clone", session / name / "made"
    with (session / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait here
        if not is_made.exists():
            original.parent.mkdir()
            make(original)
            is_made.touch()
        own = copy_clone(original, factory.mktemp(name) / "clone")
    yield own
    folders = [name for name in LINKED if (original / name).is_dir() and not name.startswith(".")]
    changed = ["git", "diff", "--exit-code", "--name-only", "--", *folders]
    ran = subprocess.run(changed, cwd=own, check=False)
    assert ran.returncode == 0, "a test wrote into a file that copies share; see clones.LINKED"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder of the peers out with its tests: each worker would import torch for it."""
    is_left_out = "not parity" in config.option.markexpr
    return True if collection_path == PEERS and is_left_out else None


def pytest_collection() -> None:
    """Keep Python's garbage collector from visiting the modules and tests, which stay.

    They are millions of objects, and visiting them again and again is a fifth of a worker's time.
    """
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again, of what tests make."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 20)  # all that is young is small: 2 million objects at most
    gc.enable()


LONGEST_FIRST = ("jax", "finished", "chain_once", "workflow", "keras")
OF_SMALL_RUN = LONGEST_FIRST.index("finished")


@pytest.hookimpl(trylast=True)  # when tests that do not run are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: begun last, they would keep one worker busy, the other idle.

    Before all goes one file that has the small run made: meanwhile the others, which would wait for
    it, test JAX.
    """
    items.sort(key=_rank)
    maker = next((item.path for item in items if _rank(item) == OF_SMALL_RUN), None)
    items.sort(key=lambda item: item.path != maker)


def _rank(item: pytest.Item) -> int:
    names = {*getattr(item, "fixturenames", ()), *(mark.name for mark in item.iter_markers())}
    if "browser" in names:
        names.add("finished")  # asked for only if a browser is there
    ranks = (rank for rank, name in enumerate(LONGEST_FIRST) if name in names)
    return min(ranks, default=len(LONGEST_FIRST))
