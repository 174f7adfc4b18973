"""How tests are divided between workers of pytest-xdist (`make test` starts two)."""

import pytest


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
