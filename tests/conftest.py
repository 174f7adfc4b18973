"""How tests are divided between workers of pytest-xdist, and what guards against hanging tests.

No test judges by the clock: `make test` starts two workers, and other work may run beside them.
"""

import hang_guard
import hypothesis
import pytest
from pytest_timeout import Settings

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests in one worker, and all that need the finished clone, which go first.

    That clone takes a minute to make, and its tests take longest: begun last, they would keep one
    worker busy while the other has nothing to do.
    """
    groups = {
        item: "finished" if "finished" in getattr(item, "fixturenames", ()) else item.path.name
        for item in items
    }
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: groups[item] != "finished")
