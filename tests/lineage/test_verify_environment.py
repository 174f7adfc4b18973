"""The lock that an environment was made from, among several."""

from importlib import metadata
from pathlib import Path

import pytest

from t5repro.lineage.verify_environment import nearest_lock

INSTALLED = {
    distribution.metadata["Name"]: distribution.version
    for distribution in metadata.distributions()
    if distribution.metadata["Name"] != "t5repro"
}
DEVELOPERS = {"ruff", "mypy", "pyspark", "hypothesis"}
RUNTIME = {name: version for name, version in INSTALLED.items() if name not in DEVELOPERS}


def write_lock(folder: Path, name: str, versions: dict[str, str]) -> None:
    lines = (f"{package}=={version}\n" for package, version in versions.items())
    path = folder / "requirements" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def test_an_environment_of_the_shorter_lock_agrees_with_it(tmp_path: Path) -> None:
    more = {f"not-installed-{number}": "1.0" for number in range(80)}
    write_lock(tmp_path, "full.txt", INSTALLED | more)
    write_lock(tmp_path, "runtime.txt", INSTALLED)
    assert nearest_lock(tmp_path) == ("requirements/runtime.txt", [])


def test_an_environment_of_the_longer_lock_agrees_with_it(tmp_path: Path) -> None:
    write_lock(tmp_path, "full.txt", INSTALLED)
    write_lock(tmp_path, "a-runtime.txt", RUNTIME)
    assert nearest_lock(tmp_path) == ("requirements/full.txt", [])


@pytest.mark.parametrize("package", sorted(DEVELOPERS))
def test_another_version_is_named_although_the_shorter_lock_lacks_the_package(
    tmp_path: Path, package: str
) -> None:
    write_lock(tmp_path, "full.txt", INSTALLED | {package: "0.0.1"})
    write_lock(tmp_path, "runtime.txt", RUNTIME)
    lock, (finding,) = nearest_lock(tmp_path)
    assert (lock, finding.path) == ("requirements/full.txt", package)
    assert "requirements/full.txt has 0.0.1; run make setup" in finding.message
