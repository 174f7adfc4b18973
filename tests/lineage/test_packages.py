"""Which files belong to an installed package, also where the environment is behind a link."""

import sys
from pathlib import Path

import pytest

from t5repro.lineage import packages


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with one package of a module and a program."""
    folder = tmp_path / "real"
    site = folder / "lib/site-packages"
    (site / "one-1.0.dist-info").mkdir(parents=True)
    (site / "one-1.0.dist-info/RECORD").write_text("one.py,,\n../../bin/one,,\n", encoding="utf-8")
    (folder / "bin").mkdir()
    for path in (site / "one.py", site / "two.py", folder / "bin/one", folder / "bin/two"):
        path.touch()
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setattr(packages, "_cache_file", lambda: tmp_path / "cache")
    return tmp_path


# Python names a program by the link that it was started by, its modules by those of its own
# environment, and loaded libraries without links.
@pytest.mark.parametrize("imported_from", ["real", "link"])
@pytest.mark.parametrize("named_by", ["real", "link"])
def test_files_of_packages_are_told_from_others_by_either_path(
    environment: Path, monkeypatch: pytest.MonkeyPatch, imported_from: str, named_by: str
) -> None:
    monkeypatch.setattr(sys, "path", [str(environment / imported_from / "lib/site-packages")])
    installed, folder = packages.installed(), environment / named_by
    assert installed.has(str(folder / "bin/one"))
    assert installed.has(str(folder / "lib/site-packages/one.py"))
    assert not installed.has(str(folder / "bin/two"))
    assert not installed.has(str(folder / "lib/site-packages/two.py"))
    (environment / "real/bin/three").symlink_to("one")
    assert not installed.has(str(folder / "bin/three"))  # a file that no package has
